"""Analysis: one batch of memories through the model becomes proposals, in the user's own ids.

Without a model only what no one can object to is proposed: memories of the same place that mean nearly the same are
associated, and nothing is merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field, ValidationError

from graphmem.consolidation.scene import fetch_entities, versions
from graphmem.consolidation.wording import mentions_name
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.proposals import Associate, Judged, Merge, Proposal, UpdateEntity, read_proposals
from graphmem.errors import InvalidInput
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import Prompt, PromptTemplate, within_line
from graphmem.store.driver import Graph, Transaction
from graphmem.store.rows import read_fact

FRESH = "These statements are new. Look for what they repeat, complete or rename."
OLD = (
    "These statements are old and were seldom asked for. Look for what can be summarised: merge those that are about "
    "one matter into one sentence that keeps every name, number and date."
)
NEARLY_THE_SAME = 0.85
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
class Material:
    """What one batch shows the model: current facts and their entities, both in the order of their numbers."""

    facts: list[Fact]
    entities: list[Entity]
    undone: list[Merge | Associate] = field(default_factory=list)

    def proposals(self, actions: Sequence[ProposedAction]) -> tuple[list[Judged], int]:
        """Return the proposals that make sense with what they rest on, and how many did not.

        Numbers that are unknown are left out; what was rolled back before is not proposed again.
        """
        facts = {fact.memory_id: fact for fact in self.facts}
        entities = {entity.id: entity for entity in self.entities}
        before = {frozenset(each.memory_ids) for each in self.undone}
        found: list[Judged] = []
        for action in actions:
            proposal = self._proposal(action)
            if proposal is None or not self._grounded(proposal):
                continue
            if isinstance(proposal, Merge | Associate) and frozenset(proposal.memory_ids) in before:
                continue
            found.append(Judged(proposal=proposal, seen=versions(proposal, facts, entities)))
        return found, len(actions) - len(found)

    def _proposal(self, action: ProposedAction) -> Proposal | None:
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
            return read_proposals([given])[0]
        except (InvalidInput, ValidationError):
            return None

    def _grounded(self, proposal: Proposal) -> bool:
        """Return whether what is to be known of an entity stands in the statements themselves."""
        if not isinstance(proposal, UpdateEntity):
            return True
        said = [fact.content for fact in self.facts if proposal.entity_id in fact.entity_ids]
        told = [*proposal.add_aliases, *(str(value) for value in proposal.set.values())]
        return all(any(mentions_name(text, each) for text in said) for each in told)


@dataclass(frozen=True, slots=True)
class Analysed:
    """The proposals of one batch, how many made no sense, and what the model call cost."""

    judged: list[Judged]
    senseless: int = 0
    receipt: LlmReceipt = field(default_factory=LlmReceipt)


class Analyst:
    """Turns batches into proposals."""

    def __init__(self, graph: Graph, model: LanguageModel | None, prompts: Mapping[str, PromptTemplate]) -> None:
        self._graph = graph
        self._model = model
        self._prompts = prompts

    @property
    def has_model(self) -> bool:
        """Whether a model looks at the batches."""
        return self._model is not None

    async def analyse(self, owner: Owner, memory_ids: Sequence[str], *, old: bool) -> Analysed:
        """Return the proposals for one batch; raise ModelUnavailable when the model does not answer."""
        if self._model is None:
            return Analysed(await self._alike(owner, memory_ids))
        material = await self._material(owner, memory_ids)
        if len(material.facts) < 2:
            return Analysed([])
        answer = await self._model.complete_structured(self._prompt(material, old), Analysis, use="main")
        judged, senseless = material.proposals(answer.value.actions)
        return Analysed(judged, senseless, answer.receipt)

    async def _material(self, owner: Owner, memory_ids: Sequence[str]) -> Material:
        async def work(transaction: Transaction) -> Material:
            rows = await transaction.run(
                "facts.touched_by", group_id=owner.group_id, hashes=[], memory_ids=list(memory_ids), pairs=[]
            )
            found = {fact.memory_id: fact for fact in map(read_fact, rows)}
            facts = [found[key] for key in memory_ids if key in found]
            ids = (key for fact in facts for key in (fact.subject_id, *fact.entity_ids))
            entities = await fetch_entities(transaction, owner, ids)
            return Material(facts, list(entities.values()), await _undone(transaction, owner))

        return await self._graph.read(work)

    def _prompt(self, material: Material, old: bool) -> Prompt:
        shown = {fact.memory_id: number for number, fact in enumerate(material.facts, 1)}
        undone = [
            f"{each.action} of {', '.join(f'[M{shown[key]}]' for key in each.memory_ids)}"
            for each in material.undone
            if all(key in shown for key in each.memory_ids)
        ]
        names = {entity.id: entity.name for entity in material.entities}
        return self._prompts["consolidate"].render(
            focus=OLD if old else FRESH,
            memories="\n".join(
                f"[M{number}] {within_line(_statement(fact, names))}" for number, fact in enumerate(material.facts, 1)
            ),
            entities="\n".join(
                f"[E{number}] {within_line(_entity(each))}" for number, each in enumerate(material.entities, 1)
            )
            or "(none)",
            texts_seen="\n".join(undone) or "(none)",
        )

    async def _alike(self, owner: Owner, memory_ids: Sequence[str]) -> list[Judged]:
        """Propose to associate what means nearly the same; the graph compares the vectors it holds."""

        async def work(transaction: Transaction) -> list[Judged]:
            rows = await transaction.run(
                "consolidation.alike_facts", group_id=owner.group_id, ids=list(memory_ids), least=NEARLY_THE_SAME
            )
            undone = {frozenset(each.memory_ids) for each in await _undone(transaction, owner)}
            return [
                Judged(
                    proposal=Associate(action="ASSOCIATE", memory_ids=row["ids"], reason="nearly the same meaning"),
                    seen=dict(zip(row["ids"], map(str, row["versions"]), strict=True)),
                )
                for row in rows
                if frozenset(row["ids"]) not in undone
            ]

        return await self._graph.read(work)


async def _undone(transaction: Transaction, owner: Owner) -> list[Merge | Associate]:
    rows = await transaction.run("consolidation.undone", group_id=owner.group_id)
    proposals = (each.proposal for row in rows for each in Judged.read_list(row["proposals"]))
    return [each for each in proposals if isinstance(each, Merge | Associate)]


def _statement(fact: Fact, names: Mapping[str, str]) -> str:
    marks = [f"about {names.get(fact.subject_id, 'the user')}", f"scope {fact.scope.value}"]
    if fact.domain:
        marks.append(f"domain {fact.domain}")
    marks.append(fact.type.value)
    marks += [f"since {fact.valid_at:%Y-%m-%d}"] if fact.valid_at else []
    marks += [f"until {fact.invalid_at:%Y-%m-%d}"] if fact.invalid_at else []
    marks += ["fixed"] if fact.immutable else []
    return f"({'; '.join(marks)}) {fact.content}"


def _entity(entity: Entity) -> str:
    also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}{', the user' if entity.is_user else ''}){also}"
