"""Split of domain/requests."""

from __future__ import annotations

from pydantic import Field

from graphmem.memories.entity import EntityType
from graphmem.memories.listing import QueryStringFilters
from graphmem.memories.req_asof import AsOfQuery
from graphmem.runtime.paging import PageLimit, PageQuery

MAX_LOOKUP_LIMIT = 200
"""Most memories of each entity that a lookup returns."""


MAX_GRAPH_DEPTH = 3
"""Most steps from an entity to the edge of the graph around it."""


class EntityListQuery(PageQuery):
    """Which entities to list."""

    query: str | None = Field(None, max_length=300, description="Part of a name or alias.")
    type: EntityType | None = Field(None, max_length=64, description="Kind of the entities.")


class LookupQuery(QueryStringFilters):
    """A text that names entities, and which memories of them to return."""

    q: str = Field(description="Any text that names entities.")
    limit: int = Field(20, ge=1, le=MAX_LOOKUP_LIMIT, description="Most memories of each entity.")
    reinforce: bool = Field(True, description="Whether each memory counts as retrieved, which strengthens it.")


class EntityMemoriesQuery(AsOfQuery):
    """Which memories of an entity to list."""

    limit: PageLimit = 50
    include_superseded: bool = False


class EntityGraphQuery(AsOfQuery):
    """How much of the graph around an entity to return."""

    depth: int = Field(1, ge=1, le=MAX_GRAPH_DEPTH, description="Steps from the entity.")
