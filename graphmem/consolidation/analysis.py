"""Analysis: one batch of memories through the model becomes proposals, in the user's own ids.

Without a model only what no one can object to is proposed: memories of the same place that mean nearly the same are
associated, and nothing is merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field, ValidationError

from graphmem.consolidation.guard_context import fetch_entities, observed_versions
from graphmem.consolidation.statement_features import mentions_name
from graphmem.domain.consolidation_models import (
    Associate,
    Merge,
    Proposal,
    ReviewedProposal,
    UpdateEntity,
    parse_proposals,
)
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import Receipt
from graphmem.errors import InvalidInput
from graphmem.llm.model import LanguageModel
from graphmem.llm.prompts import Prompt, PromptTemplate, indent_continuations
from graphmem.store.driver import Graph, Transaction
from graphmem.store.fact_mapping import fact_from_row

NEW_FOCUS = "These statements are new. Look for what they repeat, complete or rename."
OLD_FOCUS = (
    "These statements are old and were seldom asked for. Look for what can be summarised: merge those that are about "
    "one matter into one sentence that keeps every name, number and date."
)
ASSOCIATION_SIMILARITY = 0.85
"""Cosine similarity from which memories are associated without a model."""


class Attribute(BaseModel):
    """One attribute of an entity."""

    name: str
    value: str


class ProposedAction(BaseModel):
    """One action as the model writes it, with the numbers of the prompt."""

    action: str = Field(description="MERGE, ASSOCIATE, UPDATE_ENTITY, LINK_ENTITIES or CREATE_ENTITY")
    memories: list[int] = Field(default_factory=list)
    entities: list[int] = Field(default_factory=list)
    content: str | None = None
    name: str | None = None
    type: str | None = None
    aliases: list[str] = Field(default_factory=list)
    attributes: list[Attribute] = Field(default_factory=list)
    reason: str = ""


class Analysis(BaseModel):
    """What the model answers: its reasoning in steps, then what it proposes."""

    steps: list[str]
    actions: list[ProposedAction]


@dataclass(frozen=True, slots=True)
class AnalysisBatch:
    """What one batch shows the model: current facts and their entities, both in the order of their numbers."""

    facts: list[Fact]
    entities: list[Entity]
    rolled_back: list[Merge | Associate] = field(default_factory=list)

    def to_proposals(self, actions: Sequence[ProposedAction]) -> tuple[list[ReviewedProposal], int]:
        """Return the proposals that make sense with what they rest on, and how many did not.

        Numbers that are unknown are left out; what was rolled back before is not proposed again.
        """
        facts = {fact.memory_id: fact for fact in self.facts}
        entities = {entity.id: entity for entity in self.entities}
        rolled_back_ids = {frozenset(each.memory_ids) for each in self.rolled_back}
        found: list[ReviewedProposal] = []
        for action in actions:
            proposal = self._to_proposal(action)
            if proposal is None or not self._is_grounded(proposal):
                continue
            if isinstance(proposal, Merge | Associate) and frozenset(proposal.memory_ids) in rolled_back_ids:
                continue
            found.append(ReviewedProposal(proposal=proposal, seen=observed_versions(proposal, facts, entities)))
        return found, len(actions) - len(found)

    def _to_proposal(self, action: ProposedAction) -> Proposal | None:
        memory_ids = [self.facts[number - 1].memory_id for number in action.memories if 0 < number <= len(self.facts)]
        entity_ids = [self.entities[number - 1].id for number in action.entities if 0 < number <= len(self.entities)]
        kind = action.action.strip().upper()
        given: dict[str, object] = {"action": kind, "reason": action.reason[:2000]}
        match kind:
            case "MERGE":
                given |= {"memory_ids": memory_ids, "content": action.content or ""}
            case "ASSOCIATE":
                given |= {"memory_ids": memory_ids}
            case "CREATE_ENTITY":
                given |= {"memory_ids": memory_ids, "name": action.name or "", "type": action.type or ""}
            case "LINK_ENTITIES" if len(entity_ids) == 2:
                given |= {"keep_id": entity_ids[0], "merge_id": entity_ids[1]}
            case "UPDATE_ENTITY" if len(entity_ids) == 1:
                given |= {
                    "entity_id": entity_ids[0],
                    "set": {each.name: each.value for each in action.attributes},
                    "add_aliases": action.aliases,
                }
        try:
            return parse_proposals([given])[0]
        except (InvalidInput, ValidationError):
            return None

    def _is_grounded(self, proposal: Proposal) -> bool:
        """Return whether what is to be known of an entity stands in the statements themselves."""
        if not isinstance(proposal, UpdateEntity):
            return True
        said = [fact.content for fact in self.facts if proposal.entity_id in fact.entity_ids]
        told = [*proposal.add_aliases, *(str(value) for value in proposal.set.values())]
        return all(any(mentions_name(text, each) for text in said) for each in told)


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """The proposals of one batch, how many made no sense, and what the model call cost."""

    reviewed: list[ReviewedProposal]
    invalid_count: int = 0
    receipt: Receipt = field(default_factory=Receipt)


class ProposalAnalyser:
    """Turns batches into proposals."""

    def __init__(self, graph: Graph, model: LanguageModel | None, prompts: Mapping[str, PromptTemplate]) -> None:
        self._graph = graph
        self._model = model
        self._prompts = prompts

    @property
    def has_model(self) -> bool:
        """Whether a model looks at the batches."""
        return self._model is not None

    async def analyse(self, owner: Owner, memory_ids: Sequence[str], *, old: bool) -> AnalysisResult:
        """Return the proposals for one batch; raise ModelUnavailable when the model does not answer."""
        if self._model is None:
            return AnalysisResult(await self._associate_similar(owner, memory_ids))
        batch = await self._load_batch(owner, memory_ids)
        if len(batch.facts) < 2:
            return AnalysisResult([])
        answer = await self._model.complete_structured(self._prompt(batch, old), Analysis, use="main")
        reviewed, invalid_count = batch.to_proposals(answer.value.actions)
        return AnalysisResult(reviewed, invalid_count, answer.receipt)

    async def _load_batch(self, owner: Owner, memory_ids: Sequence[str]) -> AnalysisBatch:
        async def work(transaction: Transaction) -> AnalysisBatch:
            rows = await transaction.run(
                "facts.fetch_for_write", group_id=owner.group_id, hashes=[], memory_ids=list(memory_ids), pairs=[]
            )
            found = {fact.memory_id: fact for fact in map(fact_from_row, rows)}
            facts = [found[key] for key in memory_ids if key in found]
            ids = (key for fact in facts for key in (fact.subject_id, *fact.entity_ids))
            entities = await fetch_entities(transaction, owner, ids)
            return AnalysisBatch(facts, list(entities.values()), await _load_rolled_back_proposals(transaction, owner))

        return await self._graph.read(work)

    def _prompt(self, batch: AnalysisBatch, old: bool) -> Prompt:
        shown = {fact.memory_id: number for number, fact in enumerate(batch.facts, 1)}
        rolled_back = [
            f"{each.action} of {', '.join(f'[M{shown[key]}]' for key in each.memory_ids)}"
            for each in batch.rolled_back
            if all(key in shown for key in each.memory_ids)
        ]
        names = {entity.id: entity.name for entity in batch.entities}
        return self._prompts["consolidate"].render(
            focus=OLD_FOCUS if old else NEW_FOCUS,
            memories="\n".join(
                f"[M{number}] {indent_continuations(_describe_fact(fact, names))}"
                for number, fact in enumerate(batch.facts, 1)
            ),
            entities="\n".join(
                f"[E{number}] {indent_continuations(_describe_entity(each))}"
                for number, each in enumerate(batch.entities, 1)
            )
            or "(none)",
            texts_seen="\n".join(rolled_back) or "(none)",
        )

    async def _associate_similar(self, owner: Owner, memory_ids: Sequence[str]) -> list[ReviewedProposal]:
        """Propose to associate what means nearly the same; the graph compares the vectors it holds."""

        async def work(transaction: Transaction) -> list[ReviewedProposal]:
            rows = await transaction.run(
                "consolidation.find_similar_fact_pairs",
                group_id=owner.group_id,
                ids=list(memory_ids),
                min_similarity=ASSOCIATION_SIMILARITY,
            )
            rolled_back = {frozenset(each.memory_ids) for each in await _load_rolled_back_proposals(transaction, owner)}
            return [
                ReviewedProposal(
                    proposal=Associate(action="ASSOCIATE", memory_ids=row["ids"], reason="nearly the same meaning"),
                    seen=dict(zip(row["ids"], map(str, row["versions"]), strict=True)),
                )
                for row in rows
                if frozenset(row["ids"]) not in rolled_back
            ]

        return await self._graph.read(work)


async def _load_rolled_back_proposals(transaction: Transaction, owner: Owner) -> list[Merge | Associate]:
    rows = await transaction.run("consolidation.fetch_rolled_back_proposals", group_id=owner.group_id)
    proposals = (each.proposal for row in rows for each in ReviewedProposal.list_from_json(row["proposals"]))
    return [each for each in proposals if isinstance(each, Merge | Associate)]


def _describe_fact(fact: Fact, names: Mapping[str, str]) -> str:
    marks = [f"about {names.get(fact.subject_id, 'the user')}", f"scope {fact.scope.value}"]
    if fact.domain:
        marks.append(f"domain {fact.domain}")
    marks.append(fact.type.value)
    marks += [f"since {fact.valid_at:%Y-%m-%d}"] if fact.valid_at else []
    marks += [f"until {fact.invalid_at:%Y-%m-%d}"] if fact.invalid_at else []
    marks += ["fixed"] if fact.immutable else []
    return f"({'; '.join(marks)}) {fact.content}"


def _describe_entity(entity: Entity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}{', the user' if entity.is_user else ''}){also}"
