"""The entities that a text names: by whole names and aliases, by a part of a person's name, and with typos. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from graphmem.memories.entity import PERSON_TYPE, NamedEntity
from graphmem.runtime.field_types import name_key
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.names import edit_distance, fold_name, max_typos, name_words, strip_possessive, words_with_digits
from graphmem.text.tokenising import detect_languages
from graphmem.text.word_lists import LANGUAGES, load_words

MAX_NAMESAKES = 3
"""Most people who may share a first or last name for it to name them; if more do, it names none."""

MAX_SEARCHED_WORDS = 400
"""Words of a text that are searched for names."""


class MentionKind(IntEnum):
    """How a text names an entity; the lower, the surer."""

    FULL_NAME = 0
    INNER_NAME = 1
    NAME_PART = 2
    TYPO = 3
    SELF_REFERENCE = 4


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity that a text names, and how; `position` and `size` say which of the text's words name it.

    `is_user` marks the user's own entity.
    """

    id: str
    kind: MentionKind
    position: int
    size: int
    is_person: bool
    is_user: bool = False


def question_focus(text: str, mentions: Iterable[EntityMention], languages: Sequence[str] = ("en",)) -> str:
    """Return the words of a text without the people it names and without stop words: what is asked about them."""
    people = {
        position
        for mention in mentions
        if mention.is_person
        for position in range(mention.position, mention.position + mention.size)
    }
    stop_words = load_words(*languages).stop_words
    words = name_words(text)[:MAX_SEARCHED_WORDS]
    return " ".join(word for position, word in enumerate(words) if position not in people and word not in stop_words)


