"""The plan of a window: what to save and delete after a model's decisions, some of which are vetoed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphmem.domain.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryIn, MemoryStatus, MemoryType
from graphmem.domain.text import content_hash, name_key
from graphmem.ingestion.candidates import STATED_START_KEY, ValidatedCandidate
from graphmem.ingestion.date_parsing import parse_local_date
from graphmem.ingestion.job_actions import shorten_reason
from graphmem.ingestion.linking_models import LinkingResult
from graphmem.ingestion.llm_schemas import ActionKind, Decision, Reconciliation
from graphmem.ingestion.statement_matching import has_same_slot, has_same_subject, has_stated_start

MAX_SUPERSESSIONS_PER_WINDOW = 12
"""Most memories one window may supersede."""

MAX_DELETIONS_PER_WINDOW = 3
"""Most memories one window may delete."""

_SUPERSEDING_TYPES = frozenset(
    {MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.PLAN, MemoryType.OPEN_LOOP, MemoryType.BEHAVIORAL_PATTERN}
)
"""Types of statements that may supersede a memory of another type."""


@dataclass(frozen=True, slots=True)
class PlannedSave:
    """A statement to save; it ends the memories in `memory.supersedes`, for `reason`.

    `is_reinforcement` marks a statement that repeats a known memory word for word, to reinforce it.
    """

    candidate_index: int
    memory: MemoryIn
    reason: str = "superseded"
    is_reinforcement: bool = False


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """A memory to delete because the user took it back."""

    candidate_index: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """An action on a memory that was proposed for a candidate and is not done."""

    candidate_index: int
    action: str
    reason: str
    memory_id: str | None = None


@dataclass(slots=True)
class ActionPlan:
    """What to do, in order, and what was vetoed."""

    saves: list[PlannedSave] = field(default_factory=list)
    deletions: list[PlannedDeletion] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    resolved_names: dict[str, str] = field(default_factory=dict)
    """Ids of the known entities that ambiguous names mean, by name key."""


class ActionPlanner:
    """Makes the plan of one window for the facts as they are now.

    `facts` are the believed versions of the related facts and of those that compete with a single-valued statement, by
    memory id; `entity_refs` the entities they name, by id.
    """

    def __init__(
        self,
        candidates: Sequence[ValidatedCandidate],
        linking: LinkingResult,
        facts: Mapping[str, Fact],
        entity_refs: Mapping[str, EntityRef],
    ) -> None:
        self._candidates = candidates
        self._linking = linking
        self._facts = facts
        self._entity_refs = entity_refs
        self._entities = linking.entities
        self._ended_ids: set[str] = set()
        self._plan = ActionPlan()

    def plan(self, answer: Reconciliation | None) -> ActionPlan:
        """Return what to do with each candidate; without an answer, by the rules alone."""
        if answer:
            self._resolve_ambiguous_names(answer)
        decisions = {decision.new: decision for decision in answer.decisions} if answer else {}
        # Decisions that end a memory come first, so that no other candidate reinforces one that is about to end.
        ending = (ActionKind.SUPERSEDE, ActionKind.DELETE)
        order = sorted(
            range(len(self._candidates)),
            key=lambda index: index + 1 not in decisions or decisions[index + 1].action not in ending,
        )
        for index in order:
            candidate, decision = self._candidates[index], decisions.get(index + 1)
            if candidate.retracts:
                self._delete(index, candidate, decision)
            elif decision is None:
                self._insert(index, candidate)
            else:
                self._decide(index, candidate, decision)
        return self._plan

    def _resolve_ambiguous_names(self, answer: Reconciliation) -> None:
        names, known = self._linking.ambiguous_names, self._linking.known
        for same in answer.same_entities:
            if same.known is None or not (1 <= same.name <= len(names) and 1 <= same.known <= len(known)):
                continue
            name, entity = names[same.name - 1], known[same.known - 1]
            if entity.id in name.options:
                self._plan.resolved_names[name_key(name.name)] = entity.id
        self._entities = self._entities.with_names(self._plan.resolved_names)

    # One candidate

    def _decide(self, index: int, candidate: ValidatedCandidate, decision: Decision) -> None:
        known = self._facts_of_decision(decision)
        if decision.action is ActionKind.IGNORE:
            self._veto(index, "insert", f"known already: {shorten_reason(decision.reason)}")
        elif decision.action is ActionKind.REINFORCE:
            self._reinforce(index, candidate, known)
        elif decision.action is ActionKind.SUPERSEDE:
            self._supersede(index, candidate, decision, known)
        elif decision.action is ActionKind.DELETE:
            self._veto(index, "delete", "only what the user takes back is deleted")
            self._insert(index, candidate)
        else:
            self._insert(index, candidate, by_rules=False)

    def _facts_of_decision(self, decision: Decision) -> list[Fact]:
        """Return the facts that a decision names; numbers that the prompt did not show are ignored."""
        related = self._linking.related
        ids = [related[number - 1] for number in decision.known if 1 <= number <= len(related)]
        return [self._facts[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in self._facts]

    def _insert(self, index: int, candidate: ValidatedCandidate, *, by_rules: bool = True) -> None:
        """Save a candidate; with `by_rules` it may replace a competing value, as no model said that both are true."""
        memory = candidate.memory
        if memory.single_valued and not self._may_replace_competing(candidate, by_rules):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(PlannedSave(index, memory))

    def _may_replace_competing(self, candidate: ValidatedCandidate, by_rules: bool) -> bool:
        competing = self._competing_facts(candidate)
        if any(fact.immutable for fact in competing):
            return False
        return by_rules or all(_is_disjoint_in_time(candidate, fact) for fact in competing)

    def _competing_facts(self, candidate: ValidatedCandidate) -> list[Fact]:
        """Return the other values of the candidate's subject and predicate that were true at some time."""
        hash_of_candidate = content_hash(candidate.memory.content)
        return [
            fact
            for fact in self._facts.values()
            if has_same_slot(candidate, fact, self._entities)
            and not fact.is_never_valid
            and fact.content_hash != hash_of_candidate
        ]

    def _reinforce(self, index: int, candidate: ValidatedCandidate, known: Sequence[Fact]) -> None:
        fact = next((fact for fact in known if has_same_subject(candidate, fact, self._entities)), None)
        if fact and fact.memory_id in self._ended_ids:
            return self._veto(index, "reinforce", "another statement ends it", fact.memory_id)
        if fact is None or fact.status is not MemoryStatus.ACTIVE or fact.immutable:
            return self._insert(index, candidate)
        again = candidate.memory.model_copy(
            update={
                "content": fact.content,
                "subject": self._entity_input(fact.subject_id),
                "predicate": fact.predicate,
                "valid_at": fact.valid_at,
                "invalid_at": None,
                "single_valued": False,
                "supersedes": [],
            }
        )
        self._plan.saves.append(PlannedSave(index, again, is_reinforcement=True))
        return None

    def _entity_input(self, entity_id: str) -> EntityIn | None:
        return None if entity_id == self._entities.user else EntityIn(name=self._entity_refs[entity_id].name)

    def _supersede(self, index: int, candidate: ValidatedCandidate, decision: Decision, known: Sequence[Fact]) -> None:
        zone = candidate.sent_at.tzinfo
        assert zone is not None
        stated = candidate.memory.valid_at if candidate.is_dated else parse_local_date(decision.ended_at, zone)
        superseded = [fact for fact in known if self._may_supersede(index, candidate, fact, stated)]
        memory = candidate.memory
        if superseded:
            stated_by_model = {STATED_START_KEY: decision.ended_at} if stated and not candidate.is_dated else {}
            memory = memory.model_copy(
                update={
                    "supersedes": [fact.memory_id for fact in superseded],
                    "valid_at": (stated or candidate.sent_at).astimezone(UTC),
                    "metadata": {**memory.metadata, **stated_by_model},
                }
            )
        others = [fact for fact in self._competing_facts(candidate) if fact not in superseded]
        if memory.single_valued and any(fact.immutable for fact in others):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(PlannedSave(index, memory, f"superseded: {shorten_reason(decision.reason)}"))

    def _may_supersede(self, index: int, candidate: ValidatedCandidate, fact: Fact, stated: datetime | None) -> bool:
        reason = self._supersession_veto(candidate, fact, stated)
        if reason:
            self._veto(index, "supersede", reason, fact.memory_id)
        else:
            self._ended_ids.add(fact.memory_id)
        return reason is None

    def _supersession_veto(self, candidate: ValidatedCandidate, fact: Fact, stated: datetime | None) -> str | None:
        """Return why a candidate with the stated start, if any, may not supersede a fact, or None."""
        if not self._is_about_same_thing(candidate, fact):
            return "it is about another subject"
        if fact.immutable:
            return "it is immutable"
        if not candidate.is_from_user:
            return "the assistant alone said so"
        if candidate.memory.type not in _SUPERSEDING_TYPES and candidate.memory.type is not fact.type:
            return f"a {candidate.memory.type.value} does not end a {fact.type.value}"
        if fact.status is not MemoryStatus.ACTIVE:
            return "it had ended already"
        if stated and fact.valid_at and stated < fact.valid_at and has_stated_start(fact):
            return "it began later"
        if candidate.memory.invalid_at and fact.valid_at and candidate.memory.invalid_at <= fact.valid_at:
            return "the new statement ended before it"
        if fact.memory_id in self._ended_ids:
            return "another statement ends it"
        if len(self._ended_ids) >= MAX_SUPERSESSIONS_PER_WINDOW:
            return f"more than {MAX_SUPERSESSIONS_PER_WINDOW} memories at once"
        return None

    def _is_about_same_thing(self, candidate: ValidatedCandidate, fact: Fact) -> bool:
        """Return whether both have one subject, or one names the other's subject, which is a thing and no person."""
        subject_id = self._entities.of_subject(candidate)
        if subject_id == fact.subject_id:
            return True
        if subject_id is None:
            return False
        known = self._entity_refs.get(fact.subject_id)
        if known and known.type != PERSON_TYPE and fact.subject_id in self._entities.named_in(candidate):
            return True
        subject = candidate.memory.subject
        return subject is not None and subject.type != PERSON_TYPE and subject_id in fact.entity_ids

    def _delete(self, index: int, candidate: ValidatedCandidate, decision: Decision | None) -> None:
        named = self._facts_of_decision(decision) if decision and decision.action is ActionKind.DELETE else []
        related = {self._linking.related[position] for position in self._linking.related_by_candidate[index]}
        for fact in named:
            if fact.memory_id not in related:
                self._veto(index, "delete", "it is not related to what was taken back", fact.memory_id)
            elif fact.immutable:
                self._veto(index, "delete", "it is immutable", fact.memory_id)
            elif not candidate.is_from_user:
                self._veto(index, "delete", "the user did not say so", fact.memory_id)
            elif fact.memory_id in self._ended_ids:
                self._veto(index, "delete", "another statement ends it", fact.memory_id)
            elif len(self._plan.deletions) >= MAX_DELETIONS_PER_WINDOW:
                self._veto(index, "delete", f"more than {MAX_DELETIONS_PER_WINDOW} memories at once", fact.memory_id)
            else:
                self._ended_ids.add(fact.memory_id)
                reason = f"taken back: {shorten_reason(decision.reason if decision else '')}"
                self._plan.deletions.append(PlannedDeletion(index, fact.memory_id, reason))
        if not named:
            self._veto(index, "delete", "nothing known says what was taken back")

    def _veto(self, index: int, action: str, reason: str, memory_id: str | None = None) -> None:
        self._plan.vetoes.append(Veto(index, action, reason, memory_id))


def _is_disjoint_in_time(candidate: ValidatedCandidate, fact: Fact) -> bool:
    """Return whether a fact ended before a candidate starts, or a dated candidate starts before the fact does."""
    starts = candidate.effective_start
    return fact.valid_to <= starts or (candidate.is_dated and starts < fact.effective_start)


def with_canonical_names(memory: MemoryIn, canonical_names: Mapping[str, str]) -> MemoryIn:
    """Return a memory with the canonical names, by name key, of the entities it names."""

    def rename(entity: EntityIn | None) -> EntityIn | None:
        if entity is None or name_key(entity.name) not in canonical_names:
            return entity
        return EntityIn(name=canonical_names[name_key(entity.name)], type=entity.type)

    entities = [renamed for entity in memory.entities if (renamed := rename(entity))]
    return memory.model_copy(
        update={"subject": rename(memory.subject), "object": rename(memory.object), "entities": entities}
    )


def save_with_canonical_names(save: PlannedSave, canonical_names: Mapping[str, str]) -> PlannedSave:
    """Return a save with the canonical names of the entities it names."""
    return replace(save, memory=with_canonical_names(save.memory, canonical_names))
