"""Whose word the details of an entity are, and what becomes of those that a source gives. Pure.

Details are its name, its type, its summary, its attributes and its aliases. A source adds what is missing; by
`Effect.RENAME` another one changes an attribute only if it is trusted as much, and the name, the type and the summary,
which an entity has one of, only if it is trusted more.

A node holds the sources of details that are not the user's as a list of texts such as "tool alias carol": a list, so
that a rollback can take back single ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, parse_entity_type
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.field_types import to_json
from graphmem.tenants.trust import Effect, SourceKind, TrustOrder

_KIND: TypeAdapter[SourceKind] = TypeAdapter(SourceKind)

NAME, TYPE, SUMMARY = "name", "type", "summary"
"""The details that an entity has one of."""


def alias_detail(key: str) -> str:
    """Return the detail that is the alias of a key."""
    return f"alias {key}"


def attribute_detail(name: str) -> str:
    """Return the detail that is an attribute."""
    return f"attribute {name}"


def read_detail_sources(stored: Mapping[str, Any]) -> dict[str, SourceKind]:
    """Return the sources of the details of an entity node that are not the user's, by detail."""
    parts = [text.partition(" ") for text in stored.get("detail_sources") or ()]
    return {detail: _KIND.validate_python(kind) for kind, _, detail in parts}


def write_detail_sources(sources: Mapping[str, SourceKind]) -> list[str] | None:
    """Return sources of details as an entity node holds them, None where all are the user's."""
    return [f"{kind} {detail}" for detail, kind in sources.items() if kind != "user"] or None


def follow_aliases(stored: Mapping[str, Any], kind: SourceKind, order: TrustOrder) -> list[str]:
    """Return the aliases of an entity node that mean it for a source: none that a less trusted one gave."""
    sources = read_detail_sources(stored)
    return [
        alias
        for alias, key in zip(stored["aliases"] or (), stored["alias_keys"] or (), strict=True)
        if order.permits(Effect.REDIRECT, sources.get(alias_detail(key), "user"), kind)
    ]


