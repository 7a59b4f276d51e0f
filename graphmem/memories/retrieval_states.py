"""What retrievals change of memories, read anew for memories that come from a cache."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from graphmem.memories.decay import decayed_strength
from graphmem.memories.fact_fields import TIME_FIELDS
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Graph
from graphmem.runtime.times import parse_times
from graphmem.tenants.owners import Owner


async def load_retrieval_states(
    graph: Graph, owner: Owner, memories: Iterable[Memory], now: datetime
) -> dict[str, Memory]:
    """Return memories, by id, with the strength, confidence and access count that they have at `now`.

    Retrievals are counted without a new write version of the user, so that caches keep what they hold. An earlier
    version of a memory stays as it is.
    """
    known = {memory.id: memory for memory in memories}
    if not known:
        return {}
    found = await graph.fetch_value("search.load_retrieval_states", group_ids=owner.readable_group_ids, ids=list(known))
    for memory_id, version, *state in found:
        if known[memory_id].version == version:
            known[memory_id] = known[memory_id].model_copy(update=_to_update(state, now))
    return known


def _to_update(state: list[Any], now: datetime) -> dict[str, Any]:
    strength, decay_rate, confidence, access_count, epochs = state
    times = parse_times(TIME_FIELDS, epochs)
    since = times["last_accessed_at"] or times["first_created_at"]
    assert since is not None, "every version has the time of the first one"
    return {
        "strength": decayed_strength(strength, decay_rate, (now - since) / timedelta(days=1)),
        "confidence": confidence,
        "access_count": access_count,
        "last_accessed_at": times["last_accessed_at"],
    }
