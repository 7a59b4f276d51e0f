"""The plan of a window: what to save, end and delete after a model's decisions, some of which are vetoed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, ValidatedCandidate
from graphmem.ingestion.dropped_candidates import dropping_errors
from graphmem.ingestion.jobs import shorten_reason
from graphmem.ingestion.llm_schemas import ActionKind, Decision, Reconciliation, parse_local_date
from graphmem.ingestion.name_resolution import LinkingResult
from graphmem.ingestion.supersession import (
    adds_an_end,
    end_of_superseded,
    find_veto,
    has_same_slot,
    has_same_wording,
    is_same_state,
    make_remainder,
    may_repeat,
    repeats,
)
from graphmem.memories.entity import EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryIn, MemoryStatus
from graphmem.runtime.field_types import content_hash, name_key
from graphmem.tenants.trust import SourceKind, TrustOrder


@dataclass(frozen=True, slots=True)
class PlannedSave:
    """A statement to save; it ends the memories in `memory.supersedes`, for `reason`.

    They end when it starts, or at their own time in `ends`, by memory id. `is_reinforcement` marks a statement that
    repeats a known memory word for word, to reinforce it. It is the word of `source_kind`, None: of its candidate.
    """

    candidate_index: int
    memory: MemoryIn
    reason: str = "superseded"
    is_reinforcement: bool = False
    source_kind: SourceKind | None = None
    ends: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedEnd:
    """A memory that stays as it is and gets the end that a statement gives, in UTC and as it was stated."""

    candidate_index: int
    memory_id: str
    at: datetime
    stated: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedDeletion:
    """A memory to delete because the user took it back."""

    candidate_index: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """An action that was proposed for a candidate and is not done; `is_saved` says that the candidate is saved."""

    candidate_index: int
    action: str
    reason: str
    memory_id: str | None = None
    is_saved: bool = False


@dataclass(slots=True)
class ActionPlan:
    """What to do, in order, and what was vetoed.

    `unusable` are the parts of the answer that are about nothing that the prompt showed, as sentences.
    """

    ends: list[PlannedEnd] = field(default_factory=list)
    saves: list[PlannedSave] = field(default_factory=list)
    deletions: list[PlannedDeletion] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    resolved_names: dict[str, str] = field(default_factory=dict)
    """Ids of the known entities that ambiguous names mean, by name key."""

    def without(self, indexes: Collection[int]) -> ActionPlan:
        """Return the plan without what it does, or vetoes, for some candidates."""

        def is_kept(action: PlannedSave | PlannedEnd | PlannedDeletion | Veto) -> bool:
            return action.candidate_index not in indexes

        return replace(
            self,
            ends=[end for end in self.ends if is_kept(end)],
            saves=[save for save in self.saves if is_kept(save)],
            deletions=[deletion for deletion in self.deletions if is_kept(deletion)],
            vetoes=[veto for veto in self.vetoes if is_kept(veto)],
        )


MAX_SUPERSESSIONS_PER_WINDOW = 12
"""Most memories one window may supersede or give an end."""

MAX_DELETIONS_PER_WINDOW = 3
"""Most memories one window may delete."""


class ActionPlanner:
    """Makes the plan of one window for the facts as they are now.

    `facts` are the believed versions of the related facts and of those that compete with a single-valued statement, by
    memory id; `entity_refs` the entities they name, by id. By `order` a candidate ends and deletes nothing that a more
    trusted source says: it is planned as if it did, and saved as contested.
    """

    def __init__(
        self,
        candidates: Sequence[ValidatedCandidate],
        linking: LinkingResult,
        facts: Mapping[str, Fact],
        entity_refs: Mapping[str, EntityRef],
        order: TrustOrder,
    ) -> None:
        self._order = order
        self._candidates = candidates
        self._linking = linking
        self._facts = dict(facts)
        self._entity_refs = entity_refs
        self._entities = linking.entities
        self._ended_ids: set[str] = set()
        self._dropped: dict[int, str] = {}
        self._plan = ActionPlan()

    def plan(self, answer: Reconciliation | None) -> ActionPlan:
        """Return what to do with each candidate; without an answer, by the rules alone."""
        decisions: dict[int, Decision] = {}
        if answer:
            self._resolve_ambiguous_names(answer)
            decisions = self._read_decisions(answer)
        for index in sorted(range(len(self._candidates)), key=lambda index: self._rank(index, decisions)):
            self._plan_candidate(index, decisions.get(index + 1))
        return self._plan

    def _rank(self, index: int, decisions: Mapping[int, Decision]) -> int:
        """Return the turn of a candidate: stated ends, then what ends memories, then what may reinforce others."""
        decision = decisions.get(index + 1)
        with dropping_errors("plan", index, self._dropped):
            if self._find_ended_state(self._candidates[index], decision):
                return 0
        return 1 if decision and decision.action in (ActionKind.SUPERSEDE, ActionKind.DELETE) else 2

    def _plan_candidate(self, index: int, decision: Decision | None) -> None:
        """Plan one candidate; an unexpected error refuses it, with whatever was planned for it."""
        candidate, facts, ended_ids = self._candidates[index], dict(self._facts), set(self._ended_ids)
        with dropping_errors("plan", index, self._dropped):
            if candidate.retracts:
                self._delete(index, candidate, decision)
            elif state := self._find_ended_state(candidate, decision):
                self._end(index, candidate, decision, state)
            elif decision is None:
                self._insert(index, candidate)
            else:
                self._decide(index, candidate, decision)
        if error := self._dropped.get(index):
            self._facts, self._ended_ids = facts, ended_ids
            self._plan = self._plan.without([index])
            self._veto(index, "insert", error)

    def _read_decisions(self, answer: Reconciliation) -> dict[int, Decision]:
        """Return the decisions by the number of their statement; of several about one statement the last counts."""
        decisions = {decision.new: decision for decision in answer.decisions}
        usable = {number: decision for number, decision in decisions.items() if 1 <= number <= len(self._candidates)}
        if repeated := len(answer.decisions) - len(decisions):
            self._plan.unusable.append(f"{repeated} decisions are about statements that were decided on twice")
        if unknown := len(decisions) - len(usable):
            self._plan.unusable.append(f"{unknown} decisions are about statements that do not exist")
        return usable

    def _resolve_ambiguous_names(self, answer: Reconciliation) -> None:
        names, known = self._linking.ambiguous_names, self._linking.known
        unknown = gone = 0
        for same in answer.same_entities:
            if not 1 <= same.name <= len(names):
                unknown += 1
                continue
            name = names[same.name - 1]
            if same.known is None:
                continue
            if not (1 <= same.known <= len(known) and known[same.known - 1].id in name.options):
                unknown += 1
            elif (entity_id := known[same.known - 1].id) in self._entity_refs:
                self._plan.resolved_names[name_key(name.name)] = entity_id
            else:
                gone += 1
        if unknown:
            self._plan.unusable.append(f"{unknown} names are said to mean what they were not asked about")
        if gone:
            self._plan.unusable.append(f"{gone} names mean entities that were erased meanwhile")
        self._entities = self._entities.with_names(self._plan.resolved_names)

    # One candidate

    def _decide(self, index: int, candidate: ValidatedCandidate, decision: Decision) -> None:
        known = self._facts_of_decision(decision)
        if decision.action is ActionKind.IGNORE:
            self._veto(index, "insert", f"known already: {shorten_reason(decision.reason)}")
        elif decision.action is ActionKind.DELETE:
            self._veto(index, "delete", "only what the user takes back is deleted", is_saved=True)
            self._insert(index, candidate)
        elif decision.action is ActionKind.INSERT:
            self._insert(index, candidate, by_rules=False)
        elif decision.action is ActionKind.REINFORCE:
            self._reinforce(index, candidate, known)
        else:
            self._supersede(index, candidate, decision, known)

    def _facts_of_decision(self, decision: Decision) -> list[Fact]:
        """Return the facts that a decision names; numbers that the prompt did not show are ignored."""
        related = self._linking.related
        ids = [related[number - 1] for number in decision.known if 1 <= number <= len(related)]
        return [self._facts[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in self._facts]

    def _insert(self, index: int, candidate: ValidatedCandidate, *, by_rules: bool = True) -> None:
        """Save a candidate; with `by_rules` it may replace a competing value, as no model said that both are true."""
        memory = candidate.memory
        if immutable := self._find_immutable_repetition(candidate):
            self._veto(index, "insert", "it is immutable and says the same", immutable.memory_id)
            return
        if memory.single_valued and (competing := self._competing_facts(candidate)):
            may_replace = not any(fact.immutable for fact in competing) and (
                by_rules or all(_is_disjoint_in_time(candidate, fact) for fact in competing)
            )
            start = candidate.effective_start.astimezone(UTC)
            memory = memory.model_copy(update={"single_valued": may_replace, "valid_at": start})
        self._plan.saves.append(PlannedSave(index, memory))
        self._note_replaced_values(memory, candidate)

    def _find_immutable_repetition(self, candidate: ValidatedCandidate) -> Fact | None:
        """Return an immutable fact that says the same and would have to end where the candidate starts."""
        start = candidate.memory.valid_at
        if start is None:
            return None
        return next(
            (
                fact
                for fact in self._facts.values()
                if fact.immutable
                and fact.effective_start < start < fact.valid_to
                and repeats(candidate, fact, self._entities)
            ),
            None,
        )

    def _note_replaced_values(self, memory: MemoryIn, candidate: ValidatedCandidate) -> None:
        """Remember which facts a single-valued statement ends on its own, so that no other statement ends them too."""
        if not memory.single_valued:
            return
        start = memory.valid_at or candidate.sent_at
        self._ended_ids |= {
            fact.memory_id
            for fact in self._competing_facts(candidate)
            if fact.status is MemoryStatus.ACTIVE and fact.effective_start <= start < fact.valid_to
        }

    def _competing_facts(self, candidate: ValidatedCandidate) -> list[Fact]:
        """Return the other values of the candidate's subject and predicate that were true at some time."""
        return [
            fact
            for fact in self._facts.values()
            if has_same_slot(candidate, fact, self._entities)
            and not fact.is_never_valid
            and not repeats(candidate, fact, self._entities)
        ]

    def _reinforce(self, index: int, candidate: ValidatedCandidate, known: Sequence[Fact]) -> None:
        """Save the content of a known memory again; a veto says whether the candidate is saved instead."""
        fact = next((fact for fact in known if may_repeat(candidate, fact, self._entities)), None)
        if fact is None:
            reason = "it is about another subject" if known else "no known memory was named"
            self._veto(index, "reinforce", reason, known[0].memory_id if known else None, is_saved=True)
            return self._insert(index, candidate)
        if fact.memory_id in self._ended_ids:
            return self._veto(index, "reinforce", "another statement ends it", fact.memory_id)
        if fact.immutable:
            return self._veto(index, "reinforce", "it is immutable and says the same", fact.memory_id)
        if fact.status is not MemoryStatus.ACTIVE:
            self._veto(index, "reinforce", "it had ended already", fact.memory_id, is_saved=True)
            return self._insert(index, candidate)
        again = candidate.memory.model_copy(
            update={
                "content": fact.content,
                "subject": self._entity_input(fact.subject_id),
                "predicate": fact.predicate,
                "object": None,
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

    # What ends

    def _find_ended_state(self, candidate: ValidatedCandidate, decision: Decision | None) -> Fact | None:
        """Return the known state of which a candidate only states the end, which then needs no second memory.

        The decision names it as repeated; or the candidate is the same state, which the decision names as superseded or
        which is worded like it.
        """
        if candidate.retracts:
            return None
        action = decision.action if decision else None
        if decision and action in (ActionKind.SUPERSEDE, ActionKind.REINFORCE):
            named = self._facts_of_decision(decision)
            known = named if len(named) == 1 else []
        else:
            known = [fact for fact in self._facts.values() if has_same_wording(candidate, fact)]
        if action is ActionKind.REINFORCE:  # that both say the same is the model's judgement, whatever they are made of
            known = [fact for fact in known if may_repeat(candidate, fact, self._entities)]
        else:
            known = [fact for fact in known if is_same_state(candidate, fact, self._entities)]
        ended = {fact.memory_id: fact for fact in known if adds_an_end(candidate, fact)}
        return next(iter(ended.values())) if len(ended) == 1 else None

    def _end(self, index: int, candidate: ValidatedCandidate, decision: Decision | None, fact: Fact) -> None:
        end = candidate.memory.invalid_at
        assert end is not None
        if reason := self._find_veto(candidate, fact, None):
            self._veto(index, "end", reason, fact.memory_id, is_saved=True)
            return self._insert(index, candidate, by_rules=False)
        if self._is_less_trusted(candidate, fact):
            if has_same_wording(candidate, fact):
                return self._veto(index, "end", "it is of a more trusted source", fact.memory_id)
            contesting = candidate.memory.model_copy(update={"supersedes": [fact.memory_id]})
            self._plan.saves.append(PlannedSave(index, contesting))
            return None
        self._ended_ids.add(fact.memory_id)
        self._facts[fact.memory_id] = replace(fact, invalid_at=end)
        stated = str(candidate.memory.metadata[STATED_END_KEY])
        reason = f"its end was stated: {shorten_reason(decision.reason) if decision else 'the same words'}"
        self._plan.ends.append(PlannedEnd(index, fact.memory_id, end, stated, reason))
        return None

    def _supersede(self, index: int, candidate: ValidatedCandidate, decision: Decision, known: Sequence[Fact]) -> None:
        if immutable := self._find_immutable_repetition(candidate):
            self._veto(index, "supersede", "it is immutable and says the same", immutable.memory_id)
            return
        zone = candidate.sent_at.tzinfo
        assert zone is not None
        stated_end = parse_local_date(decision.ended_at, zone)
        stated = candidate.memory.valid_at if candidate.is_dated else stated_end
        if not known:
            self._veto(index, "supersede", "no known memory was named", is_saved=True)
        superseded = [fact for fact in known if self._may_supersede(index, candidate, fact, stated)]
        memory = candidate.memory
        if superseded:
            memory = self._superseding_memory(candidate, decision, stated_end, superseded)
        # What was vetoed must not end all the same, as a competing value of a single-valued statement.
        kept = [fact for fact in self._competing_facts(candidate) if fact not in superseded]
        if memory.single_valued and any(
            fact.immutable or (fact in known and not _is_disjoint_in_time(candidate, fact)) for fact in kept
        ):
            memory = memory.model_copy(update={"single_valued": False})
        ends = {fact.memory_id: end for fact in superseded if (end := end_of_superseded(candidate, fact, stated_end))}
        reason = f"superseded: {shorten_reason(decision.reason)}"
        self._plan.saves.append(PlannedSave(index, memory, reason, ends=ends))
        self._note_replaced_values(memory, candidate)
        if len(superseded) == 1 and not self._is_less_trusted(candidate, superseded[0]):
            self._save_remainder(index, candidate, decision, superseded[0])

    def _superseding_memory(
        self, candidate: ValidatedCandidate, decision: Decision, stated_end: datetime | None, superseded: Sequence[Fact]
    ) -> MemoryIn:
        """Return the candidate as the memory that supersedes facts, with its start.

        Without a stated start it starts at the stated end of what it replaces. Where that is still to come, only the
        next value of the same relation starts then: a mere announcement holds from its message.
        """
        memory = candidate.memory
        start, metadata = memory.valid_at, memory.metadata
        if not candidate.is_dated:
            starts_later = stated_end is not None and stated_end > candidate.sent_at
            follows = any(has_same_slot(candidate, fact, self._entities) for fact in superseded)
            takes_stated_end = stated_end is not None and (not starts_later or (follows and not memory.invalid_at))
            start = stated_end if takes_stated_end else candidate.sent_at
            if takes_stated_end:
                metadata = {**metadata, STATED_START_KEY: decision.ended_at}
        assert start is not None
        ids = [fact.memory_id for fact in superseded]
        return memory.model_copy(update={"supersedes": ids, "valid_at": start.astimezone(UTC), "metadata": metadata})

    def _save_remainder(self, index: int, candidate: ValidatedCandidate, decision: Decision, fact: Fact) -> None:
        """Save the part of a superseded memory that still holds, which has held since that memory did."""
        remaining = (decision.remaining or "").strip()
        said = {content_hash(other.memory.content) for other in self._candidates} | {fact.content_hash}
        if not remaining or content_hash(remaining) in said:
            return
        named = [self._entity_refs[key] for key in fact.entity_ids if key in self._entity_refs]
        memory = make_remainder(remaining, fact, candidate, self._entity_input(fact.subject_id), named)
        self._plan.saves.append(PlannedSave(index, memory, source_kind=fact.trust_kind))

    def _may_supersede(self, index: int, candidate: ValidatedCandidate, fact: Fact, stated: datetime | None) -> bool:
        reason = self._find_veto(candidate, fact, stated)
        if reason:
            self._veto(index, "supersede", reason, fact.memory_id, is_saved=True)
        elif not self._is_less_trusted(candidate, fact):
            self._ended_ids.add(fact.memory_id)
        return reason is None

    def _find_veto(self, candidate: ValidatedCandidate, fact: Fact, stated_start: datetime | None) -> str | None:
        contests = self._is_less_trusted(candidate, fact)
        reason = find_veto(candidate, fact, stated_start, self._entities, self._entity_refs, contests=contests)
        if reason is None and fact.memory_id in self._ended_ids:
            return "another statement ends it"
        if reason is None and len(self._ended_ids) >= MAX_SUPERSESSIONS_PER_WINDOW:
            return f"more than {MAX_SUPERSESSIONS_PER_WINDOW} memories at once"
        return reason

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
            elif self._is_less_trusted(candidate, fact):
                self._veto(index, "delete", "it is of a more trusted source", fact.memory_id)
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

    def _is_less_trusted(self, candidate: ValidatedCandidate, fact: Fact) -> bool:
        return self._order.is_less(candidate.source_kind(self._order), than=fact.trust_kind)

    def _veto(
        self, index: int, action: str, reason: str, memory_id: str | None = None, *, is_saved: bool = False
    ) -> None:
        self._plan.vetoes.append(Veto(index, action, reason, memory_id, is_saved))


def _is_disjoint_in_time(candidate: ValidatedCandidate, fact: Fact) -> bool:
    """Return whether a fact ended before a candidate starts, or a candidate starts or ends before the fact does."""
    starts, ends = candidate.effective_start, candidate.memory.invalid_at
    if ends and fact.valid_at and ends <= fact.valid_at:
        return True
    return fact.valid_to <= starts or (candidate.is_dated and starts < fact.effective_start)
