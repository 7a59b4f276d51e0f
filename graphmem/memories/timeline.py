"""Joint validity of facts: statements that repeat, follow or end one another, by time and trust. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.version_log import CONTESTED_REASON, REVERTED_REASON, VersionLog, ensure_mutable, without_end
from graphmem.runtime.errors import Conflict
from graphmem.runtime.times import MIN_TIME
from graphmem.tenants.trust import DEFAULT_ORDER, Effect, SourceKind, TrustOrder


class Timeline(VersionLog):
    """Decides which facts may be valid together: statements that repeat, follow or end one another, by trust.

    `now` must be later than every earlier write of the user. By `order`, no statement ends or narrows one from a more
    trusted source. `kind` is the source of the changes; None may change anything.
    """

    def __init__(
        self,
        facts: Iterable[Fact],
        now: datetime,
        actor: str | None = None,
        order: TrustOrder = DEFAULT_ORDER,
        kind: SourceKind | None = None,
    ) -> None:
        super().__init__(facts, now, actor)
        self.order = order
        self.kind = kind

    def find_same_statement(self, draft: Fact, now: datetime) -> Fact | None:
        """Return the memory that states the same and is current, or else starts when the draft does."""
        same = [fact for fact in self.latest.that_say(draft) if draft.repeats(fact) and not fact.is_never_valid]
        current = next((fact for fact in same if fact.is_valid_at(now)), None)
        if current or draft.valid_at is None:
            return current
        return next((fact for fact in same if fact.valid_at == draft.valid_at), None)

    def find_competing(self, draft: Fact, now: datetime) -> list[Fact]:
        """Return the facts that must not be valid together with `draft`.

        They state the same or, if it is single-valued, have the same subject and predicate. Two ended facts with
        unknown starts do not compete, since their order is unknown as well.
        """
        is_past = draft.valid_at is None and draft.valid_to <= now
        return [
            fact
            for fact in (self.latest.that_may_compete(draft) if draft.single_valued else self.latest.that_state(draft))
            if fact.memory_id != draft.memory_id
            and not fact.is_never_valid
            and not (is_past and fact.effective_start == MIN_TIME)
        ]

    def find_changed_by(self, draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
        """Return the competing facts that a draft would end or give a start."""
        competing = list(competing)
        ended = [fact for fact in competing if is_ended_by_start(fact, draft.valid_from)]
        kept = [
            fact
            for fact in _followers(draft, competing)
            if self.is_locked(fact, draft.trust_kind)
            or self.order.permits(Effect.NARROW, fact.trust_kind, draft.trust_kind)
        ]
        next_one = min(kept, key=lambda fact: fact.effective_start, default=None)
        if next_one and next_one.valid_at is None and not self.is_locked(next_one, draft.trust_kind):
            ended.append(next_one)
        return ended

    def close_before_successor(
        self, draft: Fact, competing: list[Fact], *, by_trust: bool = True
    ) -> tuple[Fact, Fact | None]:
        """Return a late arrival closed at the start of the fact that follows it, and that fact.

        A follower without a known start gets one, unless it is immutable. With `by_trust`, one from a less trusted
        source becomes contested instead of closing the arrival.
        """
        later = sorted(_followers(draft, competing), key=lambda fact: fact.effective_start)
        successor = None
        for fact in later:
            if draft.valid_to <= fact.effective_start:
                break
            may_narrow = self.order.permits(Effect.NARROW, fact.trust_kind, draft.trust_kind)
            if not by_trust or may_narrow or self.is_locked(fact, draft.trust_kind):
                successor = fact
                break
            contested = replace(
                fact,
                status=MemoryStatus.CONTESTED,
                contests=(draft.memory_id,),
                immutable=False,
                invalid_at=fact.claimed_invalid_at,
                superseded_by=None,
                ended_reason=CONTESTED_REASON,
                ended_by=draft.memory_id,
            )
            self.add_next_version(fact, contested, CONTESTED_REASON, draft.memory_id)
        if successor is None:
            successor = next((fact for fact in later if draft.valid_to <= fact.effective_start), None)
        if successor is None:
            return draft, None
        start = successor.effective_start
        if successor.valid_at is None and not self.is_locked(successor, draft.trust_kind):
            dated = replace(without_end(successor), valid_at=start)
            self.add_next_version(successor, dated, "dated by an earlier value", draft.memory_id)
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
        """End the validity of a fact at `at`, when another memory takes over."""
        superseded = replace(
            fact,
            invalid_at=at,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=superseded_by,
            ended_reason=reason,
            ended_by=by,
        )
        return self.add_next_version(fact, superseded, reason, by)

    def restore(self, fact: Fact, by: str | None, *, by_trust: bool = True) -> Fact:
        """Restore a superseded memory with its writer's end, but no further than the start of its follower."""
        reopened = replace(
            without_end(fact),
            invalid_at=fact.claimed_invalid_at,
            status=MemoryStatus.ACTIVE,
            retired=False,
            superseded_by=None,
        )
        if by_trust:
            self.ensure_unique(reopened.with_active_hash(self.now), self.latest.values())
        competing = self.find_competing(reopened, self.now)
        if rivals := self.find_more_trusted(reopened, self.find_changed_by(reopened, competing)):
            raise Conflict(f"The memory would be {describe_rival(reopened, rivals[0])}.")
        reopened, _ = self.close_before_successor(reopened, competing, by_trust=by_trust)
        refuse_rivals(reopened, self.latest.values(), fact)
        return self.add_next_version(fact, reopened, REVERTED_REASON, by)

    # Trust: by the order, no statement ends or narrows one from a more trusted source

    def find_more_trusted(self, draft: Fact, facts: Iterable[Fact]) -> list[Fact]:
        """Return the facts from more trusted sources, which the draft must not end or narrow."""
        return [fact for fact in facts if not self.order.permits(Effect.END, draft.trust_kind, fact.trust_kind)]

    def is_locked(self, fact: Fact, kind: SourceKind | None) -> bool:
        """Return whether a fact is immutable for a source; None (upkeep and admins) is bound by every immutability."""
        # Only the user and admins can use the source `import`, so they locked the facts imported as immutable.
        locked_by: SourceKind = "user" if fact.trust_kind == "import" else fact.trust_kind
        return fact.immutable and (kind is None or self.order.permits(Effect.LOCK, locked_by, kind))

    def refuse_locked(self, fact: Fact, kind: SourceKind | None) -> None:
        """Raise ImmutableMemory for a fact that is immutable for a source."""
        if self.is_locked(fact, kind):
            ensure_mutable(fact)

    def refuse_more_trusted(self, facts: Iterable[Fact]) -> None:
        """Raise Forbidden for a fact from a source trusted more than the source of the change."""
        for fact in facts:
            self.order.require(Effect.HIDE, self.kind, fact.trust_kind, fact.memory_id)


