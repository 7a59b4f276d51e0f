"""Recognition of batches of messages that come again without ids, or with ids of some messages only."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from graphmem.conversations.repeated_batches import BatchFingerprint
from graphmem.conversations.session import MessageIn
from graphmem.neo4j.driver import Transaction
from graphmem.tenants.owners import Owner


async def recognise_batch(
    transaction: Transaction,
    owner: Owner,
    session_id: str | None,
    messages: Sequence[MessageIn],
    new_ids: Sequence[str],
    window: timedelta,
    now: datetime,
) -> tuple[str | None, list[str]]:
    """Return the session of a batch and the ids of its messages: those that they have, if it was stored before.

    Within `window` a batch without ids repeats the latest turns of its session, or opened a session and comes again
    without one. In a batch with some ids, the other messages are known by these. `new_ids` are for what is new.
    """
    (row,) = await transaction.run("users.get_life", group_id=owner.group_id)
    fingerprint = BatchFingerprint(row["life"], session_id, messages)
    given = [message.id for message in messages]
    if any(given):
        return session_id, fingerprint.complete_ids(given)
    if session_id is not None:
        return session_id, await _ids_in_session(transaction, owner, session_id, fingerprint, len(given), now - window)
    period = int(now.timestamp() // window.total_seconds())
    candidates = [fingerprint.session_id(period), fingerprint.session_id(period - 1)]
    rows = await transaction.run("episodes.find_sessions", group_id=owner.group_id, session_ids=candidates)
    for row in rows:
        if row["created_at"] >= now - window and row["message_count"] == len(given):
            return row["session_id"], fingerprint.message_ids(row["session_id"])
    if any(row["session_id"] == candidates[0] for row in rows):
        return str(uuid.uuid4()), list(new_ids)
    return candidates[0], fingerprint.message_ids(candidates[0])


async def _ids_in_session(
    transaction: Transaction,
    owner: Owner,
    session_id: str,
    fingerprint: BatchFingerprint,
    size: int,
    oldest: datetime,
) -> list[str]:
    rows = await transaction.run("episodes.find_sessions", group_id=owner.group_id, session_ids=[session_id])
    count = rows[0]["message_count"] if rows else 0
    earlier = fingerprint.message_ids(str(count - size))
    stored = await transaction.run("episodes.find_stored", group_id=owner.group_id, message_ids=earlier)
    if len(stored) == size and all(row["created_at"] >= oldest for row in stored):
        return earlier
    return fingerprint.message_ids(str(count))
