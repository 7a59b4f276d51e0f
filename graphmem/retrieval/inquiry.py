"""A search under way: what is asked, and what several of its parts wait for together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from graphmem.domain.identity import Owner
from graphmem.domain.recall import SearchQuery, filters_of, require_text
from graphmem.domain.times import Clock
from graphmem.embedding import Embedder
from graphmem.retrieval.channels import Entities, Question, Vector
from graphmem.retrieval.entities import NamesAtHand
from graphmem.retrieval.names import MYSELF, Named, focus
from graphmem.store.entities import EntityStore

T = TypeVar("T")

LEAST_DEPTH = 60
"""A channel returns at least so many candidates, or three times what is wanted."""

MOST_ENTITIES = 5
"""So many of the entities a question names lend it their neighbourhood, the surest ones."""

MAX_EMBEDDED = 2_000
"""So many characters of a question become a vector; embedders read no more of it anyway."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked, by whom and when; `vectors` are those of the text and of its focus (None: not by meaning)."""

    owner: Owner
    text: str
    now: datetime
    question: Question
    vectors: Callable[[], Awaitable[list[Vector]]] | None


class Inquiries:
    """Makes searches ready to be asked."""

    def __init__(self, entities: EntityStore, names: NamesAtHand, embedder: Embedder, clock: Clock) -> None:
        self._entities = entities
        self._names = names
        self._embedder = embedder
        self._clock = clock

    async def open(self, owner: Owner, query: SearchQuery) -> Inquiry:
        """Return the inquiry of a query; raise InvalidInput for one without any text."""
        text = require_text(query.query)
        now = self._clock()
        seen = once(lambda: self._names.version_seen(owner))
        named = once(lambda: self._named(owner, text, seen))
        vectors = once(lambda: self._vectors(text, named if query.include_messages else None))
        wanted = await self._entities.ids_named(owner, query.entity) if query.entity else None

        async def vector() -> Vector:
            return (await vectors())[0]

        async def entities() -> Entities:
            return Entities(await seen(), _ids(await named()))

        async def entities_now() -> Entities:
            version = await self._names.version(owner)
            return Entities(version, _ids(await self._names.find(owner, text, version)))

        question = Question(
            owner=owner,
            filters=filters_of(query, wanted, now),
            depth=max(LEAST_DEPTH, 3 * query.limit),
            words=text if query.keyword else "",
            vector=vector if query.semantic else None,
            entities=(entities, entities_now) if query.graph else None,
        )
        return Inquiry(owner, text, now, question, vectors if query.semantic else None)

    async def _named(self, owner: Owner, text: str, version: Callable[[], Awaitable[int]]) -> list[Named]:
        return await self._names.find(owner, text, await version())

    async def _vectors(self, text: str, named: Callable[[], Awaitable[list[Named]]] | None) -> list[Vector]:
        if named is None:
            return list(await self._embedder.embed([text[:MAX_EMBEDDED]], query=True))
        core = focus(text, await named()) or text
        return list(await self._embedder.embed([text[:MAX_EMBEDDED], core[:MAX_EMBEDDED]], query=True))


def _ids(named: Sequence[Named]) -> list[str]:
    return [each.id for each in named if each.kind != MYSELF][:MOST_ENTITIES]


def once(make: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Return a callable that starts `make` at the first call and gives its one result to every caller."""
    started: list[asyncio.Future[T]] = []

    def shared() -> Awaitable[T]:
        if not started:
            started.append(asyncio.ensure_future(make()))
        return started[0]

    return shared
