"""Memories in the graph: every write is one transaction under the user's lock, every read is as of two times."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import (
    CONFIDENCE_STEP,
    MAX_CONFIDENCE,
    MAX_STRENGTH,
    STRENGTH_DECIMALS,
    STRENGTH_STEP,
    Fact,
    RetrievalCount,
    decayed_strength,
    fact_from_row,
    memory_from_fact,
    memory_version_from_fact,
)
from graphmem.memories.filters import FactFilters, SortOrder
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryVersion,
    SaveAction,
    SaveResult,
    Scope,
)
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.saving import FactLoader, FactSave, FactWrite, entity_ids_of
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import MemoryDeleted, NotFound, UserBeingForgotten
from graphmem.runtime.field_types import Vector, content_hash, deduplicate
from graphmem.runtime.paging import take_page
from graphmem.runtime.short_ids import MAX_MATCHES
from graphmem.runtime.times import Clock, parse_times, to_epoch_pair
from graphmem.tenants.idempotency import IdempotentRequest, write_once
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import DEFAULT_ORDER, SourceKind
from graphmem.tenants.users import FLUSH_SECONDS, WriteBuffer, lock_or_create_user, lock_user
from graphmem.text.normalising import fold_accents, normalise

_MEMORY = TypeAdapter(Memory)
_SAVE_RESULTS = TypeAdapter(list[SaveResult])

PagePosition = tuple[float, str]
"""The sort key and the memory id after which a page continues."""


@dataclass(frozen=True, slots=True)
class DoubtfulStatement:
    """A statement withheld until an admin releases it, the reason, and the words that show it."""

    memory: MemoryIn
    reason: str
    quote: str
    source_kind: SourceKind
    space: Owner | None = None
    job_id: str | None = None


async def put_in_quarantine(
    transaction: Transaction, owner: Owner, statements: Sequence[DoubtfulStatement], now: datetime
) -> list[str]:
    """Quarantine statements of a user or a space, and return their ids in the quarantine."""
    rows = [
        {
            "position": position,
            "id": str(uuid.uuid4()),
            "content_hash": content_hash(statement.memory.content),
            "properties": {
                "memory": statement.memory.model_dump_json(exclude_none=True, exclude={"space"}),
                "reason": statement.reason,
                "quote": statement.quote,
                "source_kind": statement.source_kind,
                "job_id": statement.job_id,
            },
        }
        for position, statement in enumerate(statements)
    ]
    kept = await transaction.run("quarantine.put", group_id=owner.group_id, tenant=owner.tenant, rows=rows, now=now)
    return [str(row["id"]) for row in sorted(kept, key=lambda row: row["position"])]


@dataclass(frozen=True, slots=True)
class ErasedFacts:
    """The number of erased versions of a memory, and the ids of the entities erased with them."""

    versions: int
    entity_ids: list[str]


@dataclass(frozen=True, slots=True)
class AssociationProblems:
    """Ids of memories with an `unknown` association, and of immutable ones, whose associations are `fixed`."""

    unknown: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)


class FactStore:
    """The memories of all users; `clock` gives the time of writes and decides what is current."""

    def __init__(self, graph: Graph, entities: EntityStore, clock: Clock) -> None:
        self._graph = graph
        self._entities = entities
        self._clock = clock

    # Writing

    async def save(
        self,
        owner: Owner,
        memories: Sequence[NewMemory],
        name_vectors: Mapping[str, Vector],
        actor: str | None,
        request: IdempotentRequest | None = None,
        *,
        creates_user: bool = True,
        doubtful: Sequence[DoubtfulStatement] = (),
    ) -> list[SaveResult]:
        """Save all memories or none; global ones belong to the tenant, others to their space if they have one.

        The results of the memories come first, then those of the `doubtful` statements, which are quarantined.

        `name_vectors` holds the vectors of entity names by name key. With `request`, they are saved only once for it.
        Raises UserBeingForgotten, and NotFound for a user that does not exist unless `creates_user`.
        """

        async def save(transaction: Transaction) -> list[SaveResult]:
            locked_at = None if creates_user else await self.lock_user(transaction, owner)
            saved = await self.save_in_transaction(
                transaction, owner, memories, name_vectors, actor, locked_at=locked_at
            )
            return saved + [await self._quarantine(transaction, owner, statement) for statement in doubtful]

        return await self._graph.write(
            lambda transaction: write_once(transaction, request, _SAVE_RESULTS, lambda: save(transaction))
        )

    async def save_in_transaction(
        self,
        transaction: Transaction,
        owner: Owner,
        memories: Sequence[NewMemory],
        name_vectors: Mapping[str, Vector],
        actor: str | None,
        *,
        locked_at: datetime | None = None,
        loader: FactLoader | None = None,
        finds_related: bool = True,
    ) -> list[SaveResult]:
        """Save memories within an open transaction.

        `locked_at` is the time that `lock_user` returned for the owner in this transaction, and `loader` is the owner's
        loader of this transaction; without them, the owner is locked or created and the facts are loaded here. With
        `finds_related`, the results name related memories.
        """
        indexes_by_owner: dict[Owner, list[int]] = defaultdict(list)
        for index, memory in enumerate(memories):
            of_user = owner.tenant_global if memory.memory.scope is Scope.GLOBAL else owner
            indexes_by_owner[memory.space or of_user].append(index)
        results: dict[int, SaveResult] = {}
        for target in sorted(indexes_by_owner, key=lambda target: target.group_id):
            indexes = indexes_by_owner[target]
            is_own = target == owner
            now = locked_at if locked_at and is_own else await self.lock_or_create_user(transaction, target)
            facts = loader if loader and is_own else FactLoader(transaction, target)
            save = FactSave(transaction, target, self._entities, facts, now, actor, finds_related)
            saved = await save.run([memories[index] for index in indexes], name_vectors)
            results.update(zip(indexes, saved, strict=True))
        return [results[index] for index in range(len(memories))]

    async def _quarantine(self, transaction: Transaction, owner: Owner, statement: DoubtfulStatement) -> SaveResult:
        """Put a statement into its owner's quarantine."""
        of_user = owner.tenant_global if statement.memory.scope is Scope.GLOBAL else owner
        target = statement.space or of_user
        now = await self.lock_or_create_user(transaction, target)
        (kept_as,) = await put_in_quarantine(transaction, target, [statement], now)
        return SaveResult(action=SaveAction.QUARANTINE, memory=None, reason=statement.reason, quarantine_id=kept_as)

    async def update_memory(
        self,
        reader: Reader,
        memory_id: str,
        act: Callable[[Ledger], Fact],
        *,
        actor: str | None = None,
        vector: Vector | None = None,
        associations: Sequence[str] | None = None,
        request: IdempotentRequest | None = None,
        kind: SourceKind | None = None,
    ) -> Memory:
        """Apply `act` to the ledger of one memory in a transaction and return the memory.

        The ledger also holds the memory's replacement, the memories that a contested memory contests or has ended and,
        for a single-valued memory, the facts with the same subject and predicate. `kind` is the source of the change.
        `vector` is the new content's vector; `associations` replaces all associations of the memory (None: unchanged);
        with `request`, the change is made only once for it. Raises NotFound for an id that the reader cannot read,
        Forbidden if the reader may only read, and MemoryDeleted for a deleted or archived memory.
        """

        async def update(transaction: Transaction) -> Memory:
            memory_owner = await self._writable_owner_of_memory(transaction, reader, memory_id)
            now = await self.lock_user(transaction, memory_owner)
            latest = await self._fetch_latest(transaction, memory_owner, memory_id)
            if latest.end_status is not None:
                raise MemoryDeleted(f"The memory was {latest.end_status}: save the statement again.")
            replacement = [latest.superseded_by] if latest.superseded_by else []
            resolved = [*latest.contests, *latest.supersedes] if latest.contests else []
            pairs = [(latest.subject_id, latest.predicate)] if latest.single_valued else []
            known = latest.associations if associations is not None else ()
            facts = await FactLoader(transaction, memory_owner).fetch(
                hashes=[latest.content_hash],
                memory_ids=[memory_id, *replacement, *resolved, *known],
                pairs=pairs,
            )
            by = facts.get(latest.superseded_by or "")
            if by and by.contests:
                facts |= await FactLoader(transaction, memory_owner).fetch(memory_ids=by.supersedes)
            if associations:
                facts |= await FactLoader(transaction, memory_owner).fetch(memory_ids=associations)
            kinds = {kind, *(fact.trust_kind for fact in facts.values())}
            order = await find_trust_order(transaction, memory_owner.tenant, kinds)
            ledger = Ledger(facts.values(), now, actor, order, kind)
            fact = act(ledger)
            if associations is not None:
                fact = ledger.associate(fact.memory_id, associations, replace_all=True, by=kind)
            if vector is not None and content_hash(fact.content) != latest.content_hash:
                same_content = await FactLoader(transaction, memory_owner).fetch(hashes=[fact.content_hash])
                ledger.ensure_unique(fact, same_content.values())
            await FactWrite(memory_owner, transaction, now, ledger, {fact.uuid: vector} if vector else {}).commit()
            refs = await self._entities.get_refs(transaction, memory_owner, entity_ids_of([fact]))
            return memory_from_fact(fact, refs, ledger.now)

        return await self._graph.write(
            lambda transaction: write_once(transaction, request, _MEMORY, lambda: update(transaction))
        )

    async def lock_user(
        self, transaction: Transaction, owner: Owner, count: int = 1, *, removes: bool = False
    ) -> datetime:
        """Lock a user until the transaction ends; return a time later than all of the user's earlier writes.

        Raises NotFound for a user that does not exist, and UserBeingForgotten.
        """
        return await lock_user(transaction, owner, self._clock(), count, removes=removes)

    async def lock_or_create_user(self, transaction: Transaction, owner: Owner) -> datetime:
        """Lock a user as `lock_user` does, creating the user if missing."""
        return await lock_or_create_user(transaction, owner, self._clock())

    async def associate(
        self,
        owner: Owner,
        related: Mapping[str, Sequence[str]],
        new: Collection[str] = (),
        kind: SourceKind | None = None,
    ) -> AssociationProblems:
        """Associate memories with others, by memory id; return those that cannot be associated.

        Immutable memories are only associated if they are `new`, and those from a source trusted more than `kind` never
        are.
        """
        if not related:
            return AssociationProblems()

        async def work(transaction: Transaction) -> AssociationProblems:
            now = await self.lock_user(transaction, owner)
            ids = deduplicate(key for memory_id, others in related.items() for key in (memory_id, *others))
            facts = await FactLoader(transaction, owner).fetch(memory_ids=ids)
            kinds = {kind, *(fact.trust_kind for fact in facts.values())}
            order = DEFAULT_ORDER if kind is None else await find_trust_order(transaction, owner.tenant, kinds)
            ledger = Ledger(facts.values(), now, order=order)
            for memory_id, others in related.items():
                if memory_id in facts:
                    facts[memory_id] = ledger.associate(
                        memory_id, [other for other in others if other in facts], new=new, by=kind
                    )
            await FactWrite(owner, transaction, now, ledger).commit()
            return AssociationProblems(
                unknown=[memory_id for memory_id, others in related.items() if not {*others} <= facts.keys()],
                fixed=[
                    memory_id
                    for memory_id, others in related.items()
                    if memory_id in facts
                    and not {*others} & facts.keys() <= {*facts[memory_id].associations, memory_id}
                ],
            )

        return await self._graph.write(work)

    async def reinforce(self, owner: Owner, retrievals: Mapping[str, RetrievalCount]) -> None:
        """Count retrievals of an owner's memories, by memory id, and raise their strength and confidence.

        Retrievals for a user who has been forgotten in the meantime are dropped.
        """
        hits = [
            {"memory_id": memory_id, "times": count.times, "at": to_epoch_pair(count.at)}
            for memory_id, count in sorted(retrievals.items())
        ]

        async def work(transaction: Transaction) -> None:
            await self.lock_user(transaction, owner, count=0)
            await transaction.run(
                "facts.reinforce",
                group_id=owner.group_id,
                hits=hits,
                strength_step=STRENGTH_STEP,
                max_strength=MAX_STRENGTH,
                confidence_step=CONFIDENCE_STEP,
                max_confidence=MAX_CONFIDENCE,
            )

        with suppress(NotFound, UserBeingForgotten):
            await self._graph.write(work)

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> ErasedFacts:
        """Erase every version of an owner's memory, every reference to it, and entities that only it referred to."""
        await self.lock_user(transaction, owner, removes=True)
        (row,) = await transaction.run("facts.erase_memory", group_ids=[owner.group_id], memory_id=memory_id)
        await transaction.run(
            "facts.erase_references", group_id=owner.group_id, memory_id=memory_id, uuids=row["uuids"]
        )
        entity_ids = await self._entities.erase_unreferenced(transaction, owner, row["entity_ids"])
        return ErasedFacts(row["erased"], entity_ids)

    async def list_derived_profiles(self, transaction: Transaction, owner: Owner, memory_id: str) -> list[str]:
        """Return the ids of the profiles with a version written from a memory."""
        rows = await transaction.run("facts.list_derived_profiles", group_id=owner.group_id, memory_id=memory_id)
        return [row["id"] for row in rows]

    # Reading

    async def get(self, reader: Reader, memory_id: str) -> Memory:
        """Return the latest version of a memory, deleted or not; raise NotFound for an unknown id."""

        async def work(transaction: Transaction) -> Memory:
            latest = await self._fetch_latest(transaction, reader, memory_id)
            return (await self.to_memories(transaction, reader, [latest]))[0]

        return await self._graph.read(work)

    async def find_latest(self, owner: Owner, memory_ids: Sequence[str]) -> dict[str, Fact]:
        """Return the latest versions of an owner's memories by memory id, believed or not; unknown ids are left out."""
        rows = await self._graph.fetch("facts.fetch_latest", group_ids=[owner.group_id], memory_ids=list(memory_ids))
        return {fact.memory_id: fact for fact in map(fact_from_row, rows)}

    async def find_stated(self, owner: Owner, hashes: Sequence[str]) -> set[str]:
        """Return the content hashes, out of those given, that current memories of an owner have."""
        facts = await self._graph.read(lambda transaction: FactLoader(transaction, owner).fetch(hashes=hashes))
        return {fact.content_hash for fact in facts.values() if fact.is_valid_at(self._clock())}

    async def find_memory_ids(self, reader: Reader, prefix: str) -> list[str]:
        """Return some memory ids that begin with `prefix`."""
        groups = scope_of(reader).group_ids
        rows = await self._graph.fetch("facts.find_memory_ids", group_ids=groups, prefix=prefix, limit=MAX_MATCHES)
        return [row["id"] for row in rows]

    async def list_contested(self, owner: Owner) -> list[Fact]:
        """Return the contested memories of an owner, the latest first."""
        rows = await self._graph.fetch("facts.list_contested", group_id=owner.group_id)
        return [fact_from_row(row) for row in rows]

    async def get_history(self, reader: Reader, memory_id: str) -> list[MemoryVersion]:
        """Return every version of a memory, oldest first; raise NotFound for an unknown id."""

        async def work(transaction: Transaction) -> list[MemoryVersion]:
            groups = scope_of(reader).group_ids
            rows = await transaction.run("facts.list_versions", group_ids=groups, memory_id=memory_id)
            facts = [fact_from_row(row) for row in rows]
            if not facts:
                raise NotFound("There is no such memory.")
            refs = await self._entities.get_refs(transaction, reader, entity_ids_of(facts))
            return [memory_version_from_fact(fact, refs, self._clock()) for fact in facts]

        return await self._graph.read(work)

    async def list_page(
        self,
        reader: Reader,
        filters: FactFilters,
        *,
        keyword: str | None = None,
        sort: SortOrder = SortOrder.NEWEST,
        after: PagePosition | None = None,
        limit: int,
        only: Owner | None = None,
    ) -> tuple[list[Memory], PagePosition | None]:
        """Return one page of memories, and the position to continue from (None at the end).

        `keyword` must occur in the statement, possibly after folding; `only` restricts the list to one owner.
        """
        folded = fold_accents(normalise(keyword or ""))

        async def work(transaction: Transaction) -> tuple[list[Memory], PagePosition | None]:
            rows = await transaction.run(
                "facts.list_page",
                group_ids=scope_of(reader).group_ids if only is None else [only.group_id],
                **filters.readable_params,
                filters=filters.attribute_params,
                keyword=keyword.lower() if keyword else None,
                keyword_is_folded=keyword is not None and folded == keyword.lower(),
                folded_words=folded.split(),
                sort=sort.property_name,
                direction=sort.direction,
                after_key=after[0] if after else None,
                after_id=after[1] if after else None,
                limit=limit + 1,
            )
            kept, last = take_page(rows, limit)
            memories = await self.to_memories(transaction, reader, [fact_from_row(row) for row in kept])
            return memories, None if last is None else (last["key"], last["fact"]["memory_id"])

        return await self._graph.read(work)

    async def list_entity_facts(self, reader: Reader, entity_id: str, filters: FactFilters, limit: int) -> list[Memory]:
        """Return the facts about or mentioning an entity as of two times, the most important first."""

        async def work(transaction: Transaction) -> list[Memory]:
            rows = await transaction.run(
                "entities.list_facts",
                group_ids=scope_of(reader).group_ids,
                entity_id=entity_id,
                **filters.as_of_params,
                limit=limit,
            )
            return await self.to_memories(transaction, reader, [fact_from_row(row) for row in rows])

        return await self._graph.read(work)

    async def to_memories(self, transaction: Transaction, reader: Reader, facts: Sequence[Fact]) -> list[Memory]:
        """Return facts as memories now."""
        refs = await self._entities.get_refs(transaction, reader, entity_ids_of(facts))
        now = self._clock()
        return [memory_from_fact(fact, refs, now) for fact in facts]

    # Parts

    async def _fetch_latest(self, transaction: Transaction, reader: Reader, memory_id: str) -> Fact:
        groups = scope_of(reader).group_ids
        rows = await transaction.run("facts.fetch_latest", group_ids=groups, memory_ids=[memory_id])
        if not rows:
            raise NotFound("There is no such memory.")
        return fact_from_row(rows[0])

    async def _writable_owner_of_memory(self, transaction: Transaction, reader: Reader, memory_id: str) -> Owner:
        fact = await self._fetch_latest(transaction, reader, memory_id)
        return scope_of(reader).writable_owner_of(fact.group_id)


