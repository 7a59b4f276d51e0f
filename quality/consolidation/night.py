"""Stores a case through the Python API, runs its nights, reads what is left, and rolls the nights back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from graphmem.consolidation.models import ConsolidationRun, RunStatus
from graphmem.graph_memory import GraphMemory
from graphmem.memories.memory import Memory, MemoryStatus
from graphmem.runtime.errors import GraphmemError
from graphmem.tenants.owners import Owner
from quality.consolidation.cases import NIGHT, USER, ConsolidationCase, SeedEntity, SeedMemory
from quality.consolidation.outcome import NightOutcome, StoredEntity, StoredMemory
from quality.consolidation.run_record import (
    closed_memory_ids,
    describe_refusals,
    executed_merges,
    find_differences,
    reported_contradictions,
)
from quality.consolidation.score import failed_reads

DAY = timedelta(days=1)
"""The time between two nights."""

FIRST_KNOWN = NIGHT - 3 * DAY
"""When the first memory of a case becomes known that gives no known time; the others follow by the minute."""

LIST_LIMIT = 200
"""Memories or entities of one case at most."""

RUN_MARKS = frozenset({"consolidated_at", "consolidated_by", "compressed_at", "compressed_by"})
"""Properties by which a run that changed nothing marks the memories it looked at."""


class CaseClock:
    """A clock that stands still until it is set."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the time that was set."""
        return self.now


@dataclass(slots=True)
class StoredCase:
    """A case in the database: its user's API, the ids of what was stored, and the state before the night."""

    case: ConsolidationCase
    memory: GraphMemory
    memory_ids: dict[str, str] = field(default_factory=dict)
    entity_ids: dict[str, str] = field(default_factory=dict)
    before: dict[str, StoredMemory] = field(default_factory=dict)
    entities_before: dict[str, StoredEntity] = field(default_factory=dict)
    reads_before: list[list[str]] = field(default_factory=list)
    known_before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    export: Any = None
    runs: list[ConsolidationRun] = field(default_factory=list)
    error: str | None = None

    @property
    def user_id(self) -> str:
        """The user of the case."""
        return self.case.user


async def store_case(memory: GraphMemory, case: ConsolidationCase, clock: CaseClock) -> StoredCase:
    """Store the memories of a case at the times at which they became known, and read the state before the night."""
    stored = StoredCase(case, memory)
    try:
        await _save_memories(stored, clock)
        clock.now = NIGHT - timedelta(hours=1)
        await _name_entities(stored)
        clock.now = NIGHT
        await _read_before(stored)
    except GraphmemError as error:
        stored.error = f"the case could not be stored: {error.detail}"
    return stored


async def run_night(stored: StoredCase) -> None:
    """Run the consolidation of one night."""
    if stored.error is not None:
        return
    try:
        run = await stored.memory.consolidate(stored.user_id, wait=True)
    except GraphmemError as error:
        stored.error = f"the night failed: {error.detail}"
        return
    assert isinstance(run, ConsolidationRun)
    stored.runs.append(run)
    if run.status not in (RunStatus.SUCCEEDED, RunStatus.ABORTED):
        stored.error = f"the night failed: {run.reason}"


async def finish_case(stored: StoredCase) -> NightOutcome:
    """Read what the nights left, roll them back, and return both."""
    if stored.error is not None:
        return NightOutcome(error=stored.error)
    merges = [merge for run in stored.runs for merge in executed_merges(run)]
    after = await _fetch_memories(stored, [merge.result_id for merge in merges])
    entities_after = await _fetch_entities(stored)
    reads_after = await _run_reads(stored)
    known_after = await _read_known_before_night(stored)
    return NightOutcome(
        memory_ids=stored.memory_ids,
        entity_ids=stored.entity_ids,
        before=stored.before,
        after=after,
        entities_before=stored.entities_before,
        entities_after=entities_after,
        merges=merges,
        closed=frozenset().union(*(closed_memory_ids(run) for run in stored.runs)),
        profiled=await _fetch_profiled(stored),
        reported=[reported for run in stored.runs for reported in reported_contradictions(run)],
        reads_before=stored.reads_before,
        reads_after=reads_after,
        rewritten=[key for key, entry in stored.known_before.items() if known_after.get(key) != entry],
        change_counts=[run.change_count for run in stored.runs],
        rollback_differences=await _roll_back(stored),
        refusals=[refusal for run in stored.runs for refusal in describe_refusals(run)],
    )


# Storing


async def _save_memories(stored: StoredCase, clock: CaseClock) -> None:
    case = stored.case
    known = {
        key: case.to_instant(memory.known) or FIRST_KNOWN + timedelta(minutes=index)
        for index, (key, memory) in enumerate(case.memories.items())
    }
    for key in sorted(known, key=lambda key: known[key]):
        clock.now = known[key]
        [result] = await stored.memory.add(stored.user_id, to_memory_input(case, case.memories[key]))
        if result.memory is None or result.memory.id in stored.memory_ids.values():
            stored.error = f"the case could not be stored: {key} is not saved ({result.reason})"
            return
        stored.memory_ids[key] = result.memory.id
    owner = Owner(stored.memory.tenant, stored.user_id)
    if case.timezone:
        await stored.memory.services.components.graph.execute(
            "episodes.set_timezone",
            group_id=owner.group_id,
            timezone=case.timezone,
            timezone_source_kind="user",
            permitted=["user"],
        )


