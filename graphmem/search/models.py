"""Searches and lookups: their requests and responses, and the candidates of single channels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
)

from graphmem.conversations.session import Message
from graphmem.memories.entity import Entity, EntityProfile, EntityType
from graphmem.memories.filters import AsOfQuery, MemoryFilters, QueryStringFilters
from graphmem.memories.memory import Memory, MemoryType, parse_memory_type, parse_tag
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import UnitInterval
from graphmem.runtime.paging import PageLimit, PageQuery
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.spaces import SPACES_FIELD, SpaceSelection, SpacesInQueryString
from graphmem.text.normalising import remove_unstorable

MAX_QUERY_LENGTH = 10_000
"""Maximum part of a query that is read, in characters; the rest is ignored."""


def _clean_query(value: object) -> object:
    """Return a query without the characters that cannot be stored: NUL and lone surrogates."""
    return remove_unstorable(value) if isinstance(value, str) else value


def _parse_persona(weights: dict[str, float]) -> dict[str, float]:
    """Return weights with memory types and tags in their stored form."""
    types = {kind.value for kind in MemoryType}
    parsed: dict[str, float] = {}
    for word, weight in weights.items():
        kind = str(parse_memory_type(word))
        parsed[kind if kind in types else parse_tag(word)] = weight
    return parsed


QueryText = Annotated[str, BeforeValidator(_clean_query)]
"""The text of a query, of any length and with any characters; `normalise_query` rejects an empty one."""

PersonaWeights = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]],
    Field(max_length=200),
    AfterValidator(_parse_persona),
]
"""Weights by memory type or tag, from 0 to 100; 1 is neutral. They order memories that fit about equally well."""


Cut = Literal["none", "auto"]
"""The end of a result list: at its limit, or before results that neither name nor say what was asked."""


class SearchQuery(MemoryFilters):
    """A search by meaning, by words and around named entities; each of the three can be switched off.

    `min_score` and `cut` leave out memories that do not fit the query; `limit` only bounds their number.
    """

    query: QueryText
    limit: int = Field(10, ge=1, le=100)
    min_score: UnitInterval | None = None
    cut: Cut = "none"
    include_messages: bool = False
    semantic: bool = True
    keyword: bool = True
    graph: bool = True
    rerank: bool = False
    persona: PersonaWeights = Field(default_factory=dict)
    reinforce: bool = True
    explain: bool = False
    spaces: SpaceSelection = SPACES_FIELD


class Persona(RequestBody):
    """The weights by memory type or tag that a user's searches use when they give none; empty: none."""

    weights: PersonaWeights = Field(default_factory=dict)


class MessageSearchQuery(RequestBody):
    """A search in messages: in those that were said by `valid_as_of` and stored by `known_as_of`."""

    query: QueryText
    limit: int = Field(5, ge=1, le=100)
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
    spaces: SpaceSelection = SPACES_FIELD


def normalise_query(query: str) -> str:
    """Return the part of a query that is read, with single spaces; raise InvalidInput for a query without text."""
    text = " ".join(query.split())[:MAX_QUERY_LENGTH]
    if not text:
        raise InvalidInput("The query is empty.", errors=[{"loc": ["query"], "msg": "is empty"}])
    return text


class ChannelRank(BaseModel):
    """The rank (from 1) and the score that one channel gave a memory."""

    rank: int
    score: float


SourceName = Literal["memory", "database"]
"""The origin of a search's candidates: a copy of the user in the service's memory, or the database."""


class Explanation(BaseModel):
    """How a score and a rank came about.

    `source` is where the candidates come from: a copy of the user in memory, or the database.
    `rrf`, the fused score of the channels, decides which memories are candidates. `fit` says how well the memory alone
    answers: it is computed from `similarity` (cosine), `words` (share of the question's words), `named` (how specific a
    named entity is), `bm25` (words shared with the memory and its messages) and `is_later` (starts after the past time
    that is asked about), unless a cross-encoder has given it (`rerank`). The odds of the score are those of the fit,
    `fit / (1 - fit)`, times `persona · decay · importance · time · trust`, but it differs from the fit by less than
    0.05.
    """

    source: SourceName
    semantic: ChannelRank | None = None
    keyword: ChannelRank | None = None
    graph: ChannelRank | None = None
    similarity: float
    words: float
    named: float
    bm25: float = 0.0
    is_later: bool = False
    names_other: bool = False
    fit: float = 0.0
    rrf: float
    persona: float
    decay: float
    importance: float
    time: float
    trust: float = 1.0
    rerank: float | None = None


FIT_SCORE = 0.5
"""Minimum fit of a memory that counts as an answer."""


class SearchHit(BaseModel):
    """A memory found and its score; `explain` is set when the query asks for it.

    The score, from 0 to 1, says how well this memory answers the query, and compares between queries: memories that fit
    score 0.5 or more. Strength, importance, persona, time and trust change it by at most 0.05.
    """

    memory: Memory
    score: float
    explain: Explanation | None = Field(default=None, exclude_if=lambda explanation: explanation is None)

    @property
    def content(self) -> str:
        """The statement of the memory."""
        return self.memory.content


