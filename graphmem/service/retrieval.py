"""Recall: by meaning, by entity, in messages."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.recall import LookupAnswer, MessageAnswer, MessageQuery, SearchAnswer, SearchQuery
from graphmem.errors import InvalidInput
from graphmem.metrics import SEMANTIC_SEARCH_LATENCY
from graphmem.retrieval.lookup import Lookup
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.retrieval.search import Search

MAX_LOOKUP = 200


class Retrieval:
    """The reading verbs that rank; `close` writes what reinforcement is still waiting."""

    def __init__(self, search: Search, lookup: Lookup, reinforcement: Reinforcement) -> None:
        self._search = search
        self._lookup = lookup
        self._reinforcement = reinforcement

    async def search(self, owner: Owner, query: SearchQuery) -> SearchAnswer:
        """Return the memories that answer a query, best first."""
        with SEMANTIC_SEARCH_LATENCY.time():
            return await self._search.search(owner, query)

    async def search_messages(self, owner: Owner, query: MessageQuery) -> MessageAnswer:
        """Return the messages that answer a query, best first."""
        return await self._search.messages(owner, query)

    async def lookup(self, owner: Owner, text: str, limit: int = 20, *, reinforce: bool = True) -> LookupAnswer:
        """Return the entities a text names with up to `limit` current memories each; `reinforce` counts them."""
        if not 1 <= limit <= MAX_LOOKUP:
            errors = [{"loc": ["limit"], "msg": f"lies between 1 and {MAX_LOOKUP}"}]
            raise InvalidInput(f"limit lies between 1 and {MAX_LOOKUP}.", errors=errors)
        return await self._lookup.lookup(owner, text, limit, reinforce=reinforce)

    async def core(self, owner: Owner) -> list[Memory]:
        """Return what is always worth knowing about a user: profile memories of high importance."""
        return await self._lookup.core(owner)

    async def flush(self) -> None:
        """Write the retrievals counted so far."""
        await self._reinforcement.flush()

    async def close(self) -> None:
        """Write what is waiting and let go of the caches."""
        await self._reinforcement.close()
        await self._lookup.close()
