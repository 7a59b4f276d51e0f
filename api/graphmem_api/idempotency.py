"""Idempotency keys: a write that is sent again is answered again, and happens once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from cryptography.fernet import Fernet, InvalidToken
from fastapi import Request
from fastapi.responses import Response

from graphmem.domain.idempotency import IdempotencyClaim, IdempotentRequest, StoredResponse
from graphmem.errors import Gone, GraphmemError, IdempotencyConflict, InvalidInput, Unavailable
from graphmem.store.idempotency import LEASE_DURATION, IdempotencyStore

log = logging.getLogger(__name__)

IDEMPOTENCY_HEADER = "Idempotency-Key"
REPLAY_HEADER = "Idempotent-Replay"
MAX_WAIT_SECONDS = 60.0
"""Seconds a second request waits for the first."""

_KEY_PATTERN = re.compile(r"^[\x21-\x7e]{1,255}$")
_UNSTORED_STATUSES = frozenset({401, 429})


def read_key(request: Request) -> str | None:
    """Return the idempotency key of a request; raise InvalidInput when it cannot be one."""
    key = request.headers.get(IDEMPOTENCY_HEADER)
    if key is not None and not _KEY_PATTERN.match(key):
        raise InvalidInput(
            "An Idempotency-Key has 1 to 255 visible ASCII characters.",
            errors=[{"loc": ["header", IDEMPOTENCY_HEADER], "msg": "must be 1 to 255 visible ASCII characters"}],
        )
    return key


def fingerprint(request: Request, caller: str, body: object) -> str:
    """Return a hash of all a request says; JSON bodies count by value, `caller` by what the key may do."""
    said = [
        request.method,
        request.scope["path"],
        request.scope["query_string"].decode("latin-1"),
        request.headers.get("if-match"),
        caller,
        body,
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class IdempotentResponder:
    """Runs a request or replays its first answer; `secret` is the caller's own and seals answers that must be."""

    def __init__(self, store: IdempotencyStore, secret: str | None = None) -> None:
        self._store = store
        digest = hmac.digest(secret.encode(), b"graphmem idempotent answer", "sha256") if secret is not None else None
        self._cipher = Fernet(base64.urlsafe_b64encode(digest)) if digest is not None else None

    async def respond(self, request: IdempotentRequest, run: Callable[[], Awaitable[Response]]) -> Response:
        """Return the first answer to a request, from `run` or from the record.

        Of several at once one runs and the others wait for it. Raises IdempotencyConflict when the key was used for
        another request, and Unavailable when the first is at work for longer than anyone waits.
        """
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        pause = 0.02
        while True:
            claim = await self._store.claim(request)
            if claim.is_acquired:
                return await self._run_first(request, claim, run)
            if claim.fingerprint != request.fingerprint:
                raise IdempotencyConflict("This Idempotency-Key was used for another request: take a fresh one.")
            if claim.answer is not None:
                return self._replay(claim.answer)
            if time.monotonic() > deadline:
                raise Unavailable("The first request with this Idempotency-Key is still at work: ask again later.")
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.5)

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
        if response.status_code >= 500 or response.status_code in _UNSTORED_STATUSES:
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

    async def _ignore_store_errors(self, note: Awaitable[None]) -> None:
        """Write to the record; when the graph is away just now, the answer matters more and the lease runs out."""
        try:
            await note
        except GraphmemError as error:
            log.warning("an idempotency record could not be written: %s", error.detail)

    def _to_stored_response(self, response: Response) -> StoredResponse:
        body = bytes(response.body)
        text = self._cipher.encrypt(body).decode() if self._cipher else body.decode()
        return StoredResponse(response.status_code, text, response.media_type, encrypted=self._cipher is not None)

    def _replay(self, answer: StoredResponse) -> Response:
        if answer.body is None:
            raise Gone("What this Idempotency-Key was answered first has been erased since.")
        body = answer.body.encode()
        if answer.encrypted:
            with suppress(InvalidToken):
                if self._cipher is not None:
                    return _replayed_response(answer, self._cipher.decrypt(body))
            raise IdempotencyConflict("This Idempotency-Key was used by another key: take a fresh one.")
        return _replayed_response(answer, body)


def _replayed_response(answer: StoredResponse, body: bytes) -> Response:
    headers = {REPLAY_HEADER: "true"}
    if answer.media_type:
        headers["Content-Type"] = answer.media_type
    return Response(body, answer.status, headers=headers)
