"""The answers requested from language models, and the dates in them; only descriptions of fields are sent.

Answers are proposals. Messages and memories are identified by numbers; `ingestion.plan` decides what is applied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field, model_validator

from graphmem.memories.declared_types import DeclaredMemoryType, DeclaredTypes, find_attribute_problem
from graphmem.memories.memory import StatedType
from graphmem.models.language_model import AnswerPart, Labels, LenientAnswer
from graphmem.runtime.field_types import UnitInterval

# The first call


class Named(BaseModel):
    """An entity as the model names it."""

    name: str
    type: str = Field(description="Person, Organization, Place, Animal, Event, Project, Product, Activity, Food, …")


class OtherNames(AnswerPart):
    """Names of one entity in the conversation."""

    name: str = Field(description="the fullest proper name")
    others: Labels[str] = Field(description='nicknames, short forms, or a description such as "Mara\'s sister"')


class Candidate(AnswerPart):
    """One statement that may become a memory; dates are the speaker's local ones, without an offset."""

    content: str = Field(description="one self-contained sentence in the third person")
    type: StatedType
    subject: Named
    predicate: str = Field(description="UPPER_SNAKE_CASE, in English")
    object: Named | None = None
    entities: Labels[Named] = Field(default_factory=list, description="every other entity the sentence names")
    valid_at: str | None = Field(
        None, description="YYYY, YYYY-MM, YYYY-MM-DD, YYYY-MM-DDTHH:MM, or the first and last day of a span as A/B"
    )
    invalid_at: str | None = Field(None, description="the first moment it no longer holds, in the forms of one moment")
    confidence: float
    importance: float
    tags: Labels[str] = Field(default_factory=list)
    domain: str | None = Field(
        None, description="the one field or project in which it matters; null when it matters anywhere"
    )
    single_valued: bool = False
    retracts: bool = Field(False, description="true only when the user takes the sentence back or asks to forget it")
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


class WishAbout(StrEnum):
    """What of the assistant's replies a wish is about."""

    STYLE = "style"
    LEVEL = "level"
    FORMAT = "format"
    LANGUAGE = "language"


class Polarity(StrEnum):
    """Whether the user asks for something or does not want it."""

    FOR = "for"
    AGAINST = "against"


class Wish(BaseModel):
    """What the user asks of the assistant's replies from now on."""

    about: WishAbout
    value: str = Field(description="such as formal, brief, table or Spanish")
    polarity: Polarity


class Turn(AnswerPart):
    """What one message of the user is about."""

    message: int = Field(description="number of the message")
    intent: str | None = Field(None, description="what the user wants with it, in English, lower_snake_case")
    entities: Labels[NamedValue] = Field(default_factory=list)
    wishes: Labels[Wish] = Field(default_factory=list, description="lasting wishes about replies; nearly always empty")


