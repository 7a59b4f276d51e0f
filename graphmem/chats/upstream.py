"""The providers that model calls are passed on to: their addresses, their keys, and what is sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import httpx
from pydantic import SecretStr

from graphmem.runtime.errors import NotConfigured, Unavailable
from graphmem.runtime.settings import Settings

CONNECT_SECONDS = 10.0
"""Seconds in which a provider must accept a connection."""

MAX_IDLE_CONNECTIONS = 32
"""Connections to providers that are kept for further calls."""

CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key")
"""Headers in which clients of providers send a key, in lower case."""


class UpstreamProtocol(StrEnum):
    """Whose protocol a provider speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


_DEFAULT_URLS = {
    UpstreamProtocol.OPENAI: "https://api.openai.com/v1",
    UpstreamProtocol.ANTHROPIC: "https://api.anthropic.com",
}


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider: its address, and the key that calls get, if they get one."""

    url: str
    key: SecretStr | None

    def credentials(self, received: Mapping[str, str]) -> dict[str, str]:
        """Return the key in the header in which the caller sends theirs; nothing without a key."""
        if self.key is None:
            return {}
        secret = self.key.get_secret_value()
        if received.get("authorization") or not received.get("x-api-key"):
            return {"authorization": f"Bearer {secret}"}
        return {"x-api-key": secret}


class UpstreamService:
    """Sends requests to the providers of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None

    @property
    def accepts_caller_keys(self) -> bool:
        """Whether a caller's own key of the provider is passed on."""
        return self._settings.upstream_caller_keys

    def find(self, protocol: UpstreamProtocol) -> Upstream:
        """Return the provider of a protocol; raise NotConfigured where there is none."""
        settings = self._settings
        url, key = {
            UpstreamProtocol.OPENAI: (settings.upstream_openai_url, settings.upstream_openai_key),
            UpstreamProtocol.ANTHROPIC: (settings.upstream_anthropic_url, settings.upstream_anthropic_key),
        }[protocol]
        if not url and not key and not settings.upstream_caller_keys:
            name = protocol.name
            raise NotConfigured(
                "Model calls cannot be forwarded because no provider is configured: set "
                f"GRAPHMEM_UPSTREAM_{name}_KEY, GRAPHMEM_UPSTREAM_{name}_URL or both."
            )
        return Upstream((url or _DEFAULT_URLS[protocol]).rstrip("/"), key)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> httpx.Response:
        """Send a request; return its response, whose body the caller reads and closes.

        Raises Unavailable for a provider that does not answer.
        """
        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._settings.upstream_timeout, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_keepalive_connections=MAX_IDLE_CONNECTIONS),
            )
        request = self._http.build_request(method, url, content=content, headers=dict(headers))
        try:
            return await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(
                f"The model provider does not answer ({reason}): check GRAPHMEM_UPSTREAM_…_URL, or try again later."
            ) from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
