"""The plan of a batch: the saves and ends that follow from a model's decisions, and the vetoes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from graphmem.ingestion.answers import ActionKind, Decision, PassedPlan, Reconciliation, parse_local_date
from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, Statement
from graphmem.ingestion.effects import (
    adds_an_end,
    end_of_superseded,
    find_veto,
    is_same_state,
    make_remainder,
    may_repeat,
)
from graphmem.ingestion.jobs import MemoryAction, shorten_reason
from graphmem.ingestion.link import (
    LinkingResult,
    has_same_slot,
    has_same_wording,
    repeats,
)
from graphmem.memories.entity import EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import PENDING_TYPES, MemoryIn, MemoryStatus, MemoryType
from graphmem.memories.new_memory import NewMemory
from graphmem.runtime.field_types import content_hash, name_key
from graphmem.tenants.trust import Effect, TrustOrder

MAX_SUPERSESSIONS_PER_BATCH = 12
"""Maximum memories that one batch may supersede or end."""

MAX_DELETIONS_PER_BATCH = 3
"""Maximum memories that one batch may delete."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""A day as written in the answer."""


@dataclass(frozen=True, slots=True)
class End:
    """A memory to end because of the statement at `index`, or to delete because the user took it back.

    `at` is the end in UTC and `stated` the end as stated; without them the memory is deleted. A plan whose day has
    passed ends without a statement.
    """

    index: int | None
    memory_id: str
    reason: str
    at: datetime | None = None
    stated: str = ""


@dataclass(frozen=True, slots=True)
class Veto:
    """An action proposed for a statement but not carried out; `is_saved` means that the statement is saved anyway."""

    index: int
    action: str
    reason: str
    memory_id: str | None = None
    is_saved: bool = False

    def to_action(self, type: MemoryType) -> MemoryAction:
        """Return the action that the job reports, for a statement of `type`."""
        what = f"not to {self.action}" if self.memory_id else f"no {self.action}"
        outcome = "; the new statement is saved next to it" if self.is_saved else ""
        return MemoryAction.refused(type.value, f"{what}: {self.reason}{outcome}", self.memory_id)


@dataclass(slots=True)
class ActionPlan:
    """The actions to carry out, in order, and the vetoes.

    `unusable` are sentences about the parts of the answer that do not fit it or refer to nothing in the prompt.
    `resolved_names` are the ids of the known entities that ambiguous names mean, by name key.
    """

    ends: list[End] = field(default_factory=list)
    saves: list[NewMemory] = field(default_factory=list)
    deletions: list[End] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    resolved_names: dict[str, str] = field(default_factory=dict)


