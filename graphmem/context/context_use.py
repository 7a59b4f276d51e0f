"""Which memories a context held, and how the answer that it led to was rated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from graphmem.context.learned_preferences import FeedbackVerdict
from graphmem.runtime.paging import PageLimit
from graphmem.runtime.validation import RequestBody

MAX_USES = 1_000
"""Contexts of a user that are remembered; the latest ones."""

MAX_MEMORIES_OF_USE = 200
"""Memories of one context that are remembered; the first ones."""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """The memories of one context, until it expires."""

    context_id: str
    session_id: str | None
    memory_ids: Sequence[str]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class RatedContext:
    """The memories that a rating credits, and when it was stored."""

    credited: Sequence[str]
    at: datetime


class ContextFeedbackIn(RequestBody):
    """A rating of the answer that a context led to."""

    score: Annotated[int, Field(ge=1, le=5, strict=True)]


class ContextFeedbackResult(BaseModel):
    """What a rating did: the memories of the context that it strengthened; none when it is not positive or repeated."""

    context_id: str
    score: int
    verdict: FeedbackVerdict
    credited: list[str]


class MemoryUse(BaseModel):
    """One context that held a memory; `score` is None for an answer that nobody has rated."""

    context_id: str
    session_id: str | None
    at: datetime
    score: int | None
    verdict: FeedbackVerdict | None
    rated_at: datetime | None


class MemoryUsesQuery(BaseModel):
    """How many contexts to list."""

    limit: PageLimit = 50
