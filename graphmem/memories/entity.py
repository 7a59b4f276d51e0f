"""Entities, the people, places and things that memories are about: in requests, nodes and rows. Pure."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter

from graphmem.neo4j.schema import RESERVED_LABELS
from graphmem.runtime.field_types import EntityName, Metadata, NonBlankText, name_key, to_json
from graphmem.runtime.times import MAX_TIME, from_micros, parse_times
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import Effect, SourceKind, TrustOrder

DEFAULT_ENTITY_TYPE = "Thing"
"""The type of an entity of unknown type."""

PERSON_TYPE = "Person"
"""The type of people, including users."""

GROUP_TYPE = "Group"
"""The type of the entity that a tenant's global memories are about."""

MAX_ENTITY_TYPE_LENGTH = 64
"""Maximum length of an entity type, in characters."""

MAX_ALIASES = 20
"""Maximum aliases of an entity in one statement."""

_NON_WORD = re.compile(r"[^\w]+", re.UNICODE)


def _to_label(name: str) -> str:
    """Return an entity type in CamelCase; a reserved one becomes the default type, `User` becomes `Person`."""
    words = [word for word in _NON_WORD.split(name) if word]
    label = "".join(word[0].upper() + word[1:] for word in words)
    if not label or not label[0].isalpha() or len(label) > MAX_ENTITY_TYPE_LENGTH:
        raise ValueError(
            f"must be a type name such as Person, Place or Organization, up to {MAX_ENTITY_TYPE_LENGTH} characters"
        )
    if label == "User":
        return PERSON_TYPE
    return DEFAULT_ENTITY_TYPE if label in RESERVED_LABELS else label


EntityType = Annotated[NonBlankText, AfterValidator(_to_label)]
"""The kind of an entity, which is also a label of its node."""

_ENTITY_TYPE_ADAPTER: TypeAdapter[str] = TypeAdapter(EntityType)


def parse_entity_type(value: object) -> str:
    """Return an entity type in its stored form; raise ValueError if the value cannot be one."""
    return _ENTITY_TYPE_ADAPTER.validate_python(value)


class EntityIn(RequestBody):
    """An entity as a caller names it; its `aliases` are added to those that it has."""

    name: EntityName
    type: EntityType | None = None
    attributes: Metadata = Field(default_factory=dict, description="Attributes of its declared type.")
    aliases: list[EntityName] = Field(default_factory=list, max_length=MAX_ALIASES)


class EntityRef(BaseModel):
    """An entity as a memory refers to it."""

    id: str
    name: str
    type: str


class Entity(BaseModel):
    """An entity with everything stored about it; `memory_count` counts its current facts."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    summary: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)
    is_user: bool = False
    created_at: datetime
    updated_at: datetime
    memory_count: int | None = None


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity with its name and aliases; `is_user` marks the user's own entity."""

    id: str
    name: str
    type: str
    aliases: Sequence[str]
    is_user: bool


_KIND: TypeAdapter[SourceKind] = TypeAdapter(SourceKind)

NAME, TYPE, SUMMARY = "name", "type", "summary"
"""The details that an entity has only one of."""


def alias_detail(key: str) -> str:
    """Return the name of the detail for the alias with this key."""
    return f"alias {key}"


def attribute_detail(name: str) -> str:
    """Return the name of the detail for this attribute."""
    return f"attribute {name}"


def read_detail_sources(stored: Mapping[str, Any]) -> dict[str, SourceKind]:
    """Return the sources of an entity node's details, by detail, leaving out those from the user."""
    parts = [text.partition(" ") for text in stored.get("detail_sources") or ()]
    return {detail: _KIND.validate_python(kind) for kind, _, detail in parts}


def write_detail_sources(sources: Mapping[str, SourceKind]) -> list[str] | None:
    """Return the sources of details as stored on an entity node, or None if all are the user's."""
    return [f"{kind} {detail}" for detail, kind in sources.items() if kind != "user"] or None


def follow_aliases(stored: Mapping[str, Any], kind: SourceKind, order: TrustOrder) -> list[str]:
    """Return the aliases that a source follows to an entity node: those not given by a less trusted source."""
    sources = read_detail_sources(stored)
    return [
        alias
        for alias, key in zip(stored["aliases"] or (), stored["alias_keys"] or (), strict=True)
        if order.permits(Effect.REDIRECT, sources.get(alias_detail(key), "user"), kind)
    ]


