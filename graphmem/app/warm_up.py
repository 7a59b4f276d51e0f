"""Searches right after the start of a server: its first callers do not wait until indexes are read from disk."""

from __future__ import annotations

from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import DEFAULT_TENANT, Owner
from graphmem.tenants.users import UserStore

USERS = 3
"""Users for whom a search is made."""

QUERY = SearchQuery(query="Who is the user?", include_messages=True, reinforce=False)
"""A search that loads the embedding model, has queries planned and reads every index."""


class WarmUp:
    """Makes the searches, which change nothing."""

    def __init__(self, users: UserStore, search: HybridSearch) -> None:
        self._users = users
        self._search = search

    async def run(self) -> int:
        """Search for some users, in an empty database for one without memories; return the number of searches."""
        owners = await self._users.list_owners(limit=USERS) or [Owner(DEFAULT_TENANT, "nobody")]
        for owner in owners:
            await self._search.search(owner, QUERY)
        return len(owners)