_STATE_TIME_FIELDS = ("last_accessed_at", "first_created_at")
"""The times of the fragment `retrieval_state`, in its order."""


class ReinforcementBuffer(WriteBuffer[RetrievalCount]):
    """A buffer of retrievals by memory."""

    def __init__(self, facts: FactStore, clock: Clock, interval_seconds: float = FLUSH_SECONDS) -> None:
        super().__init__(facts.reinforce, RetrievalCount.plus, interval_seconds)
        self._clock = clock

    def record(self, reader: Reader, memories: Iterable[Memory]) -> None:
        """Count one retrieval of each memory, except those in spaces that the reader may not write."""
        scope, now = scope_of(reader), self._clock()
        for memory in memories:
            owner = memory.owner_for(scope.owner)
            if scope.may_write(owner):
                self.add(owner, memory.id, RetrievalCount(1, now))


def with_retrieval_states(
    memories: Iterable[Memory], states: Iterable[Sequence[Any]], now: datetime
) -> dict[str, Memory]:
    """Return memories by id, updated with the `retrieval_state` values that are of the same version."""
    known = {memory.id: memory for memory in memories}
    for memory_id, version, *state in states:
        if known[memory_id].version == version:
            known[memory_id] = known[memory_id].model_copy(update=_to_update(state, now))
    return known


def _to_update(state: Sequence[Any], now: datetime) -> dict[str, Any]:
    """Return the memory fields that retrievals have changed, as of `now`.

    `state` has the strength, decay rate, confidence, access count and times of its version.
    """
    strength, decay_rate, confidence, access_count, epochs = state
    last_accessed_at, first_created_at = parse_times(_STATE_TIME_FIELDS, epochs).values()
    since = last_accessed_at or first_created_at
    assert since is not None, "every version has the time of the first one"
    return {
        "strength": round(decayed_strength(strength, decay_rate, (now - since) / timedelta(days=1)), STRENGTH_DECIMALS),
        "confidence": confidence,
        "access_count": access_count,
        "last_accessed_at": last_accessed_at,
    }