class SourcedDetails:
    """The details of an entity node, and the changes that sources make to them."""

    def __init__(self, stored: Mapping[str, Any], order: TrustOrder) -> None:
        self._stored = stored
        self._order = order
        self._sources = read_detail_sources(stored)
        self._changes: dict[str, Any] = {}

    def is_of_another(self, kind: SourceKind, members: Set[str]) -> bool:
        """Return whether the entity is a person whose names and description this source may not set.

        That is the user for a less trusted source, and each of the space `members`, given by name key.
        """
        if self._stored["name_key"] in members:
            return True
        # Only the user and admins can use the source `import`.
        by: SourceKind = "user" if kind == "import" else kind
        return bool(self._stored["is_user"]) and not self._order.permits(Effect.RENAME, by, "user")

    def give_name(self, name: str, kind: SourceKind) -> None:
        """Set the source's spelling of the name, which has the same key; a more trusted source decides."""
        if self._is_more_trusted(kind, NAME):
            self._set("name", name, NAME, kind)

    def may_rename(self, kind: SourceKind) -> bool:
        """Return whether a source may rename the entity."""
        return self._may_change(kind, NAME)

    def rename(self, kind: SourceKind) -> list[str] | None:
        """Return the sources of the details after a source has renamed the entity."""
        self._give(NAME, kind)
        return write_detail_sources(self._sources)

    def give_type(self, entity_type: str, kind: SourceKind) -> None:
        """Set the type from a source if it was unknown or came from a less trusted source."""
        known = self._get("type")
        if entity_type != DEFAULT_ENTITY_TYPE and (known == DEFAULT_ENTITY_TYPE or self._is_more_trusted(kind, TYPE)):
            self._set("type", entity_type, TYPE, kind)

    def give_summary(self, summary: str, kind: SourceKind) -> bool:
        """Set the summary from a source if it was missing or less trusted; return whether it was set."""
        known = self._get("summary") or ""
        if summary and (not known or self._is_more_trusted(kind, SUMMARY)):
            self._set("summary", summary, SUMMARY, kind)
        return summary in ("", self._get("summary"))

    def give_attributes(self, attributes: Mapping[str, Any], kind: SourceKind) -> bool:
        """Set the attributes from a source; return whether the entity now has all of them."""
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
        """Add names from a source and return those added; existing aliases become the source's as well."""
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
        """Remove aliases because a more trusted source uses them for another entity."""
        known = self._aliases
        if known.keys() & keys:
            self._set_aliases({key: name for key, name in known.items() if key not in keys})
            for key in keys:
                self._sources.pop(alias_detail(key), None)

    def overwrite(self, values: Mapping[str, Any], kind: SourceKind) -> None:
        """Set the summary, the type and attributes from a source, replacing those of any source."""
        attributes = {name: value for name, value in values.items() if name not in (SUMMARY, TYPE)}
        if SUMMARY in values:
            self._set("summary", values[SUMMARY], SUMMARY, kind)
        if TYPE in values:
            self._set("type", parse_entity_type(values[TYPE]), TYPE, kind)
        for name in attributes:
            self._give(attribute_detail(name), kind)
        self._set_attributes({**self._attributes, **attributes})

    def absorb(self, other: Mapping[str, Any]) -> None:
        """Add the details of another entity's node, which is merged into this one, each with its source.

        Details of both keep this entity's value; the other's name becomes an alias. In a joined summary, each half may
        come from a source other than the user.
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
    def node(self) -> dict[str, Any]:
        """The properties of the node, with the changes."""
        return {**self._stored, **self._changes, "detail_sources": write_detail_sources(self._sources)}

    def to_row(self, now: datetime) -> dict[str, Any] | None:
        """Return the changes to write, as `snapshots.set_entities` takes them, or None if there are none."""
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
        """The aliases by key."""
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
        """Return whether the detail's source could not change a value set by this source."""
        return not self._order.permits(Effect.RENAME, self._source_of(detail), kind)


_TIME_FIELDS = ("created_at", "updated_at")
"""The times of an entity in the order of the fragment `entity_columns`."""


def entity_from_node(stored: Mapping[str, Any], memory_count: int | None = None) -> Entity:
    """Return an entity for callers from the properties of its node."""
    return Entity(
        id=stored["uuid"],
        name=stored["name"],
        type=stored["type"],
        aliases=list(stored.get("aliases") or ()),
        summary=stored.get("summary") or "",
        attributes=json.loads(stored.get("attributes") or "{}"),
        is_user=bool(stored.get("is_user")),
        created_at=stored["created_at"],
        updated_at=stored.get("updated_at") or stored["created_at"],
        memory_count=memory_count,
    )


