"""The lock that makes the writes of one user happen one after the other, and refuses those to one being forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from graphmem.neo4j.driver import Row, Transaction
from graphmem.runtime.errors import NotFound, UserBeingForgotten
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner

FORGET_RETRY_SECONDS = 10
"""Seconds after which a write to a user who is being forgotten may be sent again."""


async def lock_user(transaction: Transaction, owner: Owner, now: datetime, count: int = 1) -> datetime:
    """Lock a user until the transaction ends; return `now`, or the next microsecond after their latest write.

    `count` is added to the user's write counter, which invalidates every cache of their data. Raises
    UserBeingForgotten, and NotFound for a user that does not exist: no work in the background brings back a user who
    was forgotten meanwhile.
    """
    rows = await transaction.run("users.lock", group_id=owner.group_id, count=count)
    if not rows:
        (row,) = await transaction.run("users.is_being_forgotten", group_id=owner.group_id)
        if not row["is_being_forgotten"]:
            raise NotFound("There is no such user.")
    return _time_of_write(rows, now)


async def lock_or_create_user(transaction: Transaction, owner: Owner, now: datetime) -> datetime:
    """Lock a user as `lock_user` does, creating one that does not exist: for what callers ask to be stored."""
    rows = await transaction.run(
        "users.lock_or_create", group_id=owner.group_id, tenant=owner.tenant, user_id=owner.user_id, now=now
    )
    return _time_of_write(rows, now)


def _time_of_write(rows: Sequence[Row], now: datetime) -> datetime:
    if not rows or rows[0]["is_being_forgotten"]:
        raise UserBeingForgotten(
            "The user is being forgotten, so that nothing can be stored: wait until the erasure has ended, or ask for "
            "it again.",
            retry_after=FORGET_RETRY_SECONDS,
        )
    last_write_at = rows[0]["last_write_at"]
    return max(now, last_write_at + MICROSECOND) if last_write_at else now