class Extraction(LenientAnswer):
    """The answer of the first call."""

    skip: bool = Field(False, description="true when nothing is worth keeping")
    reason: str = Field("", description="with skip: why, in a few words; else empty")
    keywords: Labels[str] = Field(
        default_factory=list, description="search words for what is already known about the same things"
    )
    names: list[OtherNames] = Field(default_factory=list)
    candidates: list[Candidate]
    summarize: bool = Field(False, description="true when the user asks to sum up the conversation and remember that")
    turns: list[Turn] = Field(default_factory=list, description="one for each message of the user")

    @model_validator(mode="before")
    @classmethod
    def _let_a_skip_stand_alone(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("skip") is True and value.get("candidates") is None:
            return {**value, "candidates": []}
        return value


# The first call of a tenant with declared types, and of a batch with text that is not the user's own


class NamedAttribute(BaseModel):
    """One attribute of a candidate."""

    name: str
    value: str


class DeclaredCandidate(Candidate):
    """A candidate that may be of a declared type."""

    declared_type: str | None = Field(None, description="name of the declared memory type that fits, else null")
    attributes: list[NamedAttribute] = Field(
        default_factory=list, description="with declared_type: those of its attributes that the messages tell"
    )


class DeclaredExtraction(Extraction):
    """The answer of the first call for a tenant with declared memory types."""

    candidates: list[DeclaredCandidate]  # pyrefly: ignore[bad-override] - an answer is only read


_SCREENING_FIELD: Any = Field(
    None, description="for a candidate that rests on a line of <foreign_lines>: what its words do; else null"
)


class ScreenedCandidate(Candidate):
    """A candidate that may be taken from text which is not the user's own."""

    screening: Screening | None = _SCREENING_FIELD


class ScreenedExtraction(Extraction):
    """The answer of the first call for a batch with text that is not the user's own."""

    candidates: list[ScreenedCandidate]  # pyrefly: ignore[bad-override] - an answer is only read


class ScreenedDeclaredCandidate(DeclaredCandidate):
    """A candidate of both kinds."""

    screening: Screening | None = _SCREENING_FIELD


class ScreenedDeclaredExtraction(DeclaredExtraction):
    """The answer for such a batch of a tenant with declared memory types."""

    candidates: list[ScreenedDeclaredCandidate]  # pyrefly: ignore[bad-override] - an answer is only read


def answer_schema(types: DeclaredTypes, *, is_screened: bool = False) -> type[Extraction]:
    """Return the answer that the first call asks for; without declared memory types it is the plain one.

    With `is_screened`, the batch has text that is not the user's own.
    """
    if types.memory_types:
        return ScreenedDeclaredExtraction if is_screened else DeclaredExtraction
    return ScreenedExtraction if is_screened else Extraction


def read_screenings(answer: Extraction) -> dict[int, Screening]:
    """Return what an answer says of the words that its candidates are taken from, by the candidates' indexes."""
    found = ((index, getattr(candidate, "screening", None)) for index, candidate in enumerate(answer.candidates))
    return {index: screening for index, screening in found if screening is not None}


class DeclaredLabel(BaseModel):
    """The declared type of a candidate, with its attributes."""

    name: str
    attributes: dict[str, Any] = Field(default_factory=dict)


def render_declared_types(types: DeclaredTypes) -> str:
    """Return one line for each declared type, with its attributes; nothing where there are none."""
    lines = []
    for kind, declared_types in (("memory", types.memory_types), ("entity", types.entity_types)):
        for declared in declared_types:
            description = f": {' '.join(declared.description.split())}" if declared.description.strip() else ""
            attributes = ", ".join(f"{name} ({kind_of})" for name, kind_of in declared.attribute_types.items())
            offered = f"; attributes: {attributes}" if attributes and kind == "memory" else ""
            lines.append(f"{kind} type {declared.name}{description}{offered}")
    return "\n".join(lines)


def read_labels(answer: Extraction, types: DeclaredTypes) -> tuple[Extraction, dict[int, DeclaredLabel]]:
    """Return an answer with the types that declared ones are based on, and the labels of its candidates by index.

    A candidate whose attributes do not fit its declared type has none.
    """
    if not isinstance(answer, DeclaredExtraction):
        return answer, {}
    candidates: list[Candidate] = []
    labels: dict[int, DeclaredLabel] = {}
    for index, candidate in enumerate(answer.candidates):
        plain = {name: getattr(candidate, name) for name in Candidate.model_fields}
        declared = types.find_memory_type(candidate.declared_type or "")
        if declared:
            attributes = _read_attributes(declared, candidate.attributes)
            if find_attribute_problem(declared, attributes) is None:
                plain["type"] = declared.base
                labels[index] = DeclaredLabel(name=declared.name, attributes=attributes)
        candidates.append(Candidate.model_construct(**plain))
    fields: dict[str, Any] = {name: getattr(answer, name) for name in Extraction.model_fields}
    fields["candidates"] = candidates
    return Extraction.model_construct(**fields), labels


def _read_attributes(declared: DeclaredMemoryType, attributes: Iterable[NamedAttribute]) -> dict[str, Any]:
    """Return the attributes that the type lists, each as a value of its JSON type."""
    kinds = declared.attribute_types
    return {
        attribute.name: _read_value(attribute.value, kinds, attribute.name)
        for attribute in attributes
        if attribute.name in kinds
    }


def _read_value(text: str, kinds: Mapping[str, str], name: str) -> Any:
    if kinds[name] == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# The second call


class ActionKind(StrEnum):
    """The action for one new statement."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    CONTEST = "contest"
    DELETE = "delete"
    IGNORE = "ignore"


class Remainder(BaseModel):
    """What still holds of a superseded memory and no new statement says."""

    known: int = Field(description="number of the superseded memory")
    content: str = Field(description="what still holds of it, as a sentence")


class Decision(AnswerPart):
    """The decision on one new statement, with the numbers of the new and the known statements."""

    new: int
    action: ActionKind
    known: list[int] = Field(default_factory=list)
    ended_at: str | None = Field(
        None, description="supersede: the first day the known ones no longer hold, if that is told"
    )
    remaining: list[Remainder] = Field(
        default_factory=list, description="supersede: what still holds of known ones and no new statement says"
    )
    reason: str = Field("", description="a few words")


class SameEntity(AnswerPart):
    """The known entity that a name means, if any."""

    name: int
    known: int | None = Field(
        None, description="number of the known entity, null when it is somebody or something else"
    )


class PassedPlan(BaseModel):
    """A known plan whose day has passed, without a word about its outcome."""

    known: int = Field(description="number of the known plan")
    day: str = Field(description="its last day, YYYY-MM-DD")


class Reconciliation(LenientAnswer):
    """The answer of the second call."""

    decisions: list[Decision]
    passed: list[PassedPlan] = Field(default_factory=list)
    same_entities: list[SameEntity] = Field(default_factory=list)


# Tool calls


class UpsertMemory(AnswerPart):
    """The arguments of the tool `upsert_memories`."""

    type: StatedType
    content: str
    confidence: UnitInterval
    topic_tags: Labels[str] = Field(default_factory=list)
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

    title: str = ""
    summary: str
    takeaways: list[str] = Field(default_factory=list)
    topics: list[str] = Field(default_factory=list)
    sentiment: float | None = None


_DATE_PATTERN = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d+)?)?)?)?)?"
    r"(?:Z|[+-]\d{2}:\d{2})?"
)


def parse_local_date(text: str | None, zone: tzinfo) -> datetime | None:
    """Return the first moment of a year, month, day, minute or span in `zone`, or None for text that is no such date.

    An offset in the text is ignored, because the model saw local times only.
    """
    match = _DATE_PATTERN.fullmatch((text or "").partition("/")[0].strip())
    if not match or not 2 <= int(match["year"]) <= 9998:
        return None
    month, day, hour, minute = (int(match[part] or least) for part, least in _DEFAULT_FIELDS.items())
    try:
        return datetime(int(match["year"]), month, day, hour, minute, tzinfo=zone)
    except ValueError:
        return None


_DEFAULT_FIELDS = {"month": 1, "day": 1, "hour": 0, "minute": 0}
