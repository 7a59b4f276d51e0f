# An image for the API, the worker and the MCP server. It runs as a user without rights and writes only to /data and /tmp,
# so it can run with a read-only root file system (see docker-compose.yml). What builds it stays in the first stage.
# The first start downloads the embedding model into the volume.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY graphmem graphmem
COPY api api
COPY cypher cypher
COPY examples examples
RUN python -m venv /opt/graphmem \
 && /opt/graphmem/bin/pip install --no-cache-dir -c constraints.txt ".[otel,redis]" \
 && /opt/graphmem/bin/pip uninstall --yes pip

FROM python:3.12-slim
RUN useradd --no-create-home --home-dir /data --shell /usr/sbin/nologin --uid 10001 graphmem \
 && mkdir /data && chown graphmem:graphmem /data && chmod 700 /data \
 && python -m pip uninstall --yes pip
COPY --from=build /opt/graphmem /opt/graphmem
COPY deploy/with-secrets /usr/local/bin/with-secrets
ENV PATH=/opt/graphmem/bin:$PATH PYTHONDONTWRITEBYTECODE=1 HOME=/data \
    GRAPHMEM_DATA_DIR=/data GRAPHMEM_CACHE_DIR=/data/cache GRAPHMEM_HOST=0.0.0.0 GRAPHMEM_PORT=8321
USER 10001:10001
VOLUME /data
EXPOSE 8321
ENTRYPOINT ["with-secrets", "graphmem"]
CMD ["serve"]
