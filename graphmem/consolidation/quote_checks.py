"""Whether the quotes of a verification stand where they are said to stand, and cover all of a proposal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphmem.consolidation.models import (
    Agreement,
    CarriedPart,
    StatementCheck,
    Verification,
)
from graphmem.consolidation.names import same_name_reason
from graphmem.consolidation.statements import (
    SUBJECT,
    Restated,
    Token,
    is_number,
    known_languages,
    mark_subject,
    may_be_one_number,
    neutral_words,
    split_statement,
)
from graphmem.text.tokenising import detect_languages

MAX_RESTATED_TOKENS = 5
"""Most tokens of a number, a date or a name that a part of a verification gives in another form."""

_DISAGREEMENTS = {
    Agreement.DENIED: "the merged text denies what it affirms, or affirms what it denies",
    Agreement.LIMITED: "the merged text limits it, or says it without its limits",
    Agreement.TIME: "the merged text says it of another time",
    Agreement.CERTAINTY: "the merged text says it with another certainty",
    Agreement.OTHER: "the merged text says it of something else",
    Agreement.LOST: "the merged text lacks a part of it",
}


def find_unverified(
    verification: Verification, sources: Mapping[str, str], result: str, subject_names: Iterable[str]
) -> str | None:
    """Return why the quotes do not show that a merged text says what its sources say and nothing else, or None."""
    names = list(subject_names)
    covered: set[int] = set()
    for key, text in sources.items():
        checks = [check for check in verification.statements if check.memory_id == key]
        if not checks:
            return f"{key} is not covered: the verification does not speak of it"
        for check in checks:
            if check.agreement is not Agreement.SAME:
                return f"{key} is not covered: {_DISAGREEMENTS[check.agreement]}"
            reason, found = _check_parts(check, text, result)
            if reason:
                return reason
            covered |= found
        if reason := _find_uncovered(key, text, [part for check in checks for part in check.parts], names):
            return reason
    if added := [words for words in verification.added if split_statement(words)]:
        return f'no source says "{added[0]}" of the merged text'
    return _find_uncovered_result(result, covered, names)


def quotes_cover(verification: Verification, memory_id: str, result: str, subject_names: Iterable[str]) -> bool:
    """Return whether the quotes from one source alone cover the whole of a merged text."""
    parts = [part for check in verification.statements if check.memory_id == memory_id for part in check.parts]
    covered = {index for part in parts for index in find_quote(part.result, result) or ()}
    return bool(parts) and _find_uncovered_result(result, covered, list(subject_names)) is None


def restated_in(verification: Verification) -> Restated:
    """Return the numbers, dates and names that short parts of a verification give in another form."""
    sources: dict[str, set[str]] = {}
    result: set[str] = set()
    for check in verification.statements:
        for part in check.parts:
            words, says = split_statement(part.words), split_statement(part.result)
            if says and len(words) <= MAX_RESTATED_TOKENS and len(says) <= MAX_RESTATED_TOKENS:
                may_differ = may_be_one_number(_numbers(words), _numbers(says)), _may_be_one_name(words, says)
                sources.setdefault(check.memory_id, set()).update(_keys(words, *may_differ))
                result |= _keys(says, *may_differ)
    return Restated({key: frozenset(words) for key, words in sources.items()}, frozenset(result))


def _numbers(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset(token.key for token in tokens if is_number(token.key))


def _keys(tokens: Iterable[Token], numbers: bool, names: bool) -> set[str]:
    return {token.key for token in tokens if (numbers if is_number(token.key) else names)}


def _may_be_one_name(words: Sequence[Token], says: Sequence[Token]) -> bool:
    """Return whether not each side has a name of its own: one in another script or form, or that of a month."""
    own, others = (
        {token.key for token in tokens if token.is_name and token.key[0].isalpha()} for tokens in (words, says)
    )
    if not own or not others or any(is_number(token.key) for token in (*words, *says)):
        return True
    text, other = (" ".join(token.key for token in tokens) for tokens in (words, says))
    languages = [set(detect_languages(side)) for side in (text, other)]
    if text.isascii() != other.isascii() or (all(languages) and languages[0].isdisjoint(languages[1])):
        return True
    return same_name_reason(" ".join(own), " ".join(others), people=False) is not None


def find_quote(quote: str, text: str) -> list[int] | None:
    """Return the positions of all tokens at which a quote stands in a text; None if it does not.

    Case, width and marks between words make no difference.
    """
    wanted = [token.key for token in split_statement(quote) if not token.is_mark]
    indexed = [(index, token.key) for index, token in enumerate(split_statement(text)) if not token.is_mark]
    keys = [key for _, key in indexed]
    starts = [at for at in range(len(keys) - len(wanted) + 1) if keys[at : at + len(wanted)] == wanted]
    if not wanted or not starts:
        return None
    return [index for start in starts for index, _ in indexed[start : start + len(wanted)]]


def _check_parts(check: StatementCheck, text: str, result: str) -> tuple[str | None, set[int]]:
    """Return why the quotes of one source cannot be used, or None, and the positions that they cover in the result."""
    covered: set[int] = set()
    for part in check.parts:
        if find_quote(part.words, text) is None:
            return f'{check.memory_id} is not covered: "{part.words}" is no quote from it', covered
        if not split_statement(part.result):
            return f'{check.memory_id} is not covered: nothing in the merged text says "{part.words}"', covered
        found = find_quote(part.result, result)
        if found is None:
            return f'{check.memory_id} is not covered: "{part.result}" is no quote from the merged text', covered
        covered |= set(found)
    return None, covered


def _find_uncovered(key: str, text: str, parts: Sequence[CarriedPart], names: Sequence[str]) -> str | None:
    covered = {index for part in parts for index in find_quote(part.words, text) or ()}
    rest = _uncovered_words(text, covered, names)
    return f'{key} is not covered: the verification leaves out "{" ".join(rest[:8])}"' if rest else None


def _find_uncovered_result(result: str, covered: set[int], names: Sequence[str]) -> str | None:
    rest = _uncovered_words(result, covered, names)
    return f'no source is quoted for "{" ".join(rest[:8])}" of the merged text' if rest else None


def _uncovered_words(text: str, covered: set[int], names: Sequence[str]) -> list[str]:
    """Return the words outside quotes that are neither neutral nor names of the subject."""
    neutral = neutral_words(known_languages(text))
    tokens: list[Token] = list(split_statement(text))
    for index in covered:
        tokens[index] = Token(",", is_mark=True)
    return [
        token.key
        for token in mark_subject(tokens, names)
        if not token.is_mark and token.key != SUBJECT and token.key not in neutral
    ]
