"""The answers requested from language models, and the dates in them; only descriptions of fields are sent.

Answers are proposals. Messages and memories are identified by numbers; `ingestion.action_plan` decides what is applied.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from enum import StrEnum

from pydantic import BaseModel, Field

from graphmem.memories.memory import StatedType
from graphmem.models.lenient_answer import LenientAnswer

# The first call


class Named(BaseModel):
    """An entity as the model names it."""

    name: str
    type: str = Field(description="Person, Organization, Place, Animal, Event, Project, Product, Activity, Food, …")


class OtherNames(BaseModel):
    """Names of one entity in the conversation."""

    name: str = Field(description="the fullest proper name")
    others: list[str] = Field(description='nicknames, short forms, or a description such as "Mara\'s sister"')


class Candidate(BaseModel):
    """One statement that may become a memory; dates are the speaker's local ones, without an offset."""

    content: str = Field(description="one self-contained sentence in the third person")
    type: StatedType
    subject: Named
    predicate: str = Field(description="UPPER_SNAKE_CASE, in English")
    object: Named | None
    entities: list[Named] = Field(description="every other entity the sentence names")
    valid_at: str | None = Field(description="YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDTHH:MM")
    invalid_at: str | None = Field(description="the first moment it no longer holds, in the same forms")
    confidence: float
    importance: float
    tags: list[str]
    domain: str | None = Field(
        None, description="the one field or project in which it matters; null when it matters anywhere"
    )
    single_valued: bool
    retracts: bool = Field(description="true only when the user takes the sentence back or asks to forget it")
    messages: list[int] = Field(description="numbers of the messages that state it")


class Speech(StrEnum):
    """Whether words tell something, or want something of whoever reads them."""

    INFORMS = "informs"
    ADDRESSES = "addresses"


class Addressee(StrEnum):
    """Who is to do what words ask for."""

    ASSISTANT = "assistant"
    USER = "user"
    OTHERS = "others"


class Screening(BaseModel):
    """What the words do that a candidate is taken from, where they are not the user's own."""

    speech: Speech
    addressee: Addressee | None = Field(description="with addresses: who is to comply; null with informs")
    quote: str = Field(description="those words, copied character by character from one of the listed lines")


class NamedValue(BaseModel):
    """A value that a message names."""

    type: str = Field(description="in English, lower_snake_case")
    value: str


class Turn(BaseModel):
    """What one message of the user is about."""

    message: int = Field(description="number of the message")
    intent: str | None = Field(description="what the user wants with it, in English, lower_snake_case")
    entities: list[NamedValue]


class Extraction(LenientAnswer):
    """The answer of the first call."""

    skip: bool = Field(description="true when nothing is worth keeping")
    reason: str = Field(description="with skip: why, in a few words; else empty")
    keywords: list[str] = Field(description="search words for what is already known about the same things")
    names: list[OtherNames]
    candidates: list[Candidate]
    summarize: bool = Field(False, description="true when the user asks to sum up the conversation and remember that")
    turns: list[Turn] = Field(default_factory=list, description="one for each message of the user")


# The second call


class ActionKind(StrEnum):
    """The action for one new statement."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    DELETE = "delete"
    IGNORE = "ignore"


class Decision(BaseModel):
    """The decision on one new statement, with the numbers of the new and the known statements."""

    new: int
    action: ActionKind
    known: list[int]
    ended_at: str | None = Field(description="supersede: the first day the known ones no longer hold, if that is told")
    remaining: str | None = Field(
        None, description="supersede: what still holds of the known one and no new statement says, as a sentence"
    )
    reason: str = Field(description="a few words")


class SameEntity(BaseModel):
    """The known entity that a name means, if any."""

    name: int
    known: int | None = Field(description="number of the known entity, null when it is somebody or something else")


class Reconciliation(LenientAnswer):
    """The answer of the second call."""

    decisions: list[Decision]
    same_entities: list[SameEntity] = Field(default_factory=list)


# Tool calls


class UpsertMemory(BaseModel):
    """The arguments of the tool `upsert_memories`."""

    type: StatedType
    content: str
    confidence: float
    topic_tags: list[str] = Field(default_factory=list)
    speech: Speech | None = None
    addressee: Addressee | None = None
    quote: str | None = None

    @property
    def screening(self) -> Screening | None:
        """What the words do that the memory is taken from, if the call says so."""
        if self.speech is None or not self.quote:
            return None
        return Screening(speech=self.speech, addressee=self.addressee, quote=self.quote)


# Summaries


class Summary(LenientAnswer):
    """The summary of a session."""

    title: str
    summary: str
    takeaways: list[str]
    topics: list[str] = Field(default_factory=list)
    sentiment: float | None = None


_DATE_PATTERN = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d+)?)?)?)?)?"
    r"(?:Z|[+-]\d{2}:\d{2})?"
)


def parse_local_date(text: str | None, zone: tzinfo) -> datetime | None:
    """Return the first moment of a year, month, day or minute in `zone`, or None for text that is no such date.

    An offset in the text is ignored, because the model saw local times only.
    """
    match = _DATE_PATTERN.fullmatch((text or "").strip())
    if not match or not 2 <= int(match["year"]) <= 9998:
        return None
    month, day, hour, minute = (int(match[part] or least) for part, least in _DEFAULT_FIELDS.items())
    try:
        return datetime(int(match["year"]), month, day, hour, minute, tzinfo=zone)
    except ValueError:
        return None


_DEFAULT_FIELDS = {"month": 1, "day": 1, "hour": 0, "minute": 0}
