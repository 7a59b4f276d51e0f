"""The last step of a batch: one transaction that carries out the plan exactly once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from graphmem.ingestion.candidates import STATED_END_KEY
from graphmem.ingestion.jobs import ExtractionAction, LinkAction, MemoryAction, parse_extraction_actions
from graphmem.ingestion.link import (
    LinkingResult,
    NameResolution,
    choose_user_name,
    collect_named_entities,
    resolve_names,
    with_canonical_names,
)
from graphmem.ingestion.plan import ActionPlan, ActionPlanner, End
from graphmem.ingestion.quarantine import put_into_quarantine
from graphmem.ingestion.reconcile import Batch, find_exact_matches, source_of_name
from graphmem.memories.entity import EntityRef, SourcedDetails
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import (
    MAINTENANCE_TAGS,
    MemoryPatch,
    MemoryType,
    SaveAction,
    SaveResult,
)
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.saving import MENTIONED_ONCE, FactLoader, FactWrite
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.field_types import Vector, content_hash, deduplicate, name_key, to_json
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import DEFAULT_ORDER, SourceKind, TrustOrder


class BatchWriter:
    """Applies batches of messages to the graph."""

    def __init__(self, graph: Graph, facts: FactStore, entities: EntityStore, profiles: TenantProfiles) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities
        self._profiles = profiles

    async def apply(
        self, owner: Owner, batch: Batch, vectors: Mapping[str, Vector], actor: str
    ) -> list[ExtractionAction]:
        """Carry out a batch's plan and return the actions taken; for a batch applied earlier, only return them.

        `vectors` maps the texts to save and the names of new entities to their vectors.
        """

        async def work(transaction: Transaction) -> list[ExtractionAction]:
            now = await self._facts.lock_user(transaction, owner)
            rows = await transaction.run("extraction.get_extraction", group_id=owner.group_id, extraction_id=batch.id)
            if rows:
                return parse_extraction_actions(rows[0]["actions"])
            opened = BatchTransaction(transaction, self._facts, self._entities, owner, batch, vectors, actor, now)
            return await opened.apply(self._session_tags(owner, batch))

        return await self._graph.write(work)

    def _session_tags(self, owner: Owner, batch: Batch) -> list[str]:
        """Return the tags for finding a batch's session, with topics in the spelling of the profile."""
        tags = {tag for statement in batch.statements for tag in statement.memory.tags}
        return self._profiles.for_tenant(owner.tenant).session_tags(sorted(tags - MAINTENANCE_TAGS))


