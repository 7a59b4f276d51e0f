"""The channels of a search: each an order of facts or of messages, all asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphmem.domain.identity import Owner
from graphmem.domain.recall import Filters
from graphmem.retrieval.words import full_text, terms
from graphmem.store.search import FoundFact, FoundMessage, SearchStore

T = TypeVar("T")
Vector = Sequence[float]

FACT_FIELDS = {"fact": 1.0, "search_text": 1.0}
MESSAGE_FIELDS = {"content": 1.0, "speaker": 1.0}


@dataclass(frozen=True, slots=True)
class Entities:
    """The ids of the entities a question names, as of a write version of the user."""

    version: int
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Question:
    """A search ready to be asked: `vector` and `entities` are awaited by the channels that need them.

    A channel that is switched off has None (words: an empty text). `depth` is how many rows a channel returns. The
    first of `entities` tells those at hand, which a write may have passed by, the second those there are now.
    """

    owner: Owner
    filters: Filters
    depth: int
    words: str
    vector: Callable[[], Awaitable[Vector]] | None
    entities: tuple[Callable[[], Awaitable[Entities]], Callable[[], Awaitable[Entities]]] | None


class Channels:
    """Asks the store through every channel that is switched on."""

    def __init__(self, store: SearchStore) -> None:
        self._store = store

    async def facts(self, question: Question) -> dict[str, list[FoundFact]]:
        """Return the facts each channel finds, best first."""
        asked: dict[str, Awaitable[list[FoundFact]]] = {}
        if question.vector:
            asked["semantic"] = self._facts_by_vector(question, question.vector)
        if words := terms(question.words):
            query = full_text(words, question.owner.readable, FACT_FIELDS)
            asked["keyword"] = self._store.facts_by_words(question.owner, query, question.filters, question.depth)
        if question.entities:
            asked["graph"] = self._facts_around(question, *question.entities)
        return await _together(asked)

    async def messages(self, question: Question) -> dict[str, list[FoundMessage]]:
        """Return the messages each channel finds, best first."""
        known_at = question.filters.known_at
        asked: dict[str, Awaitable[list[FoundMessage]]] = {}
        if question.vector:
            asked["semantic"] = self._messages_by_vector(question, question.vector)
        if words := terms(question.words):
            query = full_text(words, question.owner.readable, MESSAGE_FIELDS)
            asked["keyword"] = self._store.messages_by_words(question.owner, query, known_at, question.depth)
        return await _together(asked)

    async def _facts_by_vector(self, question: Question, vector: Callable[[], Awaitable[Vector]]) -> list[FoundFact]:
        return await self._store.facts_by_vector(question.owner, await vector(), question.filters, question.depth)

    async def _facts_around(
        self,
        question: Question,
        at_hand: Callable[[], Awaitable[Entities]],
        there_now: Callable[[], Awaitable[Entities]],
    ) -> list[FoundFact]:
        named = await at_hand()
        # The query tells the write version it saw: names that have been passed by are looked up again.
        version, found = await self._around(question, named)
        return found if version == named.version else (await self._around(question, await there_now()))[1]

    async def _around(self, question: Question, named: Entities) -> tuple[int, list[FoundFact]]:
        return await self._store.facts_around(question.owner, named.ids, question.filters, question.depth)

    async def _messages_by_vector(
        self, question: Question, vector: Callable[[], Awaitable[Vector]]
    ) -> list[FoundMessage]:
        return await self._store.messages_by_vector(
            question.owner, await vector(), question.filters.known_at, question.depth
        )


async def _together(asked: Mapping[str, Awaitable[list[T]]]) -> dict[str, list[T]]:
    return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))
