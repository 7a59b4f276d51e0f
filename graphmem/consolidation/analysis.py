"""Analysis: a model reads a batch of memories and proposes changes, and a second call verifies them by quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from graphmem.consolidation.guards import entity_ids_of, memory_ids_of, observed_versions
from graphmem.consolidation.models import (
    Agreement,
    Associate,
    CarriedPart,
    Close,
    LinkEntities,
    MemoryBatch,
    Merge,
    MergeRelation,
    Proposal,
    ProposalVerdict,
    ReportedContradiction,
    ReviewedProposal,
    UpdateEntity,
    Verification,
    parse_proposals,
)
from graphmem.consolidation.run_store import (
    fetch_entities,
    fetch_facts_of_entity,
    list_rolled_back_proposals,
    load_zone,
)
from graphmem.memories.entity import Entity
from graphmem.memories.fact import Fact
from graphmem.memories.memory import Scope
from graphmem.memories.names import mentions_name
from graphmem.memories.saving import FactLoader
from graphmem.models.language_model import (
    LanguageModel,
    LenientAnswer,
    Prompt,
    PromptTemplate,
    Receipt,
    indent_continuations,
)
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import InvalidInput, ModelAnswerUnusable
from graphmem.runtime.field_types import name_key
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import InstructionStore

MAX_ENTITY_STATEMENTS = 30
"""Maximum statements shown for a proposal about entities, starting with its evidence."""

MAX_DIFFERENCES_LENGTH = 2000
"""Maximum stored length of a description of differences, in characters."""

UNANSWERED = "the verification did not answer for it"
"""Reason for refusing a proposal that the answer leaves out."""

UNUSABLE = "the verification gave no usable answer"
"""Reason for refusing the proposals of a batch if the answer does not fit the schema."""


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

Values that a person sets on an entity are that person's statement, which no memory needs to support.
"""


@dataclass(frozen=True, slots=True)
class ShownProposals:
    """The contents of a prompt: proposals and the statements they are based on, each in order of their numbers."""

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
        """Return an answer with memory ids; quotes with unknown statement numbers are left out."""
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
        return f"about {_describe_named(subject) if subject else 'the user'}"

    def _describe(self, proposal: Proposal, numbers: Sequence[int]) -> str:
        given = ", ".join(f"[M{number}]" for number in numbers) or "(none)"
        match proposal:
            case Merge():
                return f"merge of {given} into the new sentence: {proposal.content}"
            case Close():
                return f"close the plan [M{numbers[0]}]; statements: {given.partition(', ')[2]}"
            case LinkEntities():
                keep, merge = (_describe_named(self.entities[key]) for key in (proposal.keep_id, proposal.merge_id))
                return f"link of two entities, ({keep}) and ({merge}); statements: {given}"
            case UpdateEntity():
                values = [f"the name {alias}" for alias in proposal.add_aliases]
                values += [f"{name} = {value}" for name, value in proposal.set.items()]
                entity = _describe_named(self.entities[proposal.entity_id])
                return f"the entity ({entity}) gets: {'; '.join(values)}; statements: {given}"
        raise TypeError(f"{proposal.action} is not verified")


class ProposalVerifier:
    """Asks a model about proposals, with one call per batch."""

    def __init__(self, graph: Graph, model: LanguageModel, prompts: Mapping[str, PromptTemplate]) -> None:
        self._graph = graph
        self._model = model
        self._template = prompts["verify"]

    async def verify(
        self, owner: Owner, reviewed: Sequence[ReviewedProposal], *, curated: bool = False
    ) -> tuple[list[ReviewedProposal], Receipt]:
        """Return proposals with their verifications, and the call's cost; raise ModelUnavailable without an answer.

        Curated proposals are left unchanged if a person has verified them or they set values on an entity. Other
        waiting proposals without an answer are refused; all of them are if the answer is unusable.
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
        """Return the prompt's contents, and the indexes of the proposals in it."""

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
    """Return a proposal's statements; for entities, its evidence and the statements that name both."""
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


def _describe_named(entity: Entity) -> str:
    also = [f"also {', '.join(entity.aliases)}"] if entity.aliases else []
    return "; ".join([entity.name, *(["the user"] if entity.is_user else []), *also])


MAX_REASON_LENGTH = 2000
"""Maximum stored length of a proposal's reason, in characters; longer reasons from the model are cut."""

NEW_FOCUS = "Some of these statements are new. Look for what they repeat, complete, close or rename."
"""Instruction of the prompt for new memories; recorded completions depend on its wording."""

OLD_FOCUS = (
    "These statements are old and were seldom asked for. Look for what can be said in fewer: merge a fact and its "
    "details into one sentence that keeps every name, number and date, even where each could stand by itself."
)
"""Instruction of the prompt for old memories; recorded completions depend on its wording."""

ASSOCIATION_SIMILARITY = 0.85
"""Minimum cosine similarity of memories that are associated without a model."""


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
    """The contents of a prompt: current facts and their entities, each in order of their numbers."""

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
        """Return the valid proposals with the versions they are based on, and the number of invalid actions.

        Unknown numbers are left out. A proposal like one that was rolled back before is invalid.
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
        """Return the attributes and names in an action that the entity does not have yet."""
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
    """The outcome of one batch: proposals, the number of invalid ones, contradictions, and the cost of the model call.

    A batch with fewer than two memories left is not read.
    """

    proposals: list[ReviewedProposal]
    invalid_count: int = 0
    contradictions: list[ReportedContradiction] = field(default_factory=list)
    receipt: Receipt = field(default_factory=Receipt)
    is_read: bool = True


class ProposalAnalyser:
    """Turns batches of memories into proposals, checked by the `verifier` if there is a model.

    `zone` is the zone of users without one of their own.
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
        """Return the proposals for one batch; raise ModelUnavailable if the model does not answer."""
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
        """Propose to associate the pairs whose vectors nearly agree, as compared by the database."""

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