def is_ended_by_start(fact: Fact, start: datetime) -> bool:
    """Return whether a competing fact ends when another one starts at `start`."""
    return fact.effective_start == start or fact.effective_start <= start < fact.valid_to


def _followers(draft: Fact, competing: Iterable[Fact]) -> list[Fact]:
    """Return the competing facts that start after a draft.

    A fact without a known start that ends before the draft starts precedes it, whenever it was written.
    """
    return [fact for fact in competing if fact.effective_start > draft.valid_from < fact.valid_to]


# Facts that must not be valid at the same time: values of a single-valued predicate, and repeated statements


def find_rival(fact: Fact, others: Iterable[Fact], before: Fact | None = None) -> Fact | None:
    """Return another value of a single-valued predicate that would be valid at the same time as `fact`, or None.

    `before` is the stored fact: time in which both were already valid together is no reason to refuse a change, which
    may be the one that ends the overlap.
    """
    return next((other for other in others if _are_values(fact, other) and _gains_overlap(fact, other, before)), None)


def describe_rival(fact: Fact, rival: Fact) -> str:
    """Return why a fact cannot be stored next to a rival and what to do about it, as the end of a sentence."""
    return (
        f"valid at the same time as {rival.memory_id}, and {fact.predicate} has one value at a time: "
        f"change the times of {rival.memory_id} or delete it first"
    )


def refuse_rivals(fact: Fact, others: Iterable[Fact], before: Fact | None) -> None:
    """Raise Conflict if `fact` would be valid at the same time as another value or the same statement.

    `before` is the stored fact, as in `find_rival`.
    """
    others = list(others)
    if rival := find_rival(fact, others, before):
        raise Conflict(f"The memory would be {describe_rival(fact, rival)}.")
    for other in others:
        if _are_repetitions(fact, other) and _gains_overlap(fact, other, before):
            raise Conflict(f"{other.memory_id} states the same for that time: change that memory instead.")


def _are_values(fact: Fact, other: Fact) -> bool:
    return (
        fact.single_valued
        and other.single_valued
        and fact.memory_id != other.memory_id
        and fact.dedup_key != other.dedup_key
        and (fact.subject_id, fact.predicate) == (other.subject_id, other.predicate)
    )


def _are_repetitions(fact: Fact, other: Fact) -> bool:
    return fact.memory_id != other.memory_id and fact.dedup_key == other.dedup_key


def _gains_overlap(fact: Fact, other: Fact, before: Fact | None) -> bool:
    if fact.expired_at or other.expired_at or not fact.overlaps(other):
        return False
    if before is None or before.expired_at:
        return True
    start, end = max(fact.valid_from, other.valid_from), min(fact.valid_to, other.valid_to)
    return start < before.valid_from or end > before.valid_to
