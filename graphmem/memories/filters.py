"""Filters on memories, shared by search and list; their form as query parameters; and lists without ranking."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from graphmem.memories.memory import MemoryTypeWord, Scope, SubtypeWord, Tag, Tags
from graphmem.runtime.field_types import (
    Domain,
    EntityName,
    Id,
    NonBlankText,
    SessionId,
    StorableText,
    UnitInterval,
    deduplicate,
)
from graphmem.runtime.times import (
    AS_OF_NOW,
    MAX_TIME,
    MICROSECOND,
    MIN_TIME,
    Instant,
    to_epoch_pair,
)
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.spaces import SpaceId, SpacesInQueryString
from graphmem.tenants.trust import SourceKind, StatedKind, TrustOrder


def _check_metadata_value(value: object) -> object:
    """Raise a single ValueError for an invalid metadata value, instead of one per type."""
    listed = value if isinstance(value, list) and value else [value]
    if not all(one is None or isinstance(one, bool | int | float | str) for one in listed):
        raise ValueError("must be a text, a number, true, false, null, or a list of these; one of them must match")
    return value


MetadataValue: TypeAlias = bool | int | FiniteFloat | StorableText | None

MetadataFilter = Annotated[
    dict[
        Annotated[StorableText, Field(min_length=1, max_length=200)],
        Annotated[
            MetadataValue | Annotated[list[MetadataValue], Field(max_length=100)],
            BeforeValidator(_check_metadata_value),
        ],
    ],
    Field(max_length=20),
]
"""Keys and values that a memory's metadata must contain, at any depth.

