"""The guard between what a model decides and what is done: numbers become memories, and some acts are vetoed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from graphmem.domain.actions import ActionKind, Decision, Reconciliation
from graphmem.domain.entity import PERSON, EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryIn, MemoryType, Status
from graphmem.domain.text import content_hash, name_key
from graphmem.ingestion.claims import EXTRACTED, SINCE, Claim
from graphmem.ingestion.dates import read_date
from graphmem.ingestion.link import Linked, keys_of, subject_key

MAX_CLOSINGS = 12
"""Most memories one window may supersede."""

MAX_DELETIONS = 3
"""Most memories one window may delete."""

MAX_REASON = 200

_CLAIMS_ABOUT_THE_WORLD = frozenset(
    {MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.PLAN, MemoryType.OPEN_LOOP, MemoryType.BEHAVIORAL_PATTERN}
)


@dataclass(frozen=True, slots=True)
class Save:
    """A statement to be saved; it closes what `memory.supersedes` names, for `reason`. `claim` is its place.

    `again` marks one that repeats a known memory in its own words, to reinforce it.
    """

    claim: int
    memory: MemoryIn
    reason: str = "superseded"
    again: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """A memory to be ended because the user took it back."""

    claim: int
    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Veto:
    """Something that was proposed and is not done; `claim` is the statement it was proposed for."""

    claim: int
    action: str
    reason: str
    memory_id: str | None = None


@dataclass(slots=True)
class Plan:
    """What is to be done, in order, and what was refused."""

    saves: list[Save] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    vetoes: list[Veto] = field(default_factory=list)
    same: dict[str, str] = field(default_factory=dict)
    """Entity ids by the name keys that were found to mean known entities."""


class Planner:
    """Makes the plan of one window over the facts as they are now.

    `facts` holds the believed versions of what is related and of what shares a single-valued place; `names` the
    entities they touch, by id.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        linked: Linked,
        facts: Mapping[str, Fact],
        names: Mapping[str, EntityRef],
    ) -> None:
        self._claims = claims
        self._linked = linked
        self._facts = facts
        self._names = names
        self._entities = dict(linked.entities)
        self._closed: set[str] = set()
        self._plan = Plan()

    def plan(self, answer: Reconciliation | None) -> Plan:
        """Return what to do with each claim; without an answer, what the rules alone say."""
        if answer:
            self._settle_names(answer)
        decisions = {decision.new: decision for decision in answer.decisions} if answer else {}
        # What ends a memory comes first, so that nothing else relies on one that is about to end.
        ending = (ActionKind.SUPERSEDE, ActionKind.DELETE)
        order = sorted(
            range(len(self._claims)), key=lambda at: at + 1 not in decisions or decisions[at + 1].action not in ending
        )
        for index in order:
            claim, decision = self._claims[index], decisions.get(index + 1)
            if claim.retracts:
                self._delete(index, claim, decision)
            elif decision is None:
                self._insert(index, claim)
            else:
                self._decide(index, claim, decision)
        return self._plan

    def _settle_names(self, answer: Reconciliation) -> None:
        known = self._linked.known
        for told in answer.same_entities:
            if not (1 <= told.name <= len(self._linked.doubts)) or told.known is None:
                continue
            doubt = self._linked.doubts[told.name - 1]
            meant = known[told.known - 1].id if 1 <= told.known <= len(known) else None
            if meant in doubt.options:
                self._plan.same[name_key(doubt.name)] = self._entities[name_key(doubt.name)] = str(meant)

    # One claim

    def _decide(self, index: int, claim: Claim, decision: Decision) -> None:
        known = self._meant(decision)
        if decision.action is ActionKind.IGNORE:
            self._veto(index, "insert", f"known already: {_told(decision.reason)}")
        elif decision.action is ActionKind.REINFORCE:
            self._reinforce(index, claim, known)
        elif decision.action is ActionKind.SUPERSEDE:
            self._supersede(index, claim, decision, known)
        elif decision.action is ActionKind.DELETE:
            self._veto(index, "delete", "only what the user takes back is deleted")
            self._insert(index, claim)
        else:
            self._insert(index, claim, alone=False)

    def _meant(self, decision: Decision) -> list[Fact]:
        """Return the facts behind the numbers of a decision; numbers that were not shown are ignored."""
        related = self._linked.related
        ids = [related[number - 1] for number in decision.known if 1 <= number <= len(related)]
        return [self._facts[each] for each in dict.fromkeys(ids) if each in self._facts]

    def _insert(self, index: int, claim: Claim, *, alone: bool = True) -> None:
        """Save a claim; `alone` when no model said that it holds beside what is known."""
        memory = claim.memory
        if memory.single_valued and not self._may_take_place(claim, alone):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(Save(index, memory))

    def _may_take_place(self, claim: Claim, alone: bool) -> bool:
        rivals = self._rivals(claim)
        if any(fact.immutable for fact in rivals):
            return False
        return alone or all(_apart(claim, fact) for fact in rivals)

    def _rivals(self, claim: Claim) -> list[Fact]:
        subject = self._entities.get(subject_key(claim))
        same = [
            fact
            for fact in self._facts.values()
            if fact.subject_id == subject and fact.predicate == claim.memory.predicate and not fact.never_valid
        ]
        return [fact for fact in same if fact.content_hash != content_hash(claim.memory.content)]

    def _reinforce(self, index: int, claim: Claim, known: Sequence[Fact]) -> None:
        fact = next((each for each in known if each.subject_id == self._entities.get(subject_key(claim))), None)
        if fact and fact.memory_id in self._closed:
            return self._veto(index, "reinforce", "another statement ends it", fact.memory_id)
        if fact is None or fact.status is not Status.ACTIVE or fact.immutable:
            return self._insert(index, claim)
        again = claim.memory.model_copy(
            update={
                "content": fact.content,
                "subject": self._as_named(fact.subject_id),
                "predicate": fact.predicate,
                "valid_at": fact.valid_at,
                "invalid_at": None,
                "single_valued": False,
                "supersedes": [],
            }
        )
        self._plan.saves.append(Save(index, again, again=True))
        return None

    def _as_named(self, entity_id: str) -> EntityIn | None:
        if entity_id == self._linked.entities.get(""):
            return None
        return EntityIn(name=self._names[entity_id].name)

    def _supersede(self, index: int, claim: Claim, decision: Decision, known: Sequence[Fact]) -> None:
        zone = claim.told_at.tzinfo
        assert zone is not None
        told = claim.memory.valid_at if claim.dated else read_date(decision.ended_at, zone)
        starts = (told or claim.told_at).astimezone(UTC)
        closing = [fact for fact in known if self._closable(index, claim, fact, told)]
        memory = claim.memory
        if closing:
            metadata = {**memory.metadata, **({SINCE: decision.ended_at} if told and not claim.dated else {})}
            memory = memory.model_copy(
                update={"supersedes": [fact.memory_id for fact in closing], "valid_at": starts, "metadata": metadata}
            )
        others = [fact for fact in self._rivals(claim) if fact not in closing]
        if memory.single_valued and any(fact.immutable for fact in others):
            memory = memory.model_copy(update={"single_valued": False})
        self._plan.saves.append(Save(index, memory, f"superseded: {_told(decision.reason)}"))

    def _closable(self, index: int, claim: Claim, fact: Fact, told: datetime | None) -> bool:
        reason = self._against_closing(claim, fact, told)
        if reason:
            self._veto(index, "supersede", reason, fact.memory_id)
        else:
            self._closed.add(fact.memory_id)
        return reason is None

    def _against_closing(self, claim: Claim, fact: Fact, told: datetime | None) -> str | None:
        """Return why a claim may not close a fact, or None."""
        if not self._same_matter(claim, fact):
            return "it is about another subject"
        if fact.immutable:
            return "it is immutable"
        if not claim.by_user:
            return "the assistant alone said so"
        if claim.memory.type not in _CLAIMS_ABOUT_THE_WORLD and claim.memory.type is not fact.type:
            return f"a {claim.memory.type.value} does not end a {fact.type.value}"
        if fact.status is not Status.ACTIVE:
            return "it had ended already"
        if told and fact.valid_at and told < fact.valid_at and start_is_told(fact):
            return "it began later"
        if claim.memory.invalid_at and fact.valid_at and claim.memory.invalid_at <= fact.valid_at:
            return "the new statement ended before it"
        if fact.memory_id in self._closed:
            return "another statement ends it"
        if len(self._closed) >= MAX_CLOSINGS:
            return f"more than {MAX_CLOSINGS} memories at once"
        return None

    def _same_matter(self, claim: Claim, fact: Fact) -> bool:
        """Whether a claim has the subject of a fact, or one is about a thing, not a person, that the other names."""
        subject = self._entities.get(subject_key(claim))
        if subject == fact.subject_id:
            return True
        if subject is None:
            return False
        named = {self._entities.get(key) for key in keys_of(claim)}
        known = self._names.get(fact.subject_id)
        if known and known.type != PERSON and fact.subject_id in named:
            return True
        told = claim.memory.subject
        return told is not None and told.type != PERSON and subject in fact.entity_ids

    def _delete(self, index: int, claim: Claim, decision: Decision | None) -> None:
        meant = self._meant(decision) if decision and decision.action is ActionKind.DELETE else []
        near = {self._linked.related[place] for place in self._linked.near[index]}
        for fact in meant:
            if fact.memory_id not in near:
                self._veto(index, "delete", "it is not related to what was taken back", fact.memory_id)
            elif fact.immutable:
                self._veto(index, "delete", "it is immutable", fact.memory_id)
            elif not claim.by_user:
                self._veto(index, "delete", "the user did not say so", fact.memory_id)
            elif fact.memory_id in self._closed:
                self._veto(index, "delete", "another statement ends it", fact.memory_id)
            elif len(self._plan.deletions) >= MAX_DELETIONS:
                self._veto(index, "delete", f"more than {MAX_DELETIONS} memories at once", fact.memory_id)
            else:
                self._closed.add(fact.memory_id)
                reason = f"taken back: {_told(decision.reason if decision else '')}"
                self._plan.deletions.append(Deletion(index, fact.memory_id, reason))
        if not meant:
            self._veto(index, "delete", "nothing known says what was taken back")

    def _veto(self, index: int, action: str, reason: str, memory_id: str | None = None) -> None:
        self._plan.vetoes.append(Veto(index, action, reason, memory_id))


