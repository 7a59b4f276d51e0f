"""What changed in a user's memory between two known times."""

from __future__ import annotations

from graphmem.changes.feed import ChangeStore
from graphmem.changes.models import ChangesQuery, MemoryChange
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import TIME_CURSOR, Page
from graphmem.runtime.times import MIN_TIME, Clock
from graphmem.tenants.owners import Owner


class ChangeService:
    """Lists the changes of one user."""

    def __init__(self, changes: ChangeStore, clock: Clock) -> None:
        self._changes = changes
        self._clock = clock

    async def page(self, owner: Owner, query: ChangesQuery) -> Page[MemoryChange]:
        """Return one page of changes, oldest first.

        A change that is known twice, as the end of one memory and the start of another, is two changes. Raises
        InvalidInput when `until` is before `since` and for a cursor of another list.
        """
        since = query.since or MIN_TIME
        until = query.until or max(since, self._clock())  # the clock of a caller may be ahead
        if until < since:
            raise InvalidInput("until is before since.", errors=[{"loc": ["until"], "msg": "must not be before since"}])
        after_key = None
        if query.cursor:
            since, after_key = TIME_CURSOR.decode(query.cursor)
        changes, position = await self._changes.list_page(owner, since, until, after_key, query.limit)
        return Page(items=changes, next_cursor=TIME_CURSOR.encode(position) if position else None)
