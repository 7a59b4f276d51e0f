"""Idempotent requests in the graph: who works on one, and what was answered first."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import timedelta

from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.store.driver import Graph, Row, Transaction

LEASE = timedelta(seconds=30)
"""How long a request counts as being worked on after its worker last said so; clocks of machines must agree better."""


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request under its key: `route` names what it does, `fingerprint` all it says, `owner` whose data it is about.

    `quotes` tells whether the answer may hold what users said, so that forgetting a user erases it.
    """

    owner: Owner
    route: str
    key: str
    fingerprint: str
    quotes: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it went out; a sealed body is encrypted for its caller, one that was erased since is None."""

    status: int
    body: str | None
    media_type: str | None = None
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """What a try met: `mine` (do it under `token`), else the first one's fingerprint and its answer, if any yet."""

    mine: bool
    token: str
    fingerprint: str
    answer: Answer | None


class IdempotencyStore:
    """Requests of all tenants, kept for so many days."""

    def __init__(self, graph: Graph, clock: Clock, days: int) -> None:
        self._graph = graph
        self._clock = clock
        self._kept = timedelta(days=days)

    async def claim(self, request: IdempotentRequest) -> Claim:
        """Take a request up, or tell what became of the one that did: of several at once exactly one gets it."""
        now, token = self._clock(), str(uuid.uuid4())
        rows = await self._graph.execute(
            "idempotency.claim",
            **_place(request),
            owner_group=request.owner.group_id,
            quotes=request.quotes,
            fingerprint=request.fingerprint,
            token=token,
            now=now,
            oldest=now - self._kept,
            lease_until=now + LEASE,
        )
        stored = rows[0]["request"]
        return Claim(rows[0]["mine"], token, stored["fingerprint"], _answer(stored))

    async def renew(self, request: IdempotentRequest, token: str) -> None:
        """Say that the request is still being worked on."""
        await self._graph.execute(
            "idempotency.renew", **_place(request), token=token, lease_until=self._clock() + LEASE
        )

    async def complete(self, request: IdempotentRequest, token: str, answer: Answer) -> None:
        """Keep the answer for every later try."""
        await self._graph.execute(
            "idempotency.complete",
            **_place(request),
            token=token,
            status=answer.status,
            media_type=answer.media_type,
            body=answer.body,
            sealed=answer.sealed,
        )

    async def release(self, request: IdempotentRequest, token: str) -> None:
        """Let go of a request that came to nothing."""
        await self._graph.execute("idempotency.release", **_place(request), token=token)

    async def prune(self) -> int:
        """Erase what is past its retention and return how many there were."""
        rows = await self._graph.execute("idempotency.prune", oldest=self._clock() - self._kept)
        return int(rows[0]["erased"])

    async def forget_within(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every request of a user, and the tenant's own answers, which may quote it; return how many."""
        rows = await transaction.run(
            "idempotency.forget",
            tenant=owner.tenant,
            owner_group=owner.group_id,
            shared_group=owner.everyone.group_id,
        )
        return {"IdempotentRequest": int(rows[0]["erased"])}

    async def forget_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase the answers that name a memory which is erased in this transaction; return how many there were."""
        rows = await transaction.run(
            "idempotency.blank",
            tenant=owner.tenant,
            owner_groups=owner.readable,
            needle=json.dumps(memory_id, ensure_ascii=False),
        )
        return int(rows[0]["blanked"])


def _place(request: IdempotentRequest) -> Row:
    return {"tenant": request.owner.tenant, "route": request.route, "key": request.key}


def _answer(stored: Row) -> Answer | None:
    if stored.get("status") is None:
        return None
    return Answer(stored["status"], stored.get("body"), stored.get("media_type"), bool(stored.get("sealed")))
