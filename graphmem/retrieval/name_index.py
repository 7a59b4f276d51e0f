"""Entities named in a text: by whole names and aliases, by a person's first or last name, and with typos."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rapidfuzz.distance import OSA

from graphmem.domain.entity import PERSON_TYPE
from graphmem.domain.text import normalise
from graphmem.retrieval.bm25 import STOP_WORDS
from graphmem.store.search import EntityName

MAX_NAMESAKES = 3
"""A first or last name that more people share names none of them."""

MAX_SEARCHED_WORDS = 400
"""So many words of a text are looked at."""

_ACCENTS = re.compile("[\u0300-\u036f\u064b-\u065f]")
_ASCII_WORD = re.compile("[a-z0-9]+")
_UNSPACED_LETTER = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

FULL_NAME, NAME_PART, TYPO, SELF_REFERENCE = range(4)
"""How an entity is named: by a whole name, by part of a person's, with typos, by a word such as "me"."""

_FIRST_PERSON_WORD_LIST = """
i me my mine myself ich mich mir mein meine je moi mon ma mes yo mi mis io mio mia eu meu minha ik mij mijn
"""
FIRST_PERSON_WORDS = frozenset(_FIRST_PERSON_WORD_LIST.split())
"""Words by which a writer means themselves; looked at only when nothing else is named."""


def normalise_name(text: str) -> str:
    """Return a text as names are compared: case, width and accents gone, words kept apart by one space."""
    if text.isascii():
        return " ".join(_ASCII_WORD.findall(text.lower()))
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", normalise(text)))
    plain = unicodedata.normalize("NFC", plain)
    return " ".join(
        "".join(each if each.isalnum() or unicodedata.category(each)[0] == "M" else " " for each in plain).split()
    )


def max_typos(length: int) -> int:
    """Return how many typos a name of so many letters may carry."""
    if length < 5:
        return 0
    return 1 if length < 9 else 2


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity found in a text, and how; `position` and `size` tell which of the text's words name it."""

    id: str
    kind: int
    position: int
    size: int
    is_person: bool


def question_focus(text: str, named: Iterable[EntityMention]) -> str:
    """Return a text without the people it names and without stop words: what is asked about them."""
    words = normalise_name(text).split()[:MAX_SEARCHED_WORDS]
    people = {
        position for each in named if each.is_person for position in range(each.position, each.position + each.size)
    }
    return " ".join(word for at, word in enumerate(words) if at not in people and word not in STOP_WORDS)


class NameIndex:
    """The names and aliases of one user's entities, ready to be found in texts."""

    def __init__(self, names: Iterable[EntityName]) -> None:
        self._ids_by_full_name: dict[str, list[str]] = defaultdict(list)
        self._ids_by_name_part: dict[str, set[str]] = defaultdict(set)
        self._ids_by_unspaced_name: dict[str, list[str]] = defaultdict(list)
        self._names_by_initial_and_length: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._max_words = 1
        self._person_ids: set[str] = set()
        self._user_entity_id: str | None = None
        for each in names:
            if each.is_user:
                self._user_entity_id = self._user_entity_id or each.id
            if each.type == PERSON_TYPE:
                self._person_ids.add(each.id)
            for name in (each.name, *each.aliases):
                self._index_name(each, normalise_name(name))

    def _index_name(self, entity: EntityName, key: str) -> None:
        if not key or entity.id in self._ids_by_full_name.get(key, ()):
            return
        self._ids_by_full_name[key].append(entity.id)
        words = key.split()
        self._max_words = max(self._max_words, len(words))
        if _UNSPACED_LETTER.search(key) and len(key) > 1:
            self._ids_by_unspaced_name[key].append(entity.id)
        if entity.type == PERSON_TYPE and len(words) > 1:
            for word in (words[0], words[-1]):
                if len(word) > 2:
                    self._ids_by_name_part[word].add(entity.id)
        if max_typos(len(key)):
            self._names_by_initial_and_length[key[0], len(key)].append(key)

    def find(self, text: str) -> list[EntityMention]:
        """Return the entities a text names, the surest first, each once; longer names cover the shorter in them."""
        folded = normalise_name(text)
        words = folded.split()[:MAX_SEARCHED_WORDS]
        free = [True] * len(words)
        found: dict[str, EntityMention] = {}
        for size in range(min(self._max_words, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                ids = self._ids_by_full_name.get(" ".join(words[start : start + size]))
                if ids and all(free[start : start + size]):
                    free[start : start + size] = [False] * size
                    self._add_mentions(found, ids, FULL_NAME, start, size)
        for key, ids in self._ids_by_unspaced_name.items():
            if key in folded:
                self._add_mentions(found, ids, FULL_NAME, 0, 0)
        for position, word in enumerate(words):
            if free[position] and 0 < len(named := self._ids_by_name_part.get(word, ())) <= MAX_NAMESAKES:
                free[position] = False
                self._add_mentions(found, sorted(named), NAME_PART, position, 1)
        for size in range(min(self._max_words, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                if all(free[start : start + size]) and (
                    near := self._closest_name(" ".join(words[start : start + size]))
                ):
                    free[start : start + size] = [False] * size
                    self._add_mentions(found, self._ids_by_full_name[near], TYPO, start, size)
        if not found and self._user_entity_id and FIRST_PERSON_WORDS.intersection(words):
            return [EntityMention(self._user_entity_id, SELF_REFERENCE, 0, 0, True)]
        return sorted(found.values(), key=lambda each: (each.kind, each.position))

    def _closest_name(self, phrase: str) -> str | None:
        """Return the name that differs from `phrase` by typos alone, beginning with the same letter."""
        edits = max_typos(len(phrase))
        if not edits:
            return None
        best: tuple[int, str] | None = None
        for length in range(len(phrase) - edits, len(phrase) + edits + 1):
            for key in self._names_by_initial_and_length.get((phrase[0], length), ()):
                most = min(edits, max_typos(length))
                distance = OSA.distance(phrase, key, score_cutoff=most)
                if distance <= most and (best is None or (distance, key) < best):
                    best = (distance, key)
        return best[1] if best else None

    def _add_mentions(
        self, found: dict[str, EntityMention], ids: Iterable[str], kind: int, position: int, size: int
    ) -> None:
        for each in ids:
            found.setdefault(each, EntityMention(each, kind, position, size, each in self._person_ids))
