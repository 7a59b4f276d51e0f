"""Servers that speak the OpenAI API, whether they complete or embed: how they are reached, what they ask for."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_DAY = 86_400.0


def create_client(base_url: str, api_key: str, timeout: float) -> AsyncOpenAI:
    """Return a client that tries once and waits `timeout` seconds; what it sends stays out of the logs."""
    # The library writes whole requests at DEBUG, and they hold what users said.
    library = logging.getLogger("openai")
    library.setLevel(max(library.level, logging.INFO))
    # A server on this machine is spoken to directly, whatever proxy the environment names.
    http = DefaultAsyncHttpxClient(trust_env=not _is_loopback(base_url))
    return AsyncOpenAI(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0, http_client=http)


def retry_after_seconds(error: BaseException | None) -> float | None:
    """Seconds the server asks to wait by `Retry-After` (a number or an HTTP date); None when it does not."""
    if not isinstance(error, APIStatusError) or not (value := error.response.headers.get("retry-after")):
        return None
    try:
        pause = float(value)
    except ValueError:
        try:
            pause = (parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return min(max(0.0, pause), _DAY)


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
