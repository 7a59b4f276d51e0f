"""The lock that makes the writes of one user happen one after the other."""

from __future__ import annotations

from datetime import datetime

from graphmem.domain.identity import Owner
from graphmem.domain.times import MICROSECOND
from graphmem.store.driver import Transaction


async def lock_user(transaction: Transaction, owner: Owner, now: datetime, count: int = 1) -> datetime:
    """Lock a user until the transaction ends; return `now`, or the next microsecond after their latest write.

    `count` is added to the user's write counter, which invalidates every cache of their data.
    """
    rows = await transaction.run(
        "facts.lock_user",
        group_id=owner.group_id,
        tenant=owner.tenant,
        user_id=owner.user_id,
        now=now,
        count=count,
    )
    last_write_at = rows[0]["last_write_at"]
    return max(now, last_write_at + MICROSECOND) if last_write_at else now
