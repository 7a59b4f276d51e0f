"""Sending one change: signed requests to public addresses."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httpcore

from graphmem.changes.models import (
    decode_secret,
    is_public_address,
)

_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
"""The last label of a host that is an address, if any, in one of the spellings that resolvers accept."""

TIMEOUT_SECONDS = 15.0
"""Seconds for one delivery in total."""

CONNECT_SECONDS = 5.0
"""Seconds within which a connection must be established."""

MAX_RESPONSE_BYTES = 64 * 1024
"""Bytes of a response that are read; the rest is dropped with the connection."""

USER_AGENT = "graphmem-webhooks"
SIGNATURE_VERSION = "v1"


def sign(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a delivery: HMAC-SHA256 of its id, time and body, as Standard Webhooks defines it."""
    signed = b".".join([event_id.encode(), str(timestamp).encode(), body])
    digest = hmac.digest(decode_secret(secret), signed, hashlib.sha256)
    return f"{SIGNATURE_VERSION},{base64.b64encode(digest).decode()}"


class DeliveryFailed(Exception):
    """A delivery did not succeed; `status` is the HTTP status, None without a response."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class DeliveryImpossible(Exception):
    """A change cannot be sent to any receiver, such as one whose id does not fit into a header."""


class ForbiddenAddress(Exception):
    """A webhook must not connect to an address; the message says why."""


async def find_public_addresses(url: str) -> list[str]:
    """Return the addresses of a URL's host; raise ForbiddenAddress unless the URL is https and all are public.

    Raises OSError if the name cannot be resolved.
    """
    parts = urlsplit(url)
    if not url.startswith("https://"):
        raise ForbiddenAddress("must begin with https://")
    return await resolve_public(parts.hostname or "", parts.port or 443)


async def resolve_public(host: str, port: int) -> list[str]:
    """Return the addresses of a host; raise ForbiddenAddress unless all are public, OSError when there are none."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        raise ForbiddenAddress("must be public")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        if _NUMBER.fullmatch(name.rpartition(".")[2]):
            raise ForbiddenAddress("must be an IP address or a name") from None
        raise OSError("the host name cannot be resolved") from None
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    if not all(map(is_public_address, addresses)):
        raise ForbiddenAddress("must be public")
    return addresses


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the address it has resolved and checked, so that a second lookup cannot return another one."""

    def __init__(self) -> None:
        # A checker sees the class that httpcore defines where anyio is missing.
        self._inner = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve a host, check every address, and connect to the first one that answers."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await resolve_public(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("the host name could not be resolved in time") from error
        except OSError as error:
            raise httpcore.ConnectError("the host name cannot be resolved") from error
        *others, last = addresses
        for address in others:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(last, port, timeout, local_address, socket_options)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's interface
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse to connect."""
        raise ForbiddenAddress("must be public")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request to send: its address, the secret that signs it, the id of the change, and the body."""

    url: str
    secret: str
    event_id: str
    timestamp: int
    body: bytes


class WebhookSender:
    """Sends deliveries over connections that are reused; `allow_private` permits HTTP and every address."""

    def __init__(self, *, allow_private: bool = False) -> None:
        self._allow_private = allow_private
        # No proxy from the environment: it would resolve the name itself.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=20,
            keepalive_expiry=10,
            network_backend=None if allow_private else PublicNetwork(),
        )

    async def send(self, delivery: Delivery) -> int:
        """Send a delivery and return its success status; raise DeliveryFailed otherwise.

        Raises DeliveryImpossible if it cannot be sent to any receiver.
        """
        if not self._allow_private and not delivery.url.startswith("https://"):
            raise DeliveryFailed("the address is not https")
        if not (delivery.event_id.isascii() and delivery.event_id.isprintable()):
            raise DeliveryImpossible("its id cannot be sent in a header")
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                status = await self._post(delivery)
        except TimeoutError:
            raise DeliveryFailed(f"no response within {TIMEOUT_SECONDS:.0f} seconds") from None
        except ForbiddenAddress:
            raise DeliveryFailed("the host does not have a public address") from None
        except httpcore.LocalProtocolError:
            raise DeliveryImpossible("it does not fit into a request") from None
        except httpcore.TimeoutException:
            raise DeliveryFailed("the receiver did not answer in time") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise DeliveryFailed(f"the receiver cannot be reached ({type(error).__name__})") from None
        if 200 <= status < 300:
            return status
        reason = "answered with a redirect, which is not followed" if 300 <= status < 400 else f"answered {status}"
        raise DeliveryFailed(f"the receiver {reason}", status)

    async def _post(self, delivery: Delivery) -> int:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": USER_AGENT,
            "webhook-id": delivery.event_id,
            "webhook-timestamp": str(delivery.timestamp),
            "webhook-signature": sign(delivery.secret, delivery.event_id, delivery.timestamp, delivery.body),
        }
        timeouts = {"connect": CONNECT_SECONDS, "read": TIMEOUT_SECONDS, "write": TIMEOUT_SECONDS, "pool": None}
        async with self._pool.stream(
            "POST", delivery.url, headers=list(headers.items()), content=delivery.body, extensions={"timeout": timeouts}
        ) as response:
            size = 0
            async for part in response.aiter_stream():
                size += len(part)
                if size > MAX_RESPONSE_BYTES:
                    break
            return int(response.status)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()
