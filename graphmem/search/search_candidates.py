"""Search results of single channels, before they are fused and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class FactCandidate(NamedTuple):
    """A fact that a channel found, with what ranking needs; times are in milliseconds since 1970.

    `context` holds the names, the tags and the messages that belong to the statement. `similarity` is
    the cosine of its vector and the question's, None where the channel did not compute it. The fields are in the order
    of the fragment `fact_candidate`.
    """

    uuid: str
    memory_id: str
    score: float
    content: str
    context: str
    type: str
    tags: Sequence[str]
    importance: float
    strength: float
    decay_rate: float
    last_accessed_ms: int
    valid_from: int
    valid_to: int
    message_ids: Sequence[str]
    entity_ids: Sequence[str]
    similarity: float | None

    @property
    def text(self) -> str:
        """The statement and its context."""
        return f"{self.content}\n{self.context}"


class NearbyFacts(NamedTuple):
    """Facts around the entities that a question names, best first; `write_version` is the user's at that time."""

    write_version: str
    facts: list[FactCandidate]


@dataclass(frozen=True, slots=True)
class MessageCandidate:
    """A message that a channel found."""

    message_id: str
    score: float


@dataclass(frozen=True, slots=True)
class MessageContent:
    """The text and the speaker of a message, and its place in its session, from 1."""

    message_id: str
    content: str
    speaker: str | None
    role: str
    session_id: str
    position: int
