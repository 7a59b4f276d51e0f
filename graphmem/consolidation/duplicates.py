"""Retires memories that state the same as another memory of the same subject."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from graphmem.memories.fact_write import FactWrite
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.snapshot import ElementKind
from graphmem.memories.snapshots import ChangeRecorder
from graphmem.memories.versioning import Ledger
from graphmem.neo4j.driver import Transaction
from graphmem.tenants.owners import Owner


async def retire_duplicates(
    transaction: Transaction,
    owner: Owner,
    recorder: ChangeRecorder,
    ledger: Ledger,
    kept_ids: Mapping[str, str],
    reason: str,
    now: datetime,
) -> datetime:
    """Retire duplicates, write all that the ledger has collected, record it, and return the time reached.

    `kept_ids` maps the id of each duplicate to that of the memory that supersedes it.
    """
    for duplicate_id, kept_id in kept_ids.items():
        ledger.retire(duplicate_id, reason, kept_id, MemoryStatus.SUPERSEDED)
    await recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
    await FactWrite(owner, transaction, now, ledger).commit()
    return ledger.now
