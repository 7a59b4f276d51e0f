"""Idempotency keys: the first response to a request is stored and replayed; one with a secret is encrypted.

Responses about a space are only replayed to callers who may still write there.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from graphmem.app.bootstrap import Services
from graphmem.neo4j.availability import limit_database_time
from graphmem.runtime.errors import (
    Gone,
    GraphmemError,
    IdempotencyConflict,
    InvalidInput,
    NotFound,
    Unavailable,
)
from graphmem.tenants.access import ApiKey
from graphmem.tenants.idempotency import (
    LEASE_DURATION,
    IdempotencyClaim,
    IdempotencyStore,
    IdempotentRequest,
    StoredResponse,
)
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceRole, require_role
from graphmem_api import headers


async def require_rights_to_replay(request: Request, caller: ApiKey, owner: Owner, body: Any, answer: str) -> None:
    """Raise NotFound or Forbidden as the same request would without an idempotency key.

    `owner` is the user that the request is about, with an empty id if there is none, `body` its JSON value, and
    `answer` the body of the first response. The response to an erasure is always replayed: it only says that nothing is
    left.
    """
    services: Services = request.app.state.services
    managed = request.path_params.get("space_id")
    if managed is not None and request.method != "DELETE":
        await services.spaces.get(caller, managed)
    spaces = {*_spaces_of_request(request, body), *_spaces_of_answer(answer)}
    if owner.user_id:
        await services.rights.find_groups(owner, caller, spaces, SpaceRole.WRITER)
        return
    for space in sorted(spaces):
        role = await services.spaces.find_role(caller, space)
        if role is None:
            raise NotFound("There is no such space.")
        require_role(role, SpaceRole.WRITER)


def _spaces_of_request(request: Request, body: Any) -> Iterator[str]:
    """Yield the spaces named in the query string and body of a request."""
    yield from request.query_params.getlist("space")
    if isinstance(body, dict):
        memories = body.get("memories")
        for value in (body, *(memories if isinstance(memories, list) else ())):
            yield from _space_of(value)


def _spaces_of_answer(answer: str) -> Iterator[str]:
    """Yield the spaces of a response: those of a memory, job or session, or of the memories in its results."""
    try:
        found = json.loads(answer)
    except ValueError:  # some routes do not return JSON
        return
    if isinstance(found, dict):
        results = found.get("results")
        for value in (found, *(results if isinstance(results, list) else ())):
            yield from _space_of(value)
            if isinstance(value, dict):
                yield from _space_of(value.get("memory"))


def _space_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(space := value.get("space"), str):
        yield space


class ResponseCipher:
    """Encrypts and decrypts with a key derived from the caller's."""

    def __init__(self, secret: str) -> None:
        # Imported here: cryptography takes 7 MB, and few servers have to store a secret.
        from cryptography.fernet import Fernet, InvalidToken

        digest = hmac.digest(secret.encode(), b"graphmem idempotent answer", "sha256")
        self._invalid = InvalidToken
        self._fernet = Fernet(base64.urlsafe_b64encode(digest))

    def encrypt(self, body: bytes) -> str:
        """Return the encrypted body."""
        return self._fernet.encrypt(body).decode()

    def decrypt(self, text: str) -> bytes | None:
        """Return the decrypted body; None if another caller's key encrypted it."""
        try:
            return self._fernet.decrypt(text)
        except self._invalid:
            return None


log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0
"""Seconds that a repeated request waits for the first one to end."""

RECORD_SECONDS = 5.0
"""Seconds of database work in which to write the record of a request at its end."""

_POLL_SECONDS = 0.02
_MAX_POLL_SECONDS = 0.5

_KEY_PATTERN = re.compile(headers.IDEMPOTENCY_KEY_PATTERN)
_UNSTORED_STATUSES = frozenset({401, 429})
"""Client errors that are not stored, as are those with `Retry-After`, because a repeated request may succeed."""

_HEADERS_OF_BODY = frozenset({"content-length", "content-type"})
"""Headers, in lower case, that are not stored, because the body and its media type determine them."""


def read_idempotency_key(request: Request) -> str | None:
    """Return the idempotency key of a request; raise InvalidInput for a malformed one."""
    key = request.headers.get(headers.IDEMPOTENCY_KEY)
    if key is None or (len(key) <= headers.IDEMPOTENCY_KEY_MAX_LENGTH and _KEY_PATTERN.match(key)):
        return key
    rule = f"1 to {headers.IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters"
    raise InvalidInput(
        f"An {headers.IDEMPOTENCY_KEY} has {rule}.",
        errors=[{"loc": ["header", headers.IDEMPOTENCY_KEY], "msg": f"must be {rule}"}],
    )


