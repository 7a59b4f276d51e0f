"""What became of a memory that was stored before the first message. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quality.cases import StoredMemory, matches_any
from quality.results import ScoredMemory


def has_ended(stored: StoredMemory, memory: ScoredMemory) -> bool:
    """Return whether a memory was superseded or taken back, or got an end that it did not have."""
    return memory.replaced or (memory.invalid_at is not None and stored.memory.invalid_at is None)


def is_lost(stored: StoredMemory, memory: ScoredMemory, kept: Sequence[ScoredMemory]) -> bool:
    """Return whether a memory that still holds has ended and no current one says the same."""
    return has_ended(stored, memory) and not _restatements(stored, kept)


def is_reinforced(stored: StoredMemory, memory: ScoredMemory, kept: Sequence[ScoredMemory]) -> bool:
    """Return whether exactly one current memory says what was said again: the strengthened one, or its replacement."""
    restatements = _restatements(stored, kept)
    if has_ended(stored, memory):
        return len(restatements) == 1
    return memory.reinforced and not restatements


def _restatements(stored: StoredMemory, kept: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    """Return the current memories that were saved from the conversation and say the same."""
    saved = [memory for memory in kept if memory.current and memory.stored is None]
    return [memory for memory in saved if stored.restated and matches_any(memory.text, stored.restated)]