def start_is_told(fact: Fact) -> bool:
    """Return whether a fact's start was told, rather than taken from the message that stated it."""
    return fact.source_kind != EXTRACTED or SINCE in fact.metadata


def _apart(claim: Claim, fact: Fact) -> bool:
    """Whether a claim told with its times lies before a fact, or the fact ended before the claim."""
    starts = claim.memory.valid_at or claim.told_at
    return fact.valid_to <= starts or (claim.dated and starts < fact.effective_start)


def _told(reason: str) -> str:
    return " ".join(reason.split())[:MAX_REASON]


def with_names(memory: MemoryIn, proper: Mapping[str, str]) -> MemoryIn:
    """Return a memory whose entities go by the names of the known ones they mean, by name key."""

    def named(entity: EntityIn | None) -> EntityIn | None:
        if entity is None or name_key(entity.name) not in proper:
            return entity
        return EntityIn(name=proper[name_key(entity.name)], type=entity.type)

    entities = [each for entity in memory.entities if (each := named(entity))]
    return memory.model_copy(
        update={"subject": named(memory.subject), "object": named(memory.object), "entities": entities}
    )


def renamed(save: Save, proper: Mapping[str, str]) -> Save:
    """Return a save whose entities go by the names of the known ones they mean."""
    return replace(save, memory=with_names(save.memory, proper))
