"""Cues: words for analysing text without a model, as data by language in `<language>.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from graphmem.text.word_lists import compile_words

LANGUAGES = ("en", "de", "es", "fr", "it", "pt", "nl", "pl")
"""The languages with cues (ISO 639-1); the cues of all are used together, whatever the language of a text."""

_FOLDER = files("graphmem.context") / "cues"


class CueWords(BaseModel):
    """The cues of all languages as written in the files; `en.toml` describes the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    past_session: list[str]
    echo: list[str]
    abandoned: list[str]
    ticket: list[str]
    pointer: list[str]
    abandoned_break: list[str]
    abandoned_end: list[str]
    change: list[str]
    present: list[str]
    negation: list[str]
    name: list[str]
    name_subjects: list[str]
    solution: list[str]
    failed: list[str]
    worked: list[str]
    tried: list[str]
    style: dict[str, list[str]]
    format: dict[str, list[str]]
    level: dict[str, list[str]]
    issues: dict[str, list[str]]
    slots: dict[str, list[str]]
    contractions: dict[str, list[str]]
    slang: dict[str, str]


@cache
def load_cue_words() -> CueWords:
    """Return the cues of all languages, merged in the order of `LANGUAGES`."""
    merged: dict[str, Any] = {}
    for language in LANGUAGES:
        _merge(merged, _read(language))
    return CueWords.model_validate(merged)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        elif isinstance(value, list):
            into.setdefault(key, []).extend(value)
        else:
            into[key] = value


def _compile_abandoned(words: CueWords) -> list[re.Pattern[str]]:
    breaks, ends = "|".join(words.abandoned_break), "|".join(words.abandoned_end)
    thing = rf"(?P<thing>[^\W_](?:[\w+#.'&-]*[\w+#])?(?: (?!(?:{breaks})\b)[\w+#'&-]+){{0,3}}?)"
    end = rf"(?=\s*(?:[.,;:!?)]|$|\b(?:{ends})\b))"
    return [re.compile(rf"\b{template.replace('{thing}', thing)}{end}", re.IGNORECASE) for template in words.abandoned]


def _compile_slot(relation: str, words: CueWords) -> re.Pattern[str]:
    present = f"(?:{'|'.join(words.present)})"
    name = r"(?-i:[^\W\da-z_])[\w&'’.-]*"
    value = rf"(?P<value>{name}(?:,? {name})*?)"
    filled = relation if "{value}" in relation else f"(?:{relation}) {{value}}"
    filled = filled.replace("{present}", present).replace("{value}", value)
    return re.compile(rf"^(?:{present},? )*{filled}(?: {present})*\s*(?:[.!;…]|$|,(?=.*\?))", re.IGNORECASE)


def compile_literal_cues(cues: Iterable[str]) -> list[re.Pattern[str]]:
    """Return a pattern for each literal cue, which also matches its plural in "s"."""
    return [re.compile(rf"\b{re.escape(cue)}s?\b", re.IGNORECASE) for cue in cues]


_WORDS = load_cue_words()

PAST_SESSION = compile_words(_WORDS.past_session)
"""Finds a reference to an earlier conversation."""

ECHO = tuple(_WORDS.echo)
"""Words with which a reply takes up a question, and which say nothing about it."""

TICKET = re.compile(
    r"(?<![\w#])#(?P<marked>\w[\w-]*)"
    rf"|\b(?:{'|'.join(_WORDS.ticket)})\s+(?:(?:no|nr)\.?\s*)?#?(?P<named>(?=[\w-]*\d)\w[\w-]*)",
    re.IGNORECASE,
)
"""Finds a ticket id: after "#", or, if it has a digit, after a word such as "issue"."""

POINTER = re.compile(
    rf"https?://\S+|(?<!\w)(?:(?:KB|knowledge ?base)[ -])?(?:{'|'.join(_WORDS.pointer)})"
    r"\s+(?:(?:no|nr)\.?\s*)?#?(?=[\w.-]*\d)\w[\w.-]*",
    re.IGNORECASE,
)
"""Finds references from a memory to external things, such as "KB article 42" and a web address."""

ABANDONED = _compile_abandoned(_WORDS)
"""Finds something that the user gives up; the group `thing` is its name."""

CHANGE = compile_words(_WORDS.change)
"""Finds a wish for something other than usual."""

SLOTS = {
    predicate: [_compile_slot(relation, _WORDS) for relation in relations]
    for predicate, relations in _WORDS.slots.items()
}
"""By predicate, patterns for a sentence in which the user only says the slot's current value."""

SLOT_WORDS = {
    predicate: frozenset(re.findall(r"[^\W\d_]+", re.sub(r"\{\w+\}", " ", " ".join(relations)).lower()))
    for predicate, relations in _WORDS.slots.items()
}
"""By predicate, the words of these sentences."""

PRESENT = compile_words(_WORDS.present)
"""Finds words that say that something holds now."""

SAME_SLOTS = {"RESIDES_IN": "LIVES_IN", "WORKS_FOR": "WORKS_AT", "EMPLOYED_BY": "WORKS_AT"}
"""Predicates that name the same slot as another."""

STYLE = {style: compile_literal_cues(cues) for style, cues in _WORDS.style.items()}
"""Cues of a style of asking, the style that wins a tie first; the technical ones are in the profile."""

FORMAT = {name: compile_literal_cues(cues) for name, cues in _WORDS.format.items()}
"""Cues of a requested presentation."""

LEVEL = {name: compile_literal_cues(cues) for name, cues in _WORDS.level.items()}
"""Cues of a requested level of detail."""

NEGATION = compile_words(_WORDS.negation)
"""Finds that a question negates something, so that it may name things that are not wanted."""

ISSUES = {issue: compile_words(cues) for issue, cues in _WORDS.issues.items()}
"""The subject of a complaint about a reply."""

NAME_STATEMENT = re.compile(rf"\b(?:{'|'.join(_WORDS.name)}) ([^\W\d_][\w'’-]*)")
"""Finds a name in a statement about somebody's name; names are case-sensitive."""

NAME_SUBJECTS = frozenset(_WORDS.name_subjects)
"""Words that may precede the name if it is the statement's subject's."""

SOLUTION = compile_words(_WORDS.solution)
"""Finds a mention of a solution."""

FAILED = compile_words(_WORDS.failed)
"""Finds that something tried did not help."""

WORKED = compile_words(_WORDS.worked)
"""Finds that something tried helped, where `FAILED` finds nothing."""

TRIED = compile_words(_WORDS.tried)
"""Finds a mention of something that was tried."""

CONTRACTIONS = {long: short for short, longs in _WORDS.contractions.items() for long in longs}
"""Contractions by the words they stand for."""

EXPANSIONS = {short: longs[0] for short, longs in _WORDS.contractions.items()} | _WORDS.slang
"""Contractions and casual words, with their formal equivalents."""
