"""Names: whether two may mean one thing, whether a text contains one, and which entities a text names. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache
from itertools import pairwise

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, NamedEntity
from graphmem.runtime.field_types import name_key
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.names import (
    edit_distance,
    fold_name,
    max_typos,
    may_be_same_first_name,
    name_words,
    strip_possessive,
    words_with_digits,
)
from graphmem.text.normalising import fold, to_latin
from graphmem.text.tokenising import detect_languages, split_words
from graphmem.text.word_lists import LANGUAGES, WRITTEN_LANGUAGES, load_words

_WORDS = load_words(*WRITTEN_LANGUAGES)
_GENERIC_WORDS = _WORDS.generic_name_words | _WORDS.legal_forms
_IGNORED_WORDS = load_words(*LANGUAGES).legal_forms | {"the"}
_NEUTRAL_TITLES = frozenset({"dr", "prof", "доктор"})
"""Titles that a person may have next to another title."""


# Two names

MIN_NAME_COSINE = 0.82
"""Minimum cosine of two names' vectors at which they may be spellings or translations of each other."""

MAX_TYPO_SHARE = 0.1
"""Maximum share of differing letters at which two names are still evidence that they mean one thing.

It is stricter than `max_typos`, since nobody checks the names again before two entities are merged.
"""

MIN_SHORT_FORM_LENGTH = 3
"""Minimum letters of a short form such as "Fred"."""

MIN_DROPPED_LETTERS = 2
"""Minimum letters a name has beyond its short form: "Fred" may be "Frederick", "Alex" is not "Alexa"."""


class NameReason(StrEnum):
    """Why two names may mean one entity."""

    SAME_WORDS = "the same words"
    SAME_LETTERS = "the same letters"
    OTHER_SCRIPT = "the same letters in another script"
    SHORT_FORM = "a short form of the name"
    GENERIC_WORD = "the same name with a generic word"
    INITIALS = "the initials of the name"
    BEGINNING = "the beginning of the name"
    FEW_TYPOS = "almost the same letters"
    TYPOS = "similar letters"
    PART_OF_NAME = "a part of the name"
    CONTAINED = "the name with further words"
    QUALIFIER = "the name with a qualifier"
    VECTOR = "a similar meaning"

    @property
    def is_evidence(self) -> bool:
        """Whether the names alone are enough evidence to merge two entities that nothing else distinguishes."""
        return self not in _WEAK_REASONS

    @property
    def strength(self) -> tuple[bool, bool, bool]:
        """A key that is greater for a better match."""
        return (self is NameReason.SAME_WORDS, self.is_evidence, self is NameReason.TYPOS)


_WEAK_REASONS = frozenset(
    {NameReason.TYPOS, NameReason.PART_OF_NAME, NameReason.CONTAINED, NameReason.QUALIFIER, NameReason.VECTOR}
)


def compare_names(
    name: str, type: str | None, other: str, other_type: str | None, similarity: float = 0.0
) -> NameReason | None:
    """Return why two names may mean one entity, or None; `similarity` is the cosine of their vectors.

    Names with the same words, differing only in accents, punctuation and legal forms, mean one entity. Others may if
    one is a form or a part of the other, if they differ in a qualifier or a few typos, or if their vectors are close;
    but not if their types or digits differ, or if one is a person and the other is only related to that person, as
    "Calvin" and "Calvin's agent".
    """
    unknown = {None, "", DEFAULT_ENTITY_TYPE}
    words, other_words = _significant_words(name), _significant_words(other)
    if not (type in unknown or other_type in unknown or type == other_type) or not words or not other_words:
        return None
    if words == other_words:
        return NameReason.SAME_WORDS
    is_person = PERSON_TYPE in (type, other_type)
    if is_person and (
        is_only_related_to(name, other) or is_only_related_to(other, name) or _have_different_titles(name, other)
    ):
        return None
    may_be_people = {type, other_type} <= unknown | {PERSON_TYPE}
    return find_evidence(name, other, may_be_people=may_be_people) or _find_likeness(
        name, other, similarity, may_be_people=may_be_people
    )


