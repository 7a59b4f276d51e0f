"""The cases of the evaluation of consolidation: what a user has stored, and what is right to do with it at night.

The format is described in README.md next to this module. A pattern such as `"moved leipzig"` matches a text when each
of its words begins a word of the text, in any order, whatever case and accents. A word that begins with a digit must be
a whole number, and a word in a script without spaces may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, tzinfo
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphmem.conversations.session import TimeZoneName
from graphmem.memories.memory import MemoryType, Scope
from graphmem.user_data.foreign import parse_yaml
from quality.cases import fold_text

CASES = Path(__file__).with_name("cases")
"""The folder of the cases, one YAML file per language."""

NIGHT = datetime(2026, 3, 10, 2, 0, tzinfo=UTC)
"""When the consolidation of every case runs."""

USER = "user"
"""The key of the user's own entity."""

ANY_TIME = "any"
"""A time of a merged memory that is not judged."""

LANGUAGES = ("en", "de", "es", "fr", "ja", "ru")
"""The languages of the cases, which are the names of their files."""

_UNSPACED = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]")
_TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$"


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str | int) else value


Pattern = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
"""A pattern, which YAML may have read as a number."""

Alternatives = Annotated[list[Pattern], BeforeValidator(_as_list), Field(min_length=1)]
"""Patterns of which a text must match one."""

LocalTime = Annotated[str, Field(pattern=_TIME_PATTERN)]
"""A date (its midnight) or a minute, in the time zone of the case."""

JudgedTime = Annotated[str, Field(pattern=rf"{_TIME_PATTERN}|^{ANY_TIME}$")]
"""A local time that a merged memory must have, or `any`."""

