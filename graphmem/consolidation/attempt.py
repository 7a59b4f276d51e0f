"""One try at one run: proposals judged and executed within an open transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.consolidation.guards import Scene, Toll, loss, refusal
from graphmem.consolidation.linking import Linking
from graphmem.consolidation.merging import merged
from graphmem.consolidation.scene import (
    Secrets,
    entity_ids_of,
    entity_scene,
    facts_scene,
    fetch_entities,
    fetch_facts,
    versions,
)
from graphmem.domain.belief import ONE_TICK, Ledger
from graphmem.domain.entity import EntityIn
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.proposals import (
    Associate,
    CreateEntity,
    Judged,
    LinkEntities,
    Merge,
    Proposal,
    RunStatus,
    UpdateEntity,
    Verdict,
)
from graphmem.domain.snapshot import Delta, Image, Kind, differences
from graphmem.store.driver import Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.rows import fact_properties
from graphmem.store.snapshots import Recorder, SnapshotStore
from graphmem.store.statements import Vector
from graphmem.store.writes import Write


@dataclass(frozen=True, slots=True)
class Limits:
    """When the loss guard gives a run up: `max_ended` and `min_text` are shares, `free_ended` a number of memories."""

    max_ended: float = 0.3
    min_text: float = 0.25
    free_ended: int = 4


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of the proposals of one user; `deltas` of a dry run are those that would have been."""

    status: RunStatus
    judged: list[Judged]
    reason: str | None = None
    change_count: int = 0
    deltas: list[Delta] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Parts:
    """What an attempt works with."""

    entities: EntityStore
    snapshots: SnapshotStore
    policy: SecretPolicy
    limits: Limits


