"""Idempotent requests in the graph: who works on one, and what was answered first."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta

from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.store.driver import Graph, Row, Transaction

LEASE_DURATION = timedelta(seconds=30)
"""How long a request counts as being worked on after its worker last said so; clocks of machines must agree better."""


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request under its key: `route` names what it does, `fingerprint` all it says, `owner` whose data it is about.

    `contains_user_text` tells whether the answer may hold what users said, so that forgetting a user erases it.
    """

    owner: Owner
    route: str
    key: str
    fingerprint: str
    contains_user_text: bool = True


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An answer as it went out; an encrypted body is encrypted for its caller, one that was erased since is None."""

    status: int
    body: str | None
    media_type: str | None = None
    encrypted: bool = False


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """What a try met: `is_acquired` (do it under `token`), else the first one's fingerprint and its answer, if any yet."""

    is_acquired: bool
    token: str
    fingerprint: str
    answer: StoredResponse | None


class IdempotencyStore:
    """Requests of all tenants, kept for so many days."""

    def __init__(self, graph: Graph, clock: Clock, retention_days: int) -> None:
        self._graph = graph
        self._clock = clock
        self._retention = timedelta(days=retention_days)

    async def claim(self, request: IdempotentRequest) -> IdempotencyClaim:
        """Take a request up, or tell what became of the one that did: of several at once exactly one gets it."""
        now, token = self._clock(), str(uuid.uuid4())
        rows = await self._graph.execute(
            "idempotency.claim",
            **_key_parameters(request),
            owner_group=request.owner.group_id,
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
        """Say that the request is still being worked on."""
        await self._graph.execute(
            "idempotency.renew_lease",
            **_key_parameters(request),
            token=token,
            lease_until=self._clock() + LEASE_DURATION,
        )

    async def complete(self, request: IdempotentRequest, token: str, answer: StoredResponse) -> None:
        """Keep the answer for every later try."""
        await self._graph.execute(
            "idempotency.complete",
            **_key_parameters(request),
            token=token,
            status=answer.status,
            media_type=answer.media_type,
            body=answer.body,
            encrypted=answer.encrypted,
        )

    async def release(self, request: IdempotentRequest, token: str) -> None:
        """Let go of a request that came to nothing."""
        await self._graph.execute("idempotency.release", **_key_parameters(request), token=token)

    async def delete_expired(self) -> int:
        """Erase what is past its retention and return how many there were."""
        rows = await self._graph.execute("idempotency.delete_expired", oldest=self._clock() - self._retention)
        return int(rows[0]["erased"])

    async def erase_user(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every request of a user, and the tenant's own answers, which may quote it; return how many."""
        rows = await transaction.run(
            "idempotency.erase_user",
            tenant=owner.tenant,
            owner_group=owner.group_id,
            shared_group=owner.tenant_global.group_id,
        )
        return {"IdempotentRequest": int(rows[0]["erased"])}

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase the answers that name a memory which is erased in this transaction; return how many there were."""
        rows = await transaction.run(
            "idempotency.clear_responses",
            tenant=owner.tenant,
            owner_groups=owner.readable_group_ids,
            needle=json.dumps(memory_id, ensure_ascii=False),
        )
        return int(rows[0]["blanked"])


def _key_parameters(request: IdempotentRequest) -> Row:
    return {"tenant": request.owner.tenant, "route": request.route, "key": request.key}


def _response_from_row(stored: Row) -> StoredResponse | None:
    if stored.get("status") is None:
        return None
    return StoredResponse(stored["status"], stored.get("body"), stored.get("media_type"), bool(stored.get("encrypted")))
