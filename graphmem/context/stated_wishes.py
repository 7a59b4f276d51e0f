"""Wishes about answers stated in a text, for or against something, such as "Never use a formal tone". Pure.

A sentence states a wish only if the forms of one language, in `wishes/<language>.toml`, match all of it: other words
may reverse its meaning or make it about somebody else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from graphmem.context import cues

_FOLDER = files("graphmem.context") / "wishes"
_SENTENCE = re.compile(r"([^.!?\n]+)([.!?\n]*)")
_OTHERS_WORDS = re.compile(r"[\"“”„«»:>`]")
"""Marks after which a text may quote somebody."""


class StatedWish(NamedTuple):
    """A user's wish, such as `formal`, `chart` or `Spanish`; with `is_denied`, the user does not want it."""

    value: str
    is_denied: bool


class WishForms(BaseModel):
    """The forms of wishes in one language; `en.toml` describes the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    openers: list[str]
    closers: list[str]
    interjections: list[str]
    polite: list[str] = Field(default_factory=list)
    and_words: list[str] = Field(alias="and")
    but_words: list[str] = Field(alias="but")
    language: str
    asks: list[str]
    denials: list[str]
    comments: list[str]
    noun: dict[str, list[str]]
    manner: dict[str, list[str]]
    excess: dict[str, list[str]]


class _Grammar:
    """The compiled forms of one language."""

    def __init__(self, forms: WishForms, language_names: Mapping[str, Sequence[str]]) -> None:
        names = {
            language: [forms.language.replace("{name}", name) for name in names]
            for language, names in language_names.items()
        }
        self._slots = {"noun": forms.noun, "manner": forms.manner, "excess": forms.excess, "language": names}
        self._openers = "|".join([*forms.openers, *forms.polite])
        self._closers = "|".join(forms.closers)
        self._idle = re.compile(
            "|".join([*forms.interjections, *forms.openers, *forms.closers, self._around("")]), re.IGNORECASE
        )
        self._polite = re.compile("|".join(forms.polite) or r"(?!)", re.IGNORECASE)
        self._denials = self._compile(forms.denials)
        self._asks = self._compile(forms.asks)
        self._comments = self._compile(forms.comments)
        self._continuations = self._compile(["{noun}", "{manner}", "{language}"])
        self._joint = re.compile(
            rf"[,;]?\s+(?!(?:{self._closers})\b)(?:(?P<and>{'|'.join(forms.and_words)})|{'|'.join(forms.but_words)}),?\s+|[,;]\s+|\s+[-–—]\s+",
            re.IGNORECASE,
        )

    def read(self, sentence: str, *, is_question: bool, is_comment: bool) -> list[StatedWish]:
        """Return the wishes of a sentence, which must be understood as a whole; otherwise there are none.

        A comment is about the reply, so its clauses that are not understood only matter if something is negated.
        """
        if is_question and not self._polite.search(sentence):
            return []
        wishes: list[StatedWish] = []
        for is_added, clause in self._split(sentence):
            if self._idle.fullmatch(clause):
                continue
            before = wishes[-1] if wishes else None
            wish = self._read_clause(
                clause, is_comment=is_comment, continues=before is not None and not before.is_denied
            )
            if is_added and before is not None and before.is_denied:
                return []
            if wish is not None:
                wishes.append(wish)
            elif not is_comment or cues.NEGATION.search(sentence):
                return []
        return wishes

    def _split(self, sentence: str) -> Iterator[tuple[bool, str]]:
        """Yield the clauses of a sentence, each with whether a word such as "and" joins it to the previous one."""
        start, is_added = 0, False
        for joint in self._joint.finditer(sentence):
            yield is_added, sentence[start : joint.start()].strip()
            start, is_added = joint.end(), joint["and"] is not None
        yield is_added, sentence[start:].strip()

    def _read_clause(self, clause: str, *, is_comment: bool, continues: bool) -> StatedWish | None:
        if denied := _match(self._denials, clause):
            return StatedWish(denied, is_denied=True)
        asks = [*self._asks, *(self._comments if is_comment else ()), *(self._continuations if continues else ())]
        asked = _match(asks, clause)
        return StatedWish(asked, is_denied=False) if asked else None

    def _compile(self, templates: Iterable[str]) -> list[tuple[re.Pattern[str], Mapping[str, str]]]:
        """Return the patterns of templates, with the value that each of their groups means."""
        return [self._compile_one(template) for template in templates]

    def _compile_one(self, template: str) -> tuple[re.Pattern[str], Mapping[str, str]]:
        values: dict[str, str] = {}
        for slot, words_by_value in self._slots.items():
            if f"{{{slot}}}" in template:
                values = {f"value{number}": value for number, value in enumerate(words_by_value)}
                groups = (f"(?P<{group}>{'|'.join(words_by_value[value])})" for group, value in values.items())
                template = template.replace(f"{{{slot}}}", f"(?:{'|'.join(groups)})")
        return re.compile(self._around(rf"(?:{template})"), re.IGNORECASE), values

    def _around(self, wish: str) -> str:
        return rf"(?:(?:{self._openers})(?:,\s*|\s+))*{wish}(?:,?\s+(?:{self._closers}))*"


def find_stated_wishes(text: str, *, is_comment: bool = False) -> list[StatedWish]:
    """Return a text's wishes for and against something, in order; possible quotes of others are not read.

    With `is_comment`, the text comments on a reply, so that "too long" refers to the reply.
    """
    return [
        wish
        for sentence, end in _sentences(text)
        for wish in _read_in_any_language(sentence, is_question="?" in end, is_comment=is_comment)
    ]


def _read_in_any_language(sentence: str, *, is_question: bool, is_comment: bool) -> list[StatedWish]:
    readings = (grammar.read(sentence, is_question=is_question, is_comment=is_comment) for grammar in _load_grammars())
    return next((wishes for wishes in readings if wishes), [])


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each sentence with its end, up to one that may quote somebody."""
    for match in _SENTENCE.finditer(text.replace("’", "'").translate(_OPENING_MARKS)):
        if _OTHERS_WORDS.search(match[1]):
            return
        yield " ".join(match[1].split()), match[2]


_OPENING_MARKS = str.maketrans("", "", "¿¡")


def _match(patterns: Iterable[tuple[re.Pattern[str], Mapping[str, str]]], clause: str) -> str | None:
    """Return the value of the first pattern that matches a whole clause."""
    for pattern, values in patterns:
        if match := pattern.fullmatch(clause):
            return next((value for group, value in values.items() if match[group]), None)
    return None


@cache
def _load_grammars() -> list[_Grammar]:
    language_names = _read("language_names")
    return [_Grammar(WishForms.model_validate(_read(language)), language_names) for language in cues.LANGUAGES]


def _read(name: str) -> dict[str, list[str]]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