A stored list matches by any of its values, and a list in a filter is matched by any of its own. Numbers match if equal:
3 matches 3.0. A text also matches the number or boolean that it spells, because a query string contains only text.
"""


class TagFilter(RequestBody):
    """Tags a memory must have: one of `any`, each of `all`, not one of `none`."""

    any: Tags = Field(default_factory=list)
    all: Tags = Field(default_factory=list)
    none: Tags = Field(default_factory=list)

    def passes(self, tags: Sequence[str]) -> bool:
        """Return whether a memory with these tags passes."""
        has = set(tags)
        return (not self.any or not has.isdisjoint(self.any)) and has.issuperset(self.all) and has.isdisjoint(self.none)


class SharedFilters(RequestBody):
    """The filters with the same name and form in a query string and in a JSON body.

    A field that the fragment `matches_filters` compares by its name is a filter everywhere: in requests, tools and
    commands, which show its description. With `include_superseded`, the valid time is not filtered.
    """

    subtype: SubtypeWord | None = Field(None, description="Only this subtype, such as persona.")
    domain: Domain | None = Field(None, description="Only memories of this domain.")
    scope: Scope | None = Field(None, description="Only memories of this scope: profile, domain, episodic or global.")
    entity: EntityName | None = Field(None, description="Only memories about this entity (name, alias or id).")
    min_confidence: UnitInterval | None = Field(None, description="Minimum confidence, from 0 to 1.")
    min_importance: UnitInterval | None = Field(None, description="Minimum importance, from 0 to 1.")
    created_after: Instant | None = Field(None, description="Learned after this time, RFC 3339 with offset.")
    created_before: Instant | None = Field(None, description="Learned before this time.")
    source_kind: SourceKind | None = Field(
        None, description="Only this kind of source: user, operator, import, document …."
    )
    min_trust: StatedKind | None = Field(
        None, description="Only sources that are trusted at least as much as this one."
    )
    speaker: StorableText | None = Field(None, max_length=255, description="Only statements by this person or agent.")
    agent: Id | None = Field(None, description="Only versions written by this key or part of graphmem.")
    session_id: SessionId | None = Field(None, description="Only statements from this session.")
    valid_as_of: Instant | None = Field(None, description="What was true at this time; defaults to now.")
    known_as_of: Instant | None = Field(None, description="What graphmem knew at this time; defaults to now.")
    include_superseded: bool = Field(False, description="Include superseded memories.")
    include_contested: bool = Field(False, description="Include contested memories.")


_RESOLVED = {"entity", "valid_as_of", "known_as_of", "include_superseded", "include_contested", "min_trust"}
"""Filters that `FactFilters` has in another form."""

_COMPARED = tuple(name for name in SharedFilters.model_fields if name not in _RESOLVED)
"""Filters whose values the fragment `matches_filters` compares unchanged."""


class MemoryFilters(SharedFilters):
    """Every filter on memories; a missing field filters nothing."""

    types: list[MemoryTypeWord] | None = None
    tags: TagFilter | None = None
    metadata: MetadataFilter = Field(
        default_factory=dict, description='Keys and values that its metadata must contain, such as {"file": "plan.md"}.'
    )

    def resolve(self, entity_ids: Sequence[str] | None, now: datetime, order: TrustOrder) -> FactFilters:
        """Return the filters that the store applies at `now`.

        `entity_ids` are the ids that `entity` matches; `order` is the tenant's order of trust.
        """
        return FactFilters(
            valid_at=self.valid_as_of or now,
            known_at=known_at_or_now(self.known_as_of),
            any_validity=self.include_superseded,
            said_until=self.valid_as_of or MAX_TIME,
            entity_ids=entity_ids,
            trust_kinds=None if self.min_trust is None else order.trusted_as_much_as(self.min_trust),
            includes_contested=self.include_contested,
            attributes=self,
        )


@dataclass(frozen=True, slots=True)
class FactFilters:
    """Filters as the store applies them: both times are set, and `entity` is resolved to ids.

    With `valid_since`, everything valid at any time from then to `valid_at` passes; with `any_validity`, the valid time
    is not filtered. Messages were said until `said_until`. With `entity_ids` None, facts of all entities pass; if it is
    empty, none does. `trust_kinds` are the sources that pass; None means all.
    """

    valid_at: datetime
    known_at: datetime = AS_OF_NOW
    valid_since: datetime | None = None
    any_validity: bool = False
    said_until: datetime = MAX_TIME
    entity_ids: Sequence[str] | None = None
    trust_kinds: Sequence[str] | None = None
    includes_contested: bool = False
    attributes: MemoryFilters = field(default_factory=MemoryFilters)

    @property
    def as_of_params(self) -> Mapping[str, list[int]]:
        """The parameters of the fragments `as_of_params` and `as_of_filter`.

        `valid_after` is the earliest end of an interval that contains the time, because ends are exclusive.
        """
        valid_at = MAX_TIME if self.any_validity else self.valid_at
        valid_after = MIN_TIME if self.any_validity else (self.valid_since or self.valid_at) + MICROSECOND
        return {
            "valid_at": to_epoch_pair(valid_at),
            "valid_after": to_epoch_pair(valid_after),
            "known_at": to_epoch_pair(self.known_at),
        }

    @property
    def readable_params(self) -> Mapping[str, Any]:
        """The parameters of the fragments `as_of_params` and `readable_filter`."""
        return {**self.as_of_params, "include_contested": self.includes_contested}

    @property
    def attribute_params(self) -> Mapping[str, Any]:
        """The values for the fragment `matches_filters`, as its parameter `filters`; nulls and empty lists are ignored.

        Each entry of `metadata` is a regular expression that must match the whole stored JSON.
        """
        filters, tags = self.attributes, self.attributes.tags or TagFilter()
        return {
            **{name: getattr(filters, name) for name in _COMPARED},
            "scope": filters.scope and filters.scope.value,
            "types": [*map(str, filters.types)] if filters.types else None,
            "tags_any": tags.any,
            "tags_all": tags.all,
            "tags_none": tags.none,
            "entity_ids": None if self.entity_ids is None else [*self.entity_ids],
            "trust_kinds": None if self.trust_kinds is None else [*self.trust_kinds],
            "metadata": [_metadata_pattern(key, value) for key, value in filters.metadata.items()],
        }

    @property
    def message_params(self) -> Mapping[str, Any]:
        """The parameters of queries on messages: said by `said_until` and stored by `known_at`."""
        return {"said_until": self.said_until, "known_at": self.known_at}

    @property
    def reads_all_messages(self) -> bool:
        """Whether the times exclude no message, so that the vector index can be used."""
        return self.said_until == MAX_TIME and self.known_at == AS_OF_NOW

    @property
    def compares_attributes(self) -> bool:
        """Whether there are filters besides the two times."""
        return any(value is not None and value != [] for value in self.attribute_params.values())

    @property
    def is_fully_indexable(self) -> bool:
        """Whether the vector index can apply every filter: it only filters times and the domain.

        An empty list of entities is a filter, which nothing passes; other empty lists filter nothing.
        """
        params = {name: value for name, value in self.attribute_params.items() if name != "domain"}
        has_more = self.entity_ids is not None or self.includes_contested
        return not has_more and all(value is None or value == [] for value in params.values())


# Possessive, so that Java does not recurse once per character or item.
_LIST_ITEM = r'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^",\]]++)'


def _metadata_pattern(key: str, value: object) -> str:
    """Return a pattern, for Java and Python, for stored metadata with a value at the key, or in a list there.

    Quotes inside a stored text are escaped, so that no text looks like a pair.
    """
    values = list(value) if isinstance(value, list) else [value]
    for one in [*values]:
        if isinstance(one, str) and (meant := _parse_number_or_truth_value(one)) is not None:
            values.append(meant)
    texts = "|".join(re.escape(text) for one in values for text in _stored_texts(one))
    name = re.escape(json.dumps(key, ensure_ascii=False))
    return rf"(?s).*{name}:(?:(?:{texts})[,}}]|\[(?:(?!(?:{texts})[,\]]){_LIST_ITEM},)*+(?:{texts})[,\]]).*"


def _stored_texts(value: object) -> list[str]:
    """Return the texts that a value may be stored as: 3 and 3.0 are equal, but stored as given."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [json.dumps(value, ensure_ascii=False)]
    equal: list[int | float] = [value]
    with suppress(OverflowError):  # the largest integers exceed every float
        equal += [number for number in (int(value), float(value)) if number == value]
    if value == 0:
        equal += [0.0, -0.0]
    return deduplicate(json.dumps(number) for number in equal)


