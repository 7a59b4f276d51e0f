"""What the entries of an import must agree on: versions of a memory, messages of a session, references. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set

from graphmem.neo4j.schema import LinkType
from graphmem.runtime.json_values import JsonPath
from graphmem.user_data.export_entries import (
    ExportedArchivedEpisode,
    ExportedEpisode,
    ExportedLink,
    ExportedRecord,
    ExportedSession,
    ExportedVersion,
)
from graphmem.user_data.properties import FactProperties

Problem = tuple[JsonPath, str]
"""The place of an entry, and what is wrong with it as the end of a sentence."""

ExportedMessage = ExportedEpisode | ExportedArchivedEpisode


def find_version_problems(versions: Sequence[ExportedVersion]) -> Iterator[Problem]:
    """Yield the versions that do not follow one another: numbered from 1, each believed when the one before it ends."""
    by_memory: dict[str, list[tuple[int, FactProperties]]] = defaultdict(list)
    for index, version in enumerate(versions):
        by_memory[version.properties.memory_id].append((index, version.properties))
    for numbered in by_memory.values():
        numbered.sort(key=lambda entry: entry[1].version)
        earlier: FactProperties | None = None
        for index, fact in numbered:
            if fact.version != (earlier.version + 1 if earlier else 1):
                yield ("memories", index, "properties", "version"), "is not the one after an earlier version"
            elif earlier and earlier.expired_at != fact.created_at:
                yield ("memories", index, "properties", "created_at"), "is not when the earlier version ends"
            if fact.expired_at is not None and fact.expired_at <= fact.created_at:
                yield ("memories", index, "properties", "expired_at"), "is not after created_at"
            earlier = fact
        index, last = numbered[-1]
        if last.expired_at is not None and last.end_status is None:
            yield ("memories", index, "properties", "end_status"), "is needed where no later version follows"


def find_message_problems(records: Sequence[ExportedRecord], links: Sequence[ExportedLink]) -> Iterator[Problem]:
    """Yield the messages that are not in exactly the session that they name, or share their position with another."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for link in links:
        if link.type is LinkType.HAS_EPISODE:
            sessions[link.end].add(link.start)
    names = {record.key: record.properties.session_id for record in records if isinstance(record, ExportedSession)}
    positions: set[tuple[str, int]] = set()
    for index, record in enumerate(records):
        if not isinstance(record, ExportedMessage):
            continue
        message = record.properties
        if [names.get(key) for key in sessions[record.key]] != [message.session_id]:
            yield ("records", index), "is a message without a link HAS_EPISODE from its session alone"
        place = (message.session_id, message.position)
        if place in positions:
            yield ("records", index, "properties", "position"), "is that of another message of the session"
        positions.add(place)


def find_lost_references(
    versions: Sequence[ExportedVersion], entity_ids: Set[str], message_ids: Set[str], memory_ids: Set[str]
) -> Iterator[Problem]:
    """Yield the references of memories to none of the ids, which are those of the import and of the user.

    An id of neither may be another user's, and must not be stored.
    """
    for index, version in enumerate(versions):
        fact = version.properties
        ended_by = [fact.superseded_by] if fact.superseded_by else []
        for name, ids, known in (
            ("entity_ids", fact.entity_ids, entity_ids),
            ("episodes", fact.episodes, message_ids),
            ("supersedes", fact.supersedes, memory_ids),
            ("associations", fact.associations, memory_ids),
            ("superseded_by", ended_by, memory_ids),
        ):
            if lost := [reference for reference in ids or () if reference not in known]:
                yield (
                    ("memories", index, "properties", name),
                    f"names {lost[0]}, which neither the import nor the user has",
                )