Keys = Annotated[list[str], Field(min_length=1)]
TwoOrMoreKeys = Annotated[list[str], Field(min_length=2)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class SeedEntity(_StrictModel):
    """A person, place or thing that memories of the case name."""

    name: str
    type: str | None = None
    aliases: list[str] = Field(default_factory=list)
    attributes: dict[str, str] = Field(default_factory=dict)


class SeedMemory(_StrictModel):
    """A memory that is stored before the night; `about`, `object` and `mentions` are keys of entities."""

    text: str
    about: str = USER
    predicate: str | None = None
    object: str | None = None
    mentions: list[str] = Field(default_factory=list)
    type: MemoryType = MemoryType.FACT
    valid_from: LocalTime | None = Field(None, alias="from")
    valid_until: LocalTime | None = Field(None, alias="until")
    known: LocalTime | None = None
    session: str | None = None
    confidence: float = Field(0.9, ge=0.5, le=1)
    importance: float = Field(0.5, ge=0, le=1)
    scope: Scope | None = None
    domain: str | None = None
    tags: list[str] = Field(default_factory=list)
    single_valued: bool = False
    immutable: bool = False
    expires: LocalTime | None = None


class ExpectedMerge(_StrictModel):
    """Memories that must become one; without `from` or `until` the one has no start or no end."""

    memories: TwoOrMoreKeys
    keeps: list[Alternatives] = Field(min_length=1)
    lacks: list[Pattern] = Field(default_factory=list)
    valid_from: JudgedTime | None = Field(None, alias="from")
    valid_until: JudgedTime | None = Field(None, alias="until")


class ForbiddenMerge(_StrictModel):
    """Memories of which no two may become one, and why."""

    memories: TwoOrMoreKeys
    why: str


class ForbiddenLink(_StrictModel):
    """Entities of which no two may become one, and why."""

    entities: TwoOrMoreKeys
    why: str


class ExpectedRead(_StrictModel):
    """What a read at a valid time, and optionally a known time, returns before and after the night.

    Each entry of `says` must be matched by one memory of the read; no memory may match a pattern of `never`.
    """

    at: LocalTime
    known: LocalTime | None = None
    says: list[Alternatives] = Field(default_factory=list)
    never: list[Pattern] = Field(default_factory=list)

    @model_validator(mode="after")
    def _require_check(self) -> Self:
        if not self.says and not self.never:
            raise ValueError("checks nothing")
        return self


class NightExpectations(_StrictModel):
    """What is right for the user; see README.md for how each field is judged."""

    merges: list[ExpectedMerge] = Field(default_factory=list)
    may_merge: list[TwoOrMoreKeys] = Field(default_factory=list)
    must_not_merge: list[ForbiddenMerge] = Field(default_factory=list)
    links: list[TwoOrMoreKeys] = Field(default_factory=list)
    may_link: list[TwoOrMoreKeys] = Field(default_factory=list)
    must_not_link: list[ForbiddenLink] = Field(default_factory=list)
    names: dict[str, Keys] = Field(default_factory=dict)
    must_not_name: dict[str, Keys] = Field(default_factory=dict)
    must_not_profile: list[str] = Field(default_factory=list)
    closes: list[str] = Field(default_factory=list)
    contradictions: list[TwoOrMoreKeys] = Field(default_factory=list)
    reads: list[ExpectedRead] = Field(default_factory=list)
    unchanged: bool = False


class ConsolidationCase(_StrictModel):
    """The memories of one user and what is right to do with them; `user` is the user id and the entity's name."""

    id: str = Field(pattern=r"^[a-z]{2}-[a-z0-9-]+$")
    themes: list[str] = Field(min_length=1)
    why: str
    user: str
    user_aliases: list[str] = Field(default_factory=list)
    timezone: TimeZoneName | None = None
    nights: Literal[1, 2] = 1
    entities: dict[str, SeedEntity] = Field(default_factory=dict)
    memories: dict[str, SeedMemory] = Field(min_length=1)
    expected: NightExpectations

    @property
    def language(self) -> str:
        """The language of the file that the case is in."""
        return self.id[:2]

    @property
    def zone(self) -> tzinfo:
        """The zone of the local times of the case."""
        return ZoneInfo(self.timezone) if self.timezone else UTC

    def to_instant(self, text: str | None) -> datetime | None:
        """Return the time in UTC that a local time means, or None."""
        if text is None:
            return None
        local = datetime.fromisoformat(text) if "T" in text else datetime.combine(datetime.fromisoformat(text), time())
        return local.replace(tzinfo=self.zone).astimezone(UTC)

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        problems = [*self._find_unknown_keys(), *self._find_conflicts()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _find_unknown_keys(self) -> Iterator[str]:
        expected = self.expected
        used_memories = [
            *(key for merge in expected.merges for key in merge.memories),
            *(key for merge in expected.must_not_merge for key in merge.memories),
            *(key for keys in (*expected.may_merge, *expected.contradictions) for key in keys),
            *expected.closes,
        ]
        yield from (f"there is no memory {key}" for key in used_memories if key not in self.memories)
        used_entities = [
            *(key for memory in self.memories.values() for key in entity_keys(memory)),
            *(key for keys in (*expected.links, *expected.may_link) for key in keys),
            *(key for link in expected.must_not_link for key in link.entities),
            *expected.names,
            *expected.must_not_name,
            *expected.must_not_profile,
        ]
        yield from (f"there is no entity {key}" for key in used_entities if key not in {USER, *self.entities})
        stored = {key for memory in self.memories.values() for key in entity_keys(memory)}
        yield from (f"no memory names the entity {key}" for key in self.entities if key not in stored)

    def _find_conflicts(self) -> Iterator[str]:
        """Yield what the expectations say twice, with opposite meanings."""
        expected = self.expected
        apart = [frozenset(pair) for keys in self.keys_kept_apart for pair in combinations(keys, 2)]
        together = [merge.memories for merge in expected.merges] + expected.may_merge
        for keys in together:
            yield from (f"{sorted(pair)} must and must not be merged" for pair in apart if pair <= set(keys))
        distinct = [frozenset(pair) for link in expected.must_not_link for pair in combinations(link.entities, 2)]
        for keys in [*expected.links, *expected.may_link]:
            yield from (f"{sorted(pair)} must and must not be linked" for pair in distinct if pair <= set(keys))
        if expected.unchanged and (expected.merges or expected.links or expected.names or expected.closes):
            yield "nothing may change and something must"
        for merge in expected.merges:
            subjects = {self.memories[key].about for key in merge.memories if key in self.memories}
            if len(subjects) > 1 and not any(subjects <= set(link) for link in expected.links):
                yield f"{merge.memories} are about different entities that are not linked"

    @property
    def keys_kept_apart(self) -> list[Sequence[str]]:
        """The sets of memories of which no two may be merged."""
        return [*(merge.memories for merge in self.expected.must_not_merge), *self.expected.contradictions]


def entity_keys(memory: SeedMemory) -> list[str]:
    """Return the keys of the entities that a memory names, its subject first."""
    return [memory.about, *([memory.object] if memory.object else []), *memory.mentions]


def load_cases(folder: Path = CASES) -> list[ConsolidationCase]:
    """Return the cases of a folder, file by file; raise ValueError for an id that is used twice or misfiled."""
    cases = [case for path in sorted(folder.glob("*.yaml")) for case in _load_file(path)]
    ids = [case.id for case in cases]
    if repeated := sorted({case_id for case_id in ids if ids.count(case_id) > 1}):
        raise ValueError(f"used for several cases: {', '.join(repeated)}")
    return cases


def _load_file(path: Path) -> list[ConsolidationCase]:
    entries: Any = parse_yaml(path.read_text("utf-8"))
    cases = []
    for entry in entries:
        try:
            case = ConsolidationCase.model_validate(entry)
        except ValueError as error:
            raise ValueError(f"{path.name}, case {entry.get('id')}: {error}") from None
        if case.language != path.stem:
            raise ValueError(f"{path.name}, case {case.id}: its id must begin with the language of the file")
        cases.append(case)
    return cases


def matches(text: str, patterns: Sequence[str]) -> bool:
    """Return whether a text matches one of the patterns."""
    folded = fold_text(text)
    return any(all(_contains_word(folded, word) for word in fold_text(pattern).split()) for pattern in patterns)


def _contains_word(text: str, word: str) -> bool:
    if word[0].isdigit():
        end = r"(?!\d)(?![.,]\d)" if word[-1].isdigit() else ""
        return re.search(rf"(?<!\d)(?<!\d[.,]){re.escape(word)}{end}", text) is not None
    if _UNSPACED.match(word):
        return word in text
    return re.search(rf"(?<!\w){re.escape(word)}", text) is not None
