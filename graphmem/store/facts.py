"""Memories in the graph: every write is one transaction under the user's lock, every read names both times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory, MemoryVersion, SaveAction, SaveResult, Scope
from graphmem.domain.text import content_hash
from graphmem.domain.times import AS_OF_NOW, Clock
from graphmem.domain.versioning import MICROSECOND, Ledger, SaveOutcome
from graphmem.errors import MemoryDeleted, NotFound
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.fact_mapping import fact_from_row, memory_from_fact, memory_version_from_fact
from graphmem.store.fact_write import FactLoader, FactWrite
from graphmem.store.new_memory import NewMemory, Vector, collect_entities, first_version

T = TypeVar("T")
MemoryEraser = Callable[[Transaction, Owner, str], Awaitable[object]]
"""Erases within a transaction what else is held of a memory."""


class FactStore:
    """Memories of all users; `clock` tells the time of writes and of what is current."""

    def __init__(self, graph: Graph, entities: EntityStore, clock: Clock) -> None:
        self._graph = graph
        self._entities = entities
        self._clock = clock

    # Writing

    async def save(
        self, owner: Owner, statements: Sequence[NewMemory], name_vectors: Mapping[str, Vector], actor: str | None
    ) -> list[SaveResult]:
        """Save all statements or none; `name_vectors` maps name keys of entities to vectors. Global ones go to the tenant."""

        async def work(transaction: Transaction) -> list[SaveResult]:
            return await self.save_in_transaction(transaction, owner, statements, name_vectors, actor)

        return await self._graph.write(work)

    async def save_in_transaction(
        self,
        transaction: Transaction,
        owner: Owner,
        statements: Sequence[NewMemory],
        name_vectors: Mapping[str, Vector],
        actor: str | None,
        *,
        locked_at: datetime | None = None,
        loader: FactLoader | None = None,
    ) -> list[SaveResult]:
        """Save within an open transaction, for writers that change more than facts.

        `locked_at` is what `lock_user` has answered for the owner in this transaction, `loader` what has been fetched of
        theirs since.
        """
        by_owner: dict[Owner, list[int]] = defaultdict(list)
        for index, statement in enumerate(statements):
            by_owner[owner.tenant_global if statement.memory.scope is Scope.GLOBAL else owner].append(index)
        results: dict[int, SaveResult] = {}
        for one in sorted(by_owner, key=lambda each: each.group_id):
            indexes = by_owner[one]
            own = one == owner
            now = locked_at if locked_at and own else await self.lock_user(transaction, one)
            known = loader if loader and own else FactLoader(transaction, one)
            saved = await self._save_for_owner(
                transaction, one, [statements[i] for i in indexes], name_vectors, actor, now, known
            )
            results.update(zip(indexes, saved, strict=True))
        return [results[index] for index in range(len(statements))]

    async def _save_for_owner(
        self,
        transaction: Transaction,
        owner: Owner,
        statements: Sequence[NewMemory],
        name_vectors: Mapping[str, Vector],
        actor: str | None,
        now: datetime,
        loader: FactLoader,
    ) -> list[SaveResult]:
        named = await self._entities.resolve_entities(
            transaction, owner, collect_entities(statements), name_vectors, now
        )
        texts = await self._fetch_message_texts(transaction, owner, statements)
        drafts = [first_version(owner, statement, named.refs, texts, now) for statement in statements]
        new = {properties["uuid"] for properties in named.new_entities}
        facts = await loader.fetch(
            hashes=[draft.content_hash for draft in drafts],
            memory_ids=[target for statement in statements for target in statement.memory.supersedes],
            # Of an entity that is new there is nothing yet.
            pairs=[
                (draft.subject_id, draft.predicate)
                for draft in drafts
                if draft.single_valued and draft.subject_id not in new
            ],
        )
        ledger = Ledger(facts.values(), now, actor)
        already_imported = await self._find_imported_before(transaction, owner, drafts, statements)
        outcomes = [
            already_imported.get(draft.memory_id) or _apply_to_ledger(ledger, draft, statement)
            for draft, statement in zip(drafts, statements, strict=True)
        ]
        vectors = {draft.uuid: statement.vector for draft, statement in zip(drafts, statements, strict=True)}
        write = FactWrite(owner, transaction, now, ledger, vectors, named.new_entities)
        await write.commit([outcome.fact for outcome in outcomes if outcome.action is not SaveAction.SKIP])
        refs = {ref.id: ref for ref in named.refs.values()}
        others = [key for key in _entity_ids_of(outcome.fact for outcome in outcomes) if key not in refs]
        refs.update(await self._entities.get_refs(transaction, owner, others))
        return [_save_result(outcome, refs, ledger.now) for outcome in outcomes]

    async def update_memory(
        self,
        owner: Owner,
        memory_id: str,
        act: Callable[[Ledger], Fact],
        *,
        actor: str | None = None,
        vector: Vector | None = None,
        related: bool = False,
    ) -> Memory:
        """Apply `act` to one memory's ledger in a transaction and return the memory; `vector` is that of a new content.

        With `related`, the ledger also holds what superseded it and what shares its single-valued place.
        Raises NotFound for an id that is not this user's.
        """

        async def work(transaction: Transaction) -> Memory:
            owned = await self._owner_of_memory(transaction, owner, memory_id)
            now = await self.lock_user(transaction, owned)
            latest = await self._fetch_latest(transaction, owned, memory_id)
            if latest.end_status is not None:
                raise MemoryDeleted("The memory was deleted: save the statement anew.")
            others = [latest.superseded_by] if related and latest.superseded_by else []
            pairs = [(latest.subject_id, latest.predicate)] if related and latest.single_valued else []
            facts = await FactLoader(transaction, owned).fetch(
                hashes=[latest.content_hash], memory_ids=[memory_id, *others], pairs=pairs
            )
            ledger = Ledger(facts.values(), now, actor)
            fact = act(ledger)
            if vector is not None and content_hash(fact.content) != latest.content_hash:
                twins = await FactLoader(transaction, owned).fetch(hashes=[fact.content_hash])
                ledger.ensure_unique(fact, twins.values())
            await FactWrite(owned, transaction, now, ledger, {fact.uuid: vector} if vector else {}).commit()
            refs = await self._entities.get_refs(transaction, owned, _entity_ids_of([fact]))
            return memory_from_fact(fact, refs, ledger.now)

        return await self._graph.write(work)

    async def lock_user(self, transaction: Transaction, owner: Owner, count: int = 1) -> datetime:
        """Lock a user for the rest of the transaction and return a time later than every earlier write of theirs."""
        now = self._clock()
        rows = await transaction.run(
            "facts.lock_user",
            group_id=owner.group_id,
            tenant=owner.tenant,
            user_id=owner.user_id,
            now=now,
            count=count,
        )
        last = rows[0]["last_write_at"]
        return max(now, last + MICROSECOND) if last else now

    async def erase_memory(self, owner: Owner, memory_id: str, additional_erasers: Sequence[MemoryEraser] = ()) -> int:
        """Erase every version of a memory and every pointer to it; return how many versions there were.

        `additional_erasers` is done in the same transaction: what other modules hold of the memory.
        """

        async def work(transaction: Transaction) -> int:
            owned = await self._owner_of_memory(transaction, owner, memory_id)
            await self.lock_user(transaction, owned)
            rows = await transaction.run("facts.erase_memory", group_ids=[owned.group_id], memory_id=memory_id)
            await transaction.run(
                "facts.erase_references", group_id=owned.group_id, memory_id=memory_id, uuids=rows[0]["uuids"]
            )
            for erase in additional_erasers:
                await erase(transaction, owned, memory_id)
            return int(rows[0]["erased"])

        return await self._graph.write(work)

    # Reading

    async def get(self, owner: Owner, memory_id: str) -> Memory:
        """Return the latest version of a memory, whatever became of it."""

        async def work(transaction: Transaction) -> Memory:
            return (
                await self.to_memories(transaction, owner, [await self._fetch_latest(transaction, owner, memory_id)])
            )[0]

        return await self._graph.read(work)

    async def get_history(self, owner: Owner, memory_id: str) -> list[MemoryVersion]:
        """Return every version of a memory, oldest first."""

        async def work(transaction: Transaction) -> list[MemoryVersion]:
            rows = await transaction.run("facts.list_versions", group_ids=owner.readable_group_ids, memory_id=memory_id)
            facts = [fact_from_row(row) for row in rows]
            if not facts:
                raise NotFound("There is no such memory.")
            refs = await self._entities.get_refs(transaction, owner, _entity_ids_of(facts))
            return [memory_version_from_fact(fact, refs, self._clock()) for fact in facts]

        return await self._graph.read(work)

    async def list_page(self, owner: Owner, **filters: Any) -> tuple[list[Memory], Any, str | None]:
        """Return one page by attributes and the key and id to go on from (None at the end)."""

        async def work(transaction: Transaction) -> tuple[list[Memory], Any, str | None]:
            rows = await transaction.run("facts.list_page", group_ids=owner.readable_group_ids, **filters)
            memories = await self.to_memories(transaction, owner, [fact_from_row(row) for row in rows])
            if len(rows) < filters["limit"]:
                return memories, None, None
            return memories, rows[-1]["key"], rows[-1]["fact"]["memory_id"]

        return await self._graph.read(work)

    async def list_entity_facts(
        self, owner: Owner, entity_id: str, *, valid_at: datetime, known_at: datetime, any_validity: bool, limit: int
    ) -> list[Memory]:
        """Return the facts about or mentioning an entity, the most important first."""

        async def work(transaction: Transaction) -> list[Memory]:
            rows = await transaction.run(
                "entities.list_facts",
                group_ids=owner.readable_group_ids,
                entity_id=entity_id,
                valid_at=valid_at,
                known_at=known_at,
                any_validity=any_validity,
                limit=limit,
            )
            return await self.to_memories(transaction, owner, [fact_from_row(row) for row in rows])

        return await self._graph.read(work)

    async def to_memories(self, transaction: Transaction, owner: Owner, facts: Sequence[Fact]) -> list[Memory]:
        """Return facts as callers see them now."""
        refs = await self._entities.get_refs(transaction, owner, _entity_ids_of(facts))
        now = self._clock()
        return [memory_from_fact(fact, refs, now) for fact in facts]

    async def get_write_version(self, owner: Owner) -> int:
        """Return a number that grows with every write the user could see."""
        return int(await self._graph.fetch_value("facts.get_write_version", group_ids=owner.readable_group_ids))

    # Parts

    async def _fetch_latest(self, transaction: Transaction, owner: Owner, memory_id: str) -> Fact:
        rows = await transaction.run("facts.fetch_latest", group_ids=owner.readable_group_ids, memory_ids=[memory_id])
        if not rows:
            raise NotFound("There is no such memory.")
        return fact_from_row(rows[0])

    async def _owner_of_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> Owner:
        fact = await self._fetch_latest(transaction, owner, memory_id)
        return owner if fact.group_id == owner.group_id else owner.tenant_global

    async def _find_imported_before(
        self, transaction: Transaction, owner: Owner, drafts: Sequence[Fact], statements: Sequence[NewMemory]
    ) -> dict[str, SaveOutcome]:
        """Return what is not taken again, by memory id: statements of another memory that came in an earlier import."""
        wanted = [draft.memory_id for draft, one in zip(drafts, statements, strict=True) if one.provenance]
        if not wanted:
            return {}
        rows = await transaction.run("facts.fetch_latest", group_ids=[owner.group_id], memory_ids=wanted)
        facts = map(fact_from_row, rows)
        return {fact.memory_id: SaveOutcome(SaveAction.SKIP, fact, (), "it was imported before") for fact in facts}

    async def _fetch_message_texts(
        self, transaction: Transaction, owner: Owner, statements: Sequence[NewMemory]
    ) -> dict[str, Row]:
        wanted = sorted({key for one in statements if one.memory.source for key in one.memory.source.message_ids})
        if not wanted:
            return {}
        rows = await transaction.run("episodes.fetch_texts", group_id=owner.group_id, message_ids=wanted)
        return {row["message_id"]: row for row in rows}


def known_at_or_now(moment: datetime | None) -> datetime:
    """Return the known time to filter by: what is believed now when none is asked for."""
    return moment or AS_OF_NOW


def _entity_ids_of(facts: Iterable[Fact]) -> list[str]:
    return sorted({key for fact in facts for key in (fact.subject_id, fact.object_id, *fact.entity_ids) if key})


def _apply_to_ledger(ledger: Ledger, draft: Fact, statement: NewMemory) -> SaveOutcome:
    if statement.provenance:
        return ledger.import_version(draft, statement.provenance)
    return ledger.save(draft, statement.memory.supersedes, statement.reason)


def _save_result(outcome: SaveOutcome, refs: Mapping[str, EntityRef], now: datetime) -> SaveResult:
    return SaveResult(
        action=outcome.action,
        memory=memory_from_fact(outcome.fact, refs, now),
        superseded=list(outcome.superseded),
        reason=outcome.reason,
    )