class NameIndex:
    """The names and aliases of one user's entities, indexed to find them in texts."""

    def __init__(self, entities: Iterable[NamedEntity]) -> None:
        self._ids_by_full_name: dict[str, list[str]] = defaultdict(list)
        self._ids_by_name_part: dict[str, set[str]] = defaultdict(set)
        self._ids_by_unspaced_name: dict[str, list[str]] = defaultdict(list)
        self._names_by_initial_and_length: dict[tuple[str, int], list[str]] = defaultdict(list)
        self._max_words = 1
        self._person_ids: set[str] = set()
        self._user_entity_id: str | None = None
        for entity in entities:
            if entity.is_user:
                self._user_entity_id = self._user_entity_id or entity.id
            if entity.type == PERSON_TYPE:
                self._person_ids.add(entity.id)
            for name in (entity.name, *entity.aliases):
                self._index_name(entity, name)

    @property
    def user_entity_id(self) -> str | None:
        """The id of the user's own entity."""
        return self._user_entity_id

    def _index_name(self, entity: NamedEntity, written: str) -> None:
        name = fold_name(written)
        if not name or entity.id in self._ids_by_full_name.get(name, ()):
            return
        self._ids_by_full_name[name].append(entity.id)
        words = name.split()
        self._max_words = max(self._max_words, len(words))
        if UNSPACED_LETTER.search(name) and len(name) > 1:
            self._ids_by_unspaced_name[name].append(entity.id)
        if entity.type == PERSON_TYPE and len(words) > 1:
            capitalised = (fold_name(word) for word in written.split() if word[:1].isupper())
            for word in {words[0], words[-1], *capitalised}:
                if len(word) > 2:
                    self._ids_by_name_part[word].add(entity.id)
        if max_typos(len(name)):
            self._names_by_initial_and_length[name[0], len(name)].append(name)

    def find(self, text: str) -> list[EntityMention]:
        """Return the entities that a text names, the surest first, each once; names inside a longer one are less sure.

        What the user is called, such as a first name, may name somebody with a longer name as well: the same person
        where both were stored. A first-person word names the user's own entity if the text names no other.
        """
        folded = fold_name(text)
        words = folded.split()[:MAX_SEARCHED_WORDS]
        free = [True] * len(words)
        found = self._find_names(folded, words, free)
        own = found.get(self._user_entity_id or "")
        for position, word in enumerate(words):
            is_own = own is not None and (own.position, own.size) == (position, 1)
            sharing = self._ids_by_name_part.get(word, ()) if free[position] or is_own else ()
            if 0 < len(sharing) <= MAX_NAMESAKES:
                free[position] = False
                self._add_mentions(found, sorted(sharing), MentionKind.NAME_PART, position, 1)
        for size in range(min(self._max_words, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                if all(free[start : start + size]) and (
                    closest := self._closest_name(" ".join(words[start : start + size]))
                ):
                    free[start : start + size] = [False] * size
                    self._add_mentions(found, self._ids_by_full_name[closest], MentionKind.TYPO, start, size)
        if not found and self._user_entity_id and not load_words(*LANGUAGES).first_person.isdisjoint(words):
            return [EntityMention(self._user_entity_id, MentionKind.SELF_REFERENCE, 0, 0, True, True)]
        return sorted(found.values(), key=lambda mention: (mention.kind, mention.position))

    def find_full_names(self, text: str) -> list[EntityMention]:
        """Return the entities that a text names by a whole name that is not within a longer one, in its order."""
        folded = fold_name(text)
        words = folded.split()[:MAX_SEARCHED_WORDS]
        found = self._find_names(folded, words, [True] * len(words)).values()
        full = [mention for mention in found if mention.kind is MentionKind.FULL_NAME]
        return sorted(full, key=lambda mention: mention.position)

    def _find_names(self, folded: str, words: Sequence[str], free: list[bool]) -> dict[str, EntityMention]:
        """Return the entities that a text names by a whole name, by id; the words that name them become not free."""
        found: dict[str, EntityMention] = {}
        for size in range(min(self._max_words, len(words)), 0, -1):
            for start in range(len(words) - size + 1):
                ids = self._ids_by_full_name.get(" ".join(words[start : start + size]))
                if ids:
                    is_free = all(free[start : start + size])
                    free[start : start + size] = [False] * size
                    kind = MentionKind.FULL_NAME if is_free else MentionKind.INNER_NAME
                    self._add_mentions(found, ids, kind, start, size)
        for name, ids in self._ids_by_unspaced_name.items():
            if name in folded:
                self._add_mentions(found, ids, MentionKind.FULL_NAME, 0, 0)
        return found

    def _closest_name(self, phrase: str) -> str | None:
        """Return the name that differs from `phrase` by typos in words alone and begins with the same letter."""
        typos, digits = max_typos(len(phrase)), words_with_digits(phrase.split())
        if not typos:
            return None
        best: tuple[int, str] | None = None
        for length in range(len(phrase) - typos, len(phrase) + typos + 1):
            for name in self._names_by_initial_and_length.get((phrase[0], length), ()):
                if words_with_digits(name.split()) != digits:
                    continue
                distance = edit_distance(phrase, name, min(typos, max_typos(length)))
                if distance is not None and (best is None or (distance, name) < best):
                    best = (distance, name)
        return best[1] if best else None

    def _add_mentions(
        self, found: dict[str, EntityMention], ids: Iterable[str], kind: MentionKind, position: int, size: int
    ) -> None:
        for entity_id in ids:
            mention = EntityMention(
                entity_id, kind, position, size, entity_id in self._person_ids, entity_id == self._user_entity_id
            )
            found.setdefault(entity_id, mention)


MAX_NAME_WORDS = 5
"""Words of the longest name that is looked for in a statement."""

MAX_UNSPACED_NAME = 8
"""Characters of the longest name that is looked for where words are not separated by spaces."""

MAX_LINKED = 10
"""Entities that one statement is linked to because it names them."""

_EDGES = ".,;:!?()[]{}\"'“”„‘’«»…"
_WORD = re.compile(r"\w+")
_FOLLOWING_LETTER = re.compile(r" ([^\W\d_])")
_UNSPACED_RUN = re.compile(rf"(?:{UNSPACED_LETTER.pattern})+")


def name_keys_in(text: str) -> set[str]:
    """Return the keys of all names that a text may contain: its runs of words, as written and without punctuation."""
    keys: set[str] = set()
    for form in {name_key(text), name_key(strip_possessive(text))}:
        words = form.split()[:MAX_SEARCHED_WORDS]
        for start in range(len(words)):
            for end in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1):
                phrase = " ".join(words[start:end])
                keys |= {phrase, phrase.strip(_EDGES)}
        for run in _UNSPACED_RUN.findall(form)[:MAX_SEARCHED_WORDS]:
            keys |= {
                run[at : at + size] for size in range(2, MAX_UNSPACED_NAME + 1) for at in range(len(run) - size + 1)
            }
    return keys - {""}


class NamedEntities:
    """Entities that statements may name by a whole name."""

    def __init__(self, entities: Iterable[NamedEntity]) -> None:
        self._by_id = {entity.id: entity for entity in entities}
        self._index = NameIndex(self._by_id.values())

    def find(self, text: str) -> list[NamedEntity]:
        """Return those that a text names by a whole name that no other entity has, in the order of the text.

        A name within a longer one, a name that several entities share, and an everyday word that is not written as a
        name name none; neither does the user's own name.
        """
        full = self._index.find_full_names(text)
        sharing = Counter((mention.position, mention.size) for mention in full)
        named = [
            self._by_id[mention.id]
            for mention in full
            if sharing[mention.position, mention.size] == 1
            and not mention.is_user
            and (not mention.size or _is_written_as_name(text, self._by_id[mention.id]))
        ]
        return named[:MAX_LINKED]


def _is_written_as_name(text: str, entity: NamedEntity) -> bool:
    """Return whether a text writes one of an entity's names as a name of its own somewhere."""
    return any(
        _is_whole(text, match) and (not _is_everyday_word(name) or _is_capitalised_within(text, match))
        for name in (entity.name, *entity.aliases)
        for match in _pattern_of(name).finditer(text)
    )


def _pattern_of(name: str) -> re.Pattern[str]:
    words = map(re.escape, _WORD.findall(name))
    return re.compile(r"(?<!\w)" + r"\W+".join(words) + r"(?!\w)", re.IGNORECASE)


def _is_whole(text: str, match: re.Match[str]) -> bool:
    """Return whether no further capitalised word makes the name a longer one, as "Smith" does in "Bob Smith"."""
    following = _FOLLOWING_LETTER.match(text, match.end())
    if following is None or not following[1].isupper() or not match.group()[0].isupper():
        return True
    return "de" in detect_languages(text)


def _is_everyday_word(name: str) -> bool:
    words = load_words(*LANGUAGES)
    return name.lower() in words.stop_words or name.lower() in words.ambiguous_months


def _is_capitalised_within(text: str, match: re.Match[str]) -> bool:
    is_first = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1:] in ".!?"
    return match.group()[0].isupper() and not is_first
