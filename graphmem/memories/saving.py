"""One save: new memories of one owner become versions in an open transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from graphmem.memories.entity import (
    DEFAULT_ENTITY_TYPE,
    EntityIn,
    EntityRef,
    NamedEntity,
    follow_aliases,
    named_entity_from_node,
)
from graphmem.memories.entity_store import EntityStore, ResolvedEntities
from graphmem.memories.fact import TYPE_PREDICATES, Fact, fact_from_row, fact_to_properties, memory_from_fact
from graphmem.memories.ledger import FIXED_ASSOCIATIONS_REASON, Ledger, SaveOutcome
from graphmem.memories.memory import MAX_SOURCE_MESSAGES, MemoryIn, MemorySourceIn, MemoryType, SaveAction, SaveResult
from graphmem.memories.names import NamedEntities, name_keys_in
from graphmem.memories.new_memory import NewMemory, SourceMessage, first_version
from graphmem.memories.related import find_related
from graphmem.memories.repetitions import find_new_fields
from graphmem.neo4j.driver import Transaction
from graphmem.neo4j.driver_values import Row, pack_vector
from graphmem.neo4j.migrations import FACT_TEXT_FIELDS
from graphmem.runtime.field_types import Vector, content_hash, deduplicate, name_key
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import DEFAULT_ORDER, SourceKind, TrustOrder
from graphmem.text.tokenising import build_lucene_query, query_terms

Key = TypeVar("Key", bound=Hashable)

MAX_MESSAGE_FACTS = 100
"""Maximum versions that a message lists as based on it, the latest ones."""


class FactLoader:
    """Loads the believed versions that a write of one user may change, each at most once.

    It does not see changes of its own transaction, so only use it before the transaction's first write.
    """

    def __init__(self, transaction: Transaction, owner: Owner) -> None:
        self._transaction = transaction
        self._owner = owner
        self._requested: set[Hashable] = set()
        self._facts: dict[str, Fact] = {}

    async def fetch(
        self,
        *,
        hashes: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        pairs: Sequence[tuple[str, str]] = (),
        slots: Sequence[tuple[str, str, bool]] = (),
    ) -> dict[str, Fact]:
        """Load facts and return, by memory id, all facts this loader has loaded so far.

        Facts are selected by content hash, by memory id, and by pairs of subject id and predicate. `slots` are such
        pairs too, only loaded if one of their facts is single-valued; false marks a statement by the user, for which a
        tenant's order alone lets other sources decide.
        """
        new_hashes = self._not_requested(hashes)
        new_memory_ids = self._not_requested(memory_ids)
        new_pairs = [list(pair) for pair in self._not_requested(pairs)]
        new_slots = [list(slot) for slot in self._not_requested(slots)]
        if new_hashes or new_memory_ids or new_pairs or new_slots:
            rows = await self._transaction.run(
                "facts.fetch_for_write",
                group_id=self._owner.group_id,
                tenant=self._owner.tenant,
                keys={"hashes": new_hashes, "memory_ids": new_memory_ids, "pairs": new_pairs, "slots": new_slots},
            )
            self._facts |= {fact.memory_id: fact for fact in map(fact_from_row, rows)}
        return dict(self._facts)

    def _not_requested(self, keys: Sequence[Key]) -> list[Key]:
        new_keys = [key for key in deduplicate(keys) if key not in self._requested]
        self._requested.update(new_keys)
        return new_keys


@dataclass(frozen=True, slots=True)
class FactWrite:
    """The changes that one transaction makes to a user's facts.

    `vectors` holds the vectors of new contents by version uuid, `entities` the properties of entities to create, and
    `now` is the time at which the user was locked.
    """

    owner: Owner
    transaction: Transaction
    now: datetime
    ledger: Ledger
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    entities: Sequence[Row] = ()

    async def commit(self, saved_facts: Sequence[Fact] = ()) -> None:
        """Store the versions of the ledger; link `saved_facts` to their messages and to the entities they refer to."""
        await self.transaction.run(
            "facts.commit_write",
            group_id=self.owner.group_id,
            rows={
                "entities": list(self.entities),
                "changed": [
                    {"uuid": fact.uuid, "properties": fact_to_properties(fact)} for fact in self.ledger.changed.values()
                ],
                "created": [self._created_row(fact) for fact in self.ledger.created.values()],
                "episodes": _episode_rows(saved_facts),
                "referring": deduplicate(fact.memory_id for fact in saved_facts if fact.mentioned_ids),
            },
            max_facts=MAX_MESSAGE_FACTS,
            now=self.now,
            at=self.ledger.now + MICROSECOND,
        )

    def _created_row(self, fact: Fact) -> Row:
        source = self.ledger.vector_source_uuid.get(fact.uuid)
        vector = self.vectors.get(source or fact.uuid)
        return {
            "subject_id": fact.subject_id,
            "object_id": fact.object_id or fact.subject_id,
            "properties": fact_to_properties(fact),
            "vector": pack_vector(vector),
            "vector_source_uuid": source if vector is None else None,
        }


def _episode_rows(facts: Sequence[Fact]) -> list[Row]:
    """Return a row for each message, with the facts taken from it and the entities they refer to."""
    facts_by_episode: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        for episode in fact.episodes:
            facts_by_episode[episode].append(fact)
    return [
        {
            "episode": episode,
            "facts": [fact.uuid for fact in stated],
            "entity_ids": deduplicate(entity_id for fact in stated for entity_id in fact.entity_ids),
        }
        for episode, stated in facts_by_episode.items()
    ]


MIN_INTEREST_MENTIONS = 2
"""Minimum messages, or saves, that show an inferred interest before it becomes a memory."""

MENTIONED_ONCE = "an interest mentioned once"
"""Why a statement is not a memory yet."""


async def record_interest(
    transaction: Transaction, owner: Owner, memory: MemoryIn, mentions: list[str], now: datetime
) -> list[str] | None:
    """Record the evidence for an inferred interest; return all of it once there is enough, else None.

    The caller has locked the user. Until then, the interest is a candidate, which no read returns.
    """
    # A mention counts however it is worded, so this key is folded, unlike the key that tells statements apart.
    key = name_key(memory.object.name) if memory.object else content_hash(name_key(memory.content))
    rows = await transaction.run(
        "extraction.record_interest",
        group_id=owner.group_id,
        key=key,
        topic=memory.object.name if memory.object else memory.content,
        message_ids=mentions,
        now=now,
    )
    found: list[str] = rows[0]["message_ids"]
    if len(found) < MIN_INTEREST_MENTIONS:
        return None
    await transaction.run("extraction.delete_interest", group_id=owner.group_id, key=key)
    return found


KEYS_PER_ENTITY = 8
"""Number of keys whose graph look-up costs as much as reading an entity."""


@dataclass(frozen=True, slots=True)
class FactSave:
    """Saves new memories of one owner, who was locked at `now`; with `finds_related`, results name related memories."""

    transaction: Transaction
    owner: Owner
    entities: EntityStore
    loader: FactLoader
    now: datetime
    actor: str | None
    finds_related: bool = True

    async def run(self, memories: Sequence[NewMemory], name_vectors: Mapping[str, Vector]) -> list[SaveResult]:
        """Save memories in order; `name_vectors` holds the vectors of entity names by name key.

        An inferred interest mentioned only once is skipped, and kept as a candidate.
        """
        checked = await self._check_interests(memories)
        ready = await self._link_names([memory for memory in checked if memory])
        saved = iter(await self._save(ready, name_vectors) if ready else [])
        return [
            next(saved) if memory else SaveResult(action=SaveAction.SKIP, memory=None, reason=MENTIONED_ONCE)
            for memory in checked
        ]

    async def _check_interests(self, memories: Sequence[NewMemory]) -> list[NewMemory | None]:
        """Return the memories, with None for each inferred interest that has not been mentioned often enough."""
        inferred = [memory for memory in memories if _is_counted_interest(memory)]
        if not inferred:
            return list(memories)
        hashes = [content_hash(memory.memory.content) for memory in inferred]
        known = {fact.content_hash for fact in (await self.loader.fetch(hashes=hashes)).values()}
        sources = await self._fetch_sources(inferred)
        this_save = f"save:{uuid.uuid4()}"
        checked: list[NewMemory | None] = []
        for memory in memories:
            if not _is_counted_interest(memory) or content_hash(memory.memory.content) in known:
                checked.append(memory)
                continue
            # Statements by the assistant are no evidence of an interest.
            of_user = [key for key in memory.message_ids if key not in sources or sources[key].is_of_user]
            shown_by = of_user if memory.message_ids else [this_save]
            mentions = await record_interest(self.transaction, self.owner, memory.memory, shown_by, self.now)
            checked.append(_with_message_ids(memory, mentions) if mentions else None)
        return checked

    async def _link_names(self, memories: Sequence[NewMemory]) -> list[NewMemory]:
        """Return the memories with the entities named in their texts, both known ones and those of this save."""
        texts = [memory.memory.content for memory in memories if memory.links_names]
        if not texts:
            return list(memories)
        keys = set().union(*map(name_keys_in, texts))
        rows = await self.transaction.run(
            "entities.find_nameable",
            group_id=self.owner.group_id,
            group_ids=[self.owner.group_id],
            keys=sorted(keys),
            limit=len(keys) // KEYS_PER_ENTITY,
        )
        nodes = [row["entity"] for row in rows]
        entities = [
            named_entity_from_node(node)
            for node in nodes
            if not keys.isdisjoint((node["name_key"], *(node["alias_keys"] or ())))
        ]
        known = {key for entity in entities for key in map(name_key, (entity.name, *entity.aliases))}
        lesser = {node["uuid"]: node for node in nodes if node["detail_sources"]}
        order = await find_trust_order(self.transaction, self.owner.tenant) if lesser else DEFAULT_ORDER
        new = {name_key(entity.name): entity for memory in memories for entity in memory.entities}
        entities += [
            NamedEntity(key, entity.name, entity.type or DEFAULT_ENTITY_TYPE, entity.aliases, is_user=False)
            for key, entity in new.items()
            if key not in known and key != name_key(self.owner.entity_name)
        ]
        if not entities:
            return list(memories)
        names = {kind: NamedEntities(_as_named_by(entities, lesser, kind, order)) for kind in _kinds_of(memories)}
        return [_link(memory, names[memory.trust_kind]) if memory.links_names else memory for memory in memories]

    async def _save(self, memories: Sequence[NewMemory], name_vectors: Mapping[str, Vector]) -> list[SaveResult]:
        named = [entity for memory in memories for entity in memory.entities]
        entities = await self.entities.resolve_entities(
            self.transaction, self.owner, named, name_vectors, self.now, _kinds_by_name(memories)
        )
        sources = await self._fetch_sources(memories)
        drafts = [first_version(self.owner, memory, entities.refs, sources, self.now) for memory in memories]
        earlier = await self._find_earlier_mentions(memories, entities)
        facts = await self._load_facts(memories, drafts, entities, earlier)
        new_ids = {properties["uuid"] for properties in entities.new_entities}
        related: list[list[str]] = [[] for _ in drafts]
        if self.finds_related:
            related = await find_related(self.transaction, self.owner, memories, drafts, new_ids, self.now)
        kinds = {fact.trust_kind for fact in (*facts.values(), *drafts)}
        order = await find_trust_order(self.transaction, self.owner.tenant, kinds)
        ledger = Ledger(facts.values(), self.now, self.actor, order)
        imported = await self._find_imported_before(memories, drafts)
        outcomes = [
            imported.get(draft.memory_id) or _apply_to_ledger(ledger, draft, memory)
            for draft, memory in zip(drafts, memories, strict=True)
        ]
        outcomes = [
            _associate(ledger, outcome, memory.memory.associations, draft.trust_kind)
            for outcome, memory, draft in zip(outcomes, memories, drafts, strict=True)
        ]
        vectors = {draft.uuid: memory.vector for draft, memory in zip(drafts, memories, strict=True)}
        write = FactWrite(self.owner, self.transaction, self.now, ledger, vectors, entities.new_entities)
        linked = [
            ledger.link(memory_id, entity.id, entity.name)
            for memory_id, named_entities in earlier.items()
            for entity in named_entities
        ]
        await write.commit([*(outcome.fact for outcome in outcomes if outcome.action is not SaveAction.SKIP), *linked])
        refused = await self._add_aliases(memories, entities)
        refs = await self._load_refs(outcomes, entities)
        ended = {memory_id for outcome in outcomes for memory_id in outcome.superseded}
        return [
            _save_result(
                _without_aliases(outcome, memory, refused), refs, ledger.now, [key for key in found if key not in ended]
            )
            for outcome, memory, found in zip(outcomes, memories, related, strict=True)
        ]

    async def _find_earlier_mentions(
        self, memories: Sequence[NewMemory], entities: ResolvedEntities
    ) -> dict[str, list[NamedEntity]]:
        """Return, by memory id, the new entities that earlier memories name but could not refer to.

        Imports are left out: they bring their own references.
        """
        aliases = {name_key(entity.name): entity.aliases for memory in memories for entity in memory.entities}
        new = [
            NamedEntity(row["uuid"], row["name"], row["type"], aliases.get(row["name_key"], []), is_user=False)
            for row in entities.new_entities
            if not row["is_user"]
        ]
        if not new or all(memory.provenance for memory in memories):
            return {}
        names = sorted({name.lower() for entity in new for name in (entity.name, *entity.aliases)})
        words = build_lucene_query(query_terms(" ".join(names)), [self.owner.group_key], FACT_TEXT_FIELDS)
        rows = await self.transaction.run("facts.find_naming", group_id=self.owner.group_id, words=words, names=names)
        ids = {entity.id for entity in new}
        found: dict[str, list[NamedEntity]] = {}
        for row in rows:
            # A name within the name of an entity that the memory refers to is not a separate mention.
            names_in = NamedEntities([*map(named_entity_from_node, row["entities"]), *new])
            if mentioned := [entity for entity in names_in.find(row["content"]) if entity.id in ids]:
                found[row["memory_id"]] = mentioned
        return found

    async def _add_aliases(self, memories: Sequence[NewMemory], entities: ResolvedEntities) -> set[tuple[str, str]]:
        """Add the aliases given by the statements; several entities may share an alias given by the user.

        Return the aliases that belong to another entity, each with the key of the name it was given for.
        """
        given: dict[tuple[str, SourceKind, str | None], list[str]] = {}
        for memory in memories:
            for entity in memory.entities:
                if entity.aliases:
                    source = (name_key(entity.name), memory.trust_kind, memory.speaker)
                    given.setdefault(source, []).extend(entity.aliases)
        refused: set[tuple[str, str]] = set()
        for (key, kind, speaker), names in given.items():
            entity_id = entities.refs[key].id
            await self.entities.add_aliases(
                self.transaction, self.owner, entity_id, names, self.now, kind=kind, shared=True, speaker=speaker
            )
            held = await self.transaction.run(
                "entities.find_by_keys", group_ids=[self.owner.group_id], keys=list(map(name_key, names))
            )
            own = next((row["entity"] for row in held if row["entity"]["uuid"] == entity_id), None)
            own_keys = {own["name_key"], *(own["alias_keys"] or ())} if own else set()
            refused |= {(key, name) for name in names if name_key(name) not in own_keys}
        return refused

    async def _fetch_sources(self, memories: Sequence[NewMemory]) -> dict[str, SourceMessage]:
        """Return the stored messages that memories were taken from, by message id."""
        message_ids = sorted({message_id for memory in memories for message_id in memory.message_ids})
        if not message_ids:
            return {}
        rows = await self.transaction.run("episodes.fetch_texts", group_id=self.owner.group_id, message_ids=message_ids)
        return {row["message_id"]: SourceMessage(**row) for row in rows}

    async def _load_facts(
        self,
        memories: Sequence[NewMemory],
        drafts: Sequence[Fact],
        entities: ResolvedEntities,
        earlier: Iterable[str],
    ) -> dict[str, Fact]:
        """Return the facts that the drafts may change, and those with ids in `earlier`, by memory id."""
        new_entity_ids = {properties["uuid"] for properties in entities.new_entities}
        return await self.loader.fetch(
            hashes=[draft.content_hash for draft in drafts],
            memory_ids=[
                *(
                    memory_id
                    for memory in memories
                    for memory_id in (*memory.memory.supersedes, *memory.contests, *memory.memory.associations)
                ),
                *earlier,
            ],
            # A new entity has no facts.
            pairs=[
                (draft.subject_id, draft.predicate)
                for draft in drafts
                if draft.single_valued and draft.subject_id not in new_entity_ids
            ],
            slots=[
                (draft.subject_id, draft.predicate, draft.trust_kind != "user")
                for draft in drafts
                if not draft.single_valued
                and draft.predicate not in TYPE_PREDICATES
                and draft.subject_id not in new_entity_ids
            ],
        )

    async def _find_imported_before(
        self, memories: Sequence[NewMemory], drafts: Sequence[Fact]
    ) -> dict[str, SaveOutcome]:
        """Return, by memory id, the outcomes of imported statements that an earlier import has saved."""
        imported = {
            draft.memory_id: (draft, memory.given)
            for draft, memory in zip(drafts, memories, strict=True)
            if memory.provenance
        }
        if not imported:
            return {}
        rows = await self.transaction.run("facts.fetch_latest", group_ids=[self.owner.group_id], memory_ids=[*imported])
        return {
            fact.memory_id: SaveOutcome(
                SaveAction.SKIP, fact, (), "it was imported before", find_new_fields(fact, *imported[fact.memory_id])
            )
            for fact in map(fact_from_row, rows)
        }

    async def _load_refs(self, outcomes: Sequence[SaveOutcome], entities: ResolvedEntities) -> dict[str, EntityRef]:
        """Return the entities that the outcomes refer to, by id."""
        refs = {ref.id: ref for ref in entities.refs.values()}
        others = [key for key in entity_ids_of(outcome.fact for outcome in outcomes) if key not in refs]
        return refs | await self.entities.get_refs(self.transaction, self.owner, others)


def _kinds_of(memories: Iterable[NewMemory]) -> set[SourceKind]:
    return {memory.trust_kind for memory in memories if memory.links_names}


def _kinds_by_name(memories: Iterable[NewMemory]) -> dict[str, SourceKind]:
    """Return the source that names each entity, by name key: the most trusted by default, with the user first."""
    kinds: dict[str, SourceKind] = {}
    for memory in memories:
        for key in (name_key(entity.name) for entity in memory.entities):
            kinds[key] = DEFAULT_ORDER.most_trusted([kinds.get(key, memory.trust_kind), memory.trust_kind])
    return kinds


def _as_named_by(
    entities: Iterable[NamedEntity], lesser: Mapping[str, Row], kind: SourceKind, order: TrustOrder
) -> list[NamedEntity]:
    """Return entities with the aliases that a source follows; `lesser` are nodes with aliases of other sources."""
    return [
        replace(entity, aliases=follow_aliases(lesser[entity.id], kind, order)) if entity.id in lesser else entity
        for entity in entities
    ]


def _without_aliases(outcome: SaveOutcome, memory: NewMemory, refused: Set[tuple[str, str]]) -> SaveOutcome:
    """Return an outcome that reports whether an alias in the statement belongs to another entity."""
    given = {(name_key(entity.name), alias) for entity in memory.entities for alias in entity.aliases}
    return outcome if given.isdisjoint(refused) else replace(outcome, ignored=(*outcome.ignored, "aliases"))


def entity_ids_of(facts: Iterable[Fact]) -> list[str]:
    """Return the sorted ids of the entities that facts refer to."""
    return sorted({key for fact in facts for key in (fact.subject_id, fact.object_id, *fact.entity_ids) if key})


def _apply_to_ledger(ledger: Ledger, draft: Fact, memory: NewMemory) -> SaveOutcome:
    if memory.provenance:
        return ledger.import_version(draft, memory.provenance, memory.given)
    return ledger.save(
        draft, memory.memory.supersedes, memory.reason, memory.ends, memory.given, contests=memory.contests
    )


def _associate(ledger: Ledger, outcome: SaveOutcome, associations: Sequence[str], by: SourceKind) -> SaveOutcome:
    """Return an outcome with the memory associated by a source, unless the save changed nothing."""
    if not associations or outcome.action is SaveAction.SKIP:
        return outcome
    fact = ledger.associate(outcome.fact.memory_id, associations, by=by)
    if {*associations} <= {*fact.associations, fact.memory_id}:
        return replace(outcome, fact=fact)
    return replace(outcome, fact=fact, reason=f"{outcome.reason}; {FIXED_ASSOCIATIONS_REASON}")


def _is_counted_interest(memory: NewMemory) -> bool:
    is_inferred = memory.memory.type is MemoryType.INFERRED_INTEREST
    return is_inferred and memory.provenance is None and not memory.memory.supersedes


def _with_message_ids(memory: NewMemory, mentions: Sequence[str]) -> NewMemory:
    """Return a memory with the messages among its mentions as its source."""
    message_ids = [mention for mention in mentions if not mention.startswith("save:")]
    if not message_ids:
        return memory
    source = memory.memory.source or MemorySourceIn()
    source = source.model_copy(update={"message_ids": message_ids[-MAX_SOURCE_MESSAGES:]})
    return replace(memory, memory=memory.memory.model_copy(update={"source": source}))


def _link(memory: NewMemory, names: NamedEntities) -> NewMemory:
    """Return a memory with references to the entities its text names."""
    given = {name_key(entity.name) for entity in memory.entities}
    found = [
        EntityIn(name=entity.name)
        for entity in names.find(memory.memory.content)
        if given.isdisjoint(map(name_key, (entity.name, *entity.aliases)))
    ]
    if not found:
        return memory
    return replace(memory, memory=memory.memory.model_copy(update={"entities": [*memory.memory.entities, *found]}))


def _save_result(
    outcome: SaveOutcome, refs: Mapping[str, EntityRef], now: datetime, related: Sequence[str]
) -> SaveResult:
    return SaveResult(
        action=outcome.action,
        memory=memory_from_fact(outcome.fact, refs, now),
        superseded=list(outcome.superseded),
        related=[key for key in related if key != outcome.fact.memory_id],
        # For callers that show only the reason.
        reason=f"{outcome.reason}; not taken over: {', '.join(outcome.ignored)}" if outcome.ignored else outcome.reason,
        ignored=list(outcome.ignored),
    )
