"""Search operations for callers: memories, messages, entities with their profiles, and the graph around an entity."""

from __future__ import annotations

from graphmem.memories.declarations import DeclaredTypeService
from graphmem.memories.entity import Entity, entity_from_columns
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import memory_from_columns
from graphmem.memories.fact_store import FactStore, ReinforcementBuffer
from graphmem.memories.filters import FactFilters, MemoryFilters, known_at_or_now
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import StorableText
from graphmem.runtime.metrics import SEMANTIC_SEARCH_LATENCY
from graphmem.runtime.paging import Cursor, Page
from graphmem.runtime.times import Clock
from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.lookup import EntityLookup
from graphmem.search.models import (
    MAX_LOOKUP_LIMIT,
    SEARCH_MESSAGES_HINT,
    EntityGraph,
    EntityGraphQuery,
    EntityListQuery,
    EntityMemoriesQuery,
    LookupResponse,
    MessageSearchQuery,
    MessageSearchResponse,
    Persona,
    ProfiledEntity,
    SearchQuery,
    SearchResponse,
    UserProfile,
)
from graphmem.search.source import load_profiles
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.trust import StatedKind
from graphmem.tenants.users import PersonaStore

MAX_FOUND_CHARACTERS = 500
"""Maximum characters of a message returned by a message search; its session has the full text."""


