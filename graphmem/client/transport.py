"""Sending calls with httpx, blocking or asynchronous, again where that may help."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any, TypeVar

import httpx

from graphmem.client.api_call import ApiCall
from graphmem.client.error_responses import error_from_response
from graphmem.client.retries import CallRetryPolicy
from graphmem.runtime.errors import GraphmemError, Unavailable

T = TypeVar("T")


class BlockingTransport:
    """Sends calls and blocks until the response is there."""

    def __init__(self, api_key: str, base_url: str, timeout: float, policy: CallRetryPolicy, trust_env: bool) -> None:
        self._http = httpx.Client(**_http_options(api_key, base_url, timeout, trust_env))
        self._policy = policy

    def send(self, call: ApiCall[T]) -> T:
        """Send a call and return its parsed response; raise the error that the response stands for."""
        request = _build_request(self._http, call, self._policy)
        attempt = 0
        while True:
            attempt += 1
            try:
                return _parse_response(call, self._send_once(request))
            except GraphmemError as error:
                pause = self._policy.pause_after(attempt, error)
                if pause is None:
                    raise
            time.sleep(pause)

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class AsyncTransport:
    """Sends calls without blocking the event loop."""

    def __init__(
        self,
        api_key: str,
        base_url: str,
        timeout: float,
        policy: CallRetryPolicy,
        trust_env: bool,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        options = _http_options(api_key, base_url, timeout, trust_env)
        self._http = httpx.AsyncClient(**options, transport=transport)
        self._policy = policy

    async def send(self, call: ApiCall[T]) -> T:
        """Send a call and return its parsed response; raise the error that the response stands for."""
        request = _build_request(self._http, call, self._policy)
        attempt = 0
        while True:
            attempt += 1
            try:
                return _parse_response(call, await self._send_once(request))
            except GraphmemError as error:
                pause = self._policy.pause_after(attempt, error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _send_once(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._http.send(request)
        except httpx.HTTPError as error:
            raise _connection_error(request, error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _http_options(api_key: str, base_url: str, timeout: float, trust_env: bool) -> dict[str, Any]:
    return {
        "base_url": base_url,
        "headers": {"Authorization": f"Bearer {api_key}"},
        "timeout": timeout,
        "trust_env": trust_env,
        "verify": not base_url.startswith("http://"),  # certificates are loaded only where they are needed
    }


def _build_request(
    http: httpx.Client | httpx.AsyncClient, call: ApiCall[Any], policy: CallRetryPolicy
) -> httpx.Request:
    """Return the request of a call; all attempts, where there are several, share it and thereby its idempotency key."""
    headers = dict(call.headers)
    if call.content is not None:
        headers["Content-Type"] = call.media_type
    if call.is_write and policy.attempts > 1:
        headers["Idempotency-Key"] = uuid.uuid4().hex
    timeout = httpx.Timeout(http.timeout.connect, read=None) if call.waits_for_completion else http.timeout
    return http.build_request(
        call.method, call.path, params=call.params, content=call.content, headers=headers, timeout=timeout
    )


def _parse_response(call: ApiCall[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise error_from_response(response)
    try:
        return call.parse(response)
    except (ValueError, KeyError, TypeError) as error:
        raise GraphmemError(f"{response.url.host} does not answer as graphmem: check the address.") from error


def _connection_error(request: httpx.Request, error: httpx.HTTPError) -> GraphmemError:
    """Return the error of a request that got no response."""
    address = f"{request.url.scheme}://{request.url.netloc.decode()}"
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError):
        return Unavailable(f"graphmem at {address} cannot be reached ({reason}).", retry_after=None)
    return GraphmemError(f"graphmem at {address} cannot be called ({reason}): check the address.")
