"""One save: new memories of one owner become versions in an open transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graphmem.domain.entity import EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import SaveAction, SaveResult
from graphmem.domain.new_memory import NewMemory, SourceMessage, first_version
from graphmem.domain.text import name_key
from graphmem.domain.types import Vector
from graphmem.domain.versioning import FIXED_ASSOCIATIONS_REASON, Ledger, SaveOutcome
from graphmem.store.driver import Transaction
from graphmem.store.entities import EntityStore, ResolvedEntities
from graphmem.store.fact_mapping import fact_from_row, memory_from_fact
from graphmem.store.fact_write import FactLoader, FactWrite


@dataclass(frozen=True, slots=True)
class FactSave:
    """Saves new memories of one owner, who was locked at `now`."""

    transaction: Transaction
    owner: Owner
    entities: EntityStore
    loader: FactLoader
    now: datetime
    actor: str | None

    async def run(self, memories: Sequence[NewMemory], name_vectors: Mapping[str, Vector]) -> list[SaveResult]:
        """Save memories in order; `name_vectors` holds the vectors of entity names by name key."""
        named = [entity for memory in memories for entity in memory.entities]
        entities = await self.entities.resolve_entities(self.transaction, self.owner, named, name_vectors, self.now)
        sources = await self._fetch_sources(memories)
        drafts = [first_version(self.owner, memory, entities.refs, sources, self.now) for memory in memories]
        facts = await self._load_facts(memories, drafts, entities)
        ledger = Ledger(facts.values(), self.now, self.actor)
        imported = await self._find_imported_before(memories, drafts)
        outcomes = [
            imported.get(draft.memory_id) or _apply_to_ledger(ledger, draft, memory)
            for draft, memory in zip(drafts, memories, strict=True)
        ]
        outcomes = [
            _associate(ledger, outcome, memory.memory.associations)
            for outcome, memory in zip(outcomes, memories, strict=True)
        ]
        vectors = {draft.uuid: memory.vector for draft, memory in zip(drafts, memories, strict=True)}
        write = FactWrite(self.owner, self.transaction, self.now, ledger, vectors, entities.new_entities)
        await write.commit([outcome.fact for outcome in outcomes if outcome.action is not SaveAction.SKIP])
        await self._add_aliases(named, entities)
        refs = await self._load_refs(outcomes, entities)
        return [_save_result(outcome, refs, ledger.now) for outcome in outcomes]

    async def _add_aliases(self, named: Iterable[EntityIn], entities: ResolvedEntities) -> None:
        """Add the aliases that the statements give; several entities may share one."""
        aliases: dict[str, list[str]] = {}
        for entity in named:
            if entity.aliases:
                aliases.setdefault(entities.refs[name_key(entity.name)].id, []).extend(entity.aliases)
        for entity_id, names in aliases.items():
            await self.entities.add_aliases(self.transaction, self.owner, entity_id, names, self.now, shared=True)

    async def _fetch_sources(self, memories: Sequence[NewMemory]) -> dict[str, SourceMessage]:
        """Return the stored messages that memories were taken from, by message id."""
        message_ids = sorted({message_id for memory in memories for message_id in memory.message_ids})
        if not message_ids:
            return {}
        rows = await self.transaction.run("episodes.fetch_texts", group_id=self.owner.group_id, message_ids=message_ids)
        return {row["message_id"]: SourceMessage(**row) for row in rows}

    async def _load_facts(
        self, memories: Sequence[NewMemory], drafts: Sequence[Fact], entities: ResolvedEntities
    ) -> dict[str, Fact]:
        """Return the facts that the drafts may change, by memory id."""
        new_entity_ids = {properties["uuid"] for properties in entities.new_entities}
        return await self.loader.fetch(
            hashes=[draft.content_hash for draft in drafts],
            memory_ids=[
                memory_id
                for memory in memories
                for memory_id in (*memory.memory.supersedes, *memory.memory.associations)
            ],
            # There are no facts about a new entity.
            pairs=[
                (draft.subject_id, draft.predicate)
                for draft in drafts
                if draft.single_valued and draft.subject_id not in new_entity_ids
            ],
        )

    async def _find_imported_before(
        self, memories: Sequence[NewMemory], drafts: Sequence[Fact]
    ) -> dict[str, SaveOutcome]:
        """Return, by memory id, the outcomes of imported statements that an earlier import has saved."""
        imported = [draft.memory_id for draft, memory in zip(drafts, memories, strict=True) if memory.provenance]
        if not imported:
            return {}
        rows = await self.transaction.run("facts.fetch_latest", group_ids=[self.owner.group_id], memory_ids=imported)
        facts = map(fact_from_row, rows)
        return {fact.memory_id: SaveOutcome(SaveAction.SKIP, fact, (), "it was imported before") for fact in facts}

    async def _load_refs(self, outcomes: Sequence[SaveOutcome], entities: ResolvedEntities) -> dict[str, EntityRef]:
        """Return the entities that the outcomes refer to, by id."""
        refs = {ref.id: ref for ref in entities.refs.values()}
        others = [key for key in entity_ids_of(outcome.fact for outcome in outcomes) if key not in refs]
        return refs | await self.entities.get_refs(self.transaction, self.owner, others)


def entity_ids_of(facts: Iterable[Fact]) -> list[str]:
    """Return the ids of the entities that facts refer to, sorted."""
    return sorted({key for fact in facts for key in (fact.subject_id, fact.object_id, *fact.entity_ids) if key})


def _apply_to_ledger(ledger: Ledger, draft: Fact, memory: NewMemory) -> SaveOutcome:
    if memory.provenance:
        return ledger.import_version(draft, memory.provenance)
    return ledger.save(draft, memory.memory.supersedes, memory.reason, memory.ends)


def _associate(ledger: Ledger, outcome: SaveOutcome, associations: Sequence[str]) -> SaveOutcome:
    """Return an outcome whose memory is associated with others, unless the save changed nothing."""
    if not associations or outcome.action is SaveAction.SKIP:
        return outcome
    fact = ledger.associate(outcome.fact.memory_id, associations)
    if {*associations} <= {*fact.associations, fact.memory_id}:
        return replace(outcome, fact=fact)
    return replace(outcome, fact=fact, reason=f"{outcome.reason}; {FIXED_ASSOCIATIONS_REASON}")


def _save_result(outcome: SaveOutcome, refs: Mapping[str, EntityRef], now: datetime) -> SaveResult:
    return SaveResult(
        action=outcome.action,
        memory=memory_from_fact(outcome.fact, refs, now),
        superseded=list(outcome.superseded),
        reason=outcome.reason,
    )
