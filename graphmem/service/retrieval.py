"""Recall: by meaning, by entity, in messages."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
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

MAX_LOOKUP = 200


class RetrievalService:
    """The reading verbs that rank; `close` writes what reinforcement is still waiting."""

    def __init__(self, search: HybridSearch, lookup: EntityLookup, reinforcement: ReinforcementBuffer) -> None:
        self._search = search
        self._lookup = lookup
        self._reinforcement = reinforcement

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResponse:
        """Return the memories that answer a query, best first."""
        with SEMANTIC_SEARCH_LATENCY.time():
            return await self._search.search(owner, query)

    async def search_messages(self, owner: Owner, query: MessageSearchQuery) -> MessageSearchResponse:
        """Return the messages that answer a query, best first."""
        return await self._search.messages(owner, query)

    async def lookup(self, owner: Owner, text: str, limit: int = 20, *, reinforce: bool = True) -> LookupResponse:
        """Return the entities a text names with up to `limit` current memories each; `reinforce` counts them."""
        if not 1 <= limit <= MAX_LOOKUP:
            errors = [{"loc": ["limit"], "msg": f"lies between 1 and {MAX_LOOKUP}"}]
            raise InvalidInput(f"limit lies between 1 and {MAX_LOOKUP}.", errors=errors)
        return await self._lookup.lookup(owner, text, limit, reinforce=reinforce)

    async def list_core_memories(self, owner: Owner) -> list[Memory]:
        """Return what is always worth knowing about a user: profile memories of high importance."""
        return await self._lookup.core_memories(owner)

    async def flush(self) -> None:
        """Write the retrievals counted so far."""
        await self._reinforcement.flush()

    async def close(self) -> None:
        """Write what is waiting and let go of the caches."""
        await self._reinforcement.close()
        await self._lookup.close()
