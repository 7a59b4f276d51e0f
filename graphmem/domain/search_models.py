"""Questions to memory and their answers: search by meaning, lookup by entity, search in messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from graphmem.domain.entity import Entity
from graphmem.domain.memory import (
    Domain,
    Memory,
    MemoryType,
    MemoryTypeInput,
    Scope,
    Tags,
    UnitInterval,
    parse_memory_type,
    parse_tag,
)
from graphmem.domain.session import Message
from graphmem.domain.text import NonBlankText
from graphmem.domain.times import AS_OF_NOW, MAX_TIME, MIN_TIME, Instant
from graphmem.errors import InvalidInput
from graphmem.text.storable import remove_unstorable

MAX_QUERY_LENGTH = 10_000
"""So many characters of a query are read."""


def _clean_query(value: object) -> object:
    """Return a query without the characters that no stored text can hold: NUL and lone surrogates."""
    return remove_unstorable(value) if isinstance(value, str) else value


def _parse_persona(weights: dict[str, float]) -> dict[str, float]:
    read: dict[str, float] = {}
    for word, weight in weights.items():
        kind = parse_memory_type(word)
        read[str(kind) if kind in {each.value for each in MemoryType} else parse_tag(word)] = weight
    return read


QueryText = Annotated[str, BeforeValidator(_clean_query)]
"""What is asked, of any length and with any characters; an empty one is refused where it is used."""

PersonaWeights = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]],
    Field(max_length=200),
    AfterValidator(_parse_persona),
]
"""Weights by memory type or tag; a memory's score is multiplied by every weight that fits it."""


class TagFilter(BaseModel):
    """Tags a memory must have: one of `any`, each of `all`, not one of `none`."""

    model_config = ConfigDict(extra="forbid")

    any: Tags = Field(default_factory=list)
    all: Tags = Field(default_factory=list)
    none: Tags = Field(default_factory=list)


class SearchQuery(BaseModel):
    """A search by meaning, words and neighbourhood; each of the three can be switched off."""

    model_config = ConfigDict(extra="forbid")

    query: QueryText
    limit: int = Field(10, ge=1, le=100)
    types: list[MemoryTypeInput] | None = None
    tags: TagFilter | None = None
    domain: Domain | None = None
    scope: Scope | None = None
    entity: NonBlankText | None = Field(None, max_length=300)
    min_confidence: UnitInterval | None = None
    min_importance: UnitInterval | None = None
    min_score: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
    include_superseded: bool = False
    include_messages: bool = False
    semantic: bool = True
    keyword: bool = True
    graph: bool = True
    rerank: bool = False
    persona: PersonaWeights = Field(default_factory=dict)
    reinforce: bool = True
    explain: bool = False


class MessageSearchQuery(BaseModel):
    """A search in messages."""

    model_config = ConfigDict(extra="forbid")

    query: QueryText
    limit: int = Field(5, ge=1, le=100)


def normalise_query(query: str) -> str:
    """Return what of a query is read, its spaces as one each; raise InvalidInput for one without any text."""
    text = " ".join(query.split())[:MAX_QUERY_LENGTH]
    if not text:
        raise InvalidInput("The query is empty: say what to look for.", errors=[{"loc": ["query"], "msg": "is empty"}])
    return text


class ChannelRank(BaseModel):
    """Where one channel placed a memory (from 1) and the channel's own score."""

    rank: int
    score: float


class Explanation(BaseModel):
    """Every rank and factor behind a score: `score = rrf · persona · decay · importance · time`."""

    semantic: ChannelRank | None = None
    keyword: ChannelRank | None = None
    graph: ChannelRank | None = None
    rrf: float
    persona: float
    decay: float
    importance: float
    time: float
    rerank: float | None = None


class SearchHit(BaseModel):
    """A memory found, with its score; `explain` is there when it was asked for."""

    memory: Memory
    score: float
    explain: Explanation | None = None

    @model_serializer(mode="wrap")
    def _omit_missing_explain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if written.get("explain") is None:
            written.pop("explain", None)
        return written


