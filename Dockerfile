# A slim image for the API, the worker and the MCP server. The first start downloads the embedding model into the volume.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY graphmem graphmem
COPY api api
COPY cypher cypher
RUN python -m venv /opt/graphmem \
 && /opt/graphmem/bin/pip install --no-cache-dir -c constraints.txt ".[otel]"

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 graphmem && mkdir /data && chown graphmem /data
COPY --from=build /opt/graphmem /opt/graphmem
COPY deploy/with-secrets /usr/local/bin/with-secrets
ENV PATH=/opt/graphmem/bin:$PATH GRAPHMEM_DATA_DIR=/data GRAPHMEM_CACHE_DIR=/data/cache \
    GRAPHMEM_HOST=0.0.0.0 GRAPHMEM_PORT=8321
USER graphmem
VOLUME /data
EXPOSE 8321
ENTRYPOINT ["with-secrets", "graphmem"]
CMD ["serve"]
