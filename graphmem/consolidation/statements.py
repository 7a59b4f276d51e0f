"""How statements compare in every language: words, numbers, names, subjects; what a merge must keep. Pure.

Only what is written in one way in every language is compared: digits, names with capital letters, and the names of
known entities. `restated` are what a verification quotes as the same in another form, as "three" and "3" are.

Every word of every source stands in the sentence and every word of the sentence in a source, but for articles, copulas
and conjunctions of a known language. No list says which words deny something, so whatever could be a denial that comes
to stand before other words than in its source refuses the merge.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import pairwise, permutations

from graphmem.consolidation.names import is_like_any, may_be_same_person, mentions_name
from graphmem.text.names import POSSESSIVE_ENDING, is_first_name, strip_possessive
from graphmem.text.normalising import fold
from graphmem.text.tokenising import NUMBER_PATTERN, UNSPACED_LETTER, WORD_PATTERN, detect_languages
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

_WORD = re.compile(WORD_PATTERN)


def find_subject_mismatch(
    one: str, other: str, subject_names: Sequence[str] = (), people: Iterable[str] = ()
) -> str | None:
    """Return why two statements are about different people, or None.

    `subject_names` are those of the subject of both, `people` those of other people that the statements name.
    """
    people = list(people)
    first, second = (_foreign_person(text, subject_names, people) for text in (one, other))
    if first and second:
        return None if may_be_same_person(first, second) else f"one is about {first}, the other about {second}"
    for name, text in ((first, other), (second, one)):
        if name and not mentions_name(text, name):
            return f"one is about {name}, the other is not"
    return None


def _foreign_person(text: str, subject_names: Sequence[str], people: Sequence[str]) -> str | None:
    name = _find_leading_person(text, people)
    if name is None or any(may_be_same_person(name, own) for own in subject_names):
        return None
    return name


def _find_leading_person(text: str, people: Sequence[str]) -> str | None:
    """Return the person whose name a statement begins with: a known one, or one with a first name."""
    name: list[str] = []
    at = 0
    for word in _WORD.finditer(text.strip()):
        if not word[0][0].isupper() or text.strip()[at : word.start()].strip():
            break
        name.append(word[0])
        at = word.end()
        if POSSESSIVE_ENDING.search(word[0]):
            break
    if not name:
        return None
    full_name = " ".join(map(strip_possessive, name))
    is_known = any(may_be_same_person(full_name, person) for person in people)
    is_article = name[0].casefold() in load_words(*detect_languages(text)).articles
    is_name = is_known or (not is_article and is_first_name(strip_possessive(name[0])))
    return full_name if is_name else None


SUBJECT = "\0"
"""Key of the token that stands for a name of the subject."""

MAX_NAME_TOKENS = 64
"""Most tokens of a name that are compared."""

_NUMBER = re.compile(rf"(?<![\w.,:])-(?={NUMBER_PATTERN})|{NUMBER_PATTERN}")
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY_FIRST_DATE = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})(?!\d)")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SENTENCE_ENDS = frozenset(".!?。！？:：")
_MARKS = frozenset(",;:.!?、。，；：！？،؛؟।")
_MEANINGFUL_PUNCTUATION = frozenset("%‰#@&/")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number, a symbol, a letter of a script without spaces, or a mark between clauses.

    `is_name` says that it is written as only names and numbers are: with digits or, within a sentence, with a capital
    letter.
    """

    key: str
    is_name: bool = False
    is_mark: bool = False


