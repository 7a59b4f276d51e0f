"""Verification: a second model call reads the proposals of a batch beside the statements that they rest on.

It sees neither who proposed something nor why. Its answer is quotes, which the guards compare with the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from graphmem.consolidation.guards import entity_ids_of, memory_ids_of
from graphmem.consolidation.models import (
    Agreement,
    CarriedPart,
    Close,
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    UpdateEntity,
    Verification,
)
from graphmem.consolidation.run_store import fetch_entities, fetch_facts_of_entity
from graphmem.memories.entity import Entity
from graphmem.memories.fact import Fact
from graphmem.memories.saving import FactLoader
from graphmem.models.language_model import LanguageModel, LenientAnswer, Receipt
from graphmem.models.prompts import Prompt, PromptTemplate, indent_continuations
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import ModelAnswerUnusable
from graphmem.tenants.owners import Owner

MAX_ENTITY_STATEMENTS = 30
"""Most statements that are shown for a proposal about entities; those given as evidence are the first."""

MAX_DIFFERENCES_LENGTH = 2000
"""Longest description of differences that is stored, in characters."""

UNANSWERED = "the verification did not answer for it"
"""Reason for which a proposal is refused that the answer leaves out."""

UNUSABLE = "the verification gave no usable answer"
"""Reason for which the proposals of a batch are refused whose answer does not fit the schema."""


class AnsweredQuote(BaseModel):
    """A quote from a statement of the prompt."""

    statement: int
    words: str


class AnsweredStatement(BaseModel):
    """How the merged sentence carries one statement of the prompt."""

    statement: int
    parts: list[CarriedPart]
    agreement: Agreement


class AnsweredValue(BaseModel):
    """The place where a statement gives an entity a name or a property."""

    value: str
    statement: int
    words: str


class CheckedProposal(BaseModel):
    """What the model answers for one proposal."""

    proposal: int
    differences: str
    one_fact: bool | None = None
    statements: list[AnsweredStatement] = Field(default_factory=list)
    added: list[str] = Field(default_factory=list)
    closing: list[AnsweredQuote] = Field(default_factory=list)
    identity: list[AnsweredQuote] = Field(default_factory=list)
    apart: list[AnsweredQuote] = Field(default_factory=list)
    values: list[AnsweredValue] = Field(default_factory=list)


class VerifierAnswer(LenientAnswer):
    """What the model answers: one entry for each proposal."""

    proposals: list[CheckedProposal]


VERIFIED_ACTIONS = (Merge, Close, LinkEntities, UpdateEntity)
"""The actions that a model verifies; an association and a new entity change nothing that is stored.

