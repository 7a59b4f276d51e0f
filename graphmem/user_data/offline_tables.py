"""The entries of exports as rows of the tables that Neo4j's import tool reads: the graph that an import makes. Pure."""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import chain
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import uuid4

from graphmem.memories.fact import FACT_FIELDS, SHADOW_PROPERTIES, VECTOR_PROPERTY
from graphmem.neo4j.schema import LinkType
from graphmem.runtime.errors import InvalidInput
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import UserExport
from graphmem.user_data.export_entries import (
    RECORD_PROPERTIES,
    EntityProperties,
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedSession,
    ExportedVersion,
    ExportEntry,
    FactProperties,
    LinkProperties,
    Properties,
    UserProperties,
)
from graphmem.user_data.import_rows import ExportedNode, link_row, node_row, version_row

FIELD_DELIMITER = "\x1f"
"""Between two fields of a row: the unit separator of ASCII. Inside a field it is quoted."""

ITEM_DELIMITER = "\x1e"
"""Between two items of a list: the record separator of ASCII. The tool has no way to quote it inside an item."""

_FIRST_REVISION = 1
"""The revision of what the first write of a user stores."""

_BITS_PER_USER = 32
"""Bits of a node's number that count the nodes of one user; those before it are the number of the user."""

_VECTOR_TYPE = "float[]"

_SCALAR_TYPES: dict[type, str] = {bool: "boolean", int: "long", float: "double", datetime: "datetime"}


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of nodes of one kind, or of relationships of one type, with the types that the tool gives them."""

    name: str
    ends: tuple[str, ...]
    columns: Mapping[str, str]
    labels_vary: bool = False

    @property
    def is_of_nodes(self) -> bool:
        """Whether the rows are nodes."""
        return len(self.ends) == 1

    @property
    def header(self) -> str:
        """The first line, which names and types the columns."""
        properties = [f"{name}:{kind}" for name, kind in self.columns.items()]
        return FIELD_DELIMITER.join([*self.ends, *properties, *([":LABEL"] if self.labels_vary else [])]) + "\n"

    def line(self, ends: Sequence[int], properties: Mapping[str, Any], labels: Sequence[str] = ()) -> str:
        """Return a row; raise InvalidInput for a value that the tool cannot read."""
        if unknown := properties.keys() - self.columns.keys():
            raise AssertionError(f"{self.name} has no column for {', '.join(sorted(unknown))}")
        values = [_field(properties.get(name)) for name in self.columns]
        return (
            FIELD_DELIMITER.join([*map(str, ends), *values, *([ITEM_DELIMITER.join(labels)] if labels else [])]) + "\n"
        )


def _field(value: Any) -> str:
    """Return a value as a field: nothing for None, texts quoted, so that empty ones stay."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return _list_field(value)
    return repr(value)


