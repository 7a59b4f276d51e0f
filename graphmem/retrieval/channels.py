"""The channels of a search: each an order of facts or of messages, all asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from graphmem.domain.filters import FactFilters
from graphmem.domain.identity import Owner
from graphmem.domain.search_candidates import FactCandidate, MessageCandidate, TextCandidates
from graphmem.domain.types import Vector
from graphmem.store.fulltext import FACT_FIELDS, MESSAGE_FIELDS
from graphmem.store.search import SearchStore
from graphmem.text.lucene import build_lucene_query, query_terms


@dataclass(frozen=True, slots=True)
class NamedEntityIds:
    """The ids of the entities a question names, as of a write version of the user."""

    version: int
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """A search ready to be asked: `vector` and `entities` are awaited by the channels that need them.

    A channel that is switched off has None (words: an empty text). `candidates_per_channel` is how many rows a channel returns. The
    first of `entities` tells those at hand, which a write may have passed by, the second those there are now.
    """

    owner: Owner
    filters: FactFilters
    candidates_per_channel: int
    keyword_text: str
    vector: Callable[[], Awaitable[Vector]] | None
    entities: tuple[Callable[[], Awaitable[NamedEntityIds]], Callable[[], Awaitable[NamedEntityIds]]] | None


class SearchChannels:
    """Asks the store through every channel that is switched on."""

    def __init__(self, store: SearchStore) -> None:
        self._store = store

    async def facts(self, channel_query: ChannelQuery) -> dict[str, list[FactCandidate]]:
        """Return the facts each channel finds, best first."""
        by_meaning, by_text = await asyncio.gather(
            self._facts_by_vector(channel_query), self._facts_by_text(channel_query)
        )
        return by_meaning | by_text

    async def messages(self, channel_query: ChannelQuery) -> dict[str, list[MessageCandidate]]:
        """Return the messages each channel finds, best first."""
        by_meaning, by_words = await asyncio.gather(
            self._messages_by_vector(channel_query), self._messages_by_words(channel_query)
        )
        return by_meaning | by_words

    async def _facts_by_vector(self, channel_query: ChannelQuery) -> dict[str, list[FactCandidate]]:
        if not channel_query.vector:
            return {}
        vector = await channel_query.vector()
        found = await self._store.find_facts_by_vector(
            channel_query.owner, vector, channel_query.filters, channel_query.candidates_per_channel
        )
        return {"semantic": found}

    async def _facts_by_text(self, channel_query: ChannelQuery) -> dict[str, list[FactCandidate]]:
        words = query_terms(channel_query.keyword_text)
        if not words and not channel_query.entities:
            return {}
        group_keys = channel_query.owner.readable_group_keys
        query = build_lucene_query(words, group_keys, FACT_FIELDS) if words else None
        found = await self._facts_by_current_entities(channel_query, query)
        return ({"keyword": found.by_words} if words else {}) | (
            {"graph": found.near_entities} if channel_query.entities else {}
        )

    async def _facts_by_current_entities(self, channel_query: ChannelQuery, words: str | None) -> TextCandidates:
        """Ask with the names at hand, and with those of now where the answer tells that a write has passed them by."""
        ask = partial(
            self._store.find_facts_by_text,
            channel_query.owner,
            words,
            filters=channel_query.filters,
            limit=channel_query.candidates_per_channel,
        )
        if not channel_query.entities:
            return await ask([])
        cached, current = channel_query.entities
        named = await cached()
        found = await ask(named.ids)
        return found if found.write_version == named.version else await ask((await current()).ids)

    async def _messages_by_vector(self, channel_query: ChannelQuery) -> dict[str, list[MessageCandidate]]:
        if not channel_query.vector:
            return {}
        vector, known_at = await channel_query.vector(), channel_query.filters.known_at
        return {
            "semantic": await self._store.find_messages_by_vector(
                channel_query.owner, vector, known_at, channel_query.candidates_per_channel
            )
        }

    async def _messages_by_words(self, channel_query: ChannelQuery) -> dict[str, list[MessageCandidate]]:
        if not (words := query_terms(channel_query.keyword_text)):
            return {}
        query, known_at = (
            build_lucene_query(words, channel_query.owner.readable_group_keys, MESSAGE_FIELDS),
            channel_query.filters.known_at,
        )
        return {
            "keyword": await self._store.find_messages_by_words(
                channel_query.owner, query, known_at, channel_query.candidates_per_channel
            )
        }
