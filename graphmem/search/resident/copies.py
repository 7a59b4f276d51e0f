"""The copies of active users in memory: loaded in the background, updated by reads, and dropped by size.

A group becomes resident at its second read within ten minutes, or at the first one within ten minutes of a write. That
read waits for the copy if the group is small, since one query returns it; otherwise it asks the database. A read brings
its copy up to the revision of the group, repeating until that is applied; a copy from which something may have been
removed is loaded again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import Context
from dataclasses import dataclass
from typing import Any

import structlog
from cachetools import TTLCache

from graphmem.memories.vectors import StoredVectors
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import set_tenant
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.metrics import RESIDENT_BYTES, RESIDENT_GROUPS, HitRate
from graphmem.runtime.times import Clock, to_micros
from graphmem.search.resident.group_copy import GroupCopy
from graphmem.search.resident.source import ResidentSource
from graphmem.search.source import CandidateSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.spaces import GroupState, Reader

ACTIVE_SECONDS = 600
"""Seconds within which two reads, or a read after a write, make a group resident."""

IDLE_SECONDS = 3_600
"""Seconds after which an unused copy is dropped, so that no process keeps what another has erased."""

KEPT_SECONDS = 60
"""Seconds after a read in which a copy is not dropped to make room, and after which room is sought again."""

MAX_TRACKED_GROUPS = 20_000
"""Maximum groups whose latest reads are remembered."""

MAX_SHARE = 0.25
"""Maximum share of the memory for copies that one group may take."""

PAGE = 200
"""Number of elements fetched at once while loading a copy; requests wait at most for decoding these."""

SMALL = 100
"""Number of elements of each kind below which a group is small: one query loads it faster than a database search."""

SMALL_LOAD_SECONDS = 5.0
"""Maximum seconds that a read waits for the copy of a small group before asking the database."""

MAX_CHANGES = 1_000
"""Maximum changes of one kind that a read waits for; a copy further behind is loaded again."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Load:
    """A copy being loaded; `small` is the copy of a small group, once loaded, or None for a larger group."""

    task: asyncio.Task[None]
    small: asyncio.Future[GroupCopy | None]


