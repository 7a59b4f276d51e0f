"""What a statement says, as far as it can be compared across wordings and languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from graphmem.consolidation.naming import name_tokens
from graphmem.consolidation.statement_values import StatementValues, extract_values, month_number, value_words
from graphmem.consolidation.word_matching import is_like_any
from graphmem.text.folding import fold
from graphmem.text.languages import detect_languages
from graphmem.text.names import is_first_name, strip_possessive
from graphmem.text.tokenising import UNSPACED_LETTER, WORD_PATTERN, stem
from graphmem.text.word_lists import WRITTEN_LANGUAGES, WordLists, load_words

WORDS = load_words(*WRITTEN_LANGUAGES)
"""The word lists of all languages, for what may be meant in any of them."""

NOUN_CAPITALISING_LANGUAGES = frozenset({"de"})
"""Languages that write every noun with a capital letter, so that one is no sign of a name."""

_WORD = re.compile(WORD_PATTERN)
_NUMBER = re.compile(r"\d+")
_SENTENCE_START = re.compile(r"(?:^|[.!?。:;\n]\s*|[\"«»“”„(\[]\s*)$")
_ELISION = re.compile(r"^(?:[ldnsjmtc]|qu|dell|nell|all|sull|dall|un)['’](?=\w)", re.IGNORECASE)
_UNSPACED_CONTENT = re.compile("[\u30a1-\u30ff]{2,}|[\u3400-\u9fff]|[\uac00-\ud7af]|[\u0e00-\u0eff]")
_PARTICLE_LETTERS = frozenset("入用者")


@dataclass(frozen=True, slots=True)
class StatementFeatures:
    """The features of one statement.

    - `languages`: those that it may be in; none if they are unknown
    - `values`: its numbers and parts of dates
    - `names`: the folded words in it that surely are names
    - `mentioned`: all folded words
    - `content`: the forms of its content words; single characters and runs of Katakana of scripts without spaces
    """

    text: str
    languages: tuple[str, ...]
    values: StatementValues
    names: frozenset[str]
    mentioned: frozenset[str]
    content: frozenset[str]

    def may_share_language(self, other: StatementFeatures) -> bool:
        """Return whether nothing says that two statements are in different languages."""
        return not self.languages or not other.languages or bool(set(self.languages) & set(other.languages))


def extract_features(text: str, known_names: Iterable[str] = ()) -> StatementFeatures:
    """Return the features of a text; `known_names` are those of the entities it may name."""
    return _extract(fold(text).text, frozenset(known_names))


@lru_cache(maxsize=4096)
def _extract(text: str, known_names: frozenset[str]) -> StatementFeatures:
    languages = detect_languages(text)
    return StatementFeatures(
        text=text,
        languages=languages,
        values=extract_values(text),
        names=_find_names(text, known_names, languages),
        mentioned=frozenset(mentioned_words(text)),
        content=content_words(text, languages),
    )


def mentions_name(text: str, name: str) -> bool:
    """Return whether a text contains every word of a name, as it is or inflected."""
    tokens = name_tokens(name)
    if not tokens:
        return False
    if name.casefold() in text.casefold():
        return True
    mentioned = mentioned_words(text) | set(_NUMBER.findall(text))
    if UNSPACED_LETTER.search(name):
        return False
    return all(token in mentioned or (not token.isdigit() and is_like_any(token, mentioned)) for token in tokens)


def mentioned_words(text: str) -> set[str]:
    """Return the folded words of a text without elided articles and possessive endings."""
    return {token for word in _WORD.findall(text) for token in name_tokens(_ELISION.sub("", word))}


def content_words(text: str, languages: Sequence[str]) -> frozenset[str]:
    """Return the forms of the words that carry the meaning of a text: no function words, values and stances."""
    words = _words_of(tuple(languages))
    dropped = _dropped_words(tuple(languages))
    values = value_words(text)
    found = {match for match in _UNSPACED_CONTENT.findall(text) if match not in _PARTICLE_LETTERS}
    language = languages[0] if languages else "en"
    for word in _WORD.findall(text):
        if UNSPACED_LETTER.search(word) or word.casefold() in values:
            continue
        for part in _ELISION.sub("", strip_possessive(word)).casefold().split("-"):
            if len(part) > 1 and part not in dropped and part not in words.user_words and part not in values:
                found.add(stem(part, language))
    return frozenset(found)


@cache
def _words_of(languages: tuple[str, ...]) -> WordLists:
    return load_words(*(languages or ("en",)))


@cache
def _dropped_words(languages: tuple[str, ...]) -> frozenset[str]:
    words = _words_of(languages)
    return (
        words.stop_words
        | words.function_words
        | words.determiners
        | words.non_names
        | words.filler_words
        | words.negations
        | words.negative_stance
        | words.positive_stance
        | WORDS.user_words
    )


def _find_names(text: str, known_names: frozenset[str], languages: tuple[str, ...]) -> frozenset[str]:
    """Return the words that surely are names: those of entities, and those that only names are written like."""
    known = {token for name in known_names if not UNSPACED_LETTER.search(name) for token in _proper_tokens(name)}
    capitals_count = not NOUN_CAPITALISING_LANGUAGES & set(languages or ("en",))
    found: set[str] = set()
    previous = ""
    for match in _WORD.finditer(text):
        word = _ELISION.sub("", match[0])
        folded = word.casefold()
        before, previous = previous, folded
        if folded in WORDS.non_names or folded in WORDS.user_words or month_number(word):
            continue
        tokens = name_tokens(word)
        begins = _SENTENCE_START.search(text[: match.start()]) is not None
        is_capital = word[0].isupper() and len(word) > 1 and not UNSPACED_LETTER.search(word)
        if any(token in known for token in tokens) or (
            is_capital
            and folded not in value_words(word)
            and (
                (capitals_count and not begins)
                or (not capitals_count and (before in WORDS.titles or is_first_name(word)) and not begins)
            )
        ):
            found.update(tokens)
    return frozenset(found)


def _proper_tokens(name: str) -> list[str]:
    """Return the words of an entity's name that are written like names; a single word always is."""
    words = _WORD.findall(name)
    return [token for word in words if word[0].isupper() or len(words) == 1 for token in name_tokens(word)]