class MessageHit(BaseModel):
    """A message found, with its score."""

    message: Message
    score: float


class Evidence(BaseModel):
    """A message that supports the answer, and the memories that lead to it."""

    message_id: str
    score: float
    via: list[str] = Field(default_factory=list)


class SearchResponse(BaseModel):
    """What a search found; `messages` and `evidence` are filled when messages were asked for."""

    results: list[SearchHit]
    messages: list[MessageHit] = Field(default_factory=list)
    evidence: list[Evidence] = Field(default_factory=list)
    took_ms: float


class MessageSearchResponse(BaseModel):
    """What a search in messages found, the best first."""

    results: list[MessageHit]


class EntityMemories(BaseModel):
    """An entity named in the text and the memories at its edges, the most important first."""

    entity: Entity
    memories: list[Memory]


class LookupResponse(BaseModel):
    """The entities named in a text; `cache` tells whether the answer came from the cache."""

    entities: list[EntityMemories]
    cache: str
    took_ms: float


class EntityGraph(BaseModel):
    """Entities around one and the memories between them."""

    nodes: list[Entity]
    edges: list[Memory]


@dataclass(frozen=True, slots=True)
class FactFilters:
    """What a fact must be to be found: as known and valid at two times, and by its attributes."""

    valid_at: datetime
    known_at: datetime = AS_OF_NOW
    any_validity: bool = False
    types: tuple[str, ...] | None = None
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    tags_none: tuple[str, ...] = ()
    domain: str | None = None
    scope: str | None = None
    entity_ids: tuple[str, ...] | None = None
    min_confidence: float | None = None
    min_importance: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None

    @property
    def time_params(self) -> Mapping[str, datetime]:
        """The bounds of both time axes as query parameters; with `any_validity` the valid axis is wide open.

        `valid_after` is the least end that still holds at `valid_at`: an end is exclusive.
        """
        return {
            "valid_at": MAX_TIME if self.any_validity else self.valid_at,
            "valid_after": MIN_TIME if self.any_validity else self.valid_at + timedelta(microseconds=1),
            "known_at": self.known_at,
        }

    @property
    def attribute_params(self) -> Mapping[str, Any]:
        """The filters on attributes as query parameters."""
        return {
            "types": list(self.types) if self.types is not None else None,
            "tags_any": list(self.tags_any),
            "tags_all": list(self.tags_all),
            "tags_none": list(self.tags_none),
            "domain": self.domain,
            "scope": self.scope,
            "entity_ids": list(self.entity_ids) if self.entity_ids is not None else None,
            "min_confidence": self.min_confidence,
            "min_importance": self.min_importance,
            "created_after": self.created_after,
            "created_before": self.created_before,
        }

    @property
    def is_fully_indexable(self) -> bool:
        """Whether the vector index can apply the whole filter: times and a domain."""
        return all(value is None or value == [] for name, value in self.attribute_params.items() if name != "domain")


def build_fact_filters(query: SearchQuery, entity_ids: list[str] | None, now: datetime) -> FactFilters:
    """Return the filters of a query; `entity_ids` are those its `entity` means."""
    tags = query.tags or TagFilter()
    return FactFilters(
        valid_at=query.valid_as_of or now,
        known_at=query.known_as_of or AS_OF_NOW,
        any_validity=query.include_superseded,
        types=tuple(each.value for each in query.types) if query.types else None,
        tags_any=tuple(tags.any),
        tags_all=tuple(tags.all),
        tags_none=tuple(tags.none),
        domain=query.domain,
        scope=query.scope.value if query.scope else None,
        entity_ids=tuple(entity_ids) if entity_ids is not None else None,
        min_confidence=query.min_confidence,
        min_importance=query.min_importance,
        created_after=query.created_after,
        created_before=query.created_before,
    )
