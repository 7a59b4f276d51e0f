"""An export whose entries are attributed to the importer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphmem.neo4j.schema import RecordLabel
from graphmem.runtime.field_types import name_key
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.trust import Effect, SourceKind, StatedKind, TrustOrder
from graphmem.user_data.export_reader import ExportSource
from graphmem.user_data.export_schema import (
    ExportedEntity,
    ExportedLink,
    ExportedRecord,
    ExportedVersion,
    ExportEntry,
    ExportHead,
)


@dataclass(frozen=True, slots=True)
class Importer:
    """The author and time of an import: the key, the kind of source it speaks as, and for a space the member.

    `order` is the tenant's order of trust; `members` are the name keys of the space's other members.
    """

    key: str | None
    kind: StatedKind
    order: TrustOrder
    now: datetime
    member: str | None = None
    members: Set[str] = frozenset()

    def own_kind(self, stated: SourceKind) -> SourceKind:
        """Return the source of an imported statement: the stated one if the caller may claim it, else an import."""
        if stated != "operator" and self.order.permits(Effect.QUOTE_AS, self.kind, stated):
            return stated
        return "import" if self.order.permits(Effect.QUOTE_AS, self.kind, "import") else self.kind


KNOWN_TIMES = ("created_at", "first_created_at", "updated_at", "expired_at")
"""Times of entries at which something became known or ceased to be."""


@dataclass(slots=True)
class ClaimedExport:
    """The entries of an export with the importer as their author; their content is unchanged.

    Data that a member imports into a space is known since the import: its known times become the last microseconds
    before it, in the same order.
    """

    source: ExportSource
    importer: Importer
    _known_at: dict[datetime, datetime] = field(init=False)

    def __post_init__(self) -> None:
        if self.importer.member is None:
            self._known_at = {}
            return
        times = {time for _, entry in self.source.entries() for time in _known_times(entry).values()}
        first = self.importer.now - len(times) * MICROSECOND
        self._known_at = {time: first + place * MICROSECOND for place, time in enumerate(sorted(times))}

    @property
    def head(self) -> ExportHead:
        """The header."""
        return self.source.head

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section."""
        for place, entry in self.source.entries():
            yield place, self._claim(entry)

    def _claim(self, entry: ExportEntry) -> ExportEntry:
        match entry:
            case ExportedVersion():
                changes = self._claim_version(entry.properties)
            case ExportedEntity():
                changes = self._claim_entity(entry.properties)
            case ExportedRecord():
                changes = self._claim_record(entry)
            case _:
                return entry
        known = {name: self._known_at.get(time, time) for name, time in _known_times(entry).items()}
        return entry.model_copy(update={"properties": {**entry.properties, **known, **changes}})

    def _claim_version(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        importer = self.importer
        kind, trusted_as = importer.own_kind(stored["source_kind"]), stored.get("trusted_as")
        changes: dict[str, Any] = {"source_kind": kind, "actor": importer.key}
        if trusted_as is not None:
            changes["trusted_as"] = importer.own_kind(trusted_as)
        if stored.get("ended_actor") is not None:
            changes["ended_actor"] = importer.key
        return changes if importer.member is None else changes | {"speaker": importer.member}

    def _claim_entity(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Remove the names of other members of a space, and the descriptions of these members."""
        members = self.importer.members
        is_member = name_key(stored["name"]) in members
        kept = [alias for alias in stored["aliases"] if not is_member and name_key(alias) not in members]
        own = {"summary": ""} if is_member else {}
        return own | {
            "aliases": kept,
            "alias_keys": [name_key(alias) for alias in kept],
            "alias_text": " ".join(kept),
        }

    def _claim_record(self, record: ExportedRecord) -> dict[str, Any]:
        member = self.importer.member
        if member is None or record.label not in (RecordLabel.EPISODIC, RecordLabel.SESSION):
            return {}
        named = {"speaker": member} if record.properties.get("role") == "user" else {}
        return {"author": member, **named}


def _known_times(entry: ExportEntry) -> dict[str, datetime]:
    if isinstance(entry, ExportedLink):
        return {}
    found = {name: entry.properties.get(name) for name in KNOWN_TIMES}
    return {name: time for name, time in found.items() if isinstance(time, datetime)}
