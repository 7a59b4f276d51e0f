"""The guard between what a model decides and what is done: numbers become memories, and some acts are vetoed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphmem.domain.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryIn, MemoryStatus, MemoryType
from graphmem.domain.text import content_hash, name_key
from graphmem.ingestion.candidates import EXTRACTION_SOURCE, STATED_START_KEY, ValidatedCandidate
from graphmem.ingestion.date_parsing import parse_local_date
from graphmem.ingestion.entity_linking import LinkingResult, entity_name_keys, subject_key
from graphmem.ingestion.llm_schemas import ActionKind, Decision, Reconciliation

MAX_SUPERSESSIONS_PER_WINDOW = 12
"""Most memories one window may supersede."""

MAX_DELETIONS_PER_WINDOW = 3
"""Most memories one window may delete."""

MAX_REASON_CHARACTERS = 200

_SUPERSEDING_TYPES = frozenset(
    {MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.PLAN, MemoryType.OPEN_LOOP, MemoryType.BEHAVIORAL_PATTERN}
)


@dataclass(frozen=True, slots=True)
class PlannedSave:
    """A statement to be saved; it closes what `memory.supersedes` names, for `reason`. `candidate` is its place.

    `again` marks one that repeats a known memory in its own words, to reinforce it.
    """

    candidate_index: int
    memory: MemoryIn
    reason: str = "superseded"
    is_reinforcement: bool = False


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """A memory to be ended because the user took it back."""

    candidate_index: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """Something that was proposed and is not done; `candidate` is the statement it was proposed for."""

    candidate_index: int
    action: str
    reason: str
    memory_id: str | None = None


@dataclass(slots=True)
class ActionPlan:
    """What is to be done, in order, and what was refused."""

    saves: list[PlannedSave] = field(default_factory=list)
    deletions: list[PlannedDeletion] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    resolved_names: dict[str, str] = field(default_factory=dict)
    """Entity ids by the name keys that were found to mean known entities."""


class ActionPlanner:
    """Makes the plan of one window over the facts as they are now.

    `facts` holds the believed versions of what is related and of what shares a single-valued place; `names` the
    entities they touch, by id.
    """

    def __init__(
        self,
        candidates: Sequence[ValidatedCandidate],
        linking: LinkingResult,
        facts: Mapping[str, Fact],
        names: Mapping[str, EntityRef],
    ) -> None:
        self._candidates = candidates
        self._linking = linking
        self._facts = facts
        self._names = names
        self._entities = dict(linking.entities)
        self._ended_ids: set[str] = set()
        self._plan = ActionPlan()

    def plan(self, answer: Reconciliation | None) -> ActionPlan:
        """Return what to do with each candidate; without an answer, what the rules alone say."""
        if answer:
            self._resolve_ambiguous_names(answer)
        decisions = {decision.new: decision for decision in answer.decisions} if answer else {}
        # What ends a memory comes first, so that nothing else relies on one that is about to end.
        ending = (ActionKind.SUPERSEDE, ActionKind.DELETE)
        order = sorted(
            range(len(self._candidates)),
            key=lambda at: at + 1 not in decisions or decisions[at + 1].action not in ending,
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
        known = self._linking.known
        for told in answer.same_entities:
            if not (1 <= told.name <= len(self._linking.ambiguous_names)) or told.known is None:
                continue
            ambiguous_name = self._linking.ambiguous_names[told.name - 1]
            meant = known[told.known - 1].id if 1 <= told.known <= len(known) else None
            if meant in ambiguous_name.options:
                self._plan.resolved_names[name_key(ambiguous_name.name)] = self._entities[
                    name_key(ambiguous_name.name)
                ] = str(meant)

    # One candidate

    def _decide(self, index: int, candidate: ValidatedCandidate, decision: Decision) -> None:
        known = self._facts_of_decision(decision)
        if decision.action is ActionKind.IGNORE:
            self._veto(index, "insert", f"known already: {_one_line_reason(decision.reason)}")
        elif decision.action is ActionKind.REINFORCE:
            self._reinforce(index, candidate, known)
        elif decision.action is ActionKind.SUPERSEDE:
            self._supersede(index, candidate, decision, known)
        elif decision.action is ActionKind.DELETE:
            self._veto(index, "delete", "only what the user takes back is deleted")
            self._insert(index, candidate)
        else:
            self._insert(index, candidate, alone=False)

    def _facts_of_decision(self, decision: Decision) -> list[Fact]:
        """Return the facts behind the numbers of a decision; numbers that were not shown are ignored."""
        related = self._linking.related
        ids = [related[number - 1] for number in decision.known if 1 <= number <= len(related)]
        return [self._facts[each] for each in dict.fromkeys(ids) if each in self._facts]

    def _insert(self, index: int, candidate: ValidatedCandidate, *, alone: bool = True) -> None:
        """Save a candidate; `alone` when no model said that it holds beside what is known."""
        memory = candidate.memory
        if memory.single_valued and not self._may_replace_competing(candidate, alone):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(PlannedSave(index, memory))

    def _may_replace_competing(self, candidate: ValidatedCandidate, alone: bool) -> bool:
        competing = self._competing_facts(candidate)
        if any(fact.immutable for fact in competing):
            return False
        return alone or all(_is_disjoint_in_time(candidate, fact) for fact in competing)

    def _competing_facts(self, candidate: ValidatedCandidate) -> list[Fact]:
        subject = self._entities.get(subject_key(candidate))
        same = [
            fact
            for fact in self._facts.values()
            if fact.subject_id == subject and fact.predicate == candidate.memory.predicate and not fact.is_never_valid
        ]
        return [fact for fact in same if fact.content_hash != content_hash(candidate.memory.content)]

    def _reinforce(self, index: int, candidate: ValidatedCandidate, known: Sequence[Fact]) -> None:
        fact = next((each for each in known if each.subject_id == self._entities.get(subject_key(candidate))), None)
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
        if entity_id == self._linking.entities.get(""):
            return None
        return EntityIn(name=self._names[entity_id].name)

    def _supersede(self, index: int, candidate: ValidatedCandidate, decision: Decision, known: Sequence[Fact]) -> None:
        zone = candidate.sent_at.tzinfo
        assert zone is not None
        told = candidate.memory.valid_at if candidate.is_dated else parse_local_date(decision.ended_at, zone)
        starts = (told or candidate.sent_at).astimezone(UTC)
        closing = [fact for fact in known if self._may_supersede(index, candidate, fact, told)]
        memory = candidate.memory
        if closing:
            metadata = {
                **memory.metadata,
                **({STATED_START_KEY: decision.ended_at} if told and not candidate.is_dated else {}),
            }
            memory = memory.model_copy(
                update={"supersedes": [fact.memory_id for fact in closing], "valid_at": starts, "metadata": metadata}
            )
        others = [fact for fact in self._competing_facts(candidate) if fact not in closing]
        if memory.single_valued and any(fact.immutable for fact in others):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(PlannedSave(index, memory, f"superseded: {_one_line_reason(decision.reason)}"))

    def _may_supersede(self, index: int, candidate: ValidatedCandidate, fact: Fact, told: datetime | None) -> bool:
        reason = self._supersession_veto(candidate, fact, told)
        if reason:
            self._veto(index, "supersede", reason, fact.memory_id)
        else:
            self._ended_ids.add(fact.memory_id)
        return reason is None

    def _supersession_veto(self, candidate: ValidatedCandidate, fact: Fact, told: datetime | None) -> str | None:
        """Return why a candidate may not close a fact, or None."""
        if not self._is_about_same_subject(candidate, fact):
            return "it is about another subject"
        if fact.immutable:
            return "it is immutable"
        if not candidate.is_from_user:
            return "the assistant alone said so"
        if candidate.memory.type not in _SUPERSEDING_TYPES and candidate.memory.type is not fact.type:
            return f"a {candidate.memory.type.value} does not end a {fact.type.value}"
        if fact.status is not MemoryStatus.ACTIVE:
            return "it had ended already"
        if told and fact.valid_at and told < fact.valid_at and has_stated_start(fact):
            return "it began later"
        if candidate.memory.invalid_at and fact.valid_at and candidate.memory.invalid_at <= fact.valid_at:
            return "the new statement ended before it"
        if fact.memory_id in self._ended_ids:
            return "another statement ends it"
        if len(self._ended_ids) >= MAX_SUPERSESSIONS_PER_WINDOW:
            return f"more than {MAX_SUPERSESSIONS_PER_WINDOW} memories at once"
        return None

    def _is_about_same_subject(self, candidate: ValidatedCandidate, fact: Fact) -> bool:
        """Whether a candidate has the subject of a fact, or one is about a thing, not a person, that the other names."""
        subject = self._entities.get(subject_key(candidate))
        if subject == fact.subject_id:
            return True
        if subject is None:
            return False
        named = {self._entities.get(key) for key in entity_name_keys(candidate)}
        known = self._names.get(fact.subject_id)
        if known and known.type != PERSON_TYPE and fact.subject_id in named:
            return True
        told = candidate.memory.subject
        return told is not None and told.type != PERSON_TYPE and subject in fact.entity_ids

    def _delete(self, index: int, candidate: ValidatedCandidate, decision: Decision | None) -> None:
        meant = self._facts_of_decision(decision) if decision and decision.action is ActionKind.DELETE else []
        near = {self._linking.related[place] for place in self._linking.related_by_candidate[index]}
        for fact in meant:
            if fact.memory_id not in near:
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
                reason = f"taken back: {_one_line_reason(decision.reason if decision else '')}"
                self._plan.deletions.append(PlannedDeletion(index, fact.memory_id, reason))
        if not meant:
            self._veto(index, "delete", "nothing known says what was taken back")

    def _veto(self, index: int, action: str, reason: str, memory_id: str | None = None) -> None:
        self._plan.vetoes.append(Veto(index, action, reason, memory_id))


def has_stated_start(fact: Fact) -> bool:
    """Return whether a fact's start was told, rather than taken from the message that stated it."""
    return fact.source_kind != EXTRACTION_SOURCE or STATED_START_KEY in fact.metadata


