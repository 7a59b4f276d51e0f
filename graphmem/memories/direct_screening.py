"""Whether text of others that is saved directly informs: decided without a model, by its structure. Pure.

Extraction asks a model whether a text informs or addresses the assistant. A save asks none, so that a statement of a
tool, a document or a web page must be one that says something of a thing that it names. All else is doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmem.memories.entity import EntityIn
from graphmem.memories.fact import TYPE_PREDICATES
from graphmem.memories.memory import MemoryIn, MemoryType
from graphmem.runtime.field_types import name_key
from graphmem.tenants.trust import TEXT_OF_OTHERS, SourceKind
from graphmem.text.added_texts import is_label
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.tokenising import split_words

SEVERAL_LINES = "it is a text of several lines or with markup, not one statement"
"""Why a text is doubtful that may look like more than a statement where it is shown."""

SPEAKS_FOR_USER = "it says what the user likes, wants or does, and only a text of others says so"
"""Why a statement about the user's preferences or habits is not saved."""

NAMES_NOTHING = (
    "it does not begin with the name of what it is about: give that as its subject, or its predicate and object"
)
"""Why a text is doubtful that may address somebody instead of informing."""

GOES_ON = "it goes on after its statement with words that no name or relation of it explains"
"""Why a text is doubtful if a part of it may address somebody."""

NO_LABEL = "a name, an alias, the relation or the domain is a text: give what a thing is called in a few words"
"""Why a statement is doubtful whose labels may hold what its text may not."""

PERSONAL_TYPES = frozenset({MemoryType.PREFERENCE, MemoryType.BEHAVIORAL_PATTERN, MemoryType.INFERRED_INTEREST})
"""Types of statements that only the user makes about the user."""

MIN_EXPLAINED = 0.5
"""Share of the words of a statement that its names and its relation explain, if it does not begin with a name."""

MAX_LABEL_WORDS = 6
"""Words of a name, a relation or a domain at most."""

MAX_UNEXPLAINED = 2
"""Unexplained words that a further clause may have; with more, it may address somebody."""

_MARKUP = re.compile(r"[\r\n\u2028\u2029]|^\s*(#|```|[-*>]\s)|<[/!a-zA-Z|]|\[/?[A-Z]+\]")
_CLAUSE_END = re.compile(r"[,;:.!?…،؛؟](?=\s)|[。、！？，；：—–]")


def find_doubt(memory: MemoryIn, kind: SourceKind, self_name: str) -> str | None:
    """Return why a statement is not saved as it is, or None.

    `kind` is that of the key which saves it: one that speaks for the user vouches for what it saves as others' word.
    `self_name` is the name of its owner.
    """
    if kind not in TEXT_OF_OTHERS:
        return None
    if doubt := find_label_doubt(memory, kind):
        return doubt
    text = memory.content.strip()
    if _MARKUP.search(text):
        return SEVERAL_LINES
    is_about_user = memory.subject is None or name_key(memory.subject.name) == name_key(self_name)
    if is_about_user and memory.type in PERSONAL_TYPES:
        return SPEAKS_FOR_USER
    entities = [entity for entity in (memory.subject, memory.object, *memory.entities) if entity]
    names = [self_name, *_names_of(entities)]
    explained = {word for name in names for word in split_words(name.casefold())}
    relation = memory.predicate if memory.object and memory.predicate not in TYPE_PREDICATES else None
    explained |= set(split_words((relation or "").replace("_", " ").casefold()))
    words = split_words(text.casefold())
    share = sum(word in explained for word in words) / len(words) if words else 0.0
    said_of = [name for name in names if 2 * len(name) <= len(text)]
    if not any(_begins_with(text, name) for name in said_of) and not (relation and share >= MIN_EXPLAINED):
        return NAMES_NOTHING
    further = [split_words(clause.casefold()) for clause in _CLAUSE_END.split(text)[1:]]
    if any(sum(word not in explained for word in clause) > MAX_UNEXPLAINED for clause in further):
        return GOES_ON
    return None


def find_label_doubt(memory: MemoryIn, kind: SourceKind) -> str | None:
    """Return why the names, the relation and the domain of a statement by a source are doubtful, or None."""
    if kind not in TEXT_OF_OTHERS:
        return None
    entities = [entity for entity in (memory.subject, memory.object, *memory.entities) if entity]
    relation = (memory.predicate or "").replace("_", " ")
    labels = [*_names_of(entities), relation, memory.domain or ""]
    return None if all(map(_is_short_label, labels)) else NO_LABEL


def _is_short_label(text: str) -> bool:
    return is_label(text) and "\n" not in text and len(split_words(text)) <= MAX_LABEL_WORDS


def _names_of(entities: Iterable[EntityIn]) -> Iterable[str]:
    return (name for entity in entities for name in (entity.name, *entity.aliases))


def _begins_with(text: str, name: str) -> bool:
    """Return whether a text says something of a name at its begin; one that calls it, as in "Ada, …", does not."""
    begin, rest = text[: len(name)], text[len(name) :]
    if begin.casefold() != name.casefold() or not rest:
        return False
    return rest[0].isspace() or rest[0] in "'’-" or bool(UNSPACED_LETTER.match(rest[0]))
