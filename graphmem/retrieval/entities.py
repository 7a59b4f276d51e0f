"""The names of a user's entities, kept at hand to find them in texts."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.retrieval.cache import LOOKUP_SECONDS, LocalCache
from graphmem.retrieval.names import Named, NameIndex
from graphmem.retrieval.words import full_text, terms
from graphmem.store.facts import FactStore
from graphmem.store.search import SearchStore

MOST_NAMES = 20_000
"""A user with more entities than this is searched by full text instead."""

NAME_FIELDS = {"name": 1.0, "alias_text": 1.0}
FALLBACK = 50


class NamesAtHand:
    """Finds the entities a text names; one index a user, rebuilt when the user was written to."""

    def __init__(self, store: SearchStore, facts: FactStore, clock: Clock) -> None:
        self._store = store
        self._facts = facts
        self._held: LocalCache[NameIndex | None] = LocalCache(clock, LOOKUP_SECONDS)
        self._seen: LocalCache[int] = LocalCache(clock, LOOKUP_SECONDS)

    async def version(self, owner: Owner) -> int:
        """Return the user's write version, which keys every cache."""
        version = await self._facts.write_version(owner)
        await self._seen.set(owner.group_id, version)
        return version

    async def version_seen(self, owner: Owner) -> int:
        """Return the write version as it was when it was last asked for: by now there may be a later one."""
        seen = await self._seen.get(owner.group_id)
        return await self.version(owner) if seen is None else seen

    async def find(self, owner: Owner, text: str, version: int) -> list[Named]:
        """Return the entities named in a text, the surest first."""
        index = await self._index(owner, version)
        if index is None:
            words = [f"{word}" for word in terms(text)]
            index = NameIndex(
                await self._store.names_by_words(owner, full_text(words, owner.readable, NAME_FIELDS), FALLBACK)
            )
        return index.find(text)

    async def _index(self, owner: Owner, version: int) -> NameIndex | None:
        key = f"{owner.group_id}@{version}"
        if (held := await self._held.get(key)) is not None:
            return held
        names = await self._store.names(owner, MOST_NAMES + 1)
        if len(names) > MOST_NAMES:
            return None
        index = NameIndex(names)
        await self._held.set(key, index)
        return index