def entity_from_columns(stored: Mapping[str, Any], times: Sequence[int | None], memory_count: int) -> Entity:
    """Return an entity from the values of the fragment `entity_columns`."""
    return entity_from_node({**stored, **parse_times(_TIME_FIELDS, times)}, memory_count)


def entity_ref_from_node(stored: Mapping[str, Any]) -> EntityRef:
    """Return a memory's reference to an entity."""
    return EntityRef(id=stored["uuid"], name=stored["name"], type=stored["type"])


def named_entity_from_node(stored: Mapping[str, Any]) -> NamedEntity:
    """Return an entity with its names."""
    return NamedEntity(
        stored["uuid"], stored["name"], stored["type"], stored.get("aliases") or [], bool(stored.get("is_user"))
    )


def new_entity_properties(
    owner: Owner,
    entity: EntityIn,
    vector: object,
    now: datetime,
    *,
    entity_id: str | None = None,
    is_user: bool = False,
    source_kind: SourceKind = "user",
) -> dict[str, Any]:
    """Return the properties of a new entity node with `vector` unchanged; without `entity_id`, the id is random."""
    kind = entity.type or DEFAULT_ENTITY_TYPE
    details = [NAME, *([TYPE] if kind != DEFAULT_ENTITY_TYPE else []), *map(attribute_detail, entity.attributes)]
    return {
        "uuid": entity_id or str(uuid.uuid4()),
        "group_id": owner.group_id,
        "group_key": owner.group_key,
        "name": entity.name,
        "name_key": name_key(entity.name),
        "type": kind,
        "labels": ["Entity", kind],
        "summary": "",
        "alias_text": "",
        "attributes": to_json(entity.attributes),
        "detail_sources": write_detail_sources(dict.fromkeys(details, source_kind)),
        "is_user": is_user,
        "name_embedding": vector,
        "created_at": now,
        "updated_at": now,
    }


class ProfileSentence(BaseModel):
    """One sentence of a profile, and the ids of the memories that say so."""

    content: str
    memory_ids: list[str]


class EntityProfile(BaseModel):
    """What is known of an entity in a few sentences, written by a consolidation run from current memories.

    `id` is the id of the memory that stores it, whose history has earlier versions. It is returned while everything
    that it was written from is unchanged: as far as is known, until `valid_until`.
    """

    id: str
    version: int
    entity_id: str
    space: str | None = Field(None, description="The space that it belongs to; null: it is the user's.")
    content: str
    sentences: list[ProfileSentence]
    written_at: datetime
    valid_until: datetime | None = Field(
        None, description="When a memory that it is derived from ends; null: not known."
    )

    @property
    def memory_ids(self) -> frozenset[str]:
        """The ids of the memories that it is derived from."""
        return frozenset(memory_id for sentence in self.sentences for memory_id in sentence.memory_ids)

    def holds_at(self, at: datetime) -> bool:
        """Return whether the memories it is derived from hold at a time, as known when it was read."""
        return self.valid_until is None or at < self.valid_until


def number_sentences(sentences: Sequence[ProfileSentence]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the distinct memories that sentences cite, and the sentences as the `content_data` of a profile."""
    derived_from = tuple(dict.fromkeys(memory_id for sentence in sentences for memory_id in sentence.memory_ids))
    places = {memory_id: place for place, memory_id in enumerate(derived_from, 1)}
    return derived_from, {
        "sentences": [
            {"content": sentence.content, "derived_from": [places[memory_id] for memory_id in sentence.memory_ids]}
            for sentence in sentences
        ]
    }


def profile_from_columns(stored: Mapping[str, Any], times: Sequence[int]) -> EntityProfile:
    """Return a profile from the columns of `profiles.load`: its properties, and when it was written and ends."""
    written_at, until = map(from_micros, times)
    return EntityProfile(
        id=stored["memory_id"],
        version=stored["version"],
        entity_id=stored["entity_id"],
        space=Owner.from_group_id(stored["group_id"]).space,
        content=stored["fact"],
        sentences=[
            ProfileSentence(
                content=sentence["content"],
                memory_ids=[stored["derived_from"][place - 1] for place in sentence["derived_from"]],
            )
            for sentence in json.loads(stored["content_data"])["sentences"]
        ],
        written_at=written_at,
        valid_until=None if until == MAX_TIME else until,
    )
