"""The channels of a search: each an order of facts or of messages, all asked at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from graphmem.domain.identity import Owner
from graphmem.domain.recall import Filters
from graphmem.retrieval.words import full_text, terms
from graphmem.store.search import FoundByText, FoundFact, FoundMessage, SearchStore

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
        by_meaning, by_text = await asyncio.gather(self._facts_by_vector(question), self._facts_by_text(question))
        return by_meaning | by_text

    async def messages(self, question: Question) -> dict[str, list[FoundMessage]]:
        """Return the messages each channel finds, best first."""
        by_meaning, by_words = await asyncio.gather(
            self._messages_by_vector(question), self._messages_by_words(question)
        )
        return by_meaning | by_words

    async def _facts_by_vector(self, question: Question) -> dict[str, list[FoundFact]]:
        if not question.vector:
            return {}
        vector = await question.vector()
        found = await self._store.facts_by_vector(question.owner, vector, question.filters, question.depth)
        return {"semantic": found}

    async def _facts_by_text(self, question: Question) -> dict[str, list[FoundFact]]:
        words = terms(question.words)
        if not words and not question.entities:
            return {}
        query = full_text(words, question.owner.readable, FACT_FIELDS) if words else None
        found = await self._by_names_of_now(question, query)
        return ({"keyword": found.by_words} if words else {}) | ({"graph": found.around} if question.entities else {})

    async def _by_names_of_now(self, question: Question, words: str | None) -> FoundByText:
        """Ask with the names at hand, and with those of now where the answer tells that a write has passed them by."""
        ask = partial(self._store.facts_by_text, question.owner, words, filters=question.filters, limit=question.depth)
        if not question.entities:
            return await ask([])
        at_hand, there_now = question.entities
        named = await at_hand()
        found = await ask(named.ids)
        return found if found.write_version == named.version else await ask((await there_now()).ids)

    async def _messages_by_vector(self, question: Question) -> dict[str, list[FoundMessage]]:
        if not question.vector:
            return {}
        vector, known_at = await question.vector(), question.filters.known_at
        return {"semantic": await self._store.messages_by_vector(question.owner, vector, known_at, question.depth)}

    async def _messages_by_words(self, question: Question) -> dict[str, list[FoundMessage]]:
        if not (words := terms(question.words)):
            return {}
        query, known_at = full_text(words, question.owner.readable, MESSAGE_FIELDS), question.filters.known_at
        return {"keyword": await self._store.messages_by_words(question.owner, query, known_at, question.depth)}
