"""The known entities that a statement names by whole names, as they are linked to it when it is saved. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from graphmem.memories.entity import NamedEntity
from graphmem.memories.entity_names import MAX_SEARCHED_WORDS, MentionKind, NameIndex
from graphmem.runtime.text import name_key
from graphmem.text.languages import detect_languages
from graphmem.text.names import strip_possessive
from graphmem.text.tokenising import UNSPACED_LETTER
from graphmem.text.word_lists import LANGUAGES, load_words

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


def find_named_entities(text: str, entities: Iterable[NamedEntity]) -> list[NamedEntity]:
    """Return the entities that a text names by a whole name that no other entity has, in the order of the text.

    A name within a longer one, a name that several entities share, and an everyday word that is not written as a name
    name none; neither does the user's own name.
    """
    by_id = {entity.id: entity for entity in entities}
    if not by_id:
        return []
    full = [mention for mention in NameIndex(by_id.values()).find(text) if mention.kind is MentionKind.FULL_NAME]
    sharing = Counter((mention.position, mention.size) for mention in full)
    named = [
        by_id[mention.id]
        for mention in full
        if sharing[mention.position, mention.size] == 1
        and not mention.is_user
        and (not mention.size or _is_written_as_name(text, by_id[mention.id]))
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
