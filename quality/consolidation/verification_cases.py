"""The cases of the evaluation of verification: merges and links that a model may propose, half of them subtly wrong.

A case holds the statements that are stored, and either the statement that replaces them or the two names that become
one. It says whether a careful reader executes the proposal, and of a wrong one what is wrong with it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from graphmem.consolidation.models import MergeRelation
from graphmem.memories.entity import PERSON_TYPE
from graphmem.user_data.foreign import parse_yaml

VERIFICATION_CASES = Path(__file__).with_name("verification_cases.yaml")
"""The file of the cases."""


MAX_SOURCES = 4
"""Most statements of a case."""


class Expected(StrEnum):
    """Whether a proposal should be executed."""

    RIGHT = "right"
    WRONG = "wrong"


class ErrorKind(StrEnum):
    """What is wrong with a proposal."""

    DENIAL = "denial"
    NUMBER = "number"
    DATE = "date"
    QUANTITY = "quantity"
    CONDITION = "condition"
    PAST = "past"
    PLAN = "plan"
    RELATIVE = "relative"
    EXCHANGE = "exchange"
    NAMESAKE = "namesake"
    CALLED = "called"
    FICTION = "fiction"
    ORDER = "order"
    CHAIN = "chain"


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Statement(_StrictModel):
    """A memory that is stored before the proposal is judged; without a subject it is about the user."""

    content: str
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None


class _Case(_StrictModel):
    id: str
    language: str
    expected: Expected
    error: ErrorKind | None = None
    why: str

    @model_validator(mode="after")
    def _check_case(self) -> Self:
        if not self.id.startswith(f"{self.language}-"):
            raise ValueError("the id must begin with the language")
        if (self.error is None) != (self.expected is Expected.RIGHT):
            raise ValueError("a wrong proposal, and no other, has an error")
        return self


class MergeCase(_Case):
    """A merge of all sources into `content`."""

    kind: Literal["merge"]
    sources: Annotated[list[Statement], Field(min_length=2, max_length=MAX_SOURCES)]
    content: str
    relation: MergeRelation

    @model_validator(mode="after")
    def _check_subjects(self) -> Self:
        if len({source.subject for source in self.sources}) > 1:
            raise ValueError("the sources of a merge have one subject")
        return self

    @property
    def subjects(self) -> frozenset[str]:
        """The names that the case uses; empty if it is about the user."""
        return frozenset(source.subject for source in self.sources if source.subject)


class LinkCase(_Case):
    """A link of two names; the sources are its evidence."""

    kind: Literal["link"]
    sources: Annotated[list[Statement], Field(min_length=1, max_length=MAX_SOURCES)]
    names: tuple[str, str]
    type: str = PERSON_TYPE

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if missing := sorted(set(self.names) - {name for source in self.sources for name in _ends(source)}):
            raise ValueError(f"no source is about {', '.join(missing)}")
        return self

    @property
    def subjects(self) -> frozenset[str]:
        """The names that the case uses."""
        return frozenset(self.names)


VerificationCase = MergeCase | LinkCase
"""A case of either kind."""

_CASE: TypeAdapter[VerificationCase] = TypeAdapter(Annotated[VerificationCase, Field(discriminator="kind")])


def load_verification_cases(path: Path = VERIFICATION_CASES) -> list[VerificationCase]:
    """Return the cases of a file; raise ValueError for an id or, within a language, a name that is used twice."""
    entries: Any = parse_yaml(path.read_text("utf-8"))
    cases: list[VerificationCase] = []
    used: set[str] = set()
    for entry in entries:
        try:
            case = _CASE.validate_python(entry)
        except ValueError as error:
            raise ValueError(f"{path.name}, case {entry.get('id')}: {error}") from None
        names = {case.id, *(f"{case.language}: {name}" for name in case.subjects)}
        if repeated := sorted(used & names):
            raise ValueError(f"{path.name}, case {case.id}: used by another case: {', '.join(repeated)}")
        used |= names
        cases.append(case)
    return cases


def _ends(source: Statement) -> set[str]:
    return {name for name in (source.subject, source.object) if name}
