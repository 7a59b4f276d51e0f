"""Search in memories and messages, and lookup of entities, as callers ask for them."""

from __future__ import annotations

from graphmem.domain.filters import MemoryFilters
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.requests import MAX_LOOKUP_LIMIT
from graphmem.domain.search_models import (
    LookupResponse,
    MessageSearchQuery,
    MessageSearchResponse,
    SearchQuery,
    SearchResponse,
)
from graphmem.errors import InvalidInput
from graphmem.metrics import SEMANTIC_SEARCH_LATENCY
from graphmem.retrieval.hybrid_search import HybridSearch
from graphmem.retrieval.lookup import EntityLookup
from graphmem.retrieval.reinforcement import ReinforcementBuffer


class RetrievalService:
    """Validates and measures what callers ask of search and lookup, and closes both."""

    def __init__(self, search: HybridSearch, lookup: EntityLookup, reinforcement: ReinforcementBuffer) -> None:
        self._search = search
        self._lookup = lookup
        self._reinforcement = reinforcement

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first.

        Raises InvalidInput for an empty query, for one without any channel, and for `rerank` without a cross-encoder.
        """
        if not (query.semantic or query.keyword or query.graph):
            raise InvalidInput("Every channel is switched off: leave semantic, keyword or graph on.")
        if query.rerank and not self._search.can_rerank:
            raise InvalidInput("No cross-encoder is configured: set GRAPHMEM_RERANK_MODEL, or leave rerank off.")
        with SEMANTIC_SEARCH_LATENCY.time():
            return await self._search.search(owner, query)

    async def search_messages(self, owner: Owner, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first; raise InvalidInput for an empty query."""
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

    async def list_core_memories(self, owner: Owner) -> list[Memory]:
        """Return the core memories of a user: profile memories of high importance."""
        return await self._lookup.list_core_memories(owner)

    async def flush(self) -> None:
        """Write the retrievals counted so far to the graph."""
        await self._reinforcement.flush()

    async def close(self) -> None:
        """Write the counted retrievals and close the caches."""
        await self._reinforcement.close()
        await self._lookup.close()
