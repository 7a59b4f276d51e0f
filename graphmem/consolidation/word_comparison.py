"""Whether a merged sentence says what its sources say, as far as the words alone can tell. Pure.

Every word of every source stands in the sentence and every word of the sentence in a source, but for articles, copulas
and conjunctions of a known language. No list says which words deny something, so whatever could be a denial that comes
to stand before other words than in its source refuses the merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise, permutations

from graphmem.consolidation.statement_tokens import SUBJECT, Token, mark_subject, split_statement, with_names
from graphmem.text.languages import detect_languages
from graphmem.text.tokenising import UNSPACED_LETTER
from graphmem.text.word_lists import load_words

DENIAL_AFTER_VERB = frozenset({"de", "nl"})
"""Languages with word lists whose denial may follow the verb, so that a single word there may be one."""

NOUN_CAPITALISING = frozenset({"de"})
"""Languages that write every noun with a capital letter, so that one is no sign of a name."""

HINT = 'An administrator who has compared them may set "verified": true'
"""What to do about a merge of different words that is right."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A text as it is compared: its tokens without neutral ones, and where these stood.

    `joints` are the positions before which a conjunction or a mark between clauses stands.
    """

    tokens: tuple[Token, ...]
    joints: frozenset[int]

    @property
    def keys(self) -> list[str]:
        """The keys of the tokens."""
        return [token.key for token in self.tokens]


def find_difference(
    sources: Mapping[str, str], result: str, subject_names: Iterable[str] = (), known_names: Iterable[str] = ()
) -> str | None:
    """Return why the words of a merged sentence are not those of its sources, which are given by memory id, or None."""
    languages = known_languages(" ".join([*sources.values(), result]))
    subject_names, known_names = list(subject_names), list(known_names)
    read = {key: _read(text, languages, subject_names, known_names) for key, text in sources.items()}
    names = {token.key for source in read.values() for token in source.tokens if token.is_name}
    made = _read(result, languages, subject_names, [*known_names, *names])
    for key, source in read.items():
        if missing := [token for token in source.keys if token not in made.keys and token != SUBJECT]:
            return f"{key} is not covered: {_quote(missing)} is not in the merged text. {HINT}"
    told = {key for source in read.values() for key in source.keys} | {SUBJECT}
    if added := [token for token in made.keys if token not in told]:
        return f"no source has {_quote(added)} of the merged text. {HINT}"
    if _is_joined(read.values(), made):
        return _find_contrast(read, languages)
    return _find_contrast(read, languages) or _find_new_order(read, made, languages)


def known_languages(text: str) -> tuple[str, ...]:
    """Return the languages whose neutral words a text may have; a single letter is no evidence of one."""
    words = {token.key for token in split_statement(text) if len(token.key) > 1}
    return tuple(
        language
        for language in detect_languages(text)
        if not (known := load_words(language).function_words) or language == "ru" or not words.isdisjoint(known)
    )


@cache
def neutral_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the articles, copulas and conjunctions of languages."""
    words = load_words(*languages)
    return words.articles | words.copulas | words.conjunctions


def _read(text: str, languages: tuple[str, ...], subject_names: list[str], known_names: list[str]) -> Wording:
    tokens = mark_subject(split_statement(text), subject_names)
    if NOUN_CAPITALISING & set(languages):
        tokens = [Token(token.key, is_name=token.key[-1:].isdigit(), is_mark=token.is_mark) for token in tokens]
    neutral, conjunctions = neutral_words(languages), load_words(*languages).conjunctions
    kept: list[Token] = []
    joints: set[int] = set()
    for token in with_names(tokens, known_names):
        if token.is_mark or token.key in conjunctions:
            joints.add(len(kept))
        elif token.key not in neutral:
            kept.append(token)
    return Wording(tuple(kept), frozenset(joints))


def _is_joined(sources: Iterable[Wording], made: Wording) -> bool:
    """Return whether each source stands as a whole in the result, which therefore changes none of them."""
    text = _as_text(made.keys)
    return all(_as_text(source.keys) in text and SUBJECT in source.keys for source in sources)


def _as_text(keys: Iterable[str]) -> str:
    return "".join(f"\n{key}\n" for key in keys)


