"""Users in the graph: listing, personas, the lock that orders their writes, and buffered writes."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import datetime
from typing import Generic, TypeVar

import structlog

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import use_tenant
from graphmem.runtime.errors import InvalidInput, NotFound, Unavailable, UserBeingForgotten
from graphmem.runtime.field_types import StorableText, to_json
from graphmem.runtime.paging import Cursor, Page
from graphmem.runtime.times import MICROSECOND, Clock
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner, UserListQuery, UserSummary
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import Effect, StatedKind


class UserStore:
    """Lists users, and distinguishes their lives."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def list_owners(self, tenant: str | None = None, *, after: str = "", limit: int = 1000) -> list[Owner]:
        """Return users and spaces of a tenant, or of all tenants, sorted by group id, starting after `after`."""
        rows = await self._graph.fetch("users.list_owners", tenant=tenant, after=after, limit=limit)
        return [Owner.from_stored(row["tenant"], row["user_id"]) for row in rows]

    async def list_page(
        self, tenant: str, *, text: str | None, user_ids: Sequence[str] | None, after: str, now: datetime, limit: int
    ) -> list[UserSummary]:
        """Return users after `after`, sorted by id, whose id contains `text`, limited to `user_ids` if given."""
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

    async def get_life(self, owner: Owner) -> str | None:
        """Return the random id of a user's life, which ends when they are forgotten; None for an unknown user."""
        rows = await self._graph.fetch("users.get_life", group_id=owner.group_id)
        return str(rows[0]["life"]) if rows else None


_CURSOR: Cursor[str] = Cursor(StorableText)


