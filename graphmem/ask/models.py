"""A question for memory to answer, the answer, and its citations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from graphmem.context.models import DEFAULT_TOKEN_BUDGET, MAX_QUESTION_LENGTH, ContextRequest
from graphmem.models.language_model import LenientAnswer, Receipt
from graphmem.runtime.field_types import NonBlankText, SessionId
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.spaces import SPACES_FIELD, SpaceId, SpaceSelection
from graphmem.tenants.trust import StatedKind

ASK_TOP = 30
"""Most memories per look besides those of the profile; an answer may count or compare several."""


class AskRequest(RequestBody):
    """A question to a user's memory.

    `token_budget` limits the question and the sources shown to the model, in each of at most two calls. With a session,
    its latest messages are shown too. With `valid_as_of` or `known_as_of`, memory answers as of that time. If the
    question refers to an earlier conversation of the user's own, its messages are shown. Without `reinforce`, no
    retrieval is counted, and the answer cannot be rated.
    """

    question: NonBlankText = Field(max_length=MAX_QUESTION_LENGTH)
    session_id: SessionId | None = None
    token_budget: int = Field(DEFAULT_TOKEN_BUDGET, ge=1, le=100_000)
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
    min_trust: StatedKind | None = Field(
        None, description="Only memories and messages from sources that are trusted at least as much as this one."
    )
    spaces: SpaceSelection = SPACES_FIELD
    space: SpaceId | None = Field(
        None, description="The space that shares the session; defaults to the user's own memory."
    )
    reinforce: bool = True

    @property
    def is_past(self) -> bool:
        """Whether memory answers as of an earlier time."""
        return self.valid_as_of is not None or self.known_as_of is not None

    def to_context_request(self, searched: str) -> ContextRequest:
        """Return the request for a context that may answer the question `searched`."""
        return ContextRequest(
            question=searched,
            session_id=self.session_id,
            token_budget=self.token_budget,
            top=ASK_TOP,
            profiles=False,
            valid_as_of=self.valid_as_of,
            known_as_of=self.known_as_of,
            min_trust=self.min_trust,
            spaces=self.spaces,
            space=self.space,
        )


class Citation(BaseModel):
    """A source of an answer: a memory or a message, and the words quoted from it.

    `valid_at` is since when the memory holds, or when the message was said.
    """

    memory_id: str | None = None
    message_id: str | None = None
    quote: str
    valid_at: datetime | None = None
    space: str | None = Field(
        None,
        exclude_if=lambda space: space is None,
        description="The space that it is from; left out for the user's own memory.",
    )


class AskResponse(BaseModel):
    """An answer from memory and its citations; without either if memory has no answer (`answered` is false).

    `context_id` names what the answer was made from, by which it can be rated. `receipt` is what the calls cost.
    """

    answer: str | None = None
    answered: bool = False
    citations: list[Citation] = Field(default_factory=list)
    context_id: str
    llm_calls: int = 0
    receipt: Receipt = Field(default_factory=Receipt)


class SourceQuote(BaseModel):
    """Words that the model quotes from a source of its prompt."""

    source: int
    quote: str


class ModelAnswer(LenientAnswer):
    """What the model answers: its quotes first, then the answer, or what to search for."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    sources: Annotated[list[SourceQuote], BeforeValidator(lambda value: [] if value is None else value)]
    answer: str | None = None
    search: str | None = None
