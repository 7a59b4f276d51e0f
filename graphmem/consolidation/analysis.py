"""Analysis: a model reads one batch of memories and proposes changes.

Without a model the only proposals are associations of memories that have nearly the same meaning and the same subject,
scope and domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from pydantic import BaseModel, Field, ValidationError

from graphmem.consolidation.guards import observed_versions
from graphmem.consolidation.models import (
    Associate,
    MemoryBatch,
    Merge,
    MergeRelation,
    Proposal,
    ReportedContradiction,
    ReviewedProposal,
    UpdateEntity,
    parse_proposals,
)
from graphmem.consolidation.run_store import fetch_entities, list_rolled_back_proposals, load_zone
from graphmem.consolidation.verification import ProposalVerifier
from graphmem.memories.entity import Entity
from graphmem.memories.fact import Fact
from graphmem.memories.memory import Scope
from graphmem.memories.names import mentions_name
from graphmem.memories.saving import FactLoader
from graphmem.models.language_model import LanguageModel, LenientAnswer, Receipt
from graphmem.models.prompts import Prompt, PromptTemplate, indent_continuations
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import name_key
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import InstructionStore

MAX_REASON_LENGTH = 2000
"""Longest reason of a proposal that is stored, in characters; the model's longer ones are cut."""

NEW_FOCUS = "Some of these statements are new. Look for what they repeat, complete, close or rename."
"""Instruction of the prompt for new memories; recorded completions depend on its wording."""

OLD_FOCUS = (
    "These statements are old and were seldom asked for. Look for what can be said in fewer: merge a fact and its "
    "details into one sentence that keeps every name, number and date, even where each could stand by itself."
)
"""Instruction of the prompt for old memories; recorded completions depend on its wording."""

ASSOCIATION_SIMILARITY = 0.85
"""Smallest cosine similarity of memories that are associated without a model."""


class Attribute(BaseModel):
    """One attribute of an entity."""

    name: str
    value: str


class ProposedAction(BaseModel):
    """One action as the model writes it, with the numbers of the prompt."""

    action: str = Field(description="MERGE, CLOSE, ASSOCIATE, UPDATE_ENTITY, LINK_ENTITIES or CREATE_ENTITY")
    memories: list[int] = Field(default_factory=list)
    entities: list[int] = Field(default_factory=list)
    content: str | None = None
    relation: str | None = Field(None, description="of a MERGE: same or completes")
    evidence: list[int] = Field(
        default_factory=list, description="statements that prove a name, an attribute or the end of a plan"
    )
    name: str | None = None
    type: str | None = None
    aliases: list[str] = Field(default_factory=list)
    attributes: list[Attribute] = Field(default_factory=list)
    reason: str = ""


class FoundContradiction(BaseModel):
    """Statements that cannot all be true, with the numbers of the prompt."""

    memories: list[int]
    reason: str = ""