def _list_field(items: Sequence[Any]) -> str:
    if not items or not isinstance(items[0], str):
        return ITEM_DELIMITER.join(map(repr, items))
    if any(ITEM_DELIMITER in item for item in items) or list(items) == [""]:
        raise InvalidInput(
            "A list has a text that Neo4j's import tool cannot read, an empty one alone or one with the character "
            "U+001E: leave the file out, and import it with `graphmem import` afterwards."
        )
    return _quoted(ITEM_DELIMITER.join(items))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _column_type(annotation: Any) -> str:
    """Return the type that the tool gives to the values of a field of a model."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _column_type(arguments[0])
    if origin in (Union, types.UnionType):
        return _column_type(next(argument for argument in arguments if argument is not type(None)))
    if origin in (list, tuple):
        return f"{_column_type(arguments[0])}[]"
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, str | Enum)):
        return "string"
    return _SCALAR_TYPES[annotation]


def _columns(model: type[Properties]) -> dict[str, str]:
    """Return the types of the fields of a model; the only numbers in lists are vectors, which have 4 bytes a number."""
    types_of_fields = {name: _column_type(field.annotation) for name, field in model.model_fields.items()}
    return {name: _VECTOR_TYPE if kind == "double[]" else kind for name, kind in types_of_fields.items()}


_TEXT, _TIME, _NUMBER = "string", "datetime", "long"


def _node_table(name: str, columns: Mapping[str, str], *, labels_vary: bool = False) -> Table:
    owned = {"group_id": _TEXT, "group_key": _TEXT, "revision": _NUMBER}
    return Table(name, (":ID",), {**columns, **owned}, labels_vary)


USERS = _node_table(
    "User",
    {**_columns(UserProperties), "tenant": _TEXT, "user_id": _TEXT, "life": _TEXT, "write_version": _NUMBER}
    | {"last_write_at": _TIME},
)
ENTITIES = _node_table("Entity", _columns(EntityProperties), labels_vary=True)
ALIASES = _node_table("EntityAlias", {"key": _TEXT})
RECORDS = {label: _node_table(label, _columns(model)) for label, model in RECORD_PROPERTIES.items()}

_ENDS = (":START_ID", ":END_ID")
FACTS = Table(
    "RELATES_TO",
    _ENDS,
    {
        **{field.property_name: _column_type(field.type) for field in FACT_FIELDS if field.property_name == "group_id"},
        **_columns(FactProperties),
        **dict.fromkeys(SHADOW_PROPERTIES, _TIME),
        "profile_of": _TEXT,
        "group_key": _TEXT,
        "revision": _NUMBER,
        VECTOR_PROPERTY: _VECTOR_TYPE,
    },
)
REFERENCES = Table("REFERS_TO", _ENDS, {"group_id": _TEXT, "memory_id": _TEXT})
ALIAS_LINKS = Table("ALIAS_OF", _ENDS, {})
LINKS = {link: Table(link.value, _ENDS, {**_columns(LinkProperties), "group_id": _TEXT}) for link in LinkType}

TABLES = {
    table.name: table
    for table in (USERS, ENTITIES, ALIASES, *RECORDS.values(), FACTS, REFERENCES, ALIAS_LINKS, *LINKS.values())
}
"""Every table by its name."""


class UserRows:
    """Turns the entries of one user's export, in their order, into rows; `now` is when the user is imported.

    `ids` are those that no other user may have: of entities, messages and versions. Sessions wait for the links to
    their messages. What does not fit together is left out here: the checks of an export refuse it.
    """

    def __init__(self, owner: Owner, number: int, head: UserExport, now: datetime) -> None:
        self._owner = owner
        self._head = head
        self._now = self._latest = now
        self._next_id = number << _BITS_PER_USER
        self._node_ids: dict[str, int] = {}
        self._aliases: dict[str, int] = {}
        self._version_ids: set[str] = set()
        self._messages: dict[str, tuple[int, str]] = {}
        self._sessions: list[ExportedSession] = []
        self._in_session: dict[str, list[tuple[int, str]]] = defaultdict(list)
        self._links: set[tuple[str, int, int]] = set()
        self._memory_id = ""
        self._references: dict[tuple[int, int], None] = {}

    def add(self, entry: ExportEntry) -> Iterator[tuple[Table, str]]:
        """Yield the rows of an entry."""
        if isinstance(entry, ExportedVersion):
            return self._version(entry)
        if isinstance(entry, ExportedLink):
            return self._link(entry)
        if isinstance(entry, ExportedSession):
            self._sessions.append(entry)
            self._node_ids[entry.key] = self._new_id()
            return iter(())
        return self._node(entry)

    def finish(self) -> Iterator[tuple[Table, str]]:
        """Yield the rows that follow from all entries: of sessions and of the user."""
        yield from self._rows_of_references()
        for session in self._sessions:
            messages = sorted(self._in_session[session.key])
            properties = node_row(self._owner, session, {})["properties"]
            properties["message_count"] = len(messages) + len(properties.get("transcript") or ())
            properties["last_episode"] = messages[-1][1] if messages else None
            yield self._node_line(RECORDS["Session"], self._node_ids[session.key], properties)
        owner = self._owner
        properties = {
            "group_id": owner.group_id,
            "tenant": owner.tenant,
            "user_id": owner.user_id,
            "life": str(uuid4()),
            "write_version": 1,
            "last_write_at": self._latest,
            "created_at": self._now,
            **self._head.user.to_graph(),
        }
        yield self._node_line(USERS, self._new_id(), properties)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _node_line(
        self, table: Table, node_id: int, properties: dict[str, Any], labels: Sequence[str] = ()
    ) -> tuple[Table, str]:
        return table, table.line([node_id], {**properties, "revision": _FIRST_REVISION}, labels)

    def _node(self, node: ExportedNode) -> Iterator[tuple[Table, str]]:
        node_id = self._node_ids[node.key] = self._new_id()
        row = node_row(self._owner, node, {})
        properties = row["properties"]
        if isinstance(node, ExportedEntity):
            yield self._node_line(ENTITIES, node_id, properties, row["labels"])
            yield from self._rows_of_aliases(node_id, node.properties.alias_keys)
            return
        if isinstance(node, ExportedEpisode):
            properties["entity_edges"] = [key for key in properties["entity_edges"] if key in self._version_ids]
        if "position" in properties:
            self._messages[node.key] = (properties["position"], properties["uuid"])
        yield self._node_line(RECORDS[node.labels[0]], node_id, properties)

    def _rows_of_aliases(self, entity_id: int, keys: Sequence[str]) -> Iterator[tuple[Table, str]]:
        for key in dict.fromkeys(keys):
            if key not in self._aliases:
                self._aliases[key] = self._new_id()
                properties = {"group_id": self._owner.group_id, "key": key}
                yield ALIASES, ALIASES.line([self._aliases[key]], properties)
            yield ALIAS_LINKS, ALIAS_LINKS.line([self._aliases[key], entity_id], {})

    def _version(self, version: ExportedVersion) -> Iterator[tuple[Table, str]]:
        if version.properties.memory_id != self._memory_id:
            yield from self._rows_of_references()
            self._memory_id = version.properties.memory_id
        row = version_row(self._owner, version, {}, self._now)
        properties = row["properties"]
        subject, object_ = self._node_ids.get(row["subject_id"]), self._node_ids.get(row["object_id"])
        if subject is None or object_ is None:
            return
        self._version_ids.add(properties["uuid"])
        self._latest = max(self._latest, properties["created_at"])
        for mentioned in map(self._node_ids.get, properties.get("entity_ids") or ()):
            if mentioned is not None and mentioned not in (subject, object_):
                self._references[subject, mentioned] = None
        yield FACTS, FACTS.line([subject, object_], {**properties, "revision": _FIRST_REVISION})

    def _rows_of_references(self) -> Iterator[tuple[Table, str]]:
        """Yield what the versions of the last memory mention beside their subject and object."""
        properties = {"group_id": self._owner.group_id, "memory_id": self._memory_id}
        for ends in self._references:
            yield REFERENCES, REFERENCES.line(ends, properties)
        self._references.clear()

    def _link(self, link: ExportedLink) -> Iterator[tuple[Table, str]]:
        if not {link.start, link.end} <= self._node_ids.keys():
            return
        row = link_row(self._owner, link, self._node_ids)
        key = (row["type"], row["start"], row["end"])
        if key in self._links:
            return
        self._links.add(key)
        if link.type is LinkType.HAS_EPISODE and link.end in self._messages:
            self._in_session[link.start].append(self._messages[link.end])
        yield LINKS[link.type], LINKS[link.type].line([row["start"], row["end"]], row["properties"])


def exclusive_ids(entry: ExportEntry) -> Iterator[str]:
    """Yield the ids of an entry that no other user may have, as an import finds entries by them."""
    if isinstance(entry, ExportedVersion | ExportedEntity | ExportedEpisode):
        yield entry.properties.uuid


def count_kinds(export: UserExport) -> dict[str, int]:
    """Return how many nodes and versions an export has, by the kinds that an import counts."""
    counts: dict[str, int] = defaultdict(int)
    for node in chain(export.entities, export.records):
        counts["Entity" if isinstance(node, ExportedEntity) else node.labels[0]] += 1
    counts["versions"] = len(export.memories)
    return dict(counts)