def compare_name_lists(
    names: Iterable[str], type: str | None, others: Iterable[str], other_type: str | None, similarity: float = 0.0
) -> NameReason | None:
    """Return the best reason why the names of two entities may mean one, or None."""
    others = list(others)
    found = (compare_names(name, type, other, other_type, similarity) for name in names for other in others)
    return max(filter(None, found), key=lambda reason: reason.strength, default=None)


def have_same_identifiers(name: str, other: str) -> bool:
    """Return whether two names have the same words with digits, if any, or differ only in spaces."""
    words, other_words = name_words(name), name_words(other)
    return words_with_digits(words) == words_with_digits(other_words) or "".join(words) == "".join(other_words)


def find_evidence(name: str, other: str, *, may_be_people: bool) -> NameReason | None:
    """Return the evidence from two names alone that they mean one thing, or None."""
    if not have_same_identifiers(name, other) or (may_be_people and _have_different_titles(name, other)):
        return None
    shorter, longer = sorted((name_tokens(name), name_tokens(other)), key=lambda words: len("".join(words)))
    letters, other_letters = "".join(shorter), "".join(longer)
    if not letters:
        return None
    if letters == other_letters:
        return NameReason.SAME_LETTERS
    if name.isascii() != other.isascii() and _is_transliterated(shorter, longer):
        return NameReason.OTHER_SCRIPT
    if may_be_people and may_be_same_person(name, other):
        return NameReason.SHORT_FORM if len(shorter) == len(longer) else NameReason.PART_OF_NAME
    if set(shorter) < set(longer) and set(longer) - set(shorter) <= _GENERIC_WORDS:
        return NameReason.GENERIC_WORD
    if len(shorter) == 1 and len(longer) > 1 and shorter[0] == "".join(word[0] for word in longer):
        return NameReason.INITIALS
    if may_be_people:
        return (
            NameReason.BEGINNING if len(shorter) == len(longer) == 1 and _is_clipped(letters, other_letters) else None
        )
    limit = int(MAX_TYPO_SHARE * len(other_letters))
    return NameReason.FEW_TYPOS if edit_distance(letters, other_letters, limit) is not None else None


def _find_likeness(name: str, other: str, similarity: float, *, may_be_people: bool) -> NameReason | None:
    """Return why two names may mean one thing despite a lack of evidence, or None."""
    words, other_words = _significant_words(name), _significant_words(other)
    have_same = have_same_identifiers(name, other)
    if not have_same and words_with_digits(words) and words_with_digits(other_words):
        return None
    if set(words) < set(other_words) or set(other_words) < set(words):
        return NameReason.PART_OF_NAME if may_be_people else NameReason.CONTAINED
    if not have_same:
        return None
    plain, other_plain = _without_qualifier(name), _without_qualifier(other)
    if plain in (other_plain, other) or name == other_plain:
        return NameReason.QUALIFIER
    if are_different_people(name, other):
        return None
    if _is_similar_spelling("".join(words), "".join(other_words)):
        return NameReason.TYPOS
    return NameReason.VECTOR if similarity >= MIN_NAME_COSINE else None


def _have_different_titles(one: str, other: str) -> bool:
    """Return whether two names have titles that no one person has both of, such as "Mr" and "Mrs"."""
    titles, other_titles = (
        {word for word in name_words(name) if word in _WORDS.titles} - _NEUTRAL_TITLES for name in (one, other)
    )
    return bool(titles and other_titles) and titles.isdisjoint(other_titles)


def _is_transliterated(words: list[str], others: list[str]) -> bool:
    return len(words) == len(others) and all(
        edit_distance(to_latin(word), to_latin(other), 1 if len(word) > MIN_SHORT_FORM_LENGTH else 0) is not None
        for word, other in zip(words, others, strict=True)
    )


def _is_clipped(short: str, name: str) -> bool:
    return (
        len(short) >= MIN_SHORT_FORM_LENGTH and len(name) >= len(short) + MIN_DROPPED_LETTERS and name.startswith(short)
    )


def _is_similar_spelling(name: str, other: str) -> bool:
    return edit_distance(name, other, max_typos(min(len(name), len(other)))) is not None


# Names of people

_QUALIFIER = re.compile(r"[(（][^)）]*[)）]?")
"""An addition that distinguishes people with the same name, as in "Anna (colleague)"."""