class SourcedDetails:
    """The details of an entity node, and the changes that sources make of them."""

    def __init__(self, stored: Mapping[str, Any], order: TrustOrder) -> None:
        self._stored = stored
        self._order = order
        self._sources = read_detail_sources(stored)
        self._changes: Row = {}

    def is_of_another(self, kind: SourceKind, members: Set[str]) -> bool:
        """Return whether the entity is a person whose names and description a source does not give.

        That is the user for a less trusted source, and each of some members of a space, by name key.
        """
        if self._stored["name_key"] in members:
            return True
        # Only the user and admins import as an import.
        by: SourceKind = "user" if kind == "import" else kind
        return bool(self._stored["is_user"]) and not self._order.permits(Effect.RENAME, by, "user")

    def give_name(self, name: str, kind: SourceKind) -> None:
        """Write the name as a source does, whose key it has; a more trusted one decides."""
        if self._is_more_trusted(kind, NAME):
            self._set("name", name, NAME, kind)

    def may_rename(self, kind: SourceKind) -> bool:
        """Return whether a source may give the entity another name."""
        return self._may_change(kind, NAME)

    def rename(self, kind: SourceKind) -> list[str] | None:
        """Return the sources of the details once a source gave the entity another name."""
        self._give(NAME, kind)
        return write_detail_sources(self._sources)

    def give_type(self, entity_type: str, kind: SourceKind) -> None:
        """Set the type that a source gives, if it was unknown or comes from a less trusted one."""
        known = self._get("type")
        if entity_type != DEFAULT_ENTITY_TYPE and (known == DEFAULT_ENTITY_TYPE or self._is_more_trusted(kind, TYPE)):
            self._set("type", entity_type, TYPE, kind)

    def give_summary(self, summary: str, kind: SourceKind) -> bool:
        """Set the summary that a source gives if there was none or a less trusted one's; return whether it is set."""
        known = self._get("summary") or ""
        if summary and (not known or self._is_more_trusted(kind, SUMMARY)):
            self._set("summary", summary, SUMMARY, kind)
        return summary in ("", self._get("summary"))

    def give_attributes(self, attributes: Mapping[str, Any], kind: SourceKind) -> bool:
        """Set attributes that a source gives; return whether all of them are the entity's now."""
        known = self._attributes
        taken = {
            name: value
            for name, value in attributes.items()
            if name not in known or self._may_change(kind, attribute_detail(name))
        }
        for name in taken:
            self._give(attribute_detail(name), kind)
        merged = {**known, **taken}
        self._set_attributes(merged)
        return all(name in merged and merged[name] == value for name, value in attributes.items())

    def add_aliases(self, names_by_key: Mapping[str, str], kind: SourceKind) -> list[str]:
        """Add names that a source gives and return those added; a name that is an alias already is its own now too."""
        known = self._aliases
        for key in names_by_key.keys() & known.keys():
            if self._is_more_trusted(kind, alias_detail(key)):
                self._give(alias_detail(key), kind)
        own = {*known, self._stored["name_key"], ""}
        added = {key: name for key, name in names_by_key.items() if key not in own}
        if added:
            self._set_aliases({**known, **added})
            for key in added:
                self._give(alias_detail(key), kind)
        return list(added.values())

    def drop_aliases(self, keys: Set[str]) -> None:
        """Take aliases away: a more trusted source calls another entity so."""
        known = self._aliases
        if known.keys() & keys:
            self._set_aliases({key: name for key, name in known.items() if key not in keys})
            for key in keys:
                self._sources.pop(alias_detail(key), None)

    def overwrite(self, values: Mapping[str, Any], kind: SourceKind) -> None:
        """Set the summary, the type and attributes as a source gives them, whoever gave those that were there."""
        attributes = {name: value for name, value in values.items() if name not in (SUMMARY, TYPE)}
        if SUMMARY in values:
            self._set("summary", values[SUMMARY], SUMMARY, kind)
        if TYPE in values:
            self._set("type", parse_entity_type(values[TYPE]), TYPE, kind)
        for name in attributes:
            self._give(attribute_detail(name), kind)
        self._set_attributes({**self._attributes, **attributes})

    def absorb(self, other: Mapping[str, Any]) -> None:
        """Add the details of the node of an entity that becomes a part of this one, each as the word of its source.

        What both have stays that of this one; the name of the other is an alias now, and of a summary of both each half
        may be of a source that is not the user's.
        """
        part = SourcedDetails(other, self._order)
        names = {other["name_key"]: other["name"], **part._aliases}
        has_type = self._get("type") != DEFAULT_ENTITY_TYPE
        known = {
            *map(alias_detail, (*self._aliases, self._stored["name_key"])),
            *map(attribute_detail, self._attributes),
        }
        known |= {TYPE} if has_type else set()
        if NAME in part._sources:
            part._sources[alias_detail(other["name_key"])] = part._sources.pop(NAME)
        inherited = {detail: kind for detail, kind in part._sources.items() if detail not in known}
        self._sources = {**inherited, **self._sources}
        own = {*self._aliases, self._stored["name_key"]}
        self._set_aliases({**self._aliases, **{key: name for key, name in names.items() if key not in own}})
        self._set_attributes({**part._attributes, **self._attributes})
        self._changes["summary"] = "\n".join(dict.fromkeys(filter(None, (self._get("summary"), other["summary"]))))
        self._changes["type"] = self._get("type") if has_type else other["type"]

    @property
    def node(self) -> Row:
        """The properties of the node with what was changed."""
        return {**self._stored, **self._changes, "detail_sources": write_detail_sources(self._sources)}

    def to_row(self, now: datetime) -> Row | None:
        """Return what is to be written, as `snapshots.set_entities` takes it; None for nothing."""
        sources = write_detail_sources(self._sources)
        if not self._changes and sources == (self._stored.get("detail_sources") or None):
            return None
        properties = {**self._changes, "detail_sources": sources, "updated_at": now}
        before, after = self._stored["type"], self._get("type")
        if before != after:
            properties["labels"] = ["Entity", after]
        return {
            "id": self._stored["uuid"],
            "properties": properties,
            "labels": [after],
            "removed_labels": [before] if before != after else [],
        }

    def _get(self, name: str) -> Any:
        return self._changes[name] if name in self._changes else self._stored.get(name)

    def _set(self, name: str, value: object, detail: str, kind: SourceKind) -> None:
        if value != self._get(name):
            self._changes[name] = value
        self._give(detail, kind)

    @property
    def _attributes(self) -> dict[str, Any]:
        return dict(json.loads(self._get("attributes") or "{}"))

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if attributes != self._attributes:
            self._changes["attributes"] = to_json(attributes)

    @property
    def _aliases(self) -> dict[str, str]:
        """The aliases by their keys."""
        return dict(zip(self._get("alias_keys") or (), self._get("aliases") or (), strict=True))

    def _set_aliases(self, aliases: Mapping[str, str]) -> None:
        self._changes |= {
            "aliases": list(aliases.values()) or None,
            "alias_keys": list(aliases) or None,
            "alias_text": " ".join(aliases.values()),
        }

    def _give(self, detail: str, kind: SourceKind) -> None:
        if kind == "user":
            self._sources.pop(detail, None)
        else:
            self._sources[detail] = kind

    def _source_of(self, detail: str) -> SourceKind:
        return self._sources.get(detail, "user")

    def _may_change(self, kind: SourceKind, detail: str) -> bool:
        return self._order.permits(Effect.RENAME, kind, self._source_of(detail))

    def _is_more_trusted(self, kind: SourceKind, detail: str) -> bool:
        """Return whether the source of a detail could not change what this one gives."""
        return not self._order.permits(Effect.RENAME, self._source_of(detail), kind)
