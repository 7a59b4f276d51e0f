"""The client of servers that speak the OpenAI API, for completions and embeddings alike."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from urllib.parse import urlsplit

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from graphmem.runtime.settings import Settings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""Address of the server where the settings name none."""

NO_KEY = "none"
"""Key for servers that need none; the client library refuses an empty one."""


_sends_request = ContextVar("graphmem_sends_request", default=False)


class _OtherRequests(logging.Filter):
    """Drops what a client library logs at DEBUG about graphmem's requests: whole prompts, which hold what users said.

    What it logs about the requests of others in this process is left to them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may be logged."""
        return record.levelno > logging.DEBUG or not _sends_request.get()


_other_requests = _OtherRequests()


def filter_logs_of(library: str) -> None:
    """Let the loggers of a client library, which exist once it is imported, drop what `unlogged` requests hold."""
    for name in [library, *logging.root.manager.loggerDict]:
        if name == library or name.startswith(f"{library}."):
            logging.getLogger(name).addFilter(_other_requests)


@contextmanager
def unlogged() -> Iterator[None]:
    """Send a request whose texts stay out of the logs."""
    token = _sends_request.set(True)
    try:
        yield
    finally:
        _sends_request.reset(token)


def create_client(base_url: str, api_key: str, timeout: float) -> AsyncOpenAI:
    """Return a client that tries once and waits `timeout` seconds."""
    filter_logs_of("openai")
    # A server on this machine is reached directly, whatever proxy the environment names.
    http = DefaultAsyncHttpxClient(trust_env=not is_loopback(base_url))
    return AsyncOpenAI(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0, http_client=http)


def api_key_of(settings: Settings) -> str:
    """Return the configured key, or the one for servers that need none."""
    key = settings.openai_api_key.get_secret_value().strip() if settings.openai_api_key else ""
    return key or NO_KEY


def is_loopback(base_url: str) -> bool:
    """Return whether an address is one of this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
