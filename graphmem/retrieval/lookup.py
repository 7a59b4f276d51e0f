"""The fast path: entities named in a text and what is known about them; no model, no vector."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from pydantic import TypeAdapter

from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.recall import EntityMemories, LookupAnswer, require_text
from graphmem.domain.times import BEGINNING, END, Clock, contains
from graphmem.retrieval.cache import CORE_SECONDS, LOOKUP_SECONDS, Cache, open_cache
from graphmem.retrieval.entities import NamesAtHand
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.store.search import SearchStore

MOST_ENTITIES = 10
CORE_IMPORTANCE = 0.8
MOST_CORE = 200


class Lookup:
    """Entities by name, and the core memories of a user; both from a cache that no write leaves stale."""

    def __init__(
        self,
        store: SearchStore,
        names: NamesAtHand,
        reinforcement: Reinforcement,
        clock: Clock,
        cache_url: str | None = None,
    ) -> None:
        self._store = store
        self._names = names
        self._reinforcement = reinforcement
        self._clock = clock
        self._answers: Cache[list[EntityMemories]] = open_cache(
            cache_url, "lookup", TypeAdapter(list[EntityMemories]), clock, LOOKUP_SECONDS
        )
        self._core: Cache[list[Memory]] = open_cache(cache_url, "core", TypeAdapter(list[Memory]), clock, CORE_SECONDS)

    async def lookup(self, owner: Owner, text: str, limit: int = 20, *, reinforce: bool = True) -> LookupAnswer:
        """Return the entities a text names with up to `limit` current memories each; an empty text is InvalidInput."""
        started = time.perf_counter()
        text = require_text(text)
        version = await self._names.version(owner)
        named = [each.id for each in (await self._names.find(owner, text, version))[:MOST_ENTITIES]]
        now = self._clock()
        key = f"{owner.group_id}@{version}/{limit}/{','.join(named)}"
        held = await self._answers.get(key)
        if held is None:
            until = now + timedelta(seconds=LOOKUP_SECONDS)
            found = await self._store.entities_with_facts(owner, named, now, until, limit)
            await self._answers.set(key, found)
        else:
            found = held
        entities = [EntityMemories(entity=each.entity, memories=_holding(each.memories, now)[:limit]) for each in found]
        if reinforce:
            self._reinforcement.note(owner, {one.id: one for each in entities for one in each.memories}.values())
        return LookupAnswer(
            entities=entities,
            cache="miss" if held is None else "hit",
            took_ms=round((time.perf_counter() - started) * 1000, 3),
        )

    async def core(self, owner: Owner) -> list[Memory]:
        """Return the user's core memories (profile scope, importance from 0.8), the most important first."""
        key = f"{owner.group_id}@{await self._names.version(owner)}"
        now = self._clock()
        held = await self._core.get(key)
        if held is None:
            until = now + timedelta(seconds=CORE_SECONDS)
            held = await self._store.core_facts(owner, CORE_IMPORTANCE, now, until, MOST_CORE)
            await self._core.set(key, held)
        return _holding(held, now)

    async def close(self) -> None:
        """Let go of the caches."""
        await self._answers.close()
        await self._core.close()


def _holding(memories: list[Memory], now: datetime) -> list[Memory]:
    return [
        each
        for each in memories
        if contains(each.valid_at or BEGINNING, min(each.invalid_at or END, each.expires_at or END), now)
    ]