class ActionPlanner:
    """Makes the plan of one batch for the facts as they are now.

    `facts` are the believed versions of the related facts and of those that compete with a single-valued statement, by
    memory id; `entity_refs` are the entities they name, by id. By `order`, a statement never ends or deletes a fact
    from a more trusted source: it is planned as if it did, and saved as contested. With `is_given`, a caller supplied
    the statements.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        linking: LinkingResult,
        facts: Mapping[str, Fact],
        entity_refs: Mapping[str, EntityRef],
        order: TrustOrder,
        *,
        is_given: bool = False,
    ) -> None:
        self._order = order
        self._is_given = is_given
        self._statements = statements
        self._linking = linking
        self._facts = dict(facts)
        self._entity_refs = entity_refs
        self._entities = linking.entities
        self._ended_ids: set[str] = set()
        self._plan = ActionPlan()

    def plan(self, answer: Reconciliation | None) -> ActionPlan:
        """Return what to do with each statement; without an answer, by the rules alone."""
        decisions: dict[int, Decision] = {}
        if answer:
            self._plan.unusable += answer.refused
            self._resolve_ambiguous_names(answer)
            decisions = self._read_decisions(answer)
        for index in sorted(range(len(self._statements)), key=lambda index: self._rank(index, decisions)):
            self._plan_statement(index, self._statements[index], decisions.get(index + 1))
        if answer:
            self._close_passed_plans(answer.passed)
        return self._plan

    def _rank(self, index: int, decisions: Mapping[int, Decision]) -> int:
        """Return a statement's turn: stated ends, then statements that end memories, then possible reinforcements."""
        decision = decisions.get(index + 1)
        if self._find_ended_state(self._statements[index], decision):
            return 0
        return 1 if decision and decision.action in (ActionKind.SUPERSEDE, ActionKind.DELETE) else 2

    def _plan_statement(self, index: int, statement: Statement, decision: Decision | None) -> None:
        if statement.retracts:
            self._delete(index, statement, decision)
        elif state := self._find_ended_state(statement, decision):
            self._end(index, statement, decision, state)
        elif decision is None:
            self._insert(index, statement)
        else:
            self._decide(index, statement, decision)

    def _read_decisions(self, answer: Reconciliation) -> dict[int, Decision]:
        """Return the decisions by statement number; the last of several about one statement counts."""
        decisions = {decision.new: decision for decision in answer.decisions}
        usable = {number: decision for number, decision in decisions.items() if 1 <= number <= len(self._statements)}
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

    # One statement

    def _decide(self, index: int, statement: Statement, decision: Decision) -> None:
        known = self._facts_of_decision(decision)
        if decision.action is ActionKind.IGNORE:
            self._veto(index, "insert", f"known already: {shorten_reason(decision.reason)}")
        elif decision.action is ActionKind.DELETE:
            self._veto(index, "delete", "only statements that the user retracts are deleted", is_saved=True)
            self._insert(index, statement)
        elif decision.action is ActionKind.INSERT:
            self._insert(index, statement, by_rules=False)
        elif decision.action is ActionKind.REINFORCE:
            self._reinforce(index, statement, known)
        elif decision.action is ActionKind.CONTEST:
            self._contest(index, statement, known)
        else:
            self._supersede(index, statement, decision, known)

    def _facts_of_decision(self, decision: Decision) -> list[Fact]:
        """Return the facts that a decision names; numbers not shown in the prompt are ignored."""
        facts = (self._find_shown(number) for number in dict.fromkeys(decision.known))
        return [fact for fact in facts if fact]

    def _find_shown(self, number: int) -> Fact | None:
        """Return the fact shown in the prompt under a number."""
        related = self._linking.related
        return self._facts.get(related[number - 1]) if 1 <= number <= len(related) else None

    def _insert(self, index: int, statement: Statement, *, by_rules: bool = True) -> None:
        """Save a statement; with `by_rules` it may replace a competing value, as no model said that both are true."""
        memory = statement.memory
        if immutable := self._find_immutable_repetition(statement):
            self._veto(index, "insert", "it is immutable and says the same", immutable.memory_id)
            return
        if memory.single_valued and (competing := self._competing_facts(statement)):
            may_replace = not any(fact.immutable for fact in competing) and (
                by_rules or all(_is_disjoint_in_time(statement, fact) for fact in competing)
            )
            start = statement.effective_start.astimezone(UTC)
            memory = memory.model_copy(update={"single_valued": may_replace, "valid_at": start})
        self._save(index, memory)
        self._note_replaced_values(memory, statement)

    def _save(self, index: int, memory: MemoryIn, **changes: Any) -> None:
        """Save a memory for a statement, with its source and fields, except for those in `changes`."""
        statement = self._statements[index]
        planned = NewMemory(
            memory,
            source_kind=statement.source_kind(self._order),
            given=self._stated_fields(statement),
            index=index,
        )
        self._plan.saves.append(replace(planned, **changes))

    def _stated_fields(self, statement: Statement, *, means_known: bool = False) -> set[str]:
        """Return the fields that a repetition updates with new values: those that somebody stated.

        For a statement given by a caller, these are the fields given, or only its tags and metadata if it merely means
        the same as a known fact. For a statement in messages, these are its times: extraction chose its type, tags,
        expiry and metadata.
        """
        if self._is_given:
            given = set(statement.memory.model_fields_set)
            return given & {"tags", "metadata"} if means_known else given
        return {"invalid_at", *(["valid_at"] if statement.is_dated else [])}

    def _find_immutable_repetition(self, statement: Statement) -> Fact | None:
        """Return an immutable fact that says the same but would have to end where the statement starts."""
        start = statement.memory.valid_at
        if start is None:
            return None
        return next(
            (
                fact
                for fact in self._facts.values()
                if fact.immutable
                and fact.effective_start < start < fact.valid_to
                and repeats(statement, fact, self._entities)
            ),
            None,
        )

    def _note_replaced_values(self, memory: MemoryIn, statement: Statement) -> None:
        """Record the facts that a single-valued statement already ends, so that no other statement ends them too."""
        if not memory.single_valued:
            return
        start = memory.valid_at or statement.sent_at
        self._ended_ids |= {
            fact.memory_id
            for fact in self._competing_facts(statement)
            if fact.status is MemoryStatus.ACTIVE and fact.effective_start <= start < fact.valid_to
        }

    def _competing_facts(self, statement: Statement) -> list[Fact]:
        """Return the other values of the statement's subject and predicate that were true at some time."""
        return [
            fact
            for fact in self._facts.values()
            if has_same_slot(statement, fact, self._entities)
            and not fact.is_never_valid
            and not repeats(statement, fact, self._entities)
        ]

    def _reinforce(self, index: int, statement: Statement, known: Sequence[Fact]) -> None:
        """Save the content of a known memory again; a veto says whether the statement is saved instead."""
        fact = next((fact for fact in known if may_repeat(statement, fact, self._entities)), None)
        if fact is None:
            reason = "it is about another subject" if known else "no known memory was named"
            self._veto(index, "reinforce", reason, known[0].memory_id if known else None, is_saved=True)
            return self._insert(index, statement)
        if fact.memory_id in self._ended_ids:
            return self._veto(index, "reinforce", "another statement ends it", fact.memory_id)
        if fact.immutable:
            return self._veto(index, "reinforce", "it is immutable and says the same", fact.memory_id)
        if fact.status is not MemoryStatus.ACTIVE:
            self._veto(index, "reinforce", "it had ended already", fact.memory_id, is_saved=True)
            return self._insert(index, statement)
        again = statement.memory.model_copy(
            update={
                "content": fact.content,
                "subject": self._entity_input(fact.subject_id),
                "predicate": fact.predicate,
                "object": None,
                "valid_at": fact.valid_at,
                "invalid_at": None,
                "single_valued": False,
                "supersedes": [],
                "content_data": None,
                "expires_at": None,
            }
        )
        self._save(index, again, given=self._stated_fields(statement, means_known=True))
        return None

    def _entity_input(self, entity_id: str) -> EntityIn | None:
        return None if entity_id == self._entities.user else EntityIn(name=self._entity_refs[entity_id].name)

    # Ends

    def _find_ended_state(self, statement: Statement, decision: Decision | None) -> Fact | None:
        """Return the known state whose end a statement merely states, which makes a second memory unnecessary.

        Either the decision names it as repeated, or the statement is the same state, and the decision names it as
        superseded or their wording is the same.
        """
        if statement.retracts:
            return None
        action = decision.action if decision else None
        if decision and action in (ActionKind.SUPERSEDE, ActionKind.REINFORCE):
            named = self._facts_of_decision(decision)
            known = named if len(named) == 1 else []
        else:
            known = [fact for fact in self._facts.values() if has_same_wording(statement, fact)]
        if action is ActionKind.REINFORCE:  # whether both say the same is the model's judgement, whatever their fields
            known = [fact for fact in known if may_repeat(statement, fact, self._entities)]
        else:
            known = [fact for fact in known if is_same_state(statement, fact, self._entities)]
        ended = {fact.memory_id: fact for fact in known if adds_an_end(statement, fact)}
        return next(iter(ended.values())) if len(ended) == 1 else None

    def _end(self, index: int, statement: Statement, decision: Decision | None, fact: Fact) -> None:
        end = statement.memory.invalid_at
        assert end is not None
        if reason := self._find_veto(statement, fact, None):
            self._veto(index, "end", reason, fact.memory_id, is_saved=True)
            return self._insert(index, statement, by_rules=False)
        if self._is_less_trusted(statement, fact):
            if has_same_wording(statement, fact):
                return self._veto(index, "end", "it is of a more trusted source", fact.memory_id)
            contesting = statement.memory.model_copy(update={"supersedes": [fact.memory_id]})
            self._save(index, contesting)
            return None
        self._ended_ids.add(fact.memory_id)
        self._facts[fact.memory_id] = replace(fact, invalid_at=end)
        stated = str(statement.memory.metadata[STATED_END_KEY])
        reason = f"its end was stated: {shorten_reason(decision.reason) if decision else 'the same words'}"
        self._plan.ends.append(End(index, fact.memory_id, reason, end, stated))
        return None

    def _supersede(self, index: int, statement: Statement, decision: Decision, known: Sequence[Fact]) -> None:
        if immutable := self._find_immutable_repetition(statement):
            self._veto(index, "supersede", "it is immutable and says the same", immutable.memory_id)
            return
        zone = statement.sent_at.tzinfo
        assert zone is not None
        stated_end = parse_local_date(decision.ended_at, zone)
        stated = statement.memory.valid_at if statement.is_dated else stated_end
        if not known:
            self._veto(index, "supersede", "no known memory was named", is_saved=True)
        superseded = [fact for fact in known if self._may_supersede(index, statement, fact, stated)]
        memory = statement.memory
        if superseded:
            memory = self._superseding_memory(statement, decision, stated_end, superseded)
        # A vetoed end must not happen anyway, as the competing value of a single-valued statement.
        kept = [fact for fact in self._competing_facts(statement) if fact not in superseded]
        if memory.single_valued and any(
            fact.immutable or (fact in known and not _is_disjoint_in_time(statement, fact)) for fact in kept
        ):
            memory = memory.model_copy(update={"single_valued": False})
        ends = {fact.memory_id: end for fact in superseded if (end := end_of_superseded(statement, fact, stated_end))}
        reason = f"superseded: {shorten_reason(decision.reason)}"
        self._save(index, memory, reason=reason, ends=ends)
        self._note_replaced_values(memory, statement)
        for remainder in decision.remaining:
            fact = self._find_shown(remainder.known)
            if fact in superseded and not self._is_less_trusted(statement, fact):
                self._save_remainder(index, statement, remainder.content, fact)

    def _superseding_memory(
        self, statement: Statement, decision: Decision, stated_end: datetime | None, superseded: Sequence[Fact]
    ) -> MemoryIn:
        """Return the statement as the memory that supersedes facts, with its start.

        Without a stated start, it starts at the stated end of the facts it replaces. If that lies ahead, only the next
        value of the same relation starts then; a mere announcement holds from its message.
        """
        memory = statement.memory
        start, metadata = memory.valid_at, memory.metadata
        if not statement.is_dated:
            starts_later = stated_end is not None and stated_end > statement.sent_at
            follows = any(has_same_slot(statement, fact, self._entities) for fact in superseded)
            takes_stated_end = stated_end is not None and (not starts_later or (follows and not memory.invalid_at))
            start = stated_end if takes_stated_end else statement.sent_at
            if takes_stated_end:
                metadata = {**metadata, STATED_START_KEY: decision.ended_at}
        assert start is not None
        ids = [fact.memory_id for fact in superseded]
        return memory.model_copy(update={"supersedes": ids, "valid_at": start.astimezone(UTC), "metadata": metadata})

    def _save_remainder(self, index: int, statement: Statement, remaining: str, fact: Fact) -> None:
        """Save the part of a superseded memory that still holds, with the memory's start."""
        remaining = remaining.strip()
        said = {content_hash(other.memory.content) for other in self._statements} | {fact.content_hash}
        if not remaining or content_hash(remaining) in said:
            return
        named = [self._entity_refs[key] for key in fact.entity_ids if key in self._entity_refs]
        memory = make_remainder(remaining, fact, statement, self._entity_input(fact.subject_id), named)
        self._save(index, memory, source_kind=fact.trust_kind)

    def _contest(self, index: int, statement: Statement, known: Sequence[Fact]) -> None:
        """Save a statement as contested next to the facts it contradicts; neither ends the other."""
        contested: list[str] = []
        for fact in known:
            if reason := self._find_veto(statement, fact, None, contests=True):
                self._veto(index, "contest", reason, fact.memory_id, is_saved=True)
            else:
                contested.append(fact.memory_id)
        if not known:
            self._veto(index, "contest", "no known memory was named", is_saved=True)
        if not contested:
            return self._insert(index, statement, by_rules=False)
        self._save(index, statement.memory, contests=contested)
        return None

    def _close_passed_plans(self, passed: Sequence[PassedPlan]) -> None:
        """End the plans whose day has passed at the end of that day, unless a statement has ended them."""
        last = max(self._statements, key=lambda statement: statement.sent_at)
        assert last.sent_at.tzinfo
        for plan in passed:
            fact, day = self._find_shown(plan.known), parse_local_date(plan.day, last.sent_at.tzinfo)
            if fact is None or day is None or _DAY.fullmatch(plan.day) is None:
                self._plan.unusable.append("a plan whose day has passed has no number or no day")
                continue
            end = day + timedelta(days=1)
            is_open = fact.status is MemoryStatus.ACTIVE and fact.invalid_at is None and not fact.immutable
            is_passed = end <= last.sent_at and (fact.valid_at is None or fact.valid_at < end)
            if fact.type not in PENDING_TYPES or not is_open or not is_passed or fact.memory_id in self._ended_ids:
                continue
            self._ended_ids.add(fact.memory_id)
            self._plan.ends.append(
                End(None, fact.memory_id, "its day has passed", end.astimezone(UTC), f"{end:%Y-%m-%d}")
            )

    def _may_supersede(self, index: int, statement: Statement, fact: Fact, stated: datetime | None) -> bool:
        reason = self._find_veto(statement, fact, stated)
        if reason:
            self._veto(index, "supersede", reason, fact.memory_id, is_saved=True)
        elif not self._is_less_trusted(statement, fact):
            self._ended_ids.add(fact.memory_id)
        return reason is None

    def _find_veto(
        self, statement: Statement, fact: Fact, stated_start: datetime | None, *, contests: bool = False
    ) -> str | None:
        contests = contests or self._is_less_trusted(statement, fact)
        reason = find_veto(statement, fact, stated_start, self._entities, self._entity_refs, contests=contests)
        if reason is None and fact.memory_id in self._ended_ids:
            return "another statement ends it"
        if reason is None and len(self._ended_ids) >= MAX_SUPERSESSIONS_PER_BATCH:
            return f"more than {MAX_SUPERSESSIONS_PER_BATCH} memories at once"
        return reason

    def _delete(self, index: int, statement: Statement, decision: Decision | None) -> None:
        named = self._facts_of_decision(decision) if decision and decision.action is ActionKind.DELETE else []
        related = {self._linking.related[position] for position in self._linking.related_by_statement[index]}
        for fact in named:
            if fact.memory_id not in related:
                self._veto(index, "delete", "it is not related to what was taken back", fact.memory_id)
            elif fact.immutable:
                self._veto(index, "delete", "it is immutable", fact.memory_id)
            elif not statement.is_from_user:
                self._veto(index, "delete", "the user did not say so", fact.memory_id)
            elif self._is_less_trusted(statement, fact):
                self._veto(index, "delete", "it is of a more trusted source", fact.memory_id)
            elif fact.memory_id in self._ended_ids:
                self._veto(index, "delete", "another statement ends it", fact.memory_id)
            elif len(self._plan.deletions) >= MAX_DELETIONS_PER_BATCH:
                self._veto(index, "delete", f"more than {MAX_DELETIONS_PER_BATCH} memories at once", fact.memory_id)
            else:
                self._ended_ids.add(fact.memory_id)
                reason = f"taken back: {shorten_reason(decision.reason if decision else '')}"
                self._plan.deletions.append(End(index, fact.memory_id, reason))
        if not named:
            self._veto(index, "delete", "nothing known says what was taken back")

    def _is_less_trusted(self, statement: Statement, fact: Fact) -> bool:
        return not self._order.permits(Effect.END, statement.source_kind(self._order), fact.trust_kind)

    def _veto(
        self, index: int, action: str, reason: str, memory_id: str | None = None, *, is_saved: bool = False
    ) -> None:
        self._plan.vetoes.append(Veto(index, action, reason, memory_id, is_saved))


def _is_disjoint_in_time(statement: Statement, fact: Fact) -> bool:
    """Return whether a fact ended before a statement starts, or a statement starts or ends before the fact does."""
    starts, ends = statement.effective_start, statement.memory.invalid_at
    if ends and fact.valid_at and ends <= fact.valid_at:
        return True
    return fact.valid_to <= starts or (statement.is_dated and starts < fact.effective_start)