# What the sources alone show


def _find_contrast(sources: Mapping[str, Wording], languages: tuple[str, ...]) -> str | None:
    """Return that one source has words which may deny what another one says without them, or None."""
    for (one_id, one), (other_id, other) in permutations(sources.items(), 2):
        matcher = SequenceMatcher(None, one.keys, other.keys, autojunk=False)
        for tag, start, end, at, _ in matcher.get_opcodes():
            own = one.tokens[start:end]
            if tag != "delete" or all(token.key == SUBJECT for token in own):
                continue
            is_tail = end == len(one.tokens) and at == len(other.tokens)
            if not is_tail or (len(own) == 1 and not _is_harmless(own[0], languages)):
                words = _quote(token.key for token in own)
                return f"{words} of {one_id} may change what {other_id} says without it. {HINT}"
    return None


# What the order of the result shows


def _find_new_order(sources: Mapping[str, Wording], made: Wording, languages: tuple[str, ...]) -> str | None:
    """Return that words of one source came to stand before words of another on which they may bear, or None."""
    for key, source in sources.items():
        positions = _embed(source.keys, made.keys)
        if positions is None:
            return f"{key} is not covered: its words stand in another order in the merged text. {HINT}"
        others = [other for other_id, other in sources.items() if other_id != key]
        for left, right in pairwise(positions):
            between = range(left + 1, right)
            if between and not _may_stand_between(made, between, others, languages):
                words = _quote(made.keys[index] for index in between)
                return f"{key} is not covered: {words} stands between its words. {HINT}"
    return None


def _embed(source: Sequence[str], made: Sequence[str]) -> list[int] | None:
    """Return the positions in a result of the words of a source, or None if their order is another.

    The subject may be missing at the beginning, where another source has named it.
    """
    blocks = SequenceMatcher(None, source, made, autojunk=False).get_matching_blocks()
    matched = {block.a + offset: block.b + offset for block in blocks for offset in range(block.size)}
    missing = [index for index in range(len(source)) if index not in matched]
    if missing and (missing != [0] or source[0] != SUBJECT):
        return None
    return [matched[index] for index in sorted(matched)]


def _may_stand_between(made: Wording, between: range, others: Sequence[Wording], languages: tuple[str, ...]) -> bool:
    """Return whether words of other sources cannot bear on what follows them in a result.

    They follow what they follow in their own source, and are items of a list of single words, a name with at most one
    word before it, or a single content word; or one word is added with "and" to one that stands in its place.
    """
    tokens = [made.tokens[index] for index in between]
    if between.start in made.joints:
        return len(tokens) == 1 and _replaces(made, between.start, others)
    if not _adjoins(made.keys[between.start - 1 : between.start + 1], others):
        return False
    if between.stop in made.joints:
        return all(index in made.joints for index in between if index != between.start)
    if any(index in made.joints for index in between):
        return False
    if len(tokens) == 1:
        return _is_harmless(tokens[0], languages)
    return any(token.is_name for token in tokens[:2])


def _replaces(made: Wording, at: int, others: Sequence[Wording]) -> bool:
    """Return whether another source has a word where the result has the one before it, as "likes and enjoys tea"."""
    return at > 1 and _adjoins([made.keys[at - 2], *made.keys[at : at + 2]], others)


def _adjoins(keys: Sequence[str], sources: Iterable[Wording]) -> bool:
    """Return whether words stand next to one another in a source."""
    return any(_as_text(keys) in _as_text(source.keys) for source in sources)


def _is_harmless(token: Token, languages: tuple[str, ...]) -> bool:
    """Return whether a single word surely is no denial: a name, a number, or a content word of a known language.

    In a known language whose denials precede the verb, a single word after the verb is none.
    """
    if token.is_name:
        return True
    if not languages or DENIAL_AFTER_VERB & set(languages) or UNSPACED_LETTER.search(token.key):
        return False
    words = load_words(*languages)
    return token.key not in words.stop_words | words.function_words


def _quote(keys: Iterable[str]) -> str:
    shown = ["the subject" if key == SUBJECT else key for key in dict.fromkeys(keys)]
    return f'"{" ".join(shown[:8])}"'
