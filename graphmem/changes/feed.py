"""Changes to a user's memories, read from memory versions and rollback records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from graphmem.changes.models import ChangeKind, ChangesQuery, MemoryChange, classify_version
from graphmem.memories import snapshot_store
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact, fact_from_row, memory_from_fact
from graphmem.memories.saving import entity_ids_of
from graphmem.memories.snapshot import ElementKind, fact_from_image
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import TIME_CURSOR, Page, take_page
from graphmem.runtime.times import MIN_TIME, Clock, from_micros
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import scope_of

ROLLED_BACK_REASON = "rolled back"
"""Reason given for changes that undo a consolidation run."""

ChangePosition = tuple[datetime, str]
"""Time and key of the change after which a page continues."""


_ChangedFact = tuple[MemoryChange, Fact | None]
"""A change without its memory, and the version that becomes it."""


class ChangeStore:
    """Reads the changes of all users; `clock` decides what is current."""

    def __init__(self, graph: Graph, entities: EntityStore, clock: Clock) -> None:
        self._graph = graph
        self._entities = entities
        self._clock = clock

    async def list_page(
        self,
        owner: Owner,
        since: datetime,
        until: datetime,
        after_key: str | None,
        limit: int,
        *,
        with_global: bool = True,
    ) -> tuple[list[MemoryChange], ChangePosition | None]:
        """Return the changes from `since` up to before `until`, oldest first, and the position of the next page.

        `after_key` is the id of the last change at `since` that an earlier page returned. `with_global` includes
        changes to memories shared with every user of the tenant.
        """

        async def work(transaction: Transaction) -> tuple[list[MemoryChange], ChangePosition | None]:
            rows = await transaction.run(
                "changes.list_page",
                group_ids=scope_of(owner).group_ids if with_global else [owner.group_id],
                since=since,
                until=until,
                after_key=after_key,
                limit=limit + 1,
            )
            kept, last = take_page(rows, limit)
            changes = await self._to_changes(transaction, owner, kept)
            position = None if last is None else (_time_of(last), last["key"])
            return await self._load_memories(transaction, owner, changes), position

        return await self._graph.read(work)

    async def page(self, owner: Owner, query: ChangesQuery) -> Page[MemoryChange]:
        """Return one page of changes, oldest first.

        A change recorded twice, as the end of one memory and the start of another, counts as two. Raises InvalidInput
        if `until` is before `since` or the cursor belongs to another list.
        """
        since = query.since or MIN_TIME
        until = query.until or max(since, self._clock())  # the caller's clock may be ahead
        if until < since:
            raise InvalidInput("until is before since.", errors=[{"loc": ["until"], "msg": "must not be before since"}])
        after_key = None
        if query.cursor:
            since, after_key = TIME_CURSOR.decode(query.cursor)
        changes, position = await self.list_page(owner, since, until, after_key, query.limit)
        return Page(items=changes, next_cursor=TIME_CURSOR.encode(position) if position else None)

    async def _to_changes(
        self, transaction: Transaction, owner: Owner, rows: list[dict[str, Any]]
    ) -> list[_ChangedFact]:
        groups = scope_of(owner).group_ids
        ids = [row["version_id"] for row in rows if row["version_id"]]
        found = await transaction.run("changes.fetch_versions", group_ids=groups, ids=ids)
        versions = {fact.uuid: fact for fact in map(fact_from_row, found)}
        later = [
            {"memory_id": fact.memory_id, "version": fact.version} for fact in versions.values() if fact.version > 1
        ]
        found = await transaction.run("changes.fetch_previous_versions", group_ids=groups, rows=later)
        previous = {(fact.memory_id, fact.version): fact for fact in map(fact_from_row, found)}
        restored = await self._fetch_rolled_back(transaction, owner, rows)
        changes = []
        for row in rows:
            if row["run_id"]:
                changes.append(_undone(row, restored.get(row["key"])))
            elif fact := versions.get(row["version_id"]):
                changes.append(_made(row, fact, previous.get((fact.memory_id, fact.version - 1))))
        return changes

    async def _fetch_rolled_back(
        self, transaction: Transaction, owner: Owner, rows: list[dict[str, Any]]
    ) -> Mapping[str, tuple[ChangeKind, Fact]]:
        """Return the effect of each rollback on each memory, by change key."""
        wanted = {row["key"] for row in rows if row["run_id"]}
        found: dict[str, tuple[ChangeKind, Fact]] = {}
        for run_id in {row["run_id"] for row in rows if row["run_id"]}:
            for change in await snapshot_store.list_changes(transaction, run_id):
                key = f"{run_id}:{change.memory_id}"
                if change.kind is not ElementKind.FACT or key not in wanted:
                    continue
                if change.after is not None:
                    fact, kind = fact_from_image(change.after), ChangeKind.RESTORED
                elif change.before is not None:
                    fact, kind = fact_from_image(change.before), ChangeKind.DELETED
                else:
                    continue
                # A memory restored to an earlier version has lost the later one, so the restored version counts.
                if key not in found or _outranks((kind, fact), found[key]):
                    found[key] = (kind, fact)
        return found

    async def _load_memories(
        self, transaction: Transaction, owner: Owner, changes: list[_ChangedFact]
    ) -> list[MemoryChange]:
        facts = [fact for _, fact in changes if fact]
        refs = await self._entities.get_refs(transaction, owner, entity_ids_of(facts))
        now = self._clock()
        return [
            change.model_copy(update={"memory": memory_from_fact(fact, refs, now)})
            if fact and {fact.subject_id, fact.object_id or fact.subject_id} <= refs.keys()
            else change
            for change, fact in changes
        ]


def _time_of(row: Mapping[str, Any]) -> datetime:
    return from_micros(int(row["at"]))


def _made(row: Mapping[str, Any], fact: Fact, previous: Fact | None) -> _ChangedFact:
    """Return the change made by creating, deleting or archiving a version."""
    if row["key"].endswith(":ended"):
        return _change(row, ChangeKind.DELETED, fact.memory_id, fact.ended_reason, fact.ended_actor), fact
    reason = previous.ended_reason if previous else None
    return _change(row, classify_version(fact, previous), fact.memory_id, reason, fact.actor), fact


def _undone(row: Mapping[str, Any], restored: tuple[ChangeKind, Fact] | None) -> _ChangedFact:
    """Return the change that a rollback made."""
    kind, fact = restored or (ChangeKind.RESTORED, None)
    reason = f"{ROLLED_BACK_REASON}: {row['undoes']}" if row["undoes"] else ROLLED_BACK_REASON
    return _change(row, kind, row["memory_id"], reason, row["actor"]), fact


def _change(
    row: Mapping[str, Any], kind: ChangeKind, memory_id: str, reason: str | None, actor: str | None
) -> MemoryChange:
    return MemoryChange(
        id=row["key"], at=_time_of(row), kind=kind, memory_id=memory_id, memory=None, reason=reason, actor=actor
    )


def _outranks(one: tuple[ChangeKind, Fact], other: tuple[ChangeKind, Fact]) -> bool:
    return (one[0] is ChangeKind.RESTORED, one[1].version) > (other[0] is ChangeKind.RESTORED, other[1].version)
