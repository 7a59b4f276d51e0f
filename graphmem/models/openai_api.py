"""OpenAI-compatible servers: their client, for completions and embeddings, and the embedder."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError

from graphmem.models.embedder import VectorCache
from graphmem.runtime.errors import ConfigurationError, GraphmemError, ModelUnavailable
from graphmem.runtime.retries import (
    DEFAULT_RETRY_AFTER_SECONDS,
    RetryPolicy,
    is_transient,
    retry_after_seconds,
)
from graphmem.runtime.settings import Settings
from graphmem.runtime.tracing import span
from graphmem.text.token_counts import truncate_to_tokens

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""Default address of the server."""

NO_KEY = "none"
"""Key for servers that need none; the client library rejects an empty key."""


_sends_request = ContextVar("graphmem_sends_request", default=False)


class _OtherRequests(logging.Filter):
    """Drops a client library's DEBUG logs of graphmem's requests: whole prompts, which contain users' messages.

    Logs of other requests in this process are not affected.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may be logged."""
        return record.levelno > logging.DEBUG or not _sends_request.get()


_other_requests = _OtherRequests()


def filter_logs_of(library: str) -> None:
    """Make a client library's loggers drop the contents of `unlogged` requests; call it after the import."""
    for name in [library, *logging.root.manager.loggerDict]:
        if name == library or name.startswith(f"{library}."):
            logging.getLogger(name).addFilter(_other_requests)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the texts of the block's requests out of the logs."""
    token = _sends_request.set(True)
    try:
        yield
    finally:
        _sends_request.reset(token)


def create_client(base_url: str, api_key: str, timeout: float) -> AsyncOpenAI:
    """Return a client that tries once and waits `timeout` seconds."""
    filter_logs_of("openai")
    # Reach a server on this machine directly, even if the environment names a proxy.
    http = DefaultAsyncHttpxClient(trust_env=not is_loopback(base_url))
    return AsyncOpenAI(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0, http_client=http)


def api_key_of(settings: Settings) -> str:
    """Return the configured key, or the one for servers that need none."""
    key = settings.openai_api_key.get_secret_value().strip() if settings.openai_api_key else ""
    return key or NO_KEY


def is_loopback(base_url: str) -> bool:
    """Return whether an address belongs to this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


DEFAULT_MODEL = "text-embedding-3-small"

_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_MAX_BATCH_TEXTS = 256
_MAX_BATCH_CHARS = 200_000
_MAX_TEXT_TOKENS = 8000
"""Maximum tokens of one text; OpenAI's models accept 8,192."""


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible server. Belongs to the event loop of its first call."""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str = NO_KEY,
        base_url: str | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        self.model = model or DEFAULT_MODEL
        self._dimension = _DIMENSIONS.get(self.model, 0)
        self._retries = retries or RetryPolicy()
        self._open_lock = asyncio.Lock()
        self._cache = VectorCache()
        self._client = create_client(base_url or DEFAULT_BASE_URL, api_key, self._retries.timeout)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the configured embedder; raise ConfigurationError if neither a key nor an address is set."""
        if not settings.has_model:
            raise ConfigurationError(
                "GRAPHMEM_EMBEDDER=openai needs a server: set OPENAI_API_KEY or OPENAI_BASE_URL, or set "
                "GRAPHMEM_EMBEDDER=local.",
                retry_after=None,
            )
        return cls(
            settings.embedding_model,
            api_key=api_key_of(settings),
            base_url=settings.openai_base_url,
            retries=RetryPolicy(timeout=settings.llm_timeout, attempts=settings.llm_attempts),
        )

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 until opened, unless the model is known by name."""
        return self._dimension

    async def open(self) -> None:
        """Determine the dimension, with one call unless the model is known.

        Raises ConfigurationError if the server rejects the call.
        """
        async with self._open_lock:
            if not self._dimension:
                self._dimension = len((await self._request_with_retries(["dimension"]))[0])

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector of unit length per text; only the first 8,000 tokens of a text count.

        The API does not distinguish questions, so `query` has no effect.
        """
        await self.open()
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.get_or_embed(texts, self._embed_all)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _embed_all(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for batch in _batches([_prepare_text(text) for text in texts]):
            vectors += await self._request_with_retries(batch)
        for vector in vectors:
            if len(vector) != self._dimension:
                raise ConfigurationError(
                    f"{self.model} gave a vector of {len(vector)} dimensions where {self._dimension} were expected: "
                    "check that GRAPHMEM_EMBEDDING_MODEL and OPENAI_BASE_URL belong together.",
                    retry_after=None,
                )
        return vectors

    async def _request_with_retries(self, texts: list[str]) -> list[list[float]]:
        try:
            return await self._retries.run(f"model {self.model}", lambda: self._request(texts))
        except (TimeoutError, OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise self._to_graphmem_error(error) from None

    async def _request(self, texts: list[str]) -> list[list[float]]:
        async with asyncio.timeout(self._retries.timeout):
            with unlogged():
                answer = await self._client.embeddings.create(model=self.model, input=texts, encoding_format="float")
        rows = sorted(answer.data, key=lambda row: row.index)
        if [row.index for row in rows] != list(range(len(texts))):
            raise ValueError("not one vector a text")
        return [_normalize(row.embedding) for row in rows]

    def _to_graphmem_error(self, error: Exception) -> GraphmemError:
        """Return the error to raise; it never quotes the server, whose text may echo the user's."""
        if isinstance(error, APIStatusError) and not is_transient(error):
            hint = {401: "check OPENAI_API_KEY", 404: "check GRAPHMEM_EMBEDDING_MODEL and OPENAI_BASE_URL"}
            advice = hint.get(error.status_code, "check OPENAI_API_KEY, its quota, and GRAPHMEM_EMBEDDING_MODEL")
            return ConfigurationError(
                f"The server refused to embed with {self.model} ({error.status_code}): {advice}.", retry_after=None
            )
        if isinstance(error, APIStatusError):
            why = f"failed ({error.status_code})"
        elif isinstance(error, TimeoutError | APIConnectionError):
            why = "cannot be reached or does not answer in time: check OPENAI_BASE_URL"
        else:
            return ConfigurationError(
                "The server's answer contains no embeddings: check that OPENAI_BASE_URL is an OpenAI-compatible "
                "address, which often ends in /v1.",
                retry_after=None,
            )
        return ModelUnavailable(
            f"The embedding server {why}, tried {self._retries.attempts} times.",
            retry_after=max(DEFAULT_RETRY_AFTER_SECONDS, math.ceil(retry_after_seconds(error) or 0)),
        )


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _MAX_BATCH_TEXTS or size + len(text) > _MAX_BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _prepare_text(text: str) -> str:
    """Return a text that the API accepts: not blank, valid UTF-8, not too long."""
    return truncate_to_tokens(text, _MAX_TEXT_TOKENS) or " "


def _normalize(vector: list[float]) -> list[float]:
    length = math.sqrt(math.fsum(number * number for number in vector))
    return [number / length for number in vector] if length else vector
