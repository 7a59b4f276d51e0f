"""Idempotent requests: their identity, which process executes them, and their first response."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from pydantic import TypeAdapter

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import scope_of

_DERIVED_IDS = uuid.UUID("5b0f4d0e-9a55-4d7c-8b0a-0d9a6a8a3f3e")
"""Namespace of ids derived from idempotent requests."""


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key: its route, a fingerprint of its content and the owner of the data.

    `contains_user_text` says whether the response may contain user text, so that forgetting a user erases it.
    """

    owner: Owner
    route: str
    key: str
    fingerprint: str
    contains_user_text: bool = True

    def derive_id(self, name: str) -> str:
        """Return the id of an object that the request creates; repetitions of the request get the same id."""
        parts = [self.owner.group_id, self.route, self.key, self.fingerprint, name]
        return str(uuid.uuid5(_DERIVED_IDS, json.dumps(parts)))


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as sent; an encrypted body is encrypted for its caller, and an erased body is None.

    `headers` are the response's own, such as `ETag`, without those derived from the body.
    """

    status: int
    body: str | None
    media_type: str | None = None
    encrypted: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """The result of claiming a request.

    If `is_acquired`, the caller must execute the request and complete it with `token`. Otherwise, `fingerprint` and
    `answer` belong to the first request; `answer` is None while it is still running.
    """

    is_acquired: bool
    token: str
    fingerprint: str
    answer: StoredResponse | None


T = TypeVar("T")

LEASE_DURATION = timedelta(seconds=30)
"""Time after which an unrenewed request may be claimed again; machine clocks must differ by less."""


class IdempotencyStore:
    """The requests of all tenants; each is stored for `retention_days`."""

    def __init__(self, graph: Graph, clock: Clock, retention_days: int) -> None:
        self._graph = graph
        self._clock = clock
        self._retention = timedelta(days=retention_days)

    async def claim(self, request: IdempotentRequest) -> IdempotencyClaim:
        """Claim a request, or return the state of the earlier one; of concurrent claims, exactly one succeeds."""
        now, token = self._clock(), str(uuid.uuid4())
        rows = await self._graph.execute_repeatable(
            "idempotency.claim",
            **_key_parameters(request),
            contains_user_text=request.contains_user_text,
            fingerprint=request.fingerprint,
            token=token,
            now=now,
            oldest=now - self._retention,
            lease_until=now + LEASE_DURATION,
        )
        stored = rows[0]["request"]
        return IdempotencyClaim(rows[0]["is_acquired"], token, stored["fingerprint"], _response_from_row(stored))

    async def renew_lease(self, request: IdempotentRequest, token: str) -> None:
        """Extend the lease of a request that is still being executed."""
        await self._graph.execute(
            "idempotency.renew_lease",
            **_key_parameters(request),
            token=token,
            lease_until=self._clock() + LEASE_DURATION,
        )

    async def complete(self, request: IdempotentRequest, token: str, answer: StoredResponse) -> None:
        """Store the response for all repetitions."""
        await self._graph.execute_repeatable(
            "idempotency.complete",
            **_key_parameters(request),
            token=token,
            status=answer.status,
            media_type=answer.media_type,
            body=answer.body,
            encrypted=answer.encrypted,
            headers=json.dumps(dict(answer.headers)),
        )

    async def release(self, request: IdempotentRequest, token: str) -> None:
        """Release a failed request, so that a repetition is executed; completed writes are not repeated."""
        await self._graph.execute_repeatable("idempotency.release", **_key_parameters(request), token=token)

    async def delete_expired(self, tenant: str | None) -> int:
        """Erase expired requests of a tenant, or of all tenants; return their number."""
        oldest = self._clock() - self._retention
        rows = await self._graph.execute("idempotency.delete_expired", tenant=tenant, oldest=oldest)
        return int(rows[0]["erased"])

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase the responses that contain an erased memory's id, in the same transaction; return their number."""
        needle = json.dumps(memory_id, ensure_ascii=False)
        if owner.is_space:  # the responses belong to its members
            rows = await transaction.run("idempotency.clear_responses_of_tenant", tenant=owner.tenant, needle=needle)
        else:
            rows = await transaction.run(
                "idempotency.clear_responses",
                tenant=owner.tenant,
                owner_groups=scope_of(owner).group_ids,
                needle=needle,
            )
        return int(rows[0]["cleared"])

    async def erase_space(self, space: Owner) -> int:
        """Erase the responses to a space's members that contain data of the space; return their number."""
        needle = f'"space":{json.dumps(space.space, ensure_ascii=False)}'
        rows = await self._graph.execute("idempotency.clear_responses_of_tenant", tenant=space.tenant, needle=needle)
        return int(rows[0]["cleared"])


async def write_once(
    transaction: Transaction,
    request: IdempotentRequest | None,
    result_type: TypeAdapter[T],
    write: Callable[[], Awaitable[T]],
) -> T:
    """Write in an open transaction and store the result with it; return the stored result if already written.

    So a request that fails after its transaction, or whose process ends, can be repeated without writing twice. Without
    a request, no result is stored. Call it before anything is locked or written.
    """
    if request is None:
        return await write()
    rows = await transaction.run("idempotency.find_result", **_key_parameters(request))
    if rows and rows[0]["result"] is not None:
        return result_type.validate_json(rows[0]["result"])
    result = await write()
    stored = result_type.dump_json(result).decode()
    await transaction.run("idempotency.store_result", **_key_parameters(request), result=stored)
    return result


async def find_result(graph: Graph, request: IdempotentRequest | None, result_type: TypeAdapter[T]) -> T | None:
    """Return the result stored by an earlier attempt with `write_once`; None if there is none or no request."""
    rows = await graph.execute("idempotency.find_result", **_key_parameters(request)) if request else []
    return result_type.validate_json(rows[0]["result"]) if rows and rows[0]["result"] is not None else None


def _key_parameters(request: IdempotentRequest) -> Row:
    return {
        "tenant": request.owner.tenant,
        "route": request.route,
        "key": request.key,
        "owner_group": request.owner.group_id,
    }


def _response_from_row(stored: Row) -> StoredResponse | None:
    if stored.get("status") is None:
        return None
    return StoredResponse(
        stored["status"],
        stored.get("body"),
        stored.get("media_type"),
        encrypted=bool(stored.get("encrypted")),
        headers=json.loads(stored.get("headers") or "{}"),
    )