def to_memory_input(case: ConsolidationCase, seed: SeedMemory) -> dict[str, Any]:
    """Return a memory of a case as it is saved through the API."""
    given: dict[str, Any] = {
        "content": seed.text,
        "type": seed.type,
        "subject": _entity_input(case, seed.about),
        "predicate": seed.predicate,
        "object": _entity_input(case, seed.object) if seed.object else None,
        "entities": [_entity_input(case, key) for key in seed.mentions],
        "valid_at": case.to_instant(seed.valid_from),
        "invalid_at": case.to_instant(seed.valid_until),
        "confidence": seed.confidence,
        "importance": seed.importance,
        "tags": seed.tags,
        "scope": seed.scope,
        "domain": seed.domain,
        "single_valued": seed.single_valued,
        "immutable": seed.immutable,
        "expires_at": case.to_instant(seed.expires),
        "source": {"session_id": seed.session} if seed.session else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _entity_input(case: ConsolidationCase, key: str) -> dict[str, str]:
    if key == USER:
        return {"name": case.user}
    entity = case.entities[key]
    return {"name": entity.name, **({"type": entity.type} if entity.type else {})}


async def _name_entities(stored: StoredCase) -> None:
    """Add the aliases and attributes of entities before the night, and find the ids of the entities."""
    if stored.error is not None:
        return
    case = stored.case
    entities = {USER: SeedEntity(name=case.user, aliases=case.user_aliases), **case.entities}
    page = await stored.memory.entities(stored.user_id, limit=LIST_LIMIT)
    ids = {entity.name: entity.id for entity in page.items}
    stored.entity_ids = {key: ids[entity.name] for key, entity in entities.items() if entity.name in ids}
    proposals = [
        {
            "action": "UPDATE_ENTITY",
            "entity_id": stored.entity_ids[key],
            "add_aliases": entity.aliases,
            "set": entity.attributes,
        }
        for key, entity in entities.items()
        if entity.aliases or entity.attributes
    ]
    if proposals:
        run = await stored.memory.consolidate(stored.user_id, wait=True, proposals=proposals)
        assert isinstance(run, ConsolidationRun)
        if run.executed != len(proposals):
            stored.error = f"the case could not be stored: {'; '.join(describe_refusals(run))}"


# Reading


async def _read_before(stored: StoredCase) -> None:
    if stored.error is not None:
        return
    stored.before = await _fetch_memories(stored, [])
    stored.entities_before = await _fetch_entities(stored)
    stored.reads_before = await _run_reads(stored)
    stored.known_before = await _read_known_before_night(stored)
    stored.export = await _export(stored)
    if wrong := failed_reads(stored.case.expected.reads, stored.reads_before):
        stored.error = f"the case is wrong before the night: {'; '.join(wrong)}"


async def _fetch_memories(stored: StoredCase, result_ids: Sequence[str]) -> dict[str, StoredMemory]:
    """Return the latest versions of all memories of the case, of those listed now, and of the results of merges."""
    listed = await stored.memory.memories(stored.user_id, limit=LIST_LIMIT)
    ids = dict.fromkeys([*stored.memory_ids.values(), *result_ids, *(memory.id for memory in listed.items)])
    found = [await stored.memory.memory(stored.user_id, memory_id) for memory_id in ids]
    return {memory.id: _to_stored(memory) for memory in found}


def _to_stored(memory: Memory) -> StoredMemory:
    return StoredMemory(
        id=memory.id,
        content=memory.content,
        active=memory.status is MemoryStatus.ACTIVE,
        valid_at=memory.valid_at,
        invalid_at=memory.invalid_at,
        superseded_by=memory.superseded_by,
    )


async def _fetch_entities(stored: StoredCase) -> dict[str, StoredEntity]:
    page = await stored.memory.entities(stored.user_id, limit=LIST_LIMIT)
    return {entity.id: StoredEntity(entity.id, (entity.name, *entity.aliases)) for entity in page.items}


async def _fetch_profiled(stored: StoredCase) -> frozenset[str]:
    """Return the ids of the entities that have a profile."""
    page = await stored.memory.memories(stored.user_id, type=["profile"], limit=LIST_LIMIT)
    return frozenset(memory.subject.id for memory in page.items)


async def _run_reads(stored: StoredCase) -> list[list[str]]:
    results = []
    for read in stored.case.expected.reads:
        times: dict[str, datetime | None] = {
            "valid_as_of": stored.case.to_instant(read.at),
            "known_as_of": stored.case.to_instant(read.known),
        }
        given: Mapping[str, Any] = {name: time for name, time in times.items() if time is not None}
        page = await stored.memory.memories(stored.user_id, limit=LIST_LIMIT, **given)
        results.append([memory.content for memory in page.items])
    return results


async def _read_known_before_night(stored: StoredCase) -> dict[str, tuple[str, ...]]:
    """Return what was known before the night, by memory id: contents and validity."""
    page = await stored.memory.memories(
        stored.user_id, known_as_of=NIGHT - timedelta(seconds=1), include_superseded=True, limit=LIST_LIMIT
    )
    return {memory.id: (memory.content, str(memory.valid_at), str(memory.invalid_at)) for memory in page.items}


async def _export(stored: StoredCase) -> Any:
    return json.loads(await stored.memory.export(stored.user_id))


async def _roll_back(stored: StoredCase) -> list[str]:
    """Roll back all nights that changed something, the latest first; return how the export differs from before."""
    for run in reversed(stored.runs):
        if run.change_count:
            try:
                await stored.memory.rollback(run.id)
            except GraphmemError as error:
                return [f"{run.id}: {error.detail}"]
    has_changed = any(run.change_count for run in stored.runs)
    ignored: frozenset[str] = frozenset() if has_changed else RUN_MARKS
    return find_differences(stored.export, await _export(stored), ignored)