What a person sets on an entity is the person's own statement, which no memory needs to say.
"""


@dataclass(frozen=True, slots=True)
class ShownProposals:
    """What a prompt shows: proposals and the statements they rest on, each in the order of their numbers."""

    proposals: list[Proposal]
    facts: list[Fact]
    statements: list[list[str]]
    entities: Mapping[str, Entity]

    def render(self, template: PromptTemplate) -> Prompt:
        """Return the prompt."""
        numbers = {fact.memory_id: number for number, fact in enumerate(self.facts, 1)}
        statements = [
            f"[M{number}] {indent_continuations(f'({self._describe_subject(fact)}) {fact.content}')}"
            for number, fact in enumerate(self.facts, 1)
        ]
        proposals = [
            f"[P{number}] {indent_continuations(self._describe(proposal, [numbers[key] for key in keys]))}"
            for number, (proposal, keys) in enumerate(zip(self.proposals, self.statements, strict=True), 1)
        ]
        return template.render(statements="\n".join(statements), proposals="\n".join(proposals))

    def to_verification(self, answered: CheckedProposal) -> Verification:
        """Return an answer with ids of memories; quotes from statements of other numbers are left out."""
        found: dict[str, Any] = answered.model_dump()
        for part in ("statements", "closing", "identity", "apart", "values"):
            found[part] = [{**quote, "memory_id": key} for quote in found[part] if (key := self._memory_id(quote))]
        found["differences"] = answered.differences[:MAX_DIFFERENCES_LENGTH]
        return Verification.model_validate(found)

    def _memory_id(self, quote: Mapping[str, Any]) -> str | None:
        number = quote["statement"]
        return self.facts[number - 1].memory_id if 0 < number <= len(self.facts) else None

    def _describe_subject(self, fact: Fact) -> str:
        subject = self.entities.get(fact.subject_id)
        return f"about {_describe_entity(subject) if subject else 'the user'}"

    def _describe(self, proposal: Proposal, numbers: Sequence[int]) -> str:
        given = ", ".join(f"[M{number}]" for number in numbers) or "(none)"
        match proposal:
            case Merge():
                return f"merge of {given} into the new sentence: {proposal.content}"
            case Close():
                return f"close the plan [M{numbers[0]}]; statements: {given.partition(', ')[2]}"
            case LinkEntities():
                keep, merge = (_describe_entity(self.entities[key]) for key in (proposal.keep_id, proposal.merge_id))
                return f"link of two entities, ({keep}) and ({merge}); statements: {given}"
            case UpdateEntity():
                values = [f"the name {alias}" for alias in proposal.add_aliases]
                values += [f"{name} = {value}" for name, value in proposal.set.items()]
                entity = _describe_entity(self.entities[proposal.entity_id])
                return f"the entity ({entity}) gets: {'; '.join(values)}; statements: {given}"
        raise TypeError(f"{proposal.action} is not verified")


class ProposalVerifier:
    """Asks a model about proposals, one call a batch."""

    def __init__(self, graph: Graph, model: LanguageModel, prompts: Mapping[str, PromptTemplate]) -> None:
        self._graph = graph
        self._model = model
        self._template = prompts["verify"]

    async def verify(
        self, owner: Owner, reviewed: Sequence[ReviewedProposal], *, curated: bool = False
    ) -> tuple[list[ReviewedProposal], Receipt]:
        """Return proposals with their verifications, and what the call cost; raise ModelUnavailable without an answer.

        Of curated ones, those are left as they are that a person has verified or that set something on an entity.
        Other waiting proposals without an answer are refused: all of them if the answer is not usable.
        """
        shown, indexes = await self._load(owner, reviewed, curated)
        if not indexes:
            return list(reviewed), Receipt()
        checked: dict[int, CheckedProposal] = {}
        refusal = UNANSWERED
        try:
            completion = await self._model.complete_structured(shown.render(self._template), VerifierAnswer, use="main")
        except ModelAnswerUnusable:
            receipt, refusal = Receipt(llm_calls=1), UNUSABLE
        else:
            receipt = completion.receipt
            for answered in completion.value.proposals:
                checked.setdefault(answered.proposal, answered)
        proposals = list(reviewed)
        for number, index in enumerate(indexes, 1):
            update: dict[str, object] = {"verdict": ProposalVerdict.REFUSED, "reason": refusal}
            if number in checked:
                update = {"verification": shown.to_verification(checked[number])}
            proposals[index] = proposals[index].model_copy(update=update)
        return proposals, receipt

    async def _load(
        self, owner: Owner, reviewed: Sequence[ReviewedProposal], curated: bool
    ) -> tuple[ShownProposals, list[int]]:
        """Return what the prompt shows, and the indexes of the proposals that it shows."""

        async def work(transaction: Transaction) -> tuple[ShownProposals, list[int]]:
            asked = {index: one.proposal for index, one in enumerate(reviewed) if _is_asked(one, curated)}
            entities = await fetch_entities(transaction, owner, entity_ids_of(asked.values()))
            statements: dict[int, list[Fact]] = {}
            for index, proposal in asked.items():
                if entities.keys() >= set(entity_ids_of([proposal])):
                    statements[index] = await _load_statements(transaction, owner, proposal)
            facts = {fact.memory_id: fact for found in statements.values() for fact in found}
            subjects = await fetch_entities(transaction, owner, [fact.subject_id for fact in facts.values()])
            shown = ShownProposals(
                [asked[index] for index in statements],
                list(facts.values()),
                [[fact.memory_id for fact in found] for found in statements.values()],
                {**subjects, **entities},
            )
            return shown, list(statements)

        return await self._graph.read(work)


def _is_asked(reviewed: ReviewedProposal, curated: bool) -> bool:
    proposal = reviewed.proposal
    if reviewed.verdict is not ProposalVerdict.WAITING or not isinstance(proposal, VERIFIED_ACTIONS):
        return False
    return not curated or (not isinstance(proposal, UpdateEntity) and not proposal.verified)


async def _load_statements(transaction: Transaction, owner: Owner, proposal: Proposal) -> list[Fact]:
    """Return the statements that a proposal rests on; of entities, what is given as evidence and what names both."""
    if isinstance(proposal, Merge | Close):
        memory_ids = memory_ids_of([proposal])
        facts = await FactLoader(transaction, owner).fetch(memory_ids=memory_ids)
        return [facts[key] for key in memory_ids if key in facts]
    evidence = proposal.evidence if isinstance(proposal, LinkEntities | UpdateEntity) else []
    cited = await FactLoader(transaction, owner).fetch(memory_ids=evidence)
    entity_ids = entity_ids_of([proposal])
    found = {fact.memory_id: fact for fact in cited.values()}
    for entity_id in entity_ids:
        versions = await fetch_facts_of_entity(transaction, owner, entity_id)
        found |= {fact.memory_id: fact for fact in versions if fact.expired_at is None and not fact.is_never_valid}

    def rank(fact: Fact) -> tuple[bool, bool, datetime, str]:
        names_all = set(entity_ids) <= {fact.subject_id, fact.object_id, *fact.entity_ids}
        return (fact.memory_id not in evidence, not names_all, fact.first_created_at, fact.content)

    return sorted(found.values(), key=rank)[:MAX_ENTITY_STATEMENTS]


def _describe_entity(entity: Entity) -> str:
    also = [f"also {', '.join(entity.aliases)}"] if entity.aliases else []
    return "; ".join([entity.name, *(["the user"] if entity.is_user else []), *also])
