"""The rules by which memories change: pure, over the facts one write may touch.

A `Ledger` holds the latest versions of those facts, applies saves, corrections, endings and reverts in order, and
collects the rows to be written. Nothing it closes is lost: a changed belief ends at the time of the write and its
successor is a new version of the same memory. The rule table is in `graphmem/README.md`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from graphmem.domain.decay import reinforced
from graphmem.domain.fact import Fact
from graphmem.domain.formats.told import Told
from graphmem.domain.memory import Action, Status
from graphmem.errors import Conflict, ImmutableMemory, InvalidInput, NotFound, VersionConflict

ONE_TICK = timedelta(microseconds=1)

MERGED = "merged"
"""Why a memory ended that a consolidation run merged into another one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a save did: the fact it left current or placed in history, and the memories it closed."""

    action: Action
    fact: Fact
    superseded: tuple[str, ...] = ()
    reason: str | None = None


class Ledger:
    """The facts one write may touch and what becomes of them.

    `facts` are the latest believed versions; `now` is later than any time the user's facts were written. Every change
    takes the next microsecond, so that no version is believed for an empty interval.
    """

    def __init__(self, facts: Iterable[Fact], now: datetime, actor: str | None = None) -> None:
        self._latest = {fact.memory_id: fact for fact in facts}
        self._stored = {fact.uuid for fact in self._latest.values()}
        self._now = now
        self._actor = actor
        self.created: dict[str, Fact] = {}
        self.changed: dict[str, Fact] = {}
        self.vector_of: dict[str, str] = {}

    @property
    def now(self) -> datetime:
        """The time of the latest change."""
        return self._now

    # Saving

    def save(self, draft: Fact, supersedes: Iterable[str] = (), reason: str = "superseded") -> Outcome:
        """Place a new statement among the facts; `reason` is told in the history of what it closes.

        Raises NotFound, Conflict or ImmutableMemory where it may not close what it names.
        """
        now = self._tick()
        draft = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._actor)
        targets = [self._closable(memory_id) for memory_id in dict.fromkeys(supersedes)]
        if known := self._same_statement(draft, now):
            known = self._reinforce(known, draft, now)
            closed = self._close_all(
                [fact for fact in targets if fact.memory_id != known.memory_id], known, now, reason
            )
            return Outcome(Action.REINFORCE, known, closed, "the same statement is already known")
        # What is named to be closed is closed in any case: it neither follows the draft nor precedes it.
        rivals = [fact for fact in self._rivals(draft, now) if fact not in targets]
        if draft.valid_at is None and (targets or rivals):
            draft = replace(draft, valid_at=now)
        draft, follower = self._end_before_follower(draft, rivals)
        starts = draft.valid_from
        earlier = [
            fact for fact in rivals if fact.effective_start == starts or fact.effective_start <= starts < fact.valid_to
        ]
        for fact in earlier:
            self._refuse_immutable(fact)
        draft = self._add(draft, None)
        ending = {fact.memory_id: fact for fact in [*targets, *earlier]}.values()
        closed = self._close_all(ending, draft, draft.valid_from, reason)
        if closed:
            draft = self._put(replace(draft, supersedes=closed))
        if closed:
            return Outcome(Action.SUPERSEDE, draft, closed, f"replaced {len(closed)} earlier")
        if follower:
            return Outcome(Action.INSERT, draft, (), f"arrived late: {follower.memory_id} follows it")
        return Outcome(Action.INSERT, draft)

    def bring(self, draft: Fact, told: Told) -> Outcome:
        """Place a statement of another memory with the time that memory knew it; nothing known here is closed by it.

        A belief that ended there ends here: with the end of the statement where that became known, else as deleted.
        """
        now = self._tick()
        began = told.created_at or now
        updated = max(began, told.updated_at or began)
        draft = replace(draft, created_at=began, first_created_at=began, updated_at=updated, actor=self._actor)
        ended = told.expired_at
        if (ended is None or draft.invalid_at) and draft.holds_at(now) and (known := self._same_statement(draft, now)):
            return Outcome(Action.REINFORCE, self._reinforce(known, draft, now), (), "the same statement is known")
        if ended is None or (draft.invalid_at and ended <= began):
            return Outcome(Action.INSERT, self._add(draft, None))
        if draft.invalid_at is None:
            ended = max(ended, began + ONE_TICK)
            gone = replace(draft, expired_at=ended, end_status=Status.DELETED, ended_reason="no longer believed")
            self.created[gone.uuid] = gone
            return Outcome(Action.INSERT, gone)
        open_ended = replace(
            draft, invalid_at=None, claimed_invalid_at=None, expired_at=ended, ended_reason="its end became known"
        )
        self._add(open_ended, None)
        following = replace(draft, uuid=str(uuid.uuid4()), version=2, created_at=ended, updated_at=ended)
        return Outcome(Action.INSERT, self._add(following, open_ended.uuid))

    def _same_statement(self, draft: Fact, now: datetime) -> Fact | None:
        same = [fact for fact in self._latest.values() if fact.identity == draft.identity and not fact.never_valid]
        current = next((fact for fact in same if fact.holds_at(now)), None)
        if current or draft.valid_at is None:
            return current
        return next((fact for fact in same if fact.valid_at == draft.valid_at), None)

    def _rivals(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the facts that may not hold beside `draft`: the same statement, and its single-valued place.

        One that ended before now and has no known start disturbs nobody.
        """
        if draft.valid_at is None and draft.valid_to <= now:
            return []
        return [
            fact
            for fact in self._latest.values()
            if fact.memory_id != draft.memory_id
            and not fact.never_valid
            and (fact.identity == draft.identity or (draft.single_valued and _same_place(fact, draft)))
        ]

    def _end_before_follower(self, draft: Fact, rivals: list[Fact]) -> tuple[Fact, Fact | None]:
        """Close a late arrival at the start of the fact that follows it, which from now on has a known start."""
        later = [fact for fact in rivals if fact.effective_start > draft.valid_from]
        if not later:
            return draft, None
        follower = min(later, key=lambda fact: fact.effective_start)
        start = follower.effective_start
        if follower.valid_at is None and not follower.immutable:
            self._revise(follower, "dated by an earlier value", draft.memory_id, valid_at=start)
        if draft.valid_to <= start:
            return draft, None
        return replace(
            draft,
            invalid_at=start,
            status=Status.SUPERSEDED,
            superseded_by=follower.memory_id,
            ended_reason="followed by a later value when it arrived",
            ended_by=follower.memory_id,
        ), follower

    def _close_all(self, facts: Iterable[Fact], by: Fact, at: datetime, reason: str) -> tuple[str, ...]:
        closed = []
        for fact in facts:
            self._revise(
                fact,
                reason,
                by.memory_id,
                invalid_at=max(at, fact.valid_from),
                status=Status.SUPERSEDED,
                superseded_by=by.memory_id,
                ended_reason=reason,
                ended_by=by.memory_id,
            )
            closed.append(fact.memory_id)
        return tuple(closed)

    def _reinforce(self, known: Fact, draft: Fact, now: datetime) -> Fact:
        strength, confidence = reinforced(known.strength, max(known.confidence, min(draft.confidence, 0.99)))
        return self._put(
            replace(
                known,
                strength=strength,
                confidence=confidence,
                importance=max(known.importance, draft.importance),
                message_ids=tuple(dict.fromkeys([*known.message_ids, *draft.message_ids])),
                episodes=tuple(dict.fromkeys([*known.episodes, *draft.episodes])),
                search_text=_joined(known.search_text, draft.search_text),
                updated_at=now,
            )
        )

    # Changing, ending, undoing

    def amend(self, memory_id: str, changes: dict[str, Any], *, if_version: int | None = None) -> Fact:
        """Make a new version with `changes`, by the names of `Fact`'s fields.

        Raises VersionConflict when `if_version` is given and is not the latest.
        """
        fact = self._believed(memory_id)
        self._refuse_immutable(fact)
        if if_version is not None and fact.version != if_version:
            raise VersionConflict(
                f"Version {if_version} was given, but the latest is {fact.version}: read the memory again."
            )
        if "invalid_at" in changes:
            changes = {**changes, "claimed_invalid_at": changes["invalid_at"]}
        self._tick()
        amended = replace(fact, **changes)
        if amended.valid_at and amended.invalid_at and amended.invalid_at < amended.valid_at:
            raise InvalidInput("invalid_at lies before valid_at.")
        return self._revise(fact, "amended", None, fresh_vector=amended.content != fact.content, **changes)

    def delete(self, memory_id: str, reason: str = "deleted", by: str | None = None) -> Fact:
        """End the belief in a memory; its versions stay in history."""
        fact = self._believed(memory_id)
        self._refuse_immutable(fact)
        now = self._tick()
        del self._latest[memory_id]
        ended = replace(
            fact, expired_at=now, end_status=Status.DELETED, ended_reason=reason, ended_by=by, active_hash=None
        )
        self._record(ended)
        return ended

    def retire(self, memory_id: str, reason: str, by: str | None, status: Status) -> Fact:
        """Take a memory out of every as-of answer while it stays readable, pointing to what stands for it now."""
        fact = self._believed(memory_id)
        self._refuse_immutable(fact)
        self._tick()
        return self._revise(
            fact, reason, by, retired=True, status=status, superseded_by=by, ended_reason=reason, ended_by=by
        )

    def merge(self, draft: Fact, memory_ids: Iterable[str], by: str | None) -> Fact:
        """Put one statement in the place of several, which are retired, point to it and name `by` as what ended them.

        Raises ImmutableMemory where one may not end, and Conflict when another memory states the same and is current.
        """
        sources = [self._closable(memory_id) for memory_id in memory_ids]
        self._tick()
        for fact in sources:
            self._revise(
                fact, MERGED, by, retired=True, status=Status.SUPERSEDED, superseded_by=draft.memory_id,
                ended_reason=MERGED, ended_by=by,
            )  # fmt: skip
        now = self._tick()
        merged = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._actor)
        return self._add(replace(merged, supersedes=tuple(fact.memory_id for fact in sources)), None)

    def annotate(self, memory_id: str, **changes: Any) -> Fact:
        """Change in place what is no claim about the world: associations, entities mentioned, search text."""
        fact = self._believed(memory_id)
        self._refuse_immutable(fact)
        return self._put(replace(fact, **changes))

    def revert(self, memory_id: str) -> Fact:
        """Undo one supersession: reopen the memory and retire what replaced it.

        Raises Conflict where that supersession is not the last word.
        """
        fact = self._believed(memory_id)
        if fact.status is not Status.SUPERSEDED:
            raise Conflict("The memory is not superseded, so there is nothing to revert.")
        self._refuse_immutable(fact)
        if fact.ended_reason == MERGED:
            raise Conflict(f"It was merged with others by the consolidation run {fact.ended_by}: roll that run back.")
        replacer = self._latest.get(fact.superseded_by or "")
        if replacer and not replacer.retired:
            if replacer.status is Status.SUPERSEDED:
                raise Conflict(f"What replaced it was replaced itself: revert {replacer.memory_id} first.")
            self.retire(replacer.memory_id, "reverted", memory_id, Status.SUPERSEDED)
        self._tick()
        reopened = replace(
            fact,
            invalid_at=fact.claimed_invalid_at,
            status=Status.ACTIVE,
            retired=False,
            superseded_by=None,
            ended_reason=None,
            ended_by=None,
        )
        reopened, _ = self._end_before_follower(reopened, self._rivals(reopened, self._now))
        changes = {
            name: getattr(reopened, name)
            for name in ("invalid_at", "status", "retired", "superseded_by", "ended_reason", "ended_by")
        }
        return self._revise(fact, "reverted", fact.superseded_by, **changes)

    def refuse_twins(self, fact: Fact, others: Iterable[Fact]) -> None:
        """Raise Conflict when one of `others` already states, and is current, what `fact` now says."""
        for other in others:
            if other.memory_id != fact.memory_id and fact.active_hash and other.active_hash == fact.active_hash:
                if other.holds_at(self._now):
                    raise Conflict(f"The same statement is already current as {other.memory_id}.")
                self._latest.setdefault(other.memory_id, other)
                self._record(replace(other, active_hash=None))

    # The rows

    def _tick(self) -> datetime:
        self._now += ONE_TICK
        return self._now

    def _believed(self, memory_id: str) -> Fact:
        try:
            return self._latest[memory_id]
        except KeyError:
            raise NotFound("There is no such memory.") from None

    def _closable(self, memory_id: str) -> Fact:
        fact = self._believed(memory_id)
        self._refuse_immutable(fact)
        if fact.status is Status.SUPERSEDED:
            raise Conflict(f"{memory_id} is already superseded by {fact.superseded_by}.")
        return fact

    @staticmethod
    def _refuse_immutable(fact: Fact) -> None:
        if fact.immutable:
            raise ImmutableMemory(f"{fact.memory_id} is immutable: only hard delete and forget reach it.")

    def _revise(self, fact: Fact, reason: str, by: str | None, *, fresh_vector: bool = False, **changes: Any) -> Fact:
        """End the version `fact` and open the next one with `changes`."""
        now = self._now
        if fact.created_at >= now:
            now = self._tick()
        self._record(replace(fact, expired_at=now, ended_reason=reason, ended_by=by, active_hash=None))
        following = replace(
            fact,
            **{"ended_reason": None, "ended_by": None, **changes},
            uuid=str(uuid.uuid4()),
            version=fact.version + 1,
            created_at=now,
            updated_at=now,
            actor=self._actor,
        )
        return self._add(following, None if fresh_vector else fact.uuid)

    def _add(self, fact: Fact, vector_from: str | None) -> Fact:
        fact = self._claim(fact)
        self._latest[fact.memory_id] = fact
        self.created[fact.uuid] = fact
        if vector_from is not None:
            self.vector_of[fact.uuid] = self.vector_of.get(vector_from, vector_from)
        return fact

    def _put(self, fact: Fact) -> Fact:
        """Replace the latest version in place: only what is no claim about the world may differ."""
        fact = replace(fact, active_hash=self._latest[fact.memory_id].active_hash)
        self._latest[fact.memory_id] = fact
        self._record(fact)
        return fact

    def _record(self, fact: Fact) -> None:
        (self.created if fact.uuid in self.created else self.changed)[fact.uuid] = fact

    def _claim(self, fact: Fact) -> Fact:
        """Give a current fact the key that only one may hold, taking it from one that has lapsed meanwhile."""
        fact = fact.keyed(self._now)
        for other in self._latest.values():
            if fact.active_hash and other.active_hash == fact.active_hash and other.memory_id != fact.memory_id:
                if other.holds_at(self._now):
                    raise Conflict(f"The same statement is already current as {other.memory_id}.")
                lapsed = replace(other, active_hash=None)
                self._latest[other.memory_id] = lapsed
                self._record(lapsed)
        return fact


def _joined(known: str, further: str) -> str:
    return known if further in known else f"{known} {further}"


def _same_place(fact: Fact, other: Fact) -> bool:
    return fact.subject_id == other.subject_id and fact.predicate == other.predicate
