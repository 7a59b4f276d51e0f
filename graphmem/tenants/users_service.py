"""Operations on the users of a tenant."""

from __future__ import annotations

from graphmem.runtime.paging import Cursor, Page
from graphmem.runtime.text import StorableText
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey
from graphmem.tenants.req_tenants import UserListQuery
from graphmem.tenants.user import UserSummary
from graphmem.tenants.users import UserStore

_CURSOR: Cursor[str] = Cursor(StorableText)


class UserService:
    """Lists users."""

    def __init__(self, store: UserStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def page(self, tenant: str, query: UserListQuery, caller: ApiKey | None = None) -> Page[UserSummary]:
        """Return one page of the tenant's users by id, of those that a caller has access to."""
        after = _CURSOR.decode(query.cursor) if query.cursor else ""
        found = await self._store.list_page(
            tenant,
            text=query.query,
            user_ids=caller.users if caller else None,
            after=after,
            now=self._clock(),
            limit=query.limit + 1,
        )
        return _CURSOR.make_page(found, query.limit, lambda user: user.user_id)
