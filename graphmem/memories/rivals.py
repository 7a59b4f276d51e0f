"""What must not be valid at the same time: values of a single-valued predicate, and one statement twice. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.memories.fact import Fact
from graphmem.runtime.errors import Conflict


def find_rival(fact: Fact, others: Iterable[Fact], before: Fact | None = None) -> Fact | None:
    """Return another value of a single-valued predicate that would be valid at the same time as `fact`, or None.

    `before` is the fact as it is stored: the time that both were valid together already is no reason to refuse a
    change, which may be the one that ends it.
    """
    return next((other for other in others if _are_values(fact, other) and _gains_overlap(fact, other, before)), None)


def describe_rival(fact: Fact, rival: Fact) -> str:
    """Return why a fact cannot be stored beside a rival and what to do about it, as the end of a sentence."""
    return (
        f"valid at the same time as {rival.memory_id}, and {fact.predicate} has one value at a time: "
        f"change the times of {rival.memory_id} or delete it first"
    )


def refuse_rivals(fact: Fact, others: Iterable[Fact], before: Fact | None) -> None:
    """Raise Conflict when `fact` would be valid at the same time as another value or the same statement.

    `before` is the fact as it is stored, as in `find_rival`.
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
        and fact.content_hash != other.content_hash
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
