"""The quarantine: statements that extraction withholds until an admin releases or drops them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import TypeAdapter

from graphmem.ingestion.candidates import Statement
from graphmem.ingestion.jobs import MemoryAction
from graphmem.ingestion.quarantined_statement import QuarantinedMemory, QuarantinedStatement, QuarantineQuery
from graphmem.memories.fact_store import DoubtfulStatement, FactStore, put_in_quarantine
from graphmem.memories.memory import MemoryIn, SaveResult
from graphmem.memories.new_memory import NewMemory
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import NotFound
from graphmem.runtime.field_types import Vector, name_key
from graphmem.runtime.paging import TIME_CURSOR, Page
from graphmem.tenants.idempotency import IdempotentRequest, write_once
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.tenant_settings import find_trust_order

_SAVE_RESULT: TypeAdapter[SaveResult] = TypeAdapter(SaveResult)


async def put_into_quarantine(
    transaction: Transaction,
    owner: Owner,
    statements: Sequence[Statement],
    job_id: str,
    now: datetime,
) -> list[MemoryAction]:
    """Quarantine caught statements, in an open transaction that has locked the owner, and return the actions taken.

    A statement with the same content as a quarantined one is counted with it.
    """
    caught = [(statement, statement.catch) for statement in statements if statement.catch]
    if not caught:
        return []
    kinds = {kind for statement in statements for line in statement.stated_by for kind in line}
    order = await find_trust_order(transaction, owner.tenant, kinds)
    doubtful = [
        DoubtfulStatement(statement.memory, catch.reason, catch.quote, statement.source_kind(order), job_id=job_id)
        for statement, catch in caught
    ]
    ids = await put_in_quarantine(transaction, owner, doubtful, now)
    return [
        MemoryAction(
            action="quarantine", type=statement.memory.type.value, quarantine_id=kept_as, reason=statement.reason
        )
        for statement, kept_as in zip(doubtful, ids, strict=True)
    ]


class QuarantineService:
    """Admin operations on statements in quarantine."""

    def __init__(self, graph: Graph, facts: FactStore, embedder: Embedder) -> None:
        self._graph = graph
        self._facts = facts
        self._embedder = embedder

    async def page(self, tenant: str, query: QuarantineQuery) -> Page[QuarantinedStatement]:
        """Return one page of the statements of a tenant, of one user or of one space, the latest first."""
        after_at, after_id = TIME_CURSOR.decode(query.cursor) if query.cursor else (None, "")
        owners = [
            *([make_owner(tenant, query.user_id)] if query.user_id else []),
            *([Owner.of_space(tenant, query.space)] if query.space else []),
        ]
        rows = await self._graph.fetch(
            "quarantine.list_page",
            tenant=tenant,
            of_groups=[owner.group_id for owner in owners],
            after_at=after_at,
            after_id=after_id,
            limit=query.limit + 1,
        )
        found = [_statement_from_row(row["statement"]) for row in rows]
        return TIME_CURSOR.make_page(found, query.limit, lambda statement: (statement.last_seen_at, statement.id))

    async def release(
        self, tenant: str, statement_id: str, *, actor: str, request: IdempotentRequest | None = None
    ) -> SaveResult:
        """Save a quarantined statement as a memory and remove it from the quarantine.

        Raises NotFound if the statement is not in the tenant's quarantine, and Conflict if an immutable memory prevents
        the save, in which case it stays there.
        """
        rows = await self._graph.fetch("quarantine.find", tenant=tenant, id=statement_id)
        stored = rows[0]["statement"] if rows else None
        memory = MemoryIn.model_validate_json(stored["memory"]) if stored else None
        vectors = await self._embed(memory) if memory else {}

        async def save(transaction: Transaction) -> SaveResult:
            if stored is None or memory is None:
                raise _not_in_quarantine()
            owner = Owner.from_group_id(stored["group_id"])
            locked_at = await self._facts.lock_user(transaction, owner)
            if not await transaction.run("quarantine.remove", tenant=tenant, id=statement_id):
                raise _not_in_quarantine()
            new = NewMemory(memory, vectors[memory.content], stored["source_kind"], links_names=True)
            by_key = {name_key(text): vector for text, vector in vectors.items()}
            (result,) = await self._facts.save_in_transaction(
                transaction, owner, [new], by_key, actor, locked_at=locked_at
            )
            return result

        return await self._graph.write(
            lambda transaction: write_once(transaction, request, _SAVE_RESULT, lambda: save(transaction))
        )

    async def drop(self, tenant: str, statement_id: str) -> None:
        """Erase a statement; raise NotFound if it is not in the tenant's quarantine."""
        if not await self._graph.execute("quarantine.remove", tenant=tenant, id=statement_id):
            raise _not_in_quarantine()

    async def _embed(self, memory: MemoryIn) -> dict[str, Vector]:
        """Return the vectors of a memory's content and entity names, by text."""
        names = [entity.name for entity in (memory.subject, memory.object, *memory.entities) if entity]
        texts = list(dict.fromkeys([memory.content, *names]))
        return dict(zip(texts, await self._embedder.embed(texts), strict=True))


def _not_in_quarantine() -> NotFound:
    return NotFound("There is no such statement in quarantine: it may have been released or dropped.")


def _statement_from_row(stored: Row) -> QuarantinedStatement:
    owner = Owner.from_group_id(stored["group_id"])
    fields = {name: stored[name] for name in QuarantinedStatement.model_fields if name in stored}
    fields["memory"] = QuarantinedMemory.model_validate_json(stored["memory"])
    return QuarantinedStatement(**fields, user_id=owner.own_user_id, space=owner.space)