_POSSESSOR = re.compile(r"([^()（）,，]*?)(?:['’]s|(?<=s)['’])(?=\s)")
"""The possessor of somebody or something, as in "Calvin's agent"."""


def is_short_form(name: str, full: str) -> bool:
    """Return whether a name is only part of a fuller one, such as a bare first name."""
    return set(_significant_words(name)) < set(_significant_words(full)) and not is_only_related_to(name, full)


def is_only_related_to(name: str, phrase: str) -> bool:
    """Return whether a phrase names somebody by a relation to `name`, as "Calvin's agent" and "madre de Calvin" do."""
    possessors = [match[1] for match in _POSSESSOR.finditer(phrase)]
    words = _POSSESSOR.sub(" ", phrase).split()
    for position, (word, following) in enumerate(pairwise(words), 1):
        if word.islower() and following.islower():
            possessors += words[position:]
            words = words[:position]
            break
    own, related_to = _significant_words(name), _significant_words(" ".join(possessors))
    return set(own) <= set(related_to) and not set(own) <= set(name_words(" ".join(words)))


def are_different_people(name: str, other: str) -> bool:
    """Return whether two full names have the same first name and different last names."""
    words, other_words = (_significant_words(_without_qualifier(text)) for text in (name, other))
    return (
        min(len(words), len(other_words)) > 1
        and words[0] == other_words[0]
        and not _is_similar_spelling(words[-1], other_words[-1])
    )


def may_mean_same_person(name: str, other: str) -> bool:
    """Return whether two names share a word or differ in a few typos, and do not belong to two people."""
    words, other_words = (_significant_words(_without_qualifier(text)) for text in (name, other))
    if are_different_people(name, other):
        return False
    return bool(set(words) & set(other_words)) or _is_similar_spelling("".join(words), "".join(other_words))