def _parse_number_or_truth_value(text: str) -> bool | int | float | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)) else None


def known_at_or_now(known_as_of: datetime | None) -> datetime:
    """Return the known time to filter by, by default the time that only current beliefs include."""
    return known_as_of or AS_OF_NOW


class AsOfQuery(BaseModel):
    """The times that a read looks back to; they default to now."""

    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None


_METADATA = "metadata."
"""The prefix of query parameters that filter on metadata."""


class SortOrder(StrEnum):
    """Orders of a list; a leading minus reverses."""

    CREATED_AT = "created_at"
    NEWEST = "-created_at"
    IMPORTANCE = "importance"
    MOST_IMPORTANT = "-importance"
    VALID_AT = "valid_at"
    LATEST_VALID = "-valid_at"

    @property
    def property_name(self) -> str:
        """The property to sort by."""
        return self.value.removeprefix("-")

    @property
    def direction(self) -> Literal[1, -1]:
        """1 for ascending, -1 for descending."""
        return -1 if self.value.startswith("-") else 1


class QueryStringFilters(SharedFilters):
    """Every filter on memories in query string form: every `tag` is required, every `not_tag` excluded.

    `type`, `tag` and `not_tag` are `types`, `tags.all` and `tags.none` of `MemoryFilters`; `metadata=KEY=VALUE` and
    `metadata.KEY=VALUE` are entries of `metadata`.
    """

    type: list[MemoryTypeWord] = Field(default_factory=list, description="Only memories of this type; repeatable.")
    tag: list[Tag] = Field(default_factory=list, description="Only memories with this tag; repeatable.")
    not_tag: list[Tag] = Field(default_factory=list, description="Only memories without this tag; repeatable.")
    metadata: MetadataFilter = Field(
        default_factory=dict, description="KEY=VALUE that a memory's metadata must contain; repeatable."
    )

    @model_validator(mode="before")
    @classmethod
    def _collect_metadata(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        pairs = {key.removeprefix(_METADATA): given[key] for key in given if str(key).startswith(_METADATA)}
        entries = given.get("metadata", {})
        if isinstance(entries, (str, list)):
            entries = dict(_split_pair(entry) for entry in ([entries] if isinstance(entries, str) else entries))
        if not pairs and entries is given.get("metadata", {}):
            return given
        return {
            **{key: value for key, value in given.items() if not str(key).startswith(_METADATA)},
            "metadata": {**entries, **pairs},
        }

    @model_serializer(mode="wrap")
    def _spread_metadata(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        serialized: dict[str, Any] = handler(self)
        pairs = serialized.pop("metadata", {})
        return serialized | {f"{_METADATA}{key}": value for key, value in pairs.items()}

    def to_memory_filters(self) -> MemoryFilters:
        """Return only the filters on memories; the values are already validated."""
        return MemoryFilters.model_construct(
            types=self.type or None,
            tags=TagFilter.model_construct(any=[], all=self.tag, none=self.not_tag),
            metadata=self.metadata,
            **{name: getattr(self, name) for name in SharedFilters.model_fields},
        )


def _split_pair(entry: object) -> tuple[str, str]:
    key, is_pair, value = str(entry).partition("=")
    if not is_pair or not key:
        raise ValueError(f"metadata {entry!r} is not KEY=VALUE")
    return key, value


class ListFilters(QueryStringFilters, SpacesInQueryString):
    """The memories to list, and their order."""

    keyword: NonBlankText | None = Field(None, max_length=500, description="Only statements that contain this text.")
    sort: SortOrder = SortOrder.NEWEST
    space: SpaceId | None = Field(None, description="Only memories of this space, regardless of `spaces`.")
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)