@lru_cache(maxsize=4096)
def split_statement(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text in order; all of them are folded."""
    return tuple(_scan(fold(text).text))


def _scan(text: str) -> Iterator[Token]:
    at, begins = 0, True
    while at < len(text):
        char = text[at]
        if date := _ISO_DATE.match(text, at) or _DAY_FIRST_DATE.match(text, at):
            yield from (Token(normalise_number(part), is_name=True) for part in date.groups())
            at, begins = date.end(), False
        elif number := _NUMBER.match(text, at):
            sign = number[0] == "-"
            digits = re.compile(NUMBER_PATTERN).match(text, at + sign)
            assert digits is not None
            yield Token(("-" if sign else "") + normalise_number(digits[0]), is_name=True)
            at, begins = digits.end(), False
        elif unicodedata.category(char)[0] in "LM":
            end = _end_of_word(text, at)
            is_capital = not begins and unicodedata.category(char) == "Lu"
            yield Token(text[at:end].casefold(), is_name=is_capital)
            at, begins = end, False
        else:
            if unicodedata.category(char)[0] in "SN" or char in _MEANINGFUL_PUNCTUATION:
                yield Token(char)
            elif char in _MARKS:
                yield Token(char, is_mark=True)
                begins = begins or char in _SENTENCE_ENDS
            at += 1


def _end_of_word(text: str, start: int) -> int:
    """Return where a word ends; a letter of a script without spaces ends with the marks on it."""
    end = start + 1
    is_letter = UNSPACED_LETTER.match(text[start]) is not None
    while end < len(text):
        kind = unicodedata.category(text[end])[0]
        if kind != "M" and (is_letter or kind not in "LN" or UNSPACED_LETTER.match(text[end])):
            break
        end += 1
    return end


def normalise_number(text: str) -> str:
    """Return a number in digits without separators of thousands, leading zeros and zeros behind the point."""
    if _THOUSANDS.fullmatch(text):
        return re.sub(r"[.,]", "", text).lstrip("0") or "0"
    if ":" in text:
        return text.lstrip("0").removesuffix(":00") or "0"
    text = text.replace(",", ".")
    if text.count(".") == 1:
        text = text.rstrip("0").rstrip(".")
    return text.lstrip("0") or "0" if not text.startswith("0.") else text


def is_number(key: str) -> bool:
    """Return whether a token is a number in digits."""
    return key[-1:].isdigit() and key.lstrip("-")[:1].isdigit()


def name_keys(name: str) -> tuple[str, ...]:
    """Return the keys of the tokens of a name."""
    return tuple(token.key for token in split_statement(name) if not token.is_mark)


def mark_subject(tokens: Sequence[Token], subject_names: Iterable[str]) -> list[Token]:
    """Return tokens with one `SUBJECT` for each name of the subject, or for "the user" with its article."""
    names = _names_by_first_key(tuple(subject_names))
    marked: list[Token] = []
    at = 0
    while at < len(tokens):
        following = tuple(token.key for token in tokens[at : at + MAX_NAME_TOKENS])
        found = next((name for name in names.get(tokens[at].key, ()) if following[: len(name)] == name), None)
        marked.append(tokens[at] if found is None else Token(SUBJECT, is_name=True))
        at += 1 if found is None else len(found)
    return marked


@lru_cache(maxsize=256)
def _names_by_first_key(subject_names: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """Return the tokens of names by the first of them, the longest name first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted({name_keys(name) for name in subject_names} - {()}, key=len, reverse=True):
        found.setdefault(name[0], []).append(name)
    return found


@cache
def user_names() -> tuple[str, ...]:
    """Return what statements call the user who has no name in them, with and without an article."""
    return tuple(
        phrase
        for language in WRITTEN_LANGUAGES
        for word in load_words(language).user_words
        for phrase in (word, *(f"{article} {word}" for article in load_words(language).articles))
    )


def with_names(tokens: Iterable[Token], names: Iterable[str]) -> list[Token]:
    """Return tokens of which those in the names of known entities are names, however they are written."""
    known = {key for name in names for key in name_keys(name)}
    return [replace(token, is_name=token.is_name or token.key in known) for token in tokens]


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


MIN_SAME_MATTER = 0.65
"""Smallest share of their words that two statements have in common if they are about the same matter."""


HALF_DAY_HOURS = 12
"""Hours between an hour of the afternoon and its name in half a day."""


@dataclass(frozen=True, slots=True)
class Restated:
    """The tokens of sources, by memory id, and of the merged text that are the same in another form."""

    in_sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    in_result: frozenset[str] = frozenset()


def find_number_conflict(one: str, other: str, subject_names: Iterable[str] = ()) -> str | None:
    """Return that two statements are alike but for their numbers, so that they cannot both hold, or None."""
    names = list(subject_names)
    first, second = (mark_subject(split_statement(text), names) for text in (one, other))
    words, others = ({token.key for token in tokens if not is_number(token.key)} for tokens in (first, second))
    if not words or not others or 2 * len(words & others) / (len(words) + len(others)) < MIN_SAME_MATTER:
        return None
    own, theirs = _numbers(first) - _numbers(second), _numbers(second) - _numbers(first)
    if not may_be_one_number(frozenset(own), frozenset(theirs)):
        return f"one says {', '.join(sorted(own)[:3])}, the other {', '.join(sorted(theirs)[:3])}"
    return None


def may_be_one_number(own: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether one side has no numbers but those of the other, or both one hour of day: 5 pm and 17:00."""
    if own <= others or others <= own:
        return True
    hours = sorted(int(key) for key in own | others if key.isdigit())
    return len(own) == len(others) == 1 and len(hours) == 2 and hours[1] - hours[0] == HALF_DAY_HOURS


def find_changed_numbers(sources: Mapping[str, str], result: str, restated: Restated) -> str | None:
    """Return which number of a source a merged text lacks, or which one it has that no source has, or None."""
    made = _numbers(split_statement(result))
    told: Counter[str] = Counter()
    for key, text in sources.items():
        numbers = _numbers(split_statement(text))
        told += numbers
        lost = [number for number in numbers - made if number not in restated.in_sources.get(key, ())]
        if lost:
            return f"{key} is not covered: the merged text lacks {', '.join(lost[:5])}"
    if new := [number for number in made - told if number not in restated.in_result]:
        return f"no source has {', '.join(new[:5])} of the merged text: write numbers as the sources do"
    return None


def find_changed_names(
    sources: Mapping[str, str],
    result: str,
    own_names: Iterable[str],
    entity_names: Iterable[Sequence[str]],
    restated: Restated,
) -> str | None:
    """Return which name of a source a merged text lacks, or which one it has that no source has, or None.

    `own_names` are those of the subject, which may be missing; `entity_names` are the names of each other entity, any
    of which will do.
    """
    own_names, entity_names = list(own_names), list(entity_names)
    for key, text in sources.items():
        kept = restated.in_sources.get(key, frozenset())
        for names in entity_names:
            named = [name for name in names if mentions_name(text, name)]
            is_kept = any(mentions_name(result, name) for name in names)
            if named and not is_kept and not _words(named) & kept:
                return f"{key} is not covered: the merged text does not name {named[0]}"
    if not _may_share_language([*sources.values(), result]):
        return None
    known = _words([*own_names, *(name for names in entity_names for name in names)])
    made = {token.key for token in split_statement(result)}
    for key, text in sources.items():
        kept = restated.in_sources.get(key, frozenset())
        for name in sorted(_capitalised(text) - known - kept):
            if not is_like_any(name, made):
                return f"{key} is not covered: the merged text does not name {name}"
    told = {token.key for text in sources.values() for token in split_statement(text)} | known | restated.in_result
    if new := sorted(name for name in _capitalised(result) if not is_like_any(name, told)):
        return f"no source names {', '.join(new[:5])}"
    return None


MAX_UNTOLD_SHARE = 0.5
"""Largest share of the words of a sentence that its sources lack: those of another way to say the same."""


def find_untold(sources: Iterable[str], sentence: str, names: Iterable[str] = ()) -> str | None:
    """Return which number or name of a sentence its sources lack, or that they lack most of its words, or None.

    `names` are those of its subject, which it may have anyway. Neutral words do not count.
    """
    sources, own = list(sources), _words(names)
    told = {token.key for text in sources for token in split_statement(text)} | own
    words = [token.key for token in split_statement(sentence) if not token.is_mark]
    if numbers := [key for key in dict.fromkeys(words) if is_number(key) and key not in told]:
        return f"no source has {', '.join(numbers[:5])}"
    if unnamed := sorted(name for name in _capitalised(sentence) - own if not is_like_any(name, told)):
        return f"no source names {', '.join(unnamed[:5])}"
    neutral = neutral_words(known_languages(" ".join([*sources, sentence])))
    meaningful = [key for key in words if key not in neutral and key not in own]
    untold = [key for key in meaningful if not is_like_any(key, told)]
    if len(untold) > MAX_UNTOLD_SHARE * len(meaningful):
        return f"no source has most of its words: {', '.join(untold[:5])}"
    return None


def find_misattributed_numbers(sources: Iterable[str], result: str) -> list[str]:
    """Return the numbers that share a clause of the result with the words of another number of the sources."""
    words_by_number: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for numbers, words in _numbers_and_words(text):
            for number in numbers:
                words_by_number[number] |= words
    misattributed = set()
    for numbers, words in _numbers_and_words(result):
        for number in numbers & words_by_number.keys():
            own = words_by_number[number]
            others = [words_by_number[other] - own for other in words_by_number.keys() - numbers]
            shared = max((len(words & other) for other in others), default=0)
            if shared and shared > len(words & own):
                misattributed.add(number)
    return sorted(misattributed)


def _numbers_and_words(text: str) -> Iterable[tuple[set[str], set[str]]]:
    """Yield the numbers and the other words of each clause, which a mark or a conjunction ends."""
    languages = known_languages(text)
    neutral = neutral_words(languages)
    clause: list[str] = []
    for token in [*split_statement(text), Token(",", is_mark=True)]:
        if not token.is_mark and token.key not in neutral:
            clause.append(token.key)
        elif token.is_mark or token.key in _conjunctions(languages):
            yield {key for key in clause if is_number(key)}, {key for key in clause if not is_number(key)}
            clause = []


def _conjunctions(languages: tuple[str, ...]) -> frozenset[str]:
    return load_words(*languages).conjunctions


def _numbers(tokens: Iterable[Token]) -> Counter[str]:
    return Counter(token.key for token in tokens if is_number(token.key))


def _words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(token.key for name in names for token in split_statement(name))


def _capitalised(text: str) -> frozenset[str]:
    """Return the words with a capital letter within a sentence, unless the language writes every noun with one."""
    if NOUN_CAPITALISING & set(detect_languages(text)):
        return frozenset()
    return frozenset(
        token.key
        for token in split_statement(text)
        if token.is_name and not is_number(token.key) and len(token.key) > 1
    )


def _may_share_language(texts: Iterable[str]) -> bool:
    """Return whether nothing says that texts are in several languages."""
    known = [set(languages) for text in texts if (languages := detect_languages(text))]
    return not known or bool(set.intersection(*known))
