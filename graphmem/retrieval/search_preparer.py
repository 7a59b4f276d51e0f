"""A search under way: what is asked, and what several of its parts wait for together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from graphmem.domain.identity import Owner
from graphmem.domain.search_models import SearchQuery, normalise_query
from graphmem.domain.times import Clock
from graphmem.domain.types import Vector
from graphmem.embedding import Embedder
from graphmem.retrieval.channels import ChannelQuery, NamedEntityIds
from graphmem.retrieval.entity_name_cache import EntityNameCache
from graphmem.retrieval.name_index import EntityMention, MentionKind, question_focus
from graphmem.store.entities import EntityStore

T = TypeVar("T")

MIN_CANDIDATES_PER_CHANNEL = 60
"""A channel returns at least so many candidates, or three times what is entity_ids."""

MAX_GRAPH_ENTITIES = 5
"""So many of the entities a question names lend it their neighbourhood, the surest ones."""

MAX_EMBEDDED_CHARACTERS = 2_000
"""So many characters of a question become a vector; embedders read no more of it anyway."""


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """What is asked, by whom and when; `vectors` are those of the text and of its focus (None: not by meaning)."""

    owner: Owner
    text: str
    now: datetime
    channel_query: ChannelQuery
    vectors: Callable[[], Awaitable[list[Vector]]] | None


class SearchPreparer:
    """Makes searches ready to be asked."""

    def __init__(
        self,
        entities: EntityStore,
        name_cache: EntityNameCache,
        embedder: Embedder,
        clock: Clock,
        languages: tuple[str, ...],
    ) -> None:
        self._entities = entities
        self._name_cache = name_cache
        self._embedder = embedder
        self._clock = clock
        self._languages = languages

    async def prepare(self, owner: Owner, query: SearchQuery) -> PreparedSearch:
        """Return the prepared search of a query; raise InvalidInput for one without any text."""
        text = normalise_query(query.query)
        now = self._clock()
        get_version = shared_awaitable(lambda: self._name_cache.last_seen_version(owner))
        get_mentions = shared_awaitable(lambda: self._find_mentions(owner, text, get_version))
        vectors = shared_awaitable(lambda: self._embed(text, get_mentions if query.include_messages else None))
        entity_ids = await self._entities.resolve_entity_ids(owner, query.entity) if query.entity else None

        async def vector() -> Vector:
            return (await vectors())[0]

        async def cached_entities() -> NamedEntityIds:
            return NamedEntityIds(await get_version(), _entity_ids(await get_mentions()))

        async def current_entities() -> NamedEntityIds:
            version = await self._name_cache.write_version(owner)
            return NamedEntityIds(version, _entity_ids(await self._name_cache.find(owner, text, version)))

        channel_query = ChannelQuery(
            owner=owner,
            filters=query.resolve(entity_ids, now),
            candidates_per_channel=max(MIN_CANDIDATES_PER_CHANNEL, 3 * query.limit),
            keyword_text=text if query.keyword else "",
            vector=vector if query.semantic else None,
            entities=(cached_entities, current_entities) if query.graph else None,
        )
        return PreparedSearch(owner, text, now, channel_query, vectors if query.semantic else None)

    async def _find_mentions(
        self, owner: Owner, text: str, version: Callable[[], Awaitable[int]]
    ) -> list[EntityMention]:
        return await self._name_cache.find(owner, text, await version())

    async def _embed(
        self, text: str, get_mentions: Callable[[], Awaitable[list[EntityMention]]] | None
    ) -> list[Vector]:
        if get_mentions is None:
            return list(await self._embedder.embed([text[:MAX_EMBEDDED_CHARACTERS]], query=True))
        core = question_focus(text, await get_mentions(), self._languages) or text
        texts = [text[:MAX_EMBEDDED_CHARACTERS], core[:MAX_EMBEDDED_CHARACTERS]]
        return list(await self._embedder.embed(texts, query=True))


def _entity_ids(mentions: Sequence[EntityMention]) -> list[str]:
    return [each.id for each in mentions if each.kind is not MentionKind.SELF_REFERENCE][:MAX_GRAPH_ENTITIES]


def shared_awaitable(make: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
    """Return a callable that starts `make` at the first call and gives its one result to every caller."""
    started: list[asyncio.Future[T]] = []

    def shared() -> Awaitable[T]:
        if not started:
            started.append(asyncio.ensure_future(make()))
        return started[0]

    return shared
