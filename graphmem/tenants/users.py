"""The users in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from graphmem.neo4j.driver import Graph
from graphmem.tenants.owners import Owner
from graphmem.tenants.user import UserSummary


class UserStore:
    """Lists users."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def list_owners(self, tenant: str | None = None, *, after: str = "", limit: int = 1000) -> list[Owner]:
        """Return users of a tenant, or of all tenants, in the order of their group ids, starting behind `after`."""
        rows = await self._graph.fetch("users.list_owners", tenant=tenant, after=after, limit=limit)
        return [Owner(row["tenant"], row["user_id"]) for row in rows]

    async def list_page(
        self, tenant: str, *, text: str | None, user_ids: Sequence[str] | None, after: str, now: datetime, limit: int
    ) -> list[UserSummary]:
        """Return the users by id from `after` on, of those in `user_ids` if given, whose id contains `text`."""
        rows = await self._graph.fetch(
            "users.list_page",
            tenant=tenant,
            text=(text or "").lower(),
            user_ids=None if user_ids is None else list(user_ids),
            after=after,
            now=now,
            limit=limit,
        )
        return [UserSummary(**row["user"]) for row in rows]