class RetrievalService:
    """Validates and measures search and lookup requests, and closes both."""

    def __init__(
        self,
        search: HybridSearch,
        lookup: EntityLookup,
        reinforcement: ReinforcementBuffer,
        declared_types: DeclaredTypeService,
        personas: PersonaStore,
    ) -> None:
        self._search = search
        self._lookup = lookup
        self._reinforcement = reinforcement
        self._declared_types = declared_types
        self._personas = personas

    async def search(self, reader: Reader, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first.

        A query without a persona uses the user's. Raises InvalidInput for an empty query, for one without any channel,
        for `rerank` without a cross-encoder, and for types that are not declared.
        """
        if not (query.semantic or query.keyword or query.graph):
            raise InvalidInput("Every channel is switched off: leave semantic, keyword or graph on.")
        if query.rerank and not self._search.can_rerank:
            raise InvalidInput("No cross-encoder is configured: set GRAPHMEM_RERANK_MODEL, or leave rerank off.")
        await self._declared_types.check_filter(scope_of(reader).owner, query.types)
        with SEMANTIC_SEARCH_LATENCY.time():
            found = await self._search.search(reader, query, with_persona="persona" not in query.model_fields_set)
        if not (query.include_messages or found.has_fitting):
            found.hint = SEARCH_MESSAGES_HINT
        return found

    async def get_persona(self, owner: Owner) -> Persona:
        """Return the persona of a user."""
        return Persona(weights=await self._personas.get(owner))

    async def set_persona(self, owner: Owner, persona: Persona, kind: StatedKind | None = None) -> Persona:
        """Set the persona of a user for a source; None stands for an admin. Empty weights remove it.

        Raises Forbidden if a more trusted source set the persona.
        """
        await self._personas.replace(owner, persona.weights, kind)
        return persona

    async def search_messages(self, reader: Reader, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first, with their first 500 characters.

        Raises InvalidInput for an empty query.
        """
        with SEMANTIC_SEARCH_LATENCY.time():
            found = await self._search.search_messages(reader, query)
        return MessageSearchResponse(results=[hit.with_text_of(MAX_FOUND_CHARACTERS) for hit in found.results])

    async def lookup(
        self,
        reader: Reader,
        text: str,
        limit: int = 20,
        *,
        filters: MemoryFilters | None = None,
        reinforce: bool = True,
    ) -> LookupResponse:
        """Return the entities named in a text, with up to `limit` memories each that pass the filters.

        Raises InvalidInput for an empty text and for a limit out of range. `reinforce` counts a retrieval of each
        memory.
        """
        if not 1 <= limit <= MAX_LOOKUP_LIMIT:
            errors = [{"loc": ["limit"], "msg": f"must be between 1 and {MAX_LOOKUP_LIMIT}"}]
            raise InvalidInput(f"limit must be between 1 and {MAX_LOOKUP_LIMIT}.", errors=errors)
        return await self._lookup.lookup(reader, text, limit, filters=filters, reinforce=reinforce)

    async def load_profile(self, reader: Reader, domain: str | None = None) -> UserProfile:
        """Return the current profile of a user, with the memories of a domain if one is given."""
        return await self._lookup.load_profile(reader, domain)

    async def flush(self) -> None:
        """Write the retrievals counted so far to the graph."""
        await self._reinforcement.flush()

    async def close(self) -> None:
        """Write the counted retrievals and close the caches."""
        await self._reinforcement.close()
        await self._lookup.close()


MAX_EDGES = 500
"""Maximum memories in a graph."""

_CURSOR: Cursor[tuple[str, str]] = Cursor(tuple[StorableText, StorableText])


class EntityService:
    """Operations on the entities of one user."""

    def __init__(
        self,
        entities: EntityStore,
        facts: FactStore,
        graph: Graph,
        clock: Clock,
    ) -> None:
        self._entities = entities
        self._facts = facts
        self._graph = graph
        self._clock = clock

    async def page(self, reader: Reader, query: EntityListQuery) -> Page[Entity]:
        """Return one page of entities by name."""
        after = _CURSOR.decode(query.cursor) if query.cursor else None
        items, following = await self._entities.list_page(
            reader, text=query.query, type=query.type, after=after, limit=query.limit
        )
        return Page(items=items, next_cursor=_CURSOR.encode(following) if following else None)

    async def get(self, reader: Reader, entity_id: str) -> ProfiledEntity:
        """Return one entity with its profile; raise NotFound if the reader cannot read it."""
        entity = await self._entities.get(reader, entity_id)
        now = FactFilters(valid_at=self._clock())
        profiles = await load_profiles(self._graph, scope_of(reader).group_ids, [entity_id], now)
        return ProfiledEntity(**dict(entity), profile=profiles.get(entity_id))

    async def list_memories(self, reader: Reader, entity_id: str, query: EntityMemoriesQuery) -> list[Memory]:
        """Return the memories about an entity, the most important first; raise NotFound for an unknown entity."""
        await self._entities.get(reader, entity_id)
        filters = FactFilters(
            valid_at=query.valid_as_of or self._clock(),
            known_at=known_at_or_now(query.known_as_of),
            any_validity=query.include_superseded,
        )
        return await self._facts.list_entity_facts(reader, entity_id, filters, query.limit)

    async def get_graph(self, reader: Reader, entity_id: str, query: EntityGraphQuery) -> EntityGraph:
        """Return the entities around one and up to 500 memories between them; raise NotFound for an unknown entity.

        The memories reachable in the fewest steps come first.
        """
        await self._entities.get(reader, entity_id)
        now, group_ids = self._clock(), scope_of(reader).group_ids
        filters = FactFilters(valid_at=query.valid_as_of or now, known_at=known_at_or_now(query.known_as_of))
        edges: dict[str, Memory] = {}
        reached, frontier = {entity_id}, {entity_id}
        for _ in range(query.depth):
            found = await self._graph.fetch_value(
                "search.list_entity_edges",
                entity_ids=sorted(frontier),
                group_ids=group_ids,
                limit=MAX_EDGES - len(edges),
                **filters.as_of_params,
            )
            edges.update((columns[0]["uuid"], memory_from_columns(columns, now)) for columns in found)
            frontier = {end for _, _, subject_id, object_id, _ in found for end in (subject_id, object_id)} - reached
            reached |= frontier
            if not frontier or len(edges) >= MAX_EDGES:
                break
        nodes = await self._graph.fetch_value("search.load_entities", group_ids=group_ids, ids=sorted(reached))
        return EntityGraph(nodes=[entity_from_columns(*columns) for columns in nodes], edges=list(edges.values()))
