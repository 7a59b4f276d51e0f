"""Inferred interests, which become memories once they were mentioned often enough."""

from __future__ import annotations

from datetime import datetime

from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.text import content_hash, name_key
from graphmem.tenants.owners import Owner

MIN_INTEREST_MENTIONS = 2
"""Messages, or saves, that must show an inferred interest before it becomes a memory."""

MENTIONED_ONCE = "an interest mentioned once"
"""Why a statement is not a memory yet."""


async def record_interest(
    transaction: Transaction, owner: Owner, memory: MemoryIn, mentions: list[str], now: datetime
) -> list[str] | None:
    """Record what shows an inferred interest; return all that does once it is enough, else None.

    The caller has locked the user. Until then the interest is a candidate, which no read returns.
    """
    key = name_key(memory.object.name) if memory.object else content_hash(memory.content)
    rows = await transaction.run(
        "extraction.record_interest",
        group_id=owner.group_id,
        key=key,
        topic=memory.object.name if memory.object else memory.content,
        message_ids=mentions,
        now=now,
    )
    found: list[str] = rows[0]["message_ids"]
    if len(found) < MIN_INTEREST_MENTIONS:
        return None
    await transaction.run("extraction.delete_interest", group_id=owner.group_id, key=key)
    return found