class ResidentCopies:
    """Provides sources of candidates: copies in memory for active users, the database for others and while loading."""

    def __init__(self, graph: Graph, vectors: StoredVectors, rights: Rights, clock: Clock, max_bytes: int) -> None:
        self._graph = graph
        self._vectors = vectors
        self._rights = rights
        self._clock = clock
        self._max_bytes = max_bytes
        self._copies: TTLCache[str, GroupCopy] = TTLCache(max_bytes, IDLE_SECONDS, getsizeof=lambda copy: copy.nbytes)
        self._read: TTLCache[str, bool] = TTLCache(MAX_TRACKED_GROUPS, ACTIVE_SECONDS)
        self._read_lately: TTLCache[str, int] = TTLCache(MAX_TRACKED_GROUPS, KEPT_SECONDS)
        self._too_large: TTLCache[str, bool] = TTLCache(MAX_TRACKED_GROUPS, IDLE_SECONDS)
        self._without_room: TTLCache[str, bool] = TTLCache(MAX_TRACKED_GROUPS, KEPT_SECONDS)
        self._loads: dict[str, _Load] = {}
        self._one_load = asyncio.Lock()
        self._updates: dict[str, asyncio.Lock] = {}
        self._hit_rate = HitRate("resident")

    @property
    def nbytes(self) -> int:
        """An estimate of the memory used by all copies."""
        return int(self._copies.currsize)

    async def open(self, reader: Reader) -> CandidateSource:
        """Return a source with everything written to the reader's groups before they were read."""
        state = await self._rights.get_state(reader)
        if not state.groups:  # nothing has been written, or everything is being erased
            return ResidentSource(self._graph, self._vectors, state, ())
        copies = await self._find_copies(state.groups) if self._max_bytes else None
        if copies is None:
            return CandidateSource(self._graph, self._vectors, state)
        return ResidentSource(self._graph, self._vectors, state, copies)

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything held for a user."""
        if load := self._loads.pop(owner.group_id, None):
            load.task.cancel()
            await asyncio.gather(load.task, return_exceptions=True)
        self._drop(owner.group_id)

    async def count_user(self, owner: Owner) -> int:
        """Return the number of copies held for a user."""
        return int(owner.group_id in self._copies)

    async def finish_loading(self) -> None:
        """Wait for the copies being loaded."""
        await asyncio.gather(*(load.task for load in self._loads.values()), return_exceptions=True)

    async def close(self) -> None:
        """Stop loading and drop all copies."""
        loads = [load.task for load in self._loads.values()]
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
        self._copies.clear()
        self._count()

    async def _find_copies(self, groups: Sequence[GroupState]) -> list[GroupCopy] | None:
        """Return the copies of groups as of their states or later, or None unless every group has one."""
        vectors = await self._graph.vector_state()
        if vectors is None or vectors.next is not None:
            return None
        # All at once, so that a group without a copy ends the wait for the others; loading that has begun continues.
        searches = [asyncio.ensure_future(self._find_copy(group, vectors.model)) for group in groups]
        found: dict[str, GroupCopy] = {}
        try:
            for search in asyncio.as_completed(searches):
                if (copy := await search) is None:
                    break
                found[copy.group_id] = copy
        finally:
            for search in searches:
                search.cancel()
        copies = [found[group.group_id] for group in groups if group.group_id in found]
        has_all = len(copies) == len(groups)
        self._hit_rate.count(is_hit=has_all)
        return copies if has_all and await self._update([*zip(copies, groups, strict=True)]) else None

    async def _find_copy(self, group: GroupState, model: EmbeddingModel) -> GroupCopy | None:
        """Return the copy of a group if it can be brought up to its state; start loading one for an active group."""
        copy = self._copies.get(group.group_id)
        if copy and _can_be_updated(copy, group, model):
            self._read_lately[group.group_id] = copy.nbytes
            return copy
        self._drop(group.group_id)
        if not self._is_active(group) or group.pending is not None:
            return None
        load = self._loads.get(group.group_id) or self._load(group, model)
        await asyncio.wait([load.small], timeout=SMALL_LOAD_SECONDS)
        loaded = load.small.result() if load.small.done() else None
        return loaded if loaded and _can_be_updated(loaded, group, model) else None

    def _is_active(self, group: GroupState) -> bool:
        """Return whether a group was read or written recently, and record the current read."""
        was_read = group.group_id in self._read
        self._read[group.group_id] = True
        since = to_micros(self._clock()) - ACTIVE_SECONDS * 1_000_000
        was_written = group.last_write_at is not None and group.last_write_at >= since
        can_be_held = group.group_id not in self._too_large and group.group_id not in self._without_room
        return (was_read or was_written) and can_be_held

    # Loading

    def _load(self, group: GroupState, model: EmbeddingModel) -> _Load:
        """Start loading a copy in the background."""
        copy, small = GroupCopy(group, model), asyncio.get_running_loop().create_future()
        # Not in the context of a request, whose limits end with it.
        task = asyncio.create_task(self._load_copy(copy, small), context=Context())
        load = self._loads[group.group_id] = _Load(task, small)
        task.add_done_callback(lambda _: self._end_load(group.group_id, load))
        return load

    def _end_load(self, group_id: str, load: _Load) -> None:
        if self._loads.get(group_id) is load:
            del self._loads[group_id]
        if not load.small.done():
            load.small.set_result(None)
        if load.task.cancelled() or (error := load.task.exception()) is None:
            return
        if isinstance(error, Unavailable):
            log.info("a user is not loaded into memory", reason=error.detail)
        else:
            log.error("a user could not be loaded into memory", exc_info=error)

    async def _load_copy(self, copy: GroupCopy, small: asyncio.Future[GroupCopy | None]) -> None:
        set_tenant(Owner.from_group_id(copy.group_id).tenant)
        first = await self._graph.fetch_value_from_any_member(
            "resident.load_first", group_id=copy.group_id, limit=SMALL
        )
        if all(len(found) < SMALL for found in first):
            _apply(copy, first)
            self._keep(copy)
            small.set_result(copy)
            return
        small.set_result(None)
        async with self._one_load:
            await self._load_pages(copy)

    async def _load_pages(self, copy: GroupCopy) -> None:
        """Load a copy some elements at a time, if there is room for it."""
        ids = await self._graph.fetch_value_from_any_member("resident.list_ids", group_id=copy.group_id)
        if not self._has_room(copy.group_id, copy.reserve(*map(len, ids))):
            return
        for kind, found in zip(("facts", "entities", "messages"), ids, strict=True):
            for start in range(0, len(found), PAGE):
                parts = {"facts": [], "entities": [], "messages": [], kind: found[start : start + PAGE]}
                _apply(
                    copy,
                    await self._graph.fetch_value_from_any_member("resident.load", group_id=copy.group_id, **parts),
                )
                if copy.nbytes > self._max_bytes * MAX_SHARE:
                    self._too_large[copy.group_id] = True
                    return
        self._keep(copy)

    def _has_room(self, group_id: str, nbytes: int) -> bool:
        """Return whether there is room for a copy of this size, and remember it if there is not.

        A recently read copy is not dropped for another one: groups that do not fit together would be loaded in turns,
        over and over.
        """
        if nbytes > self._max_bytes * MAX_SHARE:
            self._too_large[group_id] = True
            return False
        kept = sum(size for held, size in self._read_lately.items() if held in self._copies)
        if kept + nbytes > self._max_bytes:
            self._without_room[group_id] = True
            return False
        return True

    # Updating

    async def _update(self, pairs: Sequence[tuple[GroupCopy, GroupState]]) -> bool:
        """Bring copies up to the states of their groups in one query; return whether that was possible."""
        if not (behind := _behind(pairs)):
            return True
        async with AsyncExitStack() as locked:
            for copy, _ in sorted(
                behind, key=lambda pair: pair[0].group_id
            ):  # so that no two reads wait for each other
                await locked.enter_async_context(self._updates.setdefault(copy.group_id, asyncio.Lock()))
            if not (behind := _behind(behind)):
                return True
            revisions = [[copy.group_id, copy.revision] for copy, _ in behind]
            found = await self._graph.fetch_value_from_any_member(
                "resident.load_changes", revisions=revisions, limit=MAX_CHANGES
            )
            changes = dict(found)
            are_current = [self._apply_changes(copy, group, changes[copy.group_id]) for copy, group in behind]
            return all(are_current)

    def _apply_changes(self, copy: GroupCopy, group: GroupState, changes: Sequence[Sequence[Any]]) -> bool:
        """Apply changes to bring a copy up to a state; if there are too many, drop it and return False."""
        if any(len(changed) >= MAX_CHANGES for changed in changes):
            self._drop(group.group_id)
            return False
        _apply(copy, changes)
        copy.revision = max(copy.revision, group.applied_revision)
        if self._copies.get(group.group_id) is copy:
            self._keep(copy)
        return True

    def _keep(self, copy: GroupCopy) -> None:
        """Keep a copy, whose size may have changed."""
        self._drop(copy.group_id)
        if copy.nbytes <= self._max_bytes * MAX_SHARE:
            self._copies[copy.group_id] = copy
            self._read_lately[copy.group_id] = copy.nbytes
        else:
            self._too_large[copy.group_id] = True
        self._count()

    def _drop(self, group_id: str) -> None:
        self._copies.pop(group_id, None)
        if group_id in self._updates and not self._updates[group_id].locked():
            del self._updates[group_id]
        self._count()

    def _count(self) -> None:
        RESIDENT_GROUPS.set(len(self._copies))
        RESIDENT_BYTES.set(self.nbytes)


def _can_be_updated(copy: GroupCopy, group: GroupState, model: EmbeddingModel) -> bool:
    """Return whether changes can update a copy to its group's state: nothing was removed, and the vectors remain."""
    return copy.life == group.life and copy.model == model and copy.revision >= group.removal_revision


def _behind(pairs: Sequence[tuple[GroupCopy, GroupState]]) -> list[tuple[GroupCopy, GroupState]]:
    """Return the copies that are behind their groups, with the groups' states."""
    return [(copy, group) for copy, group in pairs if copy.revision < group.revision]


def _apply(copy: GroupCopy, elements: Sequence[Sequence[Any]]) -> None:
    """Put facts, entities and messages into a copy."""
    facts, entities, messages = elements
    for columns in facts:
        copy.facts.put(columns)
    for columns in entities:
        copy.put_entity(columns)
    for columns in messages:
        copy.messages.put(columns)
