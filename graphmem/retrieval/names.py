"""Entities named in a text: by whole names and aliases, by a person's first or last name, and with typos."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from graphmem.domain.entity import PERSON
from graphmem.domain.text import normalise
from graphmem.retrieval.lexical import STOP_WORDS
from graphmem.store.search import EntityName

MOST_NAMESAKES = 3
"""A first or last name that more people share names none of them."""

MAX_TOKENS = 400
"""So many words of a text are looked at."""

_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u065f]")
_ASCII_WORD = re.compile("[a-z0-9]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

WHOLE, PART, TYPO, MYSELF = range(4)
"""How an entity is named: by a whole name, by part of a person's, with typos, by a word such as "me"."""

_MYSELF = """
i me my mine myself ich mich mir mein meine je moi mon ma mes yo mi mis io mio mia eu meu minha ik mij mijn
"""
FIRST_PERSON = frozenset(_MYSELF.split())
"""Words by which a writer means themselves; looked at only when nothing else is named."""


def fold(text: str) -> str:
    """Return a text as names are compared: case, width and accents gone, words kept apart by one space."""
    if text.isascii():
        return " ".join(_ASCII_WORD.findall(text.lower()))
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", normalise(text)))
    plain = unicodedata.normalize("NFC", plain)
    return " ".join(
        "".join(each if each.isalnum() or unicodedata.category(each)[0] == "M" else " " for each in plain).split()
    )


def allowed_edits(length: int) -> int:
    """Return how many typos a name of so many letters may carry."""
    if length < 5:
        return 0
    return 1 if length < 9 else 2


@dataclass(frozen=True, slots=True)
class Named:
    """An entity found in a text, and how; `place` and `size` tell which of the text's words name it."""

    id: str
    kind: int
    place: int
    size: int
    is_person: bool


def focus(text: str, named: Iterable[Named]) -> str:
    """Return a text without the people it names and without stop words: what is asked about them."""
    words = fold(text).split()[:MAX_TOKENS]
    people = {place for each in named if each.is_person for place in range(each.place, each.place + each.size)}
    return " ".join(word for at, word in enumerate(words) if at not in people and word not in STOP_WORDS)


class NameIndex:
    """The names and aliases of one user's entities, ready to be found in texts."""

    def __init__(self, names: Iterable[EntityName]) -> None:
        self._whole: dict[str, list[str]] = defaultdict(list)
        self._part: dict[str, set[str]] = defaultdict(set)
        self._unspaced: dict[str, list[str]] = defaultdict(list)
        self._similar: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._longest = 1
        self._people: set[str] = set()
        self._own: str | None = None
        for each in names:
            if each.is_user:
                self._own = self._own or each.id
            if each.type == PERSON:
                self._people.add(each.id)
            for name in (each.name, *each.aliases):
                self._add(each, fold(name))

    def _add(self, entity: EntityName, key: str) -> None:
        if not key or entity.id in self._whole.get(key, ()):
            return
        self._whole[key].append(entity.id)
        words = key.split()
        self._longest = max(self._longest, len(words))
        if _UNSPACED.search(key) and len(key) > 1:
            self._unspaced[key].append(entity.id)
        if entity.type == PERSON and len(words) > 1:
            for word in (words[0], words[-1]):
                if len(word) > 2:
                    self._part[word].add(entity.id)
        if allowed_edits(len(key)):
            self._similar[key[0], len(key)].append(key)

    def find(self, text: str) -> list[Named]:
        """Return the entities a text names, the surest first, each once; longer names cover the shorter in them."""
        folded = fold(text)
        words = folded.split()[:MAX_TOKENS]
        free = [True] * len(words)
        found: dict[str, Named] = {}
        for size in range(min(self._longest, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                ids = self._whole.get(" ".join(words[start : start + size]))
                if ids and all(free[start : start + size]):
                    free[start : start + size] = [False] * size
                    self._note(found, ids, WHOLE, start, size)
        for key, ids in self._unspaced.items():
            if key in folded:
                self._note(found, ids, WHOLE, 0, 0)
        for place, word in enumerate(words):
            if free[place] and 0 < len(named := self._part.get(word, ())) <= MOST_NAMESAKES:
                free[place] = False
                self._note(found, sorted(named), PART, place, 1)
        for size in range(min(self._longest, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                if all(free[start : start + size]) and (near := self._nearest(" ".join(words[start : start + size]))):
                    free[start : start + size] = [False] * size
                    self._note(found, self._whole[near], TYPO, start, size)
        if not found and self._own and FIRST_PERSON.intersection(words):
            return [Named(self._own, MYSELF, 0, 0, True)]
        return sorted(found.values(), key=lambda each: (each.kind, each.place))

    def _nearest(self, phrase: str) -> str | None:
        """Return the name that differs from `phrase` by typos alone, beginning with the same letter."""
        edits = allowed_edits(len(phrase))
        if not edits:
            return None
        best: tuple[int, str] | None = None
        for length in range(len(phrase) - edits, len(phrase) + edits + 1):
            for key in self._similar.get((phrase[0], length), ()):
                most = min(edits, allowed_edits(length))
                distance = OSA.distance(phrase, key, score_cutoff=most)
                if distance <= most and (best is None or (distance, key) < best):
                    best = (distance, key)
        return best[1] if best else None

    def _note(self, found: dict[str, Named], ids: Iterable[str], kind: int, place: int, size: int) -> None:
        for each in ids:
            found.setdefault(each, Named(each, kind, place, size, each in self._people))