class UserService:
    """Lists users."""

    def __init__(self, store: UserStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def page(self, tenant: str, query: UserListQuery, caller: ApiKey | None = None) -> Page[UserSummary]:
        """Return one page of the tenant's users that a caller has access to, sorted by id."""
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

    async def refuse_swapped(self, owner: Owner, text: str | None, caller: ApiKey) -> None:
        """Raise InvalidInput for swapped arguments: no data is stored for the user, and the text is another user's id.

        Call it if nothing was found, or before creating the user.
        """
        named = (text or "").strip()
        if not named or not caller.can_access(named):
            return
        try:
            meant = Owner(owner.tenant, named)
        except InvalidInput:  # not a valid user id
            return
        if await self._store.get_life(meant) is not None and await self._store.get_life(owner) is None:
            raise InvalidInput(
                f"Nothing is stored for the user {owner.user_id!r}, and {named!r} is a user: "
                "the user's id comes first, then the text."
            )


FORGET_RETRY_SECONDS = 10
"""Seconds after which a write to a user who is being forgotten may be sent again."""


async def lock_user(
    transaction: Transaction, owner: Owner, now: datetime, count: int = 1, *, removes: bool = False
) -> datetime:
    """Lock a user until the transaction ends; return `now`, or the next microsecond after their latest write.

    `count` is added to the user's write counter, which invalidates every cache of their data; `removes` says that
    facts, entities or messages may be removed, which their own revisions cannot show. Raises UserBeingForgotten, and
    NotFound for a user that does not exist, so that no background work recreates a user who was forgotten meanwhile.
    """
    rows = await transaction.run("users.lock", group_id=owner.group_id, count=count, removes=removes)
    if not rows:
        (row,) = await transaction.run("users.is_being_forgotten", group_id=owner.group_id)
        if not row["is_being_forgotten"]:
            raise NotFound("There is no such space." if owner.is_space else "There is no such user.")
    return _begin_write(transaction, owner, rows, now)


async def lock_or_create_user(transaction: Transaction, owner: Owner, now: datetime) -> datetime:
    """Lock a user as `lock_user` does, creating missing users; for writes requested by callers.

    Spaces are not created: a space deleted after the request began stays deleted.
    """
    if owner.is_space:
        return await lock_user(transaction, owner, now)
    rows = await transaction.run(
        "users.lock_or_create", group_id=owner.group_id, tenant=owner.tenant, user_id=owner.user_id, now=now
    )
    return _begin_write(transaction, owner, rows, now)


def _begin_write(transaction: Transaction, owner: Owner, rows: Sequence[Row], now: datetime) -> datetime:
    if not rows or rows[0]["is_being_forgotten"]:
        raise UserBeingForgotten(
            "The user is being forgotten and cannot be written to: wait until that has ended, or request it again.",
            retry_after=FORGET_RETRY_SECONDS,
        )
    transaction.revisions[owner.group_id] = (rows[0]["life"], rows[0]["revision"])
    last_write_at = rows[0]["last_write_at"]
    return max(now, last_write_at + MICROSECOND) if last_write_at else now


class PersonaStore:
    """One persona per user: weights by memory type or tag, which searches use by default."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def get(self, owner: Owner) -> dict[str, float]:
        """Return a user's weights; empty if there are none."""
        rows = await self._graph.fetch("users.get_persona", group_id=owner.group_id)
        weights: dict[str, float] = json.loads(rows[0]["persona"] or "{}") if rows else {}
        return weights

    async def replace(self, owner: Owner, weights: dict[str, float], kind: StatedKind | None) -> None:
        """Set a user's weights on behalf of a source, None for an admin; empty weights remove them.

        Raises Forbidden if a more trusted source set the current weights.
        """

        async def work(transaction: Transaction) -> None:
            await lock_or_create_user(transaction, owner, self._clock())
            (known,) = await transaction.run("users.get_persona", group_id=owner.group_id)
            if known["persona"]:
                order = await find_trust_order(transaction, owner.tenant, {kind, known["persona_source_kind"]})
                order.require(Effect.OUTRANK, kind, known["persona_source_kind"], "The persona")
            persona = to_json(weights) if weights else None
            persona_source_kind = (kind or "user") if persona else None
            await transaction.run(
                "users.set_persona", group_id=owner.group_id, persona=persona, persona_source_kind=persona_source_kind
            )

        await self._graph.write(work)


FLUSH_SECONDS = 2.0
"""Seconds between writes of a buffer."""

V = TypeVar("V")

_log = structlog.get_logger(__name__)


class WriteBuffer(Generic[V]):
    """Values by user and key, written every `interval_seconds` seconds, by `flush` and by `close`.

    `write` writes one user's values; `merge` combines a value with an earlier one of the same key.
    """

    def __init__(
        self,
        write: Callable[[Owner, dict[str, V]], Awaitable[None]],
        merge: Callable[[V, V], V],
        interval_seconds: float = FLUSH_SECONDS,
    ) -> None:
        self._write = write
        self._merge = merge
        self._interval_seconds = interval_seconds
        self._pending: dict[Owner, dict[str, V]] = defaultdict(dict)
        self._writer: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()

    def add(self, owner: Owner, key: str, value: V) -> None:
        """Add a value of a user."""
        self._collect(owner, key, value)
        if self._writer is None or self._writer.done():
            # Not in the context of a request, whose limits end with it.
            self._writer = asyncio.create_task(self._flush_periodically(), context=Context())

    async def flush(self) -> None:
        """Write the collected values, one user at a time; keep values that cannot be written."""
        async with self._writing:
            pending, self._pending = self._pending, defaultdict(dict)
            for owner, values in pending.items():
                try:
                    with use_tenant(owner.tenant):
                        await self._write(owner, values)
                except Unavailable as error:
                    _log.warning("buffered values are not written yet", reason=error.detail, values=len(values))
                    for key, value in values.items():
                        self._collect(owner, key, value)

    async def discard_user(self, owner: Owner) -> None:
        """Drop a user's collected values, after any current write has ended."""
        async with self._writing:
            self._pending.pop(owner, None)

    async def count_user(self, owner: Owner) -> int:
        """Return the number of values collected for a user."""
        return len(self._pending.get(owner, ()))

    async def close(self) -> None:
        """Stop the timer and write the remaining values."""
        self._closing.set()
        if self._writer:
            await asyncio.gather(self._writer, return_exceptions=True)
        await self.flush()

    def _collect(self, owner: Owner, key: str, value: V) -> None:
        pending = self._pending[owner]
        pending[key] = self._merge(pending[key], value) if key in pending else value

    async def _flush_periodically(self) -> None:
        while self._pending and not self._closing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_seconds):
                    await self._closing.wait()
            await self.flush()