class Attempt:
    """One try at one run within a transaction; a retried transaction starts a new one."""

    def __init__(
        self,
        parts: Parts,
        transaction: Transaction,
        owner: Owner,
        run_id: str,
        now: datetime,
        vectors: dict[str, Vector],
        curated: bool,
        actor: str | None,
    ) -> None:
        self._parts = parts
        self._transaction = transaction
        self._owner = owner
        self._run_id = run_id
        self._now = now
        self._vectors = vectors
        self._curated = curated
        self._secrets: Secrets = lambda value: parts.policy.refused(value, owner.tenant)
        self._actor = actor or f"consolidation:{run_id}"
        self._recorder: Recorder = parts.snapshots.recorder(transaction, run_id, owner.group_id, now)
        self._linking = Linking(transaction, self._recorder, owner, run_id, self._actor)
        self._ended: list[Fact] = []
        self._written: list[str] = []
        self._merged: dict[str, str] = {}
        self._images: dict[str, Image] = {}

    async def execute(self, judged: list[Judged]) -> Executed:
        """Judge and execute the proposals that wait; the verdicts are written into them."""
        group_id = self._owner.group_id
        counted = await self._transaction.run("consolidation.count_current", group_id=group_id, now=self._now)
        facts: dict[str, Fact] | None = await self._drop_stale(judged)
        waiting = [each for each in judged if each.verdict is Verdict.WAITING]
        for each in waiting:
            if isinstance(each.proposal, UpdateEntity | LinkEntities):
                await self._change_entity(each, each.proposal)
                facts = None
        about_facts = [each for each in waiting if type(each.proposal) in _ORDER]
        if about_facts:
            await self._change_facts(about_facts, facts)
        count = await self._recorder.close(self._images)
        await self._transaction.run("facts.stamp_user", group_id=group_id, at=self._now + ONE_TICK)
        too_much = self._loss(counted[0]["current"])
        status = RunStatus.ABORTED if too_much else RunStatus.SUCCEEDED
        return Executed(status, judged, too_much, count)

    async def _drop_stale(self, judged: list[Judged]) -> dict[str, Fact]:
        """Set aside what rests on things that have changed since; return the facts that the rest is about."""
        proposals = [each.proposal for each in judged]
        facts = await fetch_facts(self._transaction, self._owner, proposals)
        entities = await fetch_entities(self._transaction, self._owner, entity_ids_of(proposals))
        for each in judged:
            now = versions(each.proposal, facts, entities)
            changed = [key for key, version in each.seen.items() if now.get(key) != version]
            if each.verdict is Verdict.WAITING and changed:
                each.verdict, each.reason = Verdict.STALE, f"{changed[0]} has changed since this was proposed"
        return facts

    async def _change_entity(self, judged: Judged, proposal: UpdateEntity | LinkEntities) -> None:
        scene = await entity_scene(
            self._transaction, self._owner, proposal, self._now, curated=self._curated, secrets=self._secrets
        )
        if _refused(judged, proposal, scene):
            return
        if isinstance(proposal, UpdateEntity):
            await self._linking.update(proposal, scene.entities[proposal.entity_id], self._now)
            judged.result_id = proposal.entity_id
        else:
            keep, merge = scene.entities[proposal.keep_id], scene.entities[proposal.merge_id]
            ended, self._now = await self._linking.link(keep, merge, self._now)
            self._ended += ended
            self._written += [fact.content for fact in ended]
            judged.result_id = keep.id

    async def _change_facts(self, judged: list[Judged], facts: dict[str, Fact] | None) -> None:
        proposals = [each.proposal for each in judged]
        if facts is None:
            facts = await fetch_facts(self._transaction, self._owner, proposals)
        scene = await facts_scene(
            self._transaction, self._owner, proposals, facts, self._now, curated=self._curated, secrets=self._secrets
        )
        current = dict(scene.current)
        scene = replace(scene, current=current)
        ledger, believed = Ledger(facts.values(), self._now, self._actor), dict(facts)
        vectors: dict[str, Vector] = {}
        made: list[Fact] = []
        for each in sorted(judged, key=lambda each: _ORDER.index(type(each.proposal))):
            proposal = self._after_merges(each.proposal)
            if _refused(each, proposal, scene):
                continue
            match proposal:
                case Merge():
                    fact = self._merge(each, proposal, ledger, facts)
                    vectors[fact.uuid] = self._vectors[fact.content]
                    current[fact.identity] = fact.memory_id
                    made.append(fact)
                case Associate():
                    self._associate(proposal, ledger, facts)
                case CreateEntity():
                    made += await self._create(each, proposal, ledger, facts)
        await self._note(ledger, made)
        await self._write_annotations(ledger, believed)
        await Write(self._owner, self._transaction, self._now, ledger, vectors).commit(made)
        self._now = ledger.now + ONE_TICK

    def _after_merges(self, proposal: Proposal) -> Proposal:
        """Let an association mean what its memories were merged into within this run."""
        if not isinstance(proposal, Associate):
            return proposal
        ids = dict.fromkeys(self._merged.get(key, key) for key in proposal.memory_ids)
        return proposal.model_copy(update={"memory_ids": list(ids)})

    def _merge(self, judged: Judged, proposal: Merge, ledger: Ledger, facts: dict[str, Fact]) -> Fact:
        sources = [facts.pop(key) for key in proposal.memory_ids]
        fact = ledger.merge(merged(sources, proposal.content), proposal.memory_ids, self._run_id)
        facts[fact.memory_id] = fact
        self._ended += sources
        self._written.append(fact.content)
        self._merged |= dict.fromkeys(proposal.memory_ids, fact.memory_id)
        judged.result_id = fact.memory_id
        return fact

    @staticmethod
    def _associate(proposal: Associate, ledger: Ledger, facts: dict[str, Fact]) -> None:
        for key in proposal.memory_ids:
            others = [other for other in proposal.memory_ids if other != key]
            together = tuple(dict.fromkeys([*facts[key].associations, *others]))
            facts[key] = ledger.annotate(key, associations=together)

    async def _create(
        self, judged: Judged, proposal: CreateEntity, ledger: Ledger, facts: dict[str, Fact]
    ) -> list[Fact]:
        entity_id = str(uuid.uuid4())
        await self._recorder.see(Kind.ENTITY, [entity_id])
        named = EntityIn(name=proposal.name, type=proposal.type)
        vector = self._vectors[proposal.name]
        await self._parts.entities.create(self._transaction, self._owner, entity_id, named, vector, self._now)
        judged.result_id = entity_id
        for key in proposal.memory_ids:
            fact = facts[key]
            facts[key] = ledger.annotate(
                key, entity_ids=(*fact.entity_ids, entity_id), search_text=f"{proposal.name}\n{fact.search_text}"
            )
        return [facts[key] for key in proposal.memory_ids]

    async def _write_annotations(self, ledger: Ledger, believed: dict[str, Fact]) -> None:
        """Write what changed in place, and only that: whole rows would be indexed anew."""
        rows = []
        for fact in [each for each in ledger.changed.values() if each.expired_at is None]:
            changes = differences(fact_properties(believed[fact.memory_id]), fact_properties(fact))
            rows.append({"id": fact.uuid, "properties": changes})
            del ledger.changed[fact.uuid]
        if rows:
            await self._transaction.run("snapshots.set_facts", group_id=self._owner.group_id, rows=rows)

    async def _note(self, ledger: Ledger, made: Sequence[Fact]) -> None:
        """Note everything that the ledger and the links of new facts are about to touch."""
        episodes = {key: fact.entity_ids for fact in made for key in fact.episodes}
        mentioned = {key for fact in made for key in set(fact.entity_ids) - {fact.subject_id, fact.object_id}}
        await self._recorder.see(Kind.FACT, [*ledger.changed, *ledger.created])
        self._images = {key: _image(fact) for key, fact in (ledger.changed | ledger.created).items()}
        await self._recorder.see(Kind.ENTITY, sorted(mentioned))
        await self._recorder.see(Kind.EPISODE, sorted(episodes))
        pairs = {f"{episode}>{key}" for fact in made for episode in fact.episodes for key in fact.entity_ids}
        await self._recorder.see(Kind.MENTION, sorted(pairs))

    def _loss(self, current: int) -> str | None:
        limits = self._parts.limits
        toll = Toll(
            current, len(self._ended), sum(len(fact.content) for fact in self._ended), sum(map(len, self._written))
        )
        return loss(toll, max_share=limits.max_ended, min_text=limits.min_text, free=limits.free_ended)


def _image(fact: Fact) -> Image:
    return Image(fact_properties(fact), fact.subject_id, fact.object_id or fact.subject_id)


_ORDER: list[type] = [CreateEntity, Merge, Associate]
"""What a memory mentions is known before it is merged, and what is merged is associated as what it has become."""


def _refused(judged: Judged, proposal: Proposal, scene: Scene) -> bool:
    judged.reason = refusal(proposal, scene)
    judged.verdict = Verdict.REFUSED if judged.reason else Verdict.EXECUTED
    return judged.verdict is Verdict.REFUSED
