"""The last step: one transaction that does what the plan says, exactly once for each part of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from graphmem.domain.actions import Reconciliation
from graphmem.domain.belief import Ledger
from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import TOPIC_TAGS, Action, MemoryType, SaveResult, Status
from graphmem.domain.text import content_hash, name_key
from graphmem.ingestion.claims import EXTRACTED, Alias, Claim, Refusal
from graphmem.ingestion.link import Linked, names_of, subject_key
from graphmem.ingestion.naming import Naming, settle
from graphmem.ingestion.plan import Deletion, Plan, Planner, Save, renamed
from graphmem.store.driver import Graph, Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore
from graphmem.store.statements import Statement
from graphmem.store.writes import Touched, Write

Vector = list[float]
Entry = dict[str, Any]

MENTIONS = 2
"""So many messages must show an interest before it is a memory (UMB-05)."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one window of a job came to: everything `apply` needs but the vectors."""

    id: str
    session_id: str
    message_ids: Sequence[str]
    claims: Sequence[Claim] = ()
    refusals: Sequence[Refusal] = ()
    aliases: Sequence[Alias] = ()
    linked: Linked = field(default_factory=Linked)
    answer: Reconciliation | None = None

    def decided(self, linked: Linked, answer: Reconciliation | None) -> Part:
        """Return the part with what the later steps found."""
        return replace(self, linked=linked, answer=answer)


class Applier:
    """Writes parts of jobs."""

    def __init__(self, graph: Graph, facts: FactStore, entities: EntityStore) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities

    async def apply(self, owner: Owner, part: Part, vectors: Mapping[str, Vector], actor: str) -> list[Entry]:
        """Do it and return what was done; a part that has been applied answers what it did then."""

        async def work(transaction: Transaction) -> list[Entry]:
            now = await self._facts.lock(transaction, owner)
            done = await transaction.run("linking.applied", group_id=owner.group_id, extraction_id=part.id)
            if done:
                return list(json.loads(done[0]["actions"]))
            return await _Application(self, transaction, owner, part, vectors, actor, now).run()

        return await self._graph.write(work)

    async def current(
        self, transaction: Transaction, touched: Touched, owner: Owner, linked: Linked, claims: Sequence[Claim]
    ) -> tuple[dict[str, Fact], dict[str, EntityRef]]:
        """Return the believed versions of related facts and of single-valued rivals, and the entities they touch."""
        pairs = {
            (linked.entities.get(subject_key(claim)), claim.memory.predicate)
            for claim in claims
            if claim.memory.single_valued
        }
        facts = await touched.fetch(
            hashes=[content_hash(claim.memory.content) for claim in claims],
            memory_ids=linked.related,
            pairs=[(subject, predicate) for subject, predicate in sorted(pairs, key=str) if subject and predicate],
        )
        ids = {key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids)}
        refs = await self._entities.refs(transaction, owner, sorted(ids | set(linked.entities.values())))
        return facts, refs

    @property
    def stores(self) -> tuple[FactStore, EntityStore]:
        """The stores it writes to."""
        return self._facts, self._entities


