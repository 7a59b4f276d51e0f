"""The client of servers that speak the OpenAI API, for completions and embeddings alike."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from urllib.parse import urlsplit

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from graphmem.runtime.settings import Settings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""Address of the server where the settings name none."""

NO_KEY = "none"
"""Key for servers that need none; the client library refuses an empty one."""


def create_client(base_url: str, api_key: str, timeout: float) -> AsyncOpenAI:
    """Return a client that tries once and waits `timeout` seconds; what it sends stays out of the logs."""
    # The library writes whole requests at DEBUG, and they hold what users said.
    library = logging.getLogger("openai")
    library.setLevel(max(library.level, logging.INFO))
    # A server on this machine is reached directly, whatever proxy the environment names.
    http = DefaultAsyncHttpxClient(trust_env=not _is_loopback(base_url))
    return AsyncOpenAI(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0, http_client=http)


def api_key_of(settings: Settings) -> str:
    """Return the configured key, or the one for servers that need none."""
    key = settings.openai_api_key.get_secret_value().strip() if settings.openai_api_key else ""
    return key or NO_KEY


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