class MessageHit(BaseModel):
    """A message found and its score; `similarity_score` is `1 / (1 + distance)` of the vectors of query and message."""

    message: Message
    score: float
    similarity_score: float

    @property
    def content(self) -> str:
        """The text of the message."""
        return self.message.content

    def with_text_of(self, max_characters: int) -> MessageHit:
        """Return this hit with at most `max_characters` from the beginning of the message."""
        return self.model_copy(
            update={"message": self.message.model_copy(update={"content": self.content[:max_characters]})}
        )

    @property
    def cosine(self) -> float:
        """The cosine similarity of the vectors, from which `similarity_score` was computed and rounded."""
        distance = 1 / self.similarity_score - 1
        return 1 - distance * distance / 2


def similarity_score(cosine: float) -> float:
    """Return `1 / (1 + distance)` for the Euclidean distance of two unit vectors, from 1/3 (opposite) to 1 (equal)."""
    return round(1 / (1 + math.sqrt(max(0.0, 2 - 2 * cosine))), 4)


class Evidence(BaseModel):
    """A message that supports the answer; `via` lists the memories that were taken from it."""

    message_id: str
    score: float
    via: list[str] = Field(default_factory=list)
    space: str | None = Field(None, description="The space that the message belongs to; null: it is the user's.")


SEARCH_MESSAGES_HINT = "No memory fits. Messages were not searched: set include_messages to search them too."


class SearchResponse(BaseModel):
    """The answer to a search, best first; `messages` and `evidence` are filled with `include_messages`.

    The results are ordered by their score. `reranked` says that a cross-encoder gave the scores. If the query names a
    past time, the results include what held then and has ended, with its `invalid_at`.
    """

    results: list[SearchHit]
    messages: list[MessageHit] = Field(default_factory=list)
    evidence: list[Evidence] = Field(default_factory=list)
    reranked: bool = False
    took_ms: float
    hint: str | None = Field(
        None,
        description="What else to try, where no memory fits and the search left messages out.",
    )

    @property
    def has_fitting(self) -> bool:
        """Whether any of the memories fits; if none does, callers are shown the messages."""
        return any(hit.score >= FIT_SCORE for hit in self.results)

    def __iter__(self) -> Iterator[SearchHit]:  # pyrefly: ignore[bad-override] - pydantic iterates over fields
        """Iterate over the hits, best first."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return the number of memories found."""
        return len(self.results)


class MessageSearchResponse(BaseModel):
    """The answer to a search in messages, best first."""

    results: list[MessageHit]


class ProfiledEntity(Entity):
    """An entity with its profile, if it has one that holds."""

    profile: EntityProfile | None = None


class EntityMemories(BaseModel):
    """An entity, its current profile if it has one, and the memories about it, the most important first.

    There is no profile if filters compare more than times, because it may rest on memories that do not pass them.
    """

    entity: Entity
    profile: EntityProfile | None = None
    memories: list[Memory]


class LookupResponse(BaseModel):
    """The entities named in a text; `cache` is `hit` when the answer came from the cache, else `miss`."""

    entities: list[EntityMemories]
    cache: str
    took_ms: float

    def __iter__(self) -> Iterator[EntityMemories]:  # pyrefly: ignore[bad-override] - pydantic iterates over fields
        """Iterate over the entities found, each with its memories."""
        return iter(self.entities)

    def __len__(self) -> int:
        """Return the number of entities found."""
        return len(self.entities)


class UserProfile(BaseModel):
    """The profile of a user by type of memory, and its core: the memories of high importance.

    With a domain it includes the memories of that domain. `cache` is `hit` when it came from the cache, else `miss`.
    """

    domain: str | None
    core: list[Memory]
    memories: dict[MemoryType, list[Memory]]
    cache: str
    took_ms: float


class EntityGraph(BaseModel):
    """The entities around an entity and the memories between them."""

    nodes: list[Entity]
    edges: list[Memory]


MAX_LOOKUP_LIMIT = 200
"""Maximum memories per entity returned by a lookup."""


MAX_GRAPH_DEPTH = 3
"""Maximum steps from an entity to the edge of the graph around it."""


class EntityListQuery(PageQuery, SpacesInQueryString):
    """The entities to list."""

    query: str | None = Field(None, max_length=300, description="Part of a name or alias.")
    type: EntityType | None = Field(None, max_length=64, description="Kind of the entities.")


class LookupQuery(QueryStringFilters, SpacesInQueryString):
    """A text that names entities, and which memories of them to return."""

    q: str = Field(description="Any text that names entities.")
    limit: int = Field(20, ge=1, le=MAX_LOOKUP_LIMIT, description="Maximum number of memories per entity.")
    reinforce: bool = Field(True, description="Whether each memory counts as retrieved, which strengthens it.")


class EntityMemoriesQuery(AsOfQuery, SpacesInQueryString):
    """The memories of an entity to list."""

    limit: PageLimit = 50
    include_superseded: bool = False


class EntityGraphQuery(AsOfQuery, SpacesInQueryString):
    """How much of the graph around an entity to return."""

    depth: int = Field(1, ge=1, le=MAX_GRAPH_DEPTH, description="Steps from the entity.")
