"""Operations on memories that need no language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from graphmem.changes.models import ChangesQuery, MemoryChange
from graphmem.client.inputs import (
    ListChangesOptions,
    ListMemoriesOptions,
    MemoryChanges,
    MemoryInput,
    parse_memories,
)
from graphmem.client.operations.request import Request
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import (
    Memory,
    MemoryPatch,
    MemoryUpdate,
    MemoryVersion,
    SaveIn,
    SaveResult,
)
from graphmem.runtime.paging import Page
from graphmem.runtime.validation import validate_arguments


def add(
    user_id: str, memories: MemoryInput | Sequence[MemoryInput], *, infer: bool = False
) -> Request[SaveIn, list[SaveResult]]:
    """Save one statement or several: all of them or none.

    No language model is called, unless with `infer` one compares them with what is known.
    """
    return Request(parse_memories(memories, infer=infer), user_id)


def memories(user_id: str, **filters: Unpack[ListMemoriesOptions]) -> Request[ListFilters, Page[Memory]]:
    """List current memories by attributes, without ranking."""
    return Request(validate_arguments(ListFilters, filters), user_id)


def memory(user_id: str, memory_id: str) -> Request[None, Memory]:
    """Read a memory, deleted or not."""
    return Request(None, user_id, memory_id)


def update(
    user_id: str, memory_id: str, *, if_version: int | None = None, **changes: Unpack[MemoryChanges]
) -> Request[MemoryUpdate, Memory]:
    """Correct a memory in a new version; raise VersionConflict when `if_version` is not the latest."""
    return Request(MemoryUpdate(validate_arguments(MemoryPatch, changes), if_version), user_id, memory_id)


def delete(user_id: str, memory_id: str) -> Request[None, Memory]:
    """End a memory; it stays in history."""
    return Request(None, user_id, memory_id)


def erase_memory(user_id: str, memory_id: str) -> Request[None, int]:
    """Erase every version of a memory everywhere (admin) and return the number of versions."""
    return Request(None, user_id, memory_id)


def history(user_id: str, memory_id: str) -> Request[None, list[MemoryVersion]]:
    """Return every version of a memory, oldest first, with why it ended and what replaced it."""
    return Request(None, user_id, memory_id)


def changes(user_id: str, **options: Unpack[ListChangesOptions]) -> Request[ChangesQuery, Page[MemoryChange]]:
    """List what graphmem learned, corrected, merged, deleted and restored between two times, oldest first."""
    return Request(validate_arguments(ChangesQuery, options), user_id)


def revert(user_id: str, memory_id: str) -> Request[None, Memory]:
    """Undo one supersession: reopen the memory and close the one that replaced it."""
    return Request(None, user_id, memory_id)
