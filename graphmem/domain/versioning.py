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

from graphmem.domain.decay import apply_reinforcement
from graphmem.domain.fact import Fact
from graphmem.domain.formats.provenance import ImportProvenance
from graphmem.domain.memory import MemoryStatus, SaveAction
from graphmem.errors import Conflict, ImmutableMemory, InvalidInput, NotFound, VersionConflict

MICROSECOND = timedelta(microseconds=1)

MERGED_REASON = "merged"
"""Why a memory ended that a consolidation run merged into another one."""


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """What a save did: the fact it left current or placed in history, and the memories it closed."""

    action: SaveAction
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
        self.vector_source_uuid: dict[str, str] = {}

    @property
    def now(self) -> datetime:
        """The time of the latest change."""
        return self._now

    # Saving

    def save(self, draft: Fact, supersedes: Iterable[str] = (), reason: str = "superseded") -> SaveOutcome:
        """Place a new statement among the facts; `reason` is told in the history of what it closes.

        Raises NotFound, Conflict or ImmutableMemory where it may not close what it names.
        """
        now = self._next_time()
        draft = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._actor)
        targets = [self._get_closable(memory_id) for memory_id in dict.fromkeys(supersedes)]
        if known := self._find_same_statement(draft, now):
            known = self._reinforce(known, draft, now)
            closed = self._supersede_all(
                [fact for fact in targets if fact.memory_id != known.memory_id], known, now, reason
            )
            return SaveOutcome(SaveAction.REINFORCE, known, closed, "the same statement is already known")
        # What is named to be closed is closed in any case: it neither follows the draft nor precedes it.
        competing = [fact for fact in self._find_competing_facts(draft, now) if fact not in targets]
        if draft.valid_at is None and (targets or competing):
            draft = replace(draft, valid_at=now)
        draft, successor = self._close_before_successor(draft, competing)
        starts = draft.valid_from
        earlier = [
            fact
            for fact in competing
            if fact.effective_start == starts or fact.effective_start <= starts < fact.valid_to
        ]
        for fact in earlier:
            self._ensure_mutable(fact)
        draft = self._add_version(draft, None)
        ending = {fact.memory_id: fact for fact in [*targets, *earlier]}.values()
        closed = self._supersede_all(ending, draft, draft.valid_from, reason)
        if closed:
            draft = self._replace_in_place(replace(draft, supersedes=closed))
        if closed:
            return SaveOutcome(SaveAction.SUPERSEDE, draft, closed, f"replaced {len(closed)} earlier")
        if successor:
            return SaveOutcome(SaveAction.INSERT, draft, (), f"arrived late: {successor.memory_id} follows it")
        return SaveOutcome(SaveAction.INSERT, draft)

    def import_version(self, draft: Fact, provenance: ImportProvenance) -> SaveOutcome:
        """Place a statement of another memory with the time that memory knew it; nothing known here is closed by it.

        A belief that ended there ends here: with the end of the statement where that became known, else as deleted.
        """
        now = self._next_time()
        began = provenance.created_at or now
        updated = max(began, provenance.updated_at or began)
        draft = replace(draft, created_at=began, first_created_at=began, updated_at=updated, actor=self._actor)
        ended = provenance.expired_at
        if (
            (ended is None or draft.invalid_at)
            and draft.is_valid_at(now)
            and (known := self._find_same_statement(draft, now))
        ):
            return SaveOutcome(
                SaveAction.REINFORCE, self._reinforce(known, draft, now), (), "the same statement is known"
            )
        if ended is None or (draft.invalid_at and ended <= began):
            return SaveOutcome(SaveAction.INSERT, self._add_version(draft, None))
        if draft.invalid_at is None:
            ended = max(ended, began + MICROSECOND)
            deleted_version = replace(
                draft, expired_at=ended, end_status=MemoryStatus.DELETED, ended_reason="no longer believed"
            )
            self.created[deleted_version.uuid] = deleted_version
            return SaveOutcome(SaveAction.INSERT, deleted_version)
        open_ended = replace(
            draft, invalid_at=None, claimed_invalid_at=None, expired_at=ended, ended_reason="its end became known"
        )
        self._add_version(open_ended, None)
        next_version = replace(draft, uuid=str(uuid.uuid4()), version=2, created_at=ended, updated_at=ended)
        return SaveOutcome(SaveAction.INSERT, self._add_version(next_version, open_ended.uuid))

    def _find_same_statement(self, draft: Fact, now: datetime) -> Fact | None:
        same = [fact for fact in self._latest.values() if fact.dedup_key == draft.dedup_key and not fact.is_never_valid]
        current = next((fact for fact in same if fact.is_valid_at(now)), None)
        if current or draft.valid_at is None:
            return current
        return next((fact for fact in same if fact.valid_at == draft.valid_at), None)

    def _find_competing_facts(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the facts that may not hold beside `draft`: the same statement, and its single-valued place.

        One that ended before now and has no known start disturbs nobody.
        """
        if draft.valid_at is None and draft.valid_to <= now:
            return []
        return [
            fact
            for fact in self._latest.values()
            if fact.memory_id != draft.memory_id
            and not fact.is_never_valid
            and (
                fact.dedup_key == draft.dedup_key
                or (draft.single_valued and _has_same_subject_and_predicate(fact, draft))
            )
        ]

    def _close_before_successor(self, draft: Fact, competing: list[Fact]) -> tuple[Fact, Fact | None]:
        """Close a late arrival at the start of the fact that follows it, which from now on has a known start."""
        later = [fact for fact in competing if fact.effective_start > draft.valid_from]
        if not later:
            return draft, None
        successor = min(later, key=lambda fact: fact.effective_start)
        start = successor.effective_start
        if successor.valid_at is None and not successor.immutable:
            self._add_next_version(successor, "dated by an earlier value", draft.memory_id, valid_at=start)
        if draft.valid_to <= start:
            return draft, None
        return replace(
            draft,
            invalid_at=start,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=successor.memory_id,
            ended_reason="followed by a later value when it arrived",
            ended_by=successor.memory_id,
        ), successor

    def _supersede_all(self, facts: Iterable[Fact], by: Fact, at: datetime, reason: str) -> tuple[str, ...]:
        closed = []
        for fact in facts:
            self._add_next_version(
                fact,
                reason,
                by.memory_id,
                invalid_at=max(at, fact.valid_from),
                status=MemoryStatus.SUPERSEDED,
                superseded_by=by.memory_id,
                ended_reason=reason,
                ended_by=by.memory_id,
            )
            closed.append(fact.memory_id)
        return tuple(closed)

    def _reinforce(self, known: Fact, draft: Fact, now: datetime) -> Fact:
        strength, confidence = apply_reinforcement(known.strength, max(known.confidence, min(draft.confidence, 0.99)))
        return self._replace_in_place(
            replace(
                known,
                strength=strength,
                confidence=confidence,
                importance=max(known.importance, draft.importance),
                message_ids=tuple(dict.fromkeys([*known.message_ids, *draft.message_ids])),
                episodes=tuple(dict.fromkeys([*known.episodes, *draft.episodes])),
                search_text=_append_text(known.search_text, draft.search_text),
                updated_at=now,
            )
        )

    # Changing, ending, undoing

    def amend(self, memory_id: str, changes: dict[str, Any], *, if_version: int | None = None) -> Fact:
        """Make a new version with `changes`, by the names of `Fact`'s fields.

        Raises VersionConflict when `if_version` is given and is not the latest.
        """
        fact = self._get_latest(memory_id)
        self._ensure_mutable(fact)
        if if_version is not None and fact.version != if_version:
            raise VersionConflict(
                f"Version {if_version} was given, but the latest is {fact.version}: read the memory again."
            )
        if "invalid_at" in changes:
            changes = {**changes, "claimed_invalid_at": changes["invalid_at"]}
        self._next_time()
        amended = replace(fact, **changes)
        if amended.valid_at and amended.invalid_at and amended.invalid_at < amended.valid_at:
            raise InvalidInput("invalid_at lies before valid_at.")
        return self._add_next_version(
            fact, "amended", None, needs_new_vector=amended.content != fact.content, **changes
        )

    def delete(self, memory_id: str, reason: str = "deleted", by: str | None = None) -> Fact:
        """End the belief in a memory; its versions stay in history."""
        fact = self._get_latest(memory_id)
        self._ensure_mutable(fact)
        now = self._next_time()
        del self._latest[memory_id]
        ended = replace(
            fact, expired_at=now, end_status=MemoryStatus.DELETED, ended_reason=reason, ended_by=by, active_hash=None
        )
        self._record(ended)
        return ended

    def retire(self, memory_id: str, reason: str, by: str | None, status: MemoryStatus) -> Fact:
        """Take a memory out of every as-of answer while it stays readable, pointing to what stands for it now."""
        fact = self._get_latest(memory_id)
        self._ensure_mutable(fact)
        self._next_time()
        return self._add_next_version(
            fact, reason, by, retired=True, status=status, superseded_by=by, ended_reason=reason, ended_by=by
        )

    def merge(self, draft: Fact, memory_ids: Iterable[str], by: str | None) -> Fact:
        """Put one statement in the place of several, which are retired, point to it and name `by` as what ended them.

        Raises ImmutableMemory where one may not end, and Conflict when another memory states the same and is current.
        """
        sources = [self._get_closable(memory_id) for memory_id in memory_ids]
        self._next_time()
        for fact in sources:
            self._add_next_version(
                fact, MERGED_REASON, by, retired=True, status=MemoryStatus.SUPERSEDED, superseded_by=draft.memory_id,
                ended_reason=MERGED_REASON, ended_by=by,
            )  # fmt: skip
        now = self._next_time()
        merged = replace(draft, created_at=now, first_created_at=now, updated_at=now, actor=self._actor)
        return self._add_version(replace(merged, supersedes=tuple(fact.memory_id for fact in sources)), None)

    def annotate(self, memory_id: str, **changes: Any) -> Fact:
        """Change in place what is no claim about the world: associations, entities mentioned, search text."""
        fact = self._get_latest(memory_id)
        self._ensure_mutable(fact)
        return self._replace_in_place(replace(fact, **changes))

    def revert(self, memory_id: str) -> Fact:
        """Undo one supersession: reopen the memory and retire what replaced it.

        Raises Conflict where that supersession is not the last word.
        """
        fact = self._get_latest(memory_id)
        if fact.status is not MemoryStatus.SUPERSEDED:
            raise Conflict("The memory is not superseded, so there is nothing to revert.")
        self._ensure_mutable(fact)
        if fact.ended_reason == MERGED_REASON:
            raise Conflict(f"It was merged with others by the consolidation run {fact.ended_by}: roll that run back.")
        replacement = self._latest.get(fact.superseded_by or "")
        if replacement and not replacement.retired:
            if replacement.status is MemoryStatus.SUPERSEDED:
                raise Conflict(f"What replaced it was replaced itself: revert {replacement.memory_id} first.")
            self.retire(replacement.memory_id, "reverted", memory_id, MemoryStatus.SUPERSEDED)
        self._next_time()
        reopened = replace(
            fact,
            invalid_at=fact.claimed_invalid_at,
            status=MemoryStatus.ACTIVE,
            retired=False,
            superseded_by=None,
            ended_reason=None,
            ended_by=None,
        )
        reopened, _ = self._close_before_successor(reopened, self._find_competing_facts(reopened, self._now))
        changes = {
            name: getattr(reopened, name)
            for name in ("invalid_at", "status", "retired", "superseded_by", "ended_reason", "ended_by")
        }
        return self._add_next_version(fact, "reverted", fact.superseded_by, **changes)

    def ensure_unique(self, fact: Fact, others: Iterable[Fact]) -> None:
        """Raise Conflict when one of `others` already states, and is current, what `fact` now says."""
        for other in others:
            if other.memory_id != fact.memory_id and fact.active_hash and other.active_hash == fact.active_hash:
                if other.is_valid_at(self._now):
                    raise Conflict(f"The same statement is already current as {other.memory_id}.")
                self._latest.setdefault(other.memory_id, other)
                self._record(replace(other, active_hash=None))

    # The rows

    def _next_time(self) -> datetime:
        self._now += MICROSECOND
        return self._now

    def _get_latest(self, memory_id: str) -> Fact:
        try:
            return self._latest[memory_id]
        except KeyError:
            raise NotFound("There is no such memory.") from None

    def _get_closable(self, memory_id: str) -> Fact:
        fact = self._get_latest(memory_id)
        self._ensure_mutable(fact)
        if fact.status is MemoryStatus.SUPERSEDED:
            raise Conflict(f"{memory_id} is already superseded by {fact.superseded_by}.")
        return fact

    @staticmethod
    def _ensure_mutable(fact: Fact) -> None:
        if fact.immutable:
            raise ImmutableMemory(f"{fact.memory_id} is immutable: only hard delete and forget reach it.")

    def _add_next_version(
        self, fact: Fact, reason: str, by: str | None, *, needs_new_vector: bool = False, **changes: Any
    ) -> Fact:
        """End the version `fact` and open the next one with `changes`."""
        now = self._now
        if fact.created_at >= now:
            now = self._next_time()
        self._record(replace(fact, expired_at=now, ended_reason=reason, ended_by=by, active_hash=None))
        next_version = replace(
            fact,
            **{"ended_reason": None, "ended_by": None, **changes},
            uuid=str(uuid.uuid4()),
            version=fact.version + 1,
            created_at=now,
            updated_at=now,
            actor=self._actor,
        )
        return self._add_version(next_version, None if needs_new_vector else fact.uuid)

    def _add_version(self, fact: Fact, vector_source: str | None) -> Fact:
        fact = self._claim_active_hash(fact)
        self._latest[fact.memory_id] = fact
        self.created[fact.uuid] = fact
        if vector_source is not None:
            self.vector_source_uuid[fact.uuid] = self.vector_source_uuid.get(vector_source, vector_source)
        return fact

    def _replace_in_place(self, fact: Fact) -> Fact:
        """Replace the latest version in place: only what is no claim about the world may differ."""
        fact = replace(fact, active_hash=self._latest[fact.memory_id].active_hash)
        self._latest[fact.memory_id] = fact
        self._record(fact)
        return fact

    def _record(self, fact: Fact) -> None:
        (self.created if fact.uuid in self.created else self.changed)[fact.uuid] = fact

    def _claim_active_hash(self, fact: Fact) -> Fact:
        """Give a current fact the key that only one may hold, taking it from one that has lapsed meanwhile."""
        fact = fact.with_active_hash(self._now)
        for other in self._latest.values():
            if fact.active_hash and other.active_hash == fact.active_hash and other.memory_id != fact.memory_id:
                if other.is_valid_at(self._now):
                    raise Conflict(f"The same statement is already current as {other.memory_id}.")
                lapsed = replace(other, active_hash=None)
                self._latest[other.memory_id] = lapsed
                self._record(lapsed)
        return fact


def _append_text(known: str, further: str) -> str:
    return known if further in known else f"{known} {further}"


def _has_same_subject_and_predicate(fact: Fact, other: Fact) -> bool:
    return fact.subject_id == other.subject_id and fact.predicate == other.predicate