def _is_disjoint_in_time(candidate: ValidatedCandidate, fact: Fact) -> bool:
    """Whether a candidate told with its times lies before a fact, or the fact ended before the candidate."""
    starts = candidate.memory.valid_at or candidate.sent_at
    return fact.valid_to <= starts or (candidate.is_dated and starts < fact.effective_start)


def _one_line_reason(reason: str) -> str:
    return " ".join(reason.split())[:MAX_REASON_CHARACTERS]


def with_canonical_names(memory: MemoryIn, canonical_names: Mapping[str, str]) -> MemoryIn:
    """Return a memory whose entities go by the names of the known ones they mean, by name key."""

    def named(entity: EntityIn | None) -> EntityIn | None:
        if entity is None or name_key(entity.name) not in canonical_names:
            return entity
        return EntityIn(name=canonical_names[name_key(entity.name)], type=entity.type)

    entities = [each for entity in memory.entities if (each := named(entity))]
    return memory.model_copy(
        update={"subject": named(memory.subject), "object": named(memory.object), "entities": entities}
    )


def save_with_canonical_names(save: PlannedSave, canonical_names: Mapping[str, str]) -> PlannedSave:
    """Return a save whose entities go by the names of the known ones they mean."""
    return replace(save, memory=with_canonical_names(save.memory, canonical_names))
