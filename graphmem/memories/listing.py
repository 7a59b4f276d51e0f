"""Lists of memories without ranking: their filters and sort orders."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from graphmem.memories.filters import (
    MemoryFilters,
    MetadataFilter,
    SharedFilters,
    TagFilter,
)
from graphmem.memories.memory import MemoryTypeWord, Tag
from graphmem.runtime.field_types import NonBlankText
from graphmem.tenants.spaces import SpaceId, SpacesInQueryString

_METADATA = "metadata."
"""What the name of a query parameter begins with if it is a filter on metadata."""


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
        """The property that the list is sorted by."""
        return self.value.removeprefix("-")

    @property
    def direction(self) -> Literal[1, -1]:
        """1 for ascending, -1 for descending."""
        return -1 if self.value.startswith("-") else 1


class QueryStringFilters(SharedFilters):
    """Every filter on memories, as a query string has them: every `tag` must be there, no `not_tag` may be.

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
        if isinstance(entries, str | list):
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
        """Return the filters on memories without anything else; the values are validated already."""
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
    """Which memories to list and in which order."""

    keyword: NonBlankText | None = Field(None, max_length=500, description="Only statements that contain this text.")
    sort: SortOrder = SortOrder.NEWEST
    space: SpaceId | None = Field(None, description="Only memories of this space, regardless of `spaces`.")
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)