class Analysis(LenientAnswer):
    """What the model answers: its reasoning in steps, what it proposes, and what only a person can decide."""

    steps: list[str]
    actions: list[ProposedAction]
    contradictions: list[FoundContradiction] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PromptBatch:
    """What a prompt shows the model: current facts and their entities, each in the order of their numbers."""

    facts: list[Fact]
    entities: list[Entity]
    rolled_back: list[Merge | Associate] = field(default_factory=list)
    zone: tzinfo = UTC

    def to_contradictions(self, found: Sequence[FoundContradiction]) -> list[ReportedContradiction]:
        """Return the contradictions between at least two of the facts; unknown numbers are left out."""
        reported = []
        for contradiction in found:
            memory_ids = list(dict.fromkeys(self._memory_ids(contradiction.memories)))
            if len(memory_ids) > 1:
                reason = contradiction.reason[:MAX_REASON_LENGTH]
                reported.append(ReportedContradiction(memory_ids=memory_ids, reason=reason))
        return reported

    def _memory_ids(self, numbers: Sequence[int]) -> list[str]:
        return [self.facts[number - 1].memory_id for number in numbers if 0 < number <= len(self.facts)]

    def to_proposals(self, actions: Sequence[ProposedAction]) -> tuple[list[ReviewedProposal], int]:
        """Return the valid proposals with the versions they rest on, and the number of invalid actions.

        Unknown numbers are left out. A proposal whose like was rolled back before is invalid.
        """
        facts = {fact.memory_id: fact for fact in self.facts}
        entities = {entity.id: entity for entity in self.entities}
        rolled_back_ids = {frozenset(proposal.memory_ids) for proposal in self.rolled_back}
        proposals: list[ReviewedProposal] = []
        for action in actions:
            proposal = self._to_proposal(action)
            if proposal is None or not self._is_grounded(proposal):
                continue
            if isinstance(proposal, Merge | Associate) and frozenset(proposal.memory_ids) in rolled_back_ids:
                continue
            proposals.append(ReviewedProposal(proposal=proposal, seen=observed_versions(proposal, facts, entities)))
        return proposals, len(actions) - len(proposals)

    def _to_proposal(self, action: ProposedAction) -> Proposal | None:
        memory_ids, evidence = self._memory_ids(action.memories), self._memory_ids(action.evidence)
        entity_ids = [self.entities[number - 1].id for number in action.entities if 0 < number <= len(self.entities)]
        kind = action.action.strip().upper()
        given: dict[str, object] = {"action": kind, "reason": action.reason[:MAX_REASON_LENGTH]}
        match kind:
            case "MERGE":
                is_same = (action.relation or "").strip().casefold() == MergeRelation.SAME
                relation = MergeRelation.SAME if is_same else MergeRelation.COMPLETES
                given |= {"memory_ids": memory_ids, "content": action.content or "", "relation": relation}
            case "CLOSE" if len(memory_ids) == 1:
                given |= {"memory_id": memory_ids[0], "evidence": evidence}
            case "ASSOCIATE":
                given |= {"memory_ids": memory_ids}
            case "CREATE_ENTITY":
                given |= {"memory_ids": memory_ids, "name": action.name or "", "type": action.type or ""}
            case "LINK_ENTITIES" if len(entity_ids) == 2:
                keep_id, merge_id = self._keep_user(entity_ids)
                given |= {"keep_id": keep_id, "merge_id": merge_id, "evidence": evidence}
            case "UPDATE_ENTITY" if len(entity_ids) == 1:
                given |= {
                    "entity_id": entity_ids[0],
                    **self._without_known(entity_ids[0], action),
                    "evidence": evidence,
                }
        try:
            return parse_proposals([given])[0]
        except (InvalidInput, ValidationError):
            return None

    def _without_known(self, entity_id: str, action: ProposedAction) -> dict[str, object]:
        """Return the attributes and names that an action gives an entity which it does not have yet."""
        [entity] = [entity for entity in self.entities if entity.id == entity_id]
        values = {str(value).casefold() for value in entity.attributes.values()}
        names = {name_key(name) for name in (entity.name, *entity.aliases)}
        return {
            "set": {one.name: one.value for one in action.attributes if one.value.casefold() not in values},
            "add_aliases": [alias for alias in action.aliases if name_key(alias) not in names],
        }

    def _keep_user(self, entity_ids: Sequence[str]) -> tuple[str, str]:
        """Return the ids of the entity to keep and of the other one; the user's own entity is kept."""
        keep_id, merge_id = entity_ids
        is_user = {entity.id: entity.is_user for entity in self.entities}
        return (merge_id, keep_id) if is_user[merge_id] else (keep_id, merge_id)

    def _is_grounded(self, proposal: Proposal) -> bool:
        """Return whether statements about an entity mention every value that a proposal sets on it."""
        if not isinstance(proposal, UpdateEntity):
            return True
        contents = [fact.content for fact in self.facts if proposal.entity_id in fact.entity_ids]
        values = [*proposal.add_aliases, *(str(value) for value in proposal.set.values())]
        return all(any(mentions_name(content, value) for content in contents) for value in values)


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """What one batch led to: proposals, the number of invalid ones, contradictions, and what the model call cost.

    A batch is not read if the memories of it that are left are less than two.
    """

    proposals: list[ReviewedProposal]
    invalid_count: int = 0
    contradictions: list[ReportedContradiction] = field(default_factory=list)
    receipt: Receipt = field(default_factory=Receipt)
    is_read: bool = True


