"""What is valid when: statements that repeat, follow or end one another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from graphmem.memories.decay import MAX_CONFIDENCE, apply_reinforcement
from graphmem.memories.end_reasons import CONTESTED_REASON, REVERTED_REASON
from graphmem.memories.fact import MAX_SEARCH_TEXT, Fact, join_sources
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.rivals import describe_rival, refuse_rivals
from graphmem.memories.trust_checks import TrustChecks
from graphmem.memories.version_log import VersionLog, without_end
from graphmem.runtime.errors import Conflict
from graphmem.runtime.times import MIN_TIME


class Timeline:
    """The memories of a log that must not be valid together: what a statement repeats, follows, precedes and ends."""

    def __init__(self, log: VersionLog, trust: TrustChecks) -> None:
        self._log = log
        self._trust = trust

    def find_same_statement(self, draft: Fact, now: datetime) -> Fact | None:
        """Return the memory that states the same and is current, or else starts when the draft does."""
        same = [fact for fact in self._log.latest.that_state(draft) if not fact.is_never_valid]
        current = next((fact for fact in same if fact.is_valid_at(now)), None)
        if current or draft.valid_at is None:
            return current
        return next((fact for fact in same if fact.valid_at == draft.valid_at), None)

    def find_competing(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the facts that must not be valid together with `draft`.

        These state the same or, when it is single-valued, have the same subject and predicate. Two facts that have
        ended and whose starts are unknown do not compete: which one came first is unknown as well.
        """
        is_past = draft.valid_at is None and draft.valid_to <= now
        return [
            fact
            for fact in (
                self._log.latest.that_may_compete(draft) if draft.single_valued else self._log.latest.that_state(draft)
            )
            if fact.memory_id != draft.memory_id
            and not fact.is_never_valid
            and not (is_past and fact.effective_start == MIN_TIME)
        ]

    def find_changed_by(self, draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
        """Return the competing facts that a draft would end, or to which it would give a start."""
        competing = list(competing)
        ended = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        kept = [
            fact
            for fact in _followers(draft, competing)
            if fact.immutable or not self._trust.order.is_less(fact.trust_kind, than=draft.trust_kind)
        ]
        next_one = min(kept, key=lambda fact: fact.effective_start, default=None)
        is_dated = next_one is not None and next_one.valid_at is None and not next_one.immutable
        return [*ended, *([next_one] if next_one and is_dated else [])]

    def close_before_successor(
        self, draft: Fact, competing: list[Fact], *, by_trust: bool = True
    ) -> tuple[Fact, Fact | None]:
        """Return a late arrival closed at the start of the fact that follows it, and that fact.

        A follower without a known start gets one, unless it is immutable. With `by_trust`, one of a less trusted source
        does not close the arrival: it becomes contested.
        """
        later = sorted(_followers(draft, competing), key=lambda fact: fact.effective_start)
        successor = None
        for fact in later:
            if draft.valid_to <= fact.effective_start:
                break
            if not by_trust or fact.immutable or not self._trust.order.is_less(fact.trust_kind, than=draft.trust_kind):
                successor = fact
                break
            contested = replace(
                fact,
                status=MemoryStatus.CONTESTED,
                contests=(draft.memory_id,),
                invalid_at=fact.claimed_invalid_at,
                superseded_by=None,
                ended_reason=CONTESTED_REASON,
                ended_by=draft.memory_id,
            )
            self._log.add_next_version(fact, contested, CONTESTED_REASON, draft.memory_id)
        if successor is None:
            successor = next((fact for fact in later if draft.valid_to <= fact.effective_start), None)
        if successor is None:
            return draft, None
        start = successor.effective_start
        if successor.valid_at is None and not successor.immutable:
            dated = replace(without_end(successor), valid_at=start)
            self._log.add_next_version(successor, dated, "dated by an earlier value", draft.memory_id)
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

    def supersede_all(
        self,
        facts: Iterable[Fact],
        by: Fact,
        at: datetime,
        reason: str,
        ends: Mapping[str, datetime] | None = None,
    ) -> tuple[str, ...]:
        """End the validity of facts at their time in `ends`, else at `at`, and return their memory ids."""
        closed = []
        for fact in facts:
            end = (ends or {}).get(fact.memory_id, at)
            self.end_at(fact, max(end, fact.valid_from), reason, by.memory_id, by.memory_id)
            closed.append(fact.memory_id)
        return tuple(closed)

    def end_at(self, fact: Fact, at: datetime, reason: str, by: str | None, superseded_by: str) -> Fact:
        """End the validity of a fact at `at`, from which on another memory holds."""
        superseded = replace(
            fact,
            invalid_at=at,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=superseded_by,
            ended_reason=reason,
            ended_by=by,
        )
        return self._log.add_next_version(fact, superseded, reason, by)

    def reopen(self, fact: Fact, by: str | None, *, by_trust: bool = True) -> Fact:
        """Restore a superseded memory with the end that its writer gave, up to what follows it."""
        reopened = replace(
            without_end(fact),
            invalid_at=fact.claimed_invalid_at,
            status=MemoryStatus.ACTIVE,
            retired=False,
            superseded_by=None,
        )
        if by_trust:
            self._log.ensure_unique(reopened.with_active_hash(self._log.now), self._log.latest.values())
        competing = self.find_competing(reopened, self._log.now)
        if rivals := self._trust.find_more_trusted(reopened, self.find_changed_by(reopened, competing)):
            raise Conflict(f"The memory would be {describe_rival(reopened, rivals[0])}.")
        reopened, _ = self.close_before_successor(reopened, competing, by_trust=by_trust)
        refuse_rivals(reopened, self._log.latest.values(), fact)
        return self._log.add_next_version(fact, reopened, REVERTED_REASON, by)

    def reinforce(self, known: Fact, draft: Fact, now: datetime) -> Fact:
        """Strengthen a memory that a statement repeats, and give it the sources and the trust of the statement."""
        stated = max(known.confidence, min(draft.confidence, MAX_CONFIDENCE))
        strength, confidence = apply_reinforcement(known.strength_at(now), stated)
        if self._trust.order.is_less(known.trust_kind, than=draft.trust_kind) and not known.immutable:
            known = replace(
                known,
                source_kind=draft.source_kind,
                trusted_as=draft.trusted_as,
                speaker=draft.speaker or known.speaker,
            )
        return self._log.replace_in_place(
            replace(
                known,
                strength=strength,
                last_accessed_at=now,
                confidence=confidence,
                importance=max(known.importance, draft.importance),
                message_ids=join_sources(known.message_ids, draft.message_ids),
                episodes=join_sources(known.episodes, draft.episodes),
                search_text=_append_text(known.search_text, draft.search_text),
                updated_at=now,
            )
        )


def is_ended_by_start(fact: Fact, start: datetime) -> bool:
    """Return whether a competing fact ends when another one starts at `start`."""
    return fact.effective_start == start or fact.effective_start <= start < fact.valid_to


def _followers(draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
    """Return the competing facts that start after a draft.

    A fact without a known start that ends before the draft starts precedes it, whenever it was written.
    """
    return [fact for fact in competing if fact.effective_start > draft.valid_from < fact.valid_to]


def _append_text(known: str, further: str) -> str:
    if further in known or len(known) + len(further) >= MAX_SEARCH_TEXT:
        return known
    return f"{known} {further}"