def may_be_same_person(one: str, other: str) -> bool:
    """Return whether every word of the shorter name is in the longer one, or an initial or nickname of a word there."""
    shorter, longer = sorted((name_tokens(one), name_tokens(other)), key=len)
    if not shorter:
        return False
    if set(shorter) <= set(longer):
        return True
    unmatched = list(longer)
    for word in shorter:
        match = next((candidate for candidate in unmatched if may_be_same_first_name(word, candidate)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return True


def name_tokens(name: str) -> list[str]:
    """Return the folded words of a name without titles and possessive endings."""
    words = name_words(strip_possessive(name))
    return [word for word in words if word not in _WORDS.titles] or words


def _significant_words(name: str) -> list[str]:
    words = name_words(name)
    return [word for word in words if word not in _IGNORED_WORDS] or words


def _without_qualifier(name: str) -> str:
    return " ".join(_QUALIFIER.sub(" ", name).split()) or name


# Names in texts

MIN_COMMON_PREFIX = 4
"""Minimum number of common initial letters of two forms of a word; shorter words must match in full."""

MAX_ENDING = 3
"""Maximum letters of a form's ending."""

MIN_COMPOUND_PART = 4
"""Minimum letters of a word to look for within a compound."""


def mentions_name(text: str, name: str) -> bool:
    """Return whether a text contains every word of a name, possibly inflected; words with digits must be exact."""
    tokens = name_tokens(name)
    if not tokens:
        return False
    text, name = fold(text).text.casefold(), fold(name).text.casefold()
    if UNSPACED_LETTER.search(name):
        return name in text
    mentioned = {token for word in split_words(text) for token in name_words(word)}
    return all(
        token in mentioned or (not words_with_digits([token]) and is_like_any(token, mentioned)) for token in tokens
    )


def is_named_in(name: str, text: str, *, but: str) -> bool:
    """Return whether a text has every word of a name, ignoring words that begin like a word of the name `but`."""
    own = tuple(word for word in name_words(but) if len(word) > 1)
    words = [word for word in _significant_words(name) if len(word) > 1 and not (own and word.startswith(own))]
    return bool(words) and set(words) <= set(_words_in(text, words))


def is_like_any(word: str, others: Iterable[str]) -> bool:
    """Return whether a case-folded word may be a form of one of `others`."""
    return any(is_like(word, other) for other in others)


@lru_cache(maxsize=65536)
def is_like(one: str, other: str) -> bool:
    """Return whether two case-folded words may be forms of one word."""
    if one == other:
        return True
    shorter, longer = sorted((to_latin(one), to_latin(other)), key=len)
    if not shorter or shorter == longer:
        return shorter == longer
    if len(shorter) >= MIN_COMPOUND_PART and shorter in longer:
        return True
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    needed = min(MIN_COMMON_PREFIX, max(len(shorter) - 1, 2)) if not one.isascii() else MIN_COMMON_PREFIX
    if common >= needed and len(shorter) - common <= MAX_ENDING and len(longer) - common <= MAX_ENDING:
        return True
    if common == len(shorter) >= 3 and len(longer) - common <= 2:
        return True
    is_other_script = one.isascii() != other.isascii() and shorter[0] == longer[0]
    return is_other_script and edit_distance(shorter, longer, len(longer) // 3) is not None


def _words_in(text: str, words: list[str]) -> Iterator[str]:
    """Yield the words that occur in a text; in a script without spaces, anywhere in the text."""
    folded = name_words(text)
    yield from (word for word in words if word in folded or (not word.isascii() and word in "".join(folded)))


MAX_NAMESAKES = 3
"""Maximum number of people sharing a first or last name; with more, it names none of them."""

MAX_SEARCHED_WORDS = 400
"""Maximum words of a text that are searched for names."""


class MentionKind(IntEnum):
    """How a text names an entity; lower values are more certain."""

    FULL_NAME = 0
    INNER_NAME = 1
    NAME_PART = 2
    TYPO = 3
    SELF_REFERENCE = 4


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity named by a text, and how; `position` and `size` locate the words that name it.

    `is_user` marks the user's own entity.
    """

    id: str
    kind: MentionKind
    position: int
    size: int
    is_person: bool
    is_user: bool = False


def question_focus(text: str, mentions: Iterable[EntityMention], languages: Sequence[str] = ("en",)) -> str:
    """Return the words of a text without stop words and the people it names: what is asked about them."""
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
        """Return the distinct entities that a text names, the most certain first; names inside a longer one rank lower.

        A name of the user, such as a first name, may also mean somebody with a longer name, who is the same person if
        both were stored. A first-person word names the user's own entity if the text names no other.
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
        """Return the entities named in full in a text, in its order, except by names within a longer one."""
        folded = fold_name(text)
        words = folded.split()[:MAX_SEARCHED_WORDS]
        found = self._find_names(folded, words, [True] * len(words)).values()
        full = [mention for mention in found if mention.kind is MentionKind.FULL_NAME]
        return sorted(full, key=lambda mention: mention.position)

    def _find_names(self, folded: str, words: Sequence[str], free: list[bool]) -> dict[str, EntityMention]:
        """Return the entities named in full in a text, by id; the words that name them are marked as not free."""
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
        """Return the name that differs from `phrase` only by typos in words and begins with the same letter."""
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
"""Maximum words of a name to look for in a statement."""

MAX_UNSPACED_NAME = 8
"""Maximum characters of a name to look for where words are not separated by spaces."""

MAX_LINKED = 10
"""Maximum entities that one statement is linked to by their names."""

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
    """Entities that statements may name in full."""

    def __init__(self, entities: Iterable[NamedEntity]) -> None:
        self._by_id = {entity.id: entity for entity in entities}
        self._index = NameIndex(self._by_id.values())

    def find(self, text: str) -> list[NamedEntity]:
        """Return the entities that a text names in full by a name no other entity has, in the order of the text.

        Names within a longer name, names shared by several entities, everyday words not written as a name, and the
        user's own name are ignored.
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
    """Return whether a text anywhere writes one of an entity's names as a separate name."""
    return any(
        _is_whole(text, match) and (not _is_everyday_word(name) or _is_capitalised_within(text, match))
        for name in (entity.name, *entity.aliases)
        for match in _pattern_of(name).finditer(text)
    )


def _pattern_of(name: str) -> re.Pattern[str]:
    words = map(re.escape, _WORD.findall(name))
    return re.compile(r"(?<!\w)" + r"\W+".join(words) + r"(?!\w)", re.IGNORECASE)


def _is_whole(text: str, match: re.Match[str]) -> bool:
    """Return whether no adjacent capitalised word makes the name a longer one, as "Smith" does in "Bob Smith"."""
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
