"""Search in memories and messages, and lookup of entities, as callers ask for them."""

from __future__ import annotations

from functools import partial

from graphmem.memories.declarations import DeclaredTypeService
from graphmem.memories.filters import MemoryFilters
from graphmem.memories.reinforcement import ReinforcementBuffer
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.metrics import SEMANTIC_SEARCH_LATENCY
from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.lookup import EntityLookup
from graphmem.search.models import (
    LookupResponse,
    MessageSearchQuery,
    MessageSearchResponse,
    Persona,
    SearchQuery,
    SearchResponse,
    UserProfile,
)
from graphmem.search.req_search import MAX_LOOKUP_LIMIT
from graphmem.tenants.owners import Owner
from graphmem.tenants.personas import PersonaStore


class RetrievalService:
    """Validates and measures what callers ask of search and lookup, and closes both."""

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

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first.

        A query without a persona uses that of the user. Raises InvalidInput for an empty query, for one without any
        channel, for `rerank` without a cross-encoder, and for types that are not declared.
        """
        if not (query.semantic or query.keyword or query.graph):
            raise InvalidInput("Every channel is switched off: leave semantic, keyword or graph on.")
        if query.rerank and not self._search.can_rerank:
            raise InvalidInput("No cross-encoder is configured: set GRAPHMEM_RERANK_MODEL, or leave rerank off.")
        await self._declared_types.check_filter(owner, query.types)
        with SEMANTIC_SEARCH_LATENCY.time():
            load_persona = None if "persona" in query.model_fields_set else partial(self._personas.get, owner)
            return await self._search.search(owner, query, load_persona)

    async def get_persona(self, owner: Owner) -> Persona:
        """Return the persona of a user."""
        return Persona(weights=await self._personas.get(owner))

    async def set_persona(self, owner: Owner, persona: Persona) -> Persona:
        """Set the persona of a user; empty weights remove it."""
        await self._personas.replace(owner, persona.weights)
        return persona

    async def search_messages(self, owner: Owner, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first; raise InvalidInput for an empty query."""
        with SEMANTIC_SEARCH_LATENCY.time():
            return await self._search.search_messages(owner, query)

    async def lookup(
        self,
        owner: Owner,
        text: str,
        limit: int = 20,
        *,
        filters: MemoryFilters | None = None,
        reinforce: bool = True,
    ) -> LookupResponse:
        """Return the entities that a text names with up to `limit` memories each that pass the filters.

        Raises InvalidInput for an empty text and for a limit out of range. `reinforce` counts a retrieval of each
        memory.
        """
        if not 1 <= limit <= MAX_LOOKUP_LIMIT:
            errors = [{"loc": ["limit"], "msg": f"must be between 1 and {MAX_LOOKUP_LIMIT}"}]
            raise InvalidInput(f"limit must be between 1 and {MAX_LOOKUP_LIMIT}.", errors=errors)
        return await self._lookup.lookup(owner, text, limit, filters=filters, reinforce=reinforce)

    async def load_profile(self, owner: Owner, domain: str | None = None) -> UserProfile:
        """Return the current profile of a user, with the memories of a domain if one is given."""
        return await self._lookup.load_profile(owner, domain)

    async def flush(self) -> None:
        """Write the retrievals counted so far to the graph."""
        await self._reinforcement.flush()

    async def close(self) -> None:
        """Write the counted retrievals and close the caches."""
        await self._reinforcement.close()
        await self._lookup.close()
