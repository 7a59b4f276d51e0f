"""What a language model is asked to answer: candidates for memories, and what they change among the known ones.

Everything here is a proposal. Numbers stand for messages and memories; what is done decides `ingestion.action_plan`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from graphmem.domain.memory import MemoryType, parse_memory_type

# Extract


class Named(BaseModel):
    """An entity as the model names it."""

    name: str
    type: str = Field(description="Person, Organization, Place, Animal, Event, Project, Product, Activity, Food, …")


class OtherNames(BaseModel):
    """Names the conversation uses for one and the same entity."""

    name: str = Field(description="the fullest proper name")
    others: list[str] = Field(description='nicknames, short forms, or a description such as "Mara\'s sister"')


class Candidate(BaseModel):
    """One statement that may become a memory; times are the speaker's local ones, without an offset."""

    content: str = Field(description="one self-contained sentence in the third person")
    type: Annotated[MemoryType, BeforeValidator(parse_memory_type)]
    subject: Named
    predicate: str = Field(description="UPPER_SNAKE_CASE, in English")
    object: Named | None
    entities: list[Named] = Field(description="every other entity the sentence names")
    valid_at: str | None = Field(description="YYYY, YYYY-MM, YYYY-MM-DD or YYYY-MM-DDTHH:MM")
    invalid_at: str | None = Field(description="the first moment it no longer holds, in the same forms")
    confidence: float
    importance: float
    tags: list[str]
    single_valued: bool
    retracts: bool = Field(description="true only when the user takes the sentence back or asks to forget it")
    messages: list[int] = Field(description="numbers of the messages that state it")


class Extraction(BaseModel):
    """The answer of the first call."""

    skip: bool = Field(description="true when nothing is worth keeping")
    reason: str = Field(description="with skip: why, in a few words; else empty")
    keywords: list[str] = Field(description="search words for what is already known about the same things")
    names: list[OtherNames]
    candidates: list[Candidate]


# Reconcile


class ActionKind(StrEnum):
    """What is to be done with one new statement."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    DELETE = "delete"
    IGNORE = "ignore"


class Decision(BaseModel):
    """What the model decides about one new statement, by the numbers of the new and the known ones."""

    new: int
    action: ActionKind
    known: list[int]
    ended_at: str | None = Field(description="supersede: when the known one stopped to hold, if that is told")
    reason: str = Field(description="a few words")


class SameEntity(BaseModel):
    """Whether a name means a known entity."""

    name: int
    known: int | None = Field(description="number of the known entity, null when it is somebody or something else")


class Reconciliation(BaseModel):
    """The answer of the second call."""

    decisions: list[Decision]
    same_entities: list[SameEntity]


# The tool form


class UpsertMemory(BaseModel):
    """The arguments of one call of the tool `upsert_memories`."""

    type: Annotated[MemoryType, BeforeValidator(parse_memory_type)]
    content: str
    confidence: float
    topic_tags: list[str] = Field(default_factory=list)


# Summaries


class Summary(BaseModel):
    """A session summed up."""

    title: str
    summary: str
    takeaways: list[str]
    topics: list[str]
    sentiment: float | None