def fingerprint(request: Request, caller: str, body: object) -> str:
    """Return a hash of a request: method, URL, `If-Match`, the caller's permissions and the value of the body."""
    parts = [
        request.method,
        request.scope["path"],
        request.scope["query_string"].decode("latin-1"),
        request.headers.get("if-match"),
        caller,
        body,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class IdempotentResponder:
    """Runs a request, or replays its first response; with a `cipher`, stored responses are encrypted."""

    def __init__(self, store: IdempotencyStore, cipher: ResponseCipher | None = None) -> None:
        self._store = store
        self._cipher = cipher

    async def respond(
        self,
        request: IdempotentRequest,
        run: Callable[[], Awaitable[Response]],
        require_rights: Callable[[str], Awaitable[None]],
    ) -> Response:
        """Return the first response to a request, from `run` or from the store.

        Only one of several concurrent requests runs; the others wait for it. `require_rights` is called with the body
        of a stored response, and raises if the caller may no longer receive it. Raises IdempotencyConflict if the key
        was used for another request, and Unavailable if the first request takes longer than `MAX_WAIT_SECONDS`.
        """
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        pause = _POLL_SECONDS
        while True:
            claim = await self._store.claim(request)
            if claim.is_acquired:
                return await self._run_first(request, claim, run)
            if claim.fingerprint != request.fingerprint:
                raise IdempotencyConflict("This Idempotency-Key was used for another request: use a new one.")
            if claim.answer is not None:
                body = self._read_body(claim.answer)
                await require_rights(body)
                return _replayed_response(claim.answer, body.encode())
            if time.monotonic() > deadline:
                raise Unavailable("The first request with this Idempotency-Key is still running: try again later.")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_POLL_SECONDS)

    async def _run_first(
        self, request: IdempotentRequest, claim: IdempotencyClaim, run: Callable[[], Awaitable[Response]]
    ) -> Response:
        heartbeat = asyncio.create_task(self._renew_lease(request, claim.token))
        try:
            response = await run()
        except Exception:
            await self._ignore_store_errors(self._store.release(request, claim.token))
            raise
        finally:
            heartbeat.cancel()
        may_pass = response.status_code >= 500 or "Retry-After" in response.headers
        if may_pass or response.status_code in _UNSTORED_STATUSES:
            await self._ignore_store_errors(self._store.release(request, claim.token))
        else:
            await self._ignore_store_errors(
                self._store.complete(request, claim.token, self._to_stored_response(response))
            )
        return response

    async def _renew_lease(self, request: IdempotentRequest, token: str) -> None:
        while True:
            await asyncio.sleep(LEASE_DURATION.total_seconds() / 3)
            await self._ignore_store_errors(self._store.renew_lease(request, token))

    async def _ignore_store_errors(self, write: Awaitable[None]) -> None:
        """Wait for a write to the store; only log a failure: the caller gets the response, and the lease expires."""
        try:
            # A separate limit: the request may have used up all of its own.
            with limit_database_time(RECORD_SECONDS):
                await write
        except GraphmemError as error:
            log.warning("an idempotency record could not be written: %s", error.detail)

    def _to_stored_response(self, response: Response) -> StoredResponse:
        body = bytes(response.body)
        text = self._cipher.encrypt(body) if self._cipher else body.decode()
        own_headers = {name: value for name, value in response.headers.items() if name not in _HEADERS_OF_BODY}
        return StoredResponse(
            response.status_code, text, response.media_type, encrypted=self._cipher is not None, headers=own_headers
        )

    def _read_body(self, stored: StoredResponse) -> str:
        """Return the body of a stored response; raise Gone if it was erased."""
        if stored.body is None:
            raise Gone("The first response to this Idempotency-Key has been erased.")
        if not stored.encrypted:
            return stored.body
        body = self._cipher.decrypt(stored.body) if self._cipher else None
        if body is None:
            raise IdempotencyConflict("This Idempotency-Key was used by another key: use a new one.")
        return body.decode()


def _replayed_response(stored: StoredResponse, body: bytes) -> Response:
    response_headers = {**stored.headers, headers.IDEMPOTENT_REPLAY: "true"}
    if stored.media_type:
        response_headers["Content-Type"] = stored.media_type
    return Response(body, stored.status, headers=response_headers)