class BatchTransaction:
    """The application of one batch in an open transaction that has held the user's lock since `now`."""

    def __init__(
        self,
        transaction: Transaction,
        facts: FactStore,
        entities: EntityStore,
        owner: Owner,
        batch: Batch,
        vectors: Mapping[str, Vector],
        actor: str | None,
        now: datetime,
    ) -> None:
        self._transaction = transaction
        self._facts = facts
        self._entities = entities
        self._owner = owner
        self._batch = batch
        self._vectors = vectors
        self._actor = actor
        self._now = now
        self._linking = batch.linking
        self._loader = FactLoader(transaction, owner)
        self._order = DEFAULT_ORDER
        self._actions: list[ExtractionAction] = [*batch.refusals]
        self._links: list[LinkAction] = []

    async def apply(self, session_tags: Sequence[str]) -> list[ExtractionAction]:
        """Carry out the plan, record it, label the session, and return the actions taken."""
        await self._mark_caught_messages()
        if self._batch.statements:
            plan, _ = await self.carry_out()
            self._actions += [MemoryAction.refused("answer", reason) for reason in plan.unusable]
            self._actions += [veto.to_action(self._type_of(veto.index)) for veto in plan.vetoes]
            self._actions += self._links
        await self._quarantine()
        await self._record(session_tags)
        return self._actions

    async def carry_out(self) -> tuple[ActionPlan, list[tuple[NewMemory, SaveResult]]]:
        """Plan for the facts as they are now and carry the plan out; return it with the results of its saves."""
        self._linking = await self._link_new_names()
        facts, entity_refs = await self._load_current_facts()
        self._order = await self._find_order(facts)
        planner = ActionPlanner(
            self._batch.statements, self._linking, facts, entity_refs, self._order, is_given=self._batch.is_given
        )
        plan = planner.plan(self._batch.answer)
        resolution = self._resolve_names(plan, entity_refs)
        await self._rename_entities(resolution)
        await self._end(plan.ends)
        saved = await self._save(plan.saves, resolution, has_ended=bool(plan.ends))
        await self._end(plan.deletions)
        await self._add_aliases(resolution)
        if not self._owner.is_space:
            await self._name_user(entity_refs)
        return plan, saved

    # Known facts and entities

    async def _link_new_names(self) -> LinkingResult:
        """Return the result of linking, including entities that have since been given one of the unknown names."""
        linking = self._batch.linking
        known = linking.entities.by_name_key
        named = collect_named_entities(self._batch.statements, self._batch.aliases)
        unknown = [key for key in named if key not in known]
        found = await find_exact_matches(self._transaction, self._owner, unknown, self._batch.statements)
        entities = found.with_names(known)
        return linking.model_copy(update={"entities": entities})

    async def _load_current_facts(self) -> tuple[dict[str, Fact], dict[str, EntityRef]]:
        """Return the facts related to the statements and those competing with single-valued ones, by memory id.

        The entities, by id, are those named by the facts and the statements, and the candidates for unclear names.
        """
        ids, statements = self._linking.entities, self._batch.statements
        slots = {
            (subject_id, statement.memory.predicate)
            for statement in statements
            if statement.memory.single_valued and (subject_id := ids.of_subject(statement))
        }
        facts = await self._loader.fetch(
            hashes=[content_hash(statement.memory.content) for statement in statements],
            memory_ids=self._linking.related,
            pairs=sorted((subject_id, predicate) for subject_id, predicate in slots if predicate),
        )
        named = {entity_id for fact in facts.values() for entity_id in (fact.subject_id, *fact.entity_ids)}
        possible = {entity.id for entity in self._linking.known}
        wanted = sorted(named | ids.all_ids | possible)
        return facts, await self._entities.get_refs(self._transaction, self._owner, wanted)

    async def _find_order(self, facts: Mapping[str, Fact]) -> TrustOrder:
        """Return the order of trust for comparing statements and facts."""
        kinds = {kind for statement in self._batch.statements for line in statement.stated_by for kind in line}
        kinds |= {kind for group in self._batch.aliases for line in group.stated_by for kind in line}
        return await find_trust_order(
            self._transaction, self._owner.tenant, {*kinds, *(fact.trust_kind for fact in facts.values())}
        )

    # Names

    def _resolve_names(self, plan: ActionPlan, entity_refs: Mapping[str, EntityRef]) -> NameResolution:
        batch, entities = self._batch, self._linking.entities
        named = collect_named_entities(batch.statements, batch.aliases)
        resolution = resolve_names(
            entities.by_name_key,
            plan.resolved_names,
            {key: entity.name for key, entity in named.items()},
            entity_refs,
            batch.aliases,
            entities.user or name_key(self._owner.entity_name),
        )
        self._actions += [MemoryAction.refused("names", reason) for reason in resolution.rejected_pairs]
        return resolution

    async def _rename_entities(self, resolution: NameResolution) -> None:
        """Give known entities fuller names that no other entity has, unless a more trusted source named them."""
        for entity_id, name in resolution.renames.items():
            others = await self._transaction.run(
                "entities.find_by_keys", group_ids=[self._owner.group_id], keys=[name_key(name)]
            )
            if not others:
                kind = self._source_of_name(name)
                details = await self._entities.find_details(self._transaction, self._owner, entity_id, kind)
                if details is not None and details.may_rename(kind):
                    await self._rename(entity_id, name, details.rename(kind))
                elif details is not None:
                    known = details.node["name"]
                    canonical = resolution.canonical_names
                    canonical |= {key: known for key, chosen in canonical.items() if chosen == name}
                    self._actions.append(MemoryAction.refused("names", f"a more trusted source calls it {known}"))

    async def _rename(self, entity_id: str, name: str, sources: list[str] | None) -> None:
        vector = self._vectors.get(name)
        await self._entities.rename(self._transaction, self._owner, entity_id, name, sources, vector, self._now)
        self._links.append(LinkAction(entity_id=entity_id, name=name))

    def _source_of_name(self, name: str) -> SourceKind:
        """Return the source of a name: the lines that join it with other names, else the statements that use it."""
        key = name_key(name)
        groups = [group for group in self._batch.aliases if key in map(name_key, (group.name, *group.others))]
        if not groups:
            return source_of_name(key, self._batch.statements, self._order)
        return self._order.most_trusted(self._order.of_statement(group.stated_by) for group in groups)

    async def _name_user(self, entity_refs: Mapping[str, EntityRef]) -> None:
        """Rename the user's own entity to the user's name; the user id stays an alias, which every write looks up."""
        user_id = self._owner.user_id
        known = entity_refs.get(self._linking.entities.user or "")
        current = known.name if known else user_id
        name = choose_user_name(current, user_id, self._batch.aliases)
        if name is None:
            return
        rows = await self._transaction.run(
            "entities.find_by_keys", group_ids=[self._owner.group_id], keys=[name_key(name), name_key(current)]
        )
        own = next((row["entity"] for row in rows if row["entity"]["is_user"]), None)
        if own is None or len(rows) > 1:
            return
        kind, details = self._source_of_name(name), SourcedDetails(own, self._order)
        if name_key(current) != name_key(user_id) and not details.may_rename(kind):
            return
        await self._rename(own["uuid"], name, details.rename(kind))
        await self._entities.add_aliases(self._transaction, self._owner, own["uuid"], [current], self._now)

    async def _add_aliases(self, resolution: NameResolution) -> None:
        for entity, names in resolution.aliases.items():
            by_source: dict[SourceKind, list[str]] = defaultdict(list)
            for name in names:
                by_source[self._source_of_name(name)].append(name)
            for kind, given in by_source.items():
                rows = await self._entities.add_aliases(
                    self._transaction, self._owner, entity, given, self._now, kind=kind
                )
                self._links += [LinkAction.model_validate(row) for row in rows]

    # Facts

    async def _end(self, ends: Sequence[End]) -> None:
        """Set the stated ends of memories, or delete memories that the user took back."""
        if not ends:
            return
        facts = await FactLoader(self._transaction, self._owner).fetch(memory_ids=[end.memory_id for end in ends])
        now = await self._facts.lock_user(self._transaction, self._owner, 0)
        ledger = Ledger(facts.values(), now, self._actor)
        for end in ends:
            if end.at is None:
                fact = ledger.delete(end.memory_id, end.reason)
            else:
                metadata = {**facts[end.memory_id].metadata, STATED_END_KEY: end.stated}
                fact = ledger.amend(end.memory_id, MemoryPatch.model_construct(invalid_at=end.at, metadata=metadata))
            self._actions.append(
                MemoryAction(
                    action="end" if end.at else "delete",
                    memory_id=fact.memory_id,
                    type=fact.type.value,
                    reason=end.reason,
                )
            )
        await FactWrite(self._owner, self._transaction, now, ledger).commit()

    async def _save(
        self, saves: Sequence[NewMemory], resolution: NameResolution, *, has_ended: bool
    ) -> list[tuple[NewMemory, SaveResult]]:
        batch = self._batch
        ready = [
            replace(
                save,
                memory=with_canonical_names(save.memory, resolution.canonical_names),
                vector=self._vectors[save.memory.content],
                # Neither callers nor the tool list everything that a statement names.
                links_names=batch.is_given or bool(batch.transcript),
                speaker=batch.speaker,
            )
            for save in saves
            if self._has_vector(save)
        ]
        if not ready:
            return []
        results = await self._facts.save_in_transaction(
            self._transaction,
            self._owner,
            ready,
            {name_key(text): vector for text, vector in self._vectors.items()},
            self._actor,
            # The loader does not see the ends written just now.
            locked_at=None if has_ended else self._now,
            loader=None if has_ended else self._loader,
            finds_related=batch.is_given,  # a job does not report related memories
        )
        saved = list(zip(ready, results, strict=True))
        self._actions += [_save_action(save, result) for save, result in saved]
        return saved

    def _has_vector(self, save: NewMemory) -> bool:
        """Return whether the text to save was embedded; a known memory may have been rewritten since it was read."""
        if save.memory.content in self._vectors:
            return True
        reason = "what it repeats has been rewritten meanwhile"
        self._actions.append(MemoryAction.refused(save.memory.type.value, reason))
        return False

    def _type_of(self, index: int) -> MemoryType:
        return self._batch.statements[index].memory.type

    # Records

    async def _mark_caught_messages(self) -> None:
        """Mark the messages with caught statements before memories are saved from them."""
        catches = [statement.catch for statement in self._batch.caught if statement.catch]
        message_ids = deduplicate(message_id for catch in catches for message_id in catch.message_ids)
        if message_ids:
            await self._transaction.run(
                "quarantine.mark_messages", group_id=self._owner.group_id, message_ids=message_ids
            )

    async def _quarantine(self) -> None:
        kept = [statement for statement in self._batch.caught if statement.catch and statement.catch.is_kept]
        job_id = (self._actor or "").removeprefix("job:")
        self._actions += await put_into_quarantine(self._transaction, self._owner, kept, job_id, self._now)

    async def _record(self, session_tags: Sequence[str]) -> None:
        """Record the actions under the batch's id and its messages' topics, and mark the messages as extracted."""
        batch = self._batch
        if batch.transcript:
            await self._transaction.run(
                "extraction.append_transcript",
                group_id=self._owner.group_id,
                session_id=batch.run_session_id,
                entries=[message.model_dump_json() for message in batch.transcript],
                now=self._now,
            )
        if batch.turns:
            await self._transaction.run(
                "extraction.set_turns",
                group_id=self._owner.group_id,
                session_id=batch.session_id,
                turns=[
                    {**turn.model_dump(exclude={"wishes"}), "entities": to_json(turn.entities)} for turn in batch.turns
                ],
            )
        await self._transaction.run(
            "extraction.record_extraction",
            group_id=self._owner.group_id,
            extraction_id=batch.id,
            actions=to_json([action.to_json() for action in self._actions]),
            links=to_json([link.to_json() for link in self._links]),
            message_ids=list(batch.message_ids),
            session_id=batch.session_id,
            tags=session_tags,
            at=self._now,
        )


def _save_action(save: NewMemory, result: SaveResult) -> MemoryAction:
    if result.reason == MENTIONED_ONCE:
        return MemoryAction(action="note", type=save.memory.type.value, reason=MENTIONED_ONCE)
    is_decided = result.action is SaveAction.SUPERSEDE and save.memory.supersedes
    return MemoryAction.from_save(result, save.memory.type).model_copy(
        update={
            "superseded": result.superseded or None,
            "reason": (save.reason if is_decided else result.reason) or None,
        }
    )