class _Application:
    """One part being applied in one open transaction."""

    def __init__(
        self,
        applier: Applier,
        transaction: Transaction,
        owner: Owner,
        part: Part,
        vectors: Mapping[str, Vector],
        actor: str,
        now: datetime,
    ) -> None:
        self._applier = applier
        self._facts, self._entities = applier.stores
        self._transaction = transaction
        self._owner = owner
        self._part = part
        self._vectors = vectors
        self._actor = actor
        self._now = now
        self._touched = Touched(transaction, owner)
        self._entries: list[Entry] = [
            {"action": "refuse", "type": refusal.type, "reason": refusal.reason} for refusal in part.refusals
        ]
        self._links: list[Entry] = []

    async def run(self) -> list[Entry]:
        part = self._part
        if part.claims:
            facts, names = await self._applier.current(
                self._transaction, self._touched, self._owner, part.linked, part.claims
            )
            plan = Planner(part.claims, part.linked, facts, names).plan(part.answer)
            naming = self._naming(plan, names)
            await self._rename(naming)
            await self._save([renamed(save, naming.proper) for save in plan.saves], facts)
            await self._delete(plan.deletions)
            await self._alias(naming)
            self._tell(plan)
        await self._record()
        return self._entries

    def _naming(self, plan: Plan, names: Mapping[str, EntityRef]) -> Naming:
        linked = self._part.linked
        spelt = {key: entity.name for key, entity in names_of(self._part.claims, self._part.aliases).items()}
        own = linked.entities.get("") or name_key(self._owner.user_id)
        naming = settle(linked.entities, plan.same, spelt, names, self._part.aliases, own)
        self._entries += [{"action": "refuse", "type": "names", "reason": reason} for reason in naming.refused]
        return naming

    async def _rename(self, naming: Naming) -> None:
        for entity_id, name in naming.renames.items():
            taken = await self._transaction.run(
                "entities.find", group_ids=[self._owner.group_id], keys=[name_key(name)]
            )
            if taken:
                continue
            await self._transaction.run(
                "linking.rename_entity",
                group_id=self._owner.group_id,
                entity_id=entity_id,
                proper_name=name,
                name_key=name_key(name),
                vector=self._vectors.get(name),
                now=self._now,
            )
            self._links.append({"entity_id": entity_id, "name": name})

    async def _save(self, saves: Sequence[Save], facts: Mapping[str, Fact]) -> None:
        ready = [kept for save in saves if self._has_vector(save) and (kept := await self._ripe(save, facts))]
        statements = [
            Statement(save.memory, self._vectors[save.memory.content], EXTRACTED, save.reason) for save in ready
        ]
        if not statements:
            return
        by_key = {name_key(text): vector for text, vector in self._vectors.items()}
        results = await self._facts.save_within(
            self._transaction, self._owner, statements, by_key, self._actor, locked_at=self._now, touched=self._touched
        )
        self._entries += [_entry(save, result) for save, result in zip(ready, results, strict=True)]

    def _has_vector(self, save: Save) -> bool:
        """Whether the text to save is one that was embedded: a memory may have been rewritten since it was read."""
        if save.memory.content in self._vectors:
            return True
        reason = "what it repeats has been rewritten meanwhile"
        self._entries.append({"action": "refuse", "type": save.memory.type.value, "reason": reason})
        return False

    async def _ripe(self, save: Save, facts: Mapping[str, Fact]) -> Save | None:
        """Return a save, but an inferred interest only once enough messages show it."""
        memory = save.memory
        known = any(fact.content_hash == content_hash(memory.content) for fact in facts.values())
        if memory.type is not MemoryType.INFERRED_INTEREST or save.again or known or memory.supersedes:
            return save
        name = memory.object.name if memory.object else memory.content
        key = name_key(memory.object.name) if memory.object else content_hash(memory.content)
        rows = await self._transaction.run(
            "linking.note_interest",
            group_id=self._owner.group_id,
            key=key,
            topic=name,
            message_ids=list(self._part.claims[save.claim].told_in),
            now=self._now,
        )
        message_ids = rows[0]["message_ids"]
        if len(message_ids) < MENTIONS:
            self._entries.append({"action": "note", "type": memory.type.value, "reason": "an interest mentioned once"})
            return None
        await self._transaction.run("linking.drop_interest", group_id=self._owner.group_id, key=key)
        assert memory.source
        source = memory.source.model_copy(update={"message_ids": message_ids[-200:]})
        return Save(save.claim, memory.model_copy(update={"source": source}), save.reason)

    async def _delete(self, deletions: Sequence[Deletion]) -> None:
        if not deletions:
            return
        touched = Touched(self._transaction, self._owner)
        facts = await touched.fetch(memory_ids=[deletion.memory_id for deletion in deletions])
        now = await self._facts.lock(self._transaction, self._owner, 0)
        ledger = Ledger(facts.values(), now, self._actor)
        for deletion in deletions:
            fact = ledger.delete(deletion.memory_id, deletion.reason)
            self._entries.append(
                {"action": "delete", "memory_id": fact.memory_id, "type": fact.type.value, "reason": deletion.reason}
            )
        await Write(self._owner, self._transaction, now, ledger).commit()

    async def _alias(self, naming: Naming) -> None:
        for entity, others in naming.aliases.items():
            if others:
                self._links += await self._entities.add_aliases(
                    self._transaction, self._owner, entity, others, self._now
                )

    def _tell(self, plan: Plan) -> None:
        for veto in plan.vetoes:
            told = {"action": "refuse", "type": self._part.claims[veto.claim].memory.type.value}
            what = f"not to {veto.action}" if veto.memory_id else f"no {veto.action}"
            entry: Entry = {**told, "reason": f"{what}: {veto.reason}"}
            self._entries.append({**entry, "memory_id": veto.memory_id} if veto.memory_id else entry)
        self._entries += [{"action": "link", **link} for link in self._links]

    async def _record(self) -> None:
        part = self._part
        await self._transaction.run(
            "linking.record_applied",
            group_id=self._owner.group_id,
            extraction_id=part.id,
            actions=json.dumps(self._entries, ensure_ascii=False),
            links=json.dumps(self._links, ensure_ascii=False),
            message_ids=list(part.message_ids),
            session_id=part.session_id,
            tags=sorted({tag for claim in part.claims for tag in claim.memory.tags if tag in TOPIC_TAGS}),
            at=self._now,
        )


def _entry(save: Save, result: SaveResult) -> Entry:
    memory = result.memory
    assert memory
    entry: Entry = {"action": result.action.value, "memory_id": memory.id, "type": memory.type.value}
    if result.superseded:
        entry["superseded"] = result.superseded
    reason = save.reason if result.action is Action.SUPERSEDE and save.memory.supersedes else result.reason
    return {**entry, "reason": reason} if reason else entry


def texts_of(claims: Sequence[Claim], aliases: Sequence[Alias], own_name: str) -> list[str]:
    """Return every text whose vector applying may need, but the known contents a model may reinforce."""
    names = [entity.name for entity in names_of(claims, aliases).values()]
    return list(dict.fromkeys([*(claim.memory.content for claim in claims), *names, own_name]))


def reinforced_texts(answer: Reconciliation, linked: Linked, facts: Mapping[str, Fact]) -> list[str]:
    """Return the contents of known facts an answer refers to."""
    numbers = {number for decision in answer.decisions for number in decision.known}
    ids = [linked.related[number - 1] for number in sorted(numbers) if 1 <= number <= len(linked.related)]
    return [facts[each].content for each in ids if each in facts and facts[each].status is Status.ACTIVE]