class ProposalAnalyser:
    """Turns batches of memories into proposals, which the `verifier` checks, if there is a model.

    `zone` is that of users without their own.
    """

    def __init__(
        self,
        graph: Graph,
        instructions: InstructionStore,
        model: LanguageModel | None,
        prompts: Mapping[str, PromptTemplate],
        clock: Clock,
        zone: str = "UTC",
    ) -> None:
        self._graph = graph
        self._model = model
        self.verifier = ProposalVerifier(graph, model, prompts) if model else None
        self._prompts = prompts
        self._instructions = instructions
        self._clock = clock
        self._zone = zone

    async def analyse(self, owner: Owner, batch: MemoryBatch) -> AnalysisResult:
        """Return the proposals for one batch; raise ModelUnavailable when the model does not answer."""
        if self._model is None:
            return AnalysisResult(await self._associate_similar(owner, batch.memory_ids))
        shown = await self._load_batch(owner, batch.memory_ids)
        if len(shown.facts) < 2:
            return AnalysisResult([], is_read=False)
        instructions = await self._instructions.find(owner.tenant)
        prompt = self._render_prompt(shown, batch.old, instructions.text)
        answer = await self._model.complete_structured(prompt, Analysis, use="main")
        proposals, invalid_count = shown.to_proposals(answer.value.actions)
        contradictions = shown.to_contradictions(answer.value.contradictions)
        return AnalysisResult(proposals, invalid_count + len(answer.value.refused), contradictions, answer.receipt)

    async def _load_batch(self, owner: Owner, memory_ids: Sequence[str]) -> PromptBatch:
        async def work(transaction: Transaction) -> PromptBatch:
            found = await FactLoader(transaction, owner).fetch(memory_ids=memory_ids)
            facts = [found[key] for key in memory_ids if key in found]
            entity_ids = [key for fact in facts for key in (fact.subject_id, *fact.entity_ids)]
            entities = await fetch_entities(transaction, owner, entity_ids)
            rolled_back = await list_rolled_back_proposals(transaction, owner)
            zone = await load_zone(transaction, owner, self._zone)
            return PromptBatch(facts, list(entities.values()), rolled_back, zone)

        return await self._graph.read(work)

    def _render_prompt(self, batch: PromptBatch, old: bool, instructions: str) -> Prompt:
        numbers = {fact.memory_id: number for number, fact in enumerate(batch.facts, 1)}
        names = {entity.id: entity.name for entity in batch.entities}
        conversations = {
            session: number
            for number, session in enumerate(
                dict.fromkeys(fact.session_id for fact in batch.facts if fact.scope is Scope.EPISODIC), 1
            )
        }
        memories = [
            f"[M{number}] {indent_continuations(_describe_fact(fact, names, conversations, batch.zone))}"
            for number, fact in enumerate(batch.facts, 1)
        ]
        entities = [
            f"[E{number}] {indent_continuations(_describe_entity(entity))}"
            for number, entity in enumerate(batch.entities, 1)
        ]
        rolled_back = [
            f"{proposal.action} of {', '.join(f'[M{numbers[key]}]' for key in proposal.memory_ids)}"
            for proposal in batch.rolled_back
            if all(key in numbers for key in proposal.memory_ids)
        ]
        return self._prompts["consolidate"].render(
            focus=OLD_FOCUS if old else NEW_FOCUS,
            today=f"{self._clock().astimezone(batch.zone):%A, %Y-%m-%d}",
            memories="\n".join(memories),
            entities="\n".join(entities) or "(none)",
            texts_seen="\n".join(rolled_back) or "(none)",
            custom_instructions=instructions,
        )

    async def _associate_similar(self, owner: Owner, memory_ids: Sequence[str]) -> list[ReviewedProposal]:
        """Propose to associate the pairs whose vectors nearly agree; the database compares the vectors."""

        async def work(transaction: Transaction) -> list[ReviewedProposal]:
            pairs = await transaction.run(
                "consolidation.find_similar_fact_pairs",
                group_id=owner.group_id,
                ids=list(memory_ids),
                min_similarity=ASSOCIATION_SIMILARITY,
            )
            rolled_back = await list_rolled_back_proposals(transaction, owner)
            rolled_back_ids = {frozenset(proposal.memory_ids) for proposal in rolled_back}
            return [
                ReviewedProposal(
                    proposal=Associate(action="ASSOCIATE", memory_ids=pair["ids"], reason="nearly the same meaning"),
                    seen=dict(zip(pair["ids"], map(str, pair["versions"]), strict=True)),
                )
                for pair in pairs
                if frozenset(pair["ids"]) not in rolled_back_ids
            ]

        return await self._graph.read(work)


def _describe_fact(fact: Fact, names: Mapping[str, str], conversations: Mapping[str | None, int], zone: tzinfo) -> str:
    marks = [f"about {names.get(fact.subject_id, 'the user')}", f"scope {fact.scope.value}"]
    if fact.domain:
        marks.append(f"domain {fact.domain}")
    marks += [f"only in conversation {conversations[fact.session_id]}"] if fact.scope is Scope.EPISODIC else []
    marks.append(fact.type.value)
    marks += [f"since {fact.valid_at.astimezone(zone):%Y-%m-%d}"] if fact.valid_at else []
    marks += [f"until {fact.invalid_at.astimezone(zone):%Y-%m-%d}"] if fact.invalid_at else []
    marks += ["fixed"] if fact.immutable else []
    return f"({'; '.join(marks)}) {fact.content}"


def _describe_entity(entity: Entity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    known = "".join(f"; {name} = {value}" for name, value in sorted(entity.attributes.items()))
    return f"{entity.name} ({entity.type}{', the user' if entity.is_user else ''}){also}{known}"
