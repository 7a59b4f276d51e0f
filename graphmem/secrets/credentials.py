"""Credentials: keys and tokens of programs, and values called a password, passphrase, passcode or PIN."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files

from graphmem.secrets.detection import SECRET_CLASSES, Span, load_vocabulary

_KEYS = load_vocabulary("api_keys")
_KNOWN_FORMATS = re.compile(_KEYS.any_of("formats"))
_KNOWN_FORMATS_OF_WORDS = re.compile(rf"(?<![A-Za-z0-9_\-]){_KEYS.any_of('loose')}")
_BEGIN = re.compile(r"-{5}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}")
_END = re.compile(r"-{5}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}")
_LONGEST_PRIVATE_KEY = 16_000
"""Number of characters searched for the end of a private key; without an end, the rest of the text is the key."""

_BEARER_TOKEN = re.compile(r"\bBearer\s{1,3}(?P<value>[A-Za-z0-9._~+/\-]{12,}+={0,2})", re.IGNORECASE)
_LABELLED_KEY = re.compile(
    rf"(?:\b|(?<=_)){_KEYS.any_of('labels')}(?![A-Za-z0-9_])"
    rf"(?:[ ]{_KEYS.any_of('prepositions')}[ ][\w.'\-]{{1,30}}(?:[ ][\w.'\-]{{1,30}})?)?"
    rf"['\"]?[ ]?(?::=|=>|->|[:=]|(?:{_KEYS.any_of('copulas')}|lautet|это)\b[ ]?:?|是|为)?[ ]{{0,2}}['\"`]?"
    r"(?P<value>[A-Za-z0-9_\-./+=~]{8,}+)",
    re.IGNORECASE,
)


_KEY_BEFORE_LABEL = re.compile(
    r"(?<![A-Za-z0-9_\-./+=~])(?P<value>[A-Za-z0-9_\-./+=~]{16,}+)['\"`]?[ ]"
    rf"{_KEYS.any_of('copulas')}[ ](?:{_KEYS.any_of('possessives')}[ ])?(?:[\w'\-]{{1,20}}[ ]){{0,2}}?"
    rf"{_KEYS.any_of('labels')}(?!\w)",
    re.IGNORECASE,
)


def find_private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM format, from their first line to their last."""
    at = 0
    while begin := _BEGIN.search(text, at):
        end = _END.search(text, begin.end(), begin.end() + _LONGEST_PRIVATE_KEY)
        at = end.end() if end else len(text)
        yield begin.start(), at


def find_api_keys(text: str) -> Iterator[Span]:
    """Yield keys, tokens and private keys of programs."""
    yield from find_private_keys(text)
    for pattern in (_KNOWN_FORMATS, _KNOWN_FORMATS_OF_WORDS):
        for match in pattern.finditer(text):
            yield match.span()
    for pattern in (_BEARER_TOKEN, _KEY_BEFORE_LABEL):
        for match in pattern.finditer(text):
            if _looks_random(match["value"]):
                yield match.span("value")
    for match in _LABELLED_KEY.finditer(text):
        value = match["value"].rstrip(".")
        if _looks_random(value):
            yield match.start("value"), match.start("value") + len(value)


def _looks_random(token: str) -> bool:
    """Return whether a token mixes letters and digits with a Shannon entropy of at least 2.5 bits per character."""
    if len(token) < 8 or not re.search(r"\d", token) or not re.search(r"[A-Za-z]", token) or "://" in token:
        return False
    counts = Counter(token)
    entropy = -sum(count / len(token) * math.log2(count / len(token)) for count in counts.values())
    return entropy >= 2.5 and not re.fullmatch(
        r"\d+(?:[.\-/]\d+)*[a-z]{0,3}|[A-Za-z]+[-_]?v?\d{1,4}|v?\d+(?:\.\d+)+(?:-\w+)?", token
    )


_PASSWORDS = load_vocabulary("passwords")
_COPULA = _PASSWORDS.any_of("copulas", "other_copulas")
_LABEL = re.compile(
    rf"(?:(?<=_)|(?<![^\W_]))(?:(?P<phrase>{_PASSWORDS.any_of('phrase_labels')})|(?P<code>{_PASSWORDS.any_of('code_labels')})"
    rf"|{_PASSWORDS.any_of('word_labels')}|(?P<weak>{_PASSWORDS.any_of('weak_labels')}))(?P<plural>s|wörter|es|n)?(?![^\W_])",
    re.IGNORECASE,
)
_UNSPACED_LABEL = re.compile(rf"{_PASSWORDS.any_of('unspaced_labels')}[^!-~]{{0,6}}[:=]?\s?(?P<value>[!-~]{{4,}})")
_CHANGE_BEFORE = re.compile(rf"{_PASSWORDS.any_of('change_stems')}\w{{0,5}}\b[^.!?\n]{{0,40}}$", re.IGNORECASE)
_GAP = rf"(?:[ ](?!{_PASSWORDS.any_of('label_followers')}\b|{_COPULA}\b)[^\s.,;:!?=]{{1,30}}){{0,6}}?"
_ASSIGNMENT = re.compile(rf"[\"')\]]{{0,2}}{_GAP}[\"')\]]{{0,2}}[ ]{{0,2}}(?::=|=>|->|→|[:=](?![:/]))\s{{0,3}}")
_VERB_IS = re.compile(rf"[\"')]{{0,2}},?{_GAP},?[ ]{_COPULA}\b[ ]?[:=]?\s{{1,3}}", re.IGNORECASE)
_CHANGED_TO = re.compile(rf"{_GAP}[ ]{_PASSWORDS.any_of('change_prepositions')}[ ]", re.IGNORECASE)
_POLISH_IS = re.compile(rf"{_GAP}[ ]to[ ]", re.IGNORECASE)
_ADJACENT_SEPARATOR = re.compile(r"[ ]?-[ ]|(?:'s)?[ ]{1,2}")
_FILLER = re.compile(rf"{_PASSWORDS.any_of('fillers')}[ ]+", re.IGNORECASE)
_QUOTED = re.compile(r"\"([^\"\n]{1,100})\"|'([^'\n]{1,100})'|`([^`\n]{1,100})`")
_TOKEN = re.compile(r"\S{1,200}")
_SPACED_DIGITS = re.compile(r"\d(?:[ \-]\d){3,9}(?![\w])|\d{2,4}(?:[ \-]\d{2,4}){1,3}(?![\w])")
_UNIT_AFTER = re.compile(
    rf"[ \-]{{0,2}}{_PASSWORDS.any_of('money', 'length', 'duration', 'counted', 'other_units')}(?!\w)",
    re.IGNORECASE,
)
_NON_PASSWORDS = frozenset(
    (files("graphmem.secrets") / "words" / "no_password.txt").read_text(encoding="utf-8").split()
)
"""Words that follow "the password is" without being the password, such as the names of password managers."""
_FUNCTION_WORD = re.compile(rf"\b{_PASSWORDS.any_of('function_words')}\b", re.IGNORECASE)
_CONTINUATION = re.compile(rf"[ ]+{_PASSWORDS.any_of('continuations')}\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    rf"[\[\"']*\[?(?:{'|'.join(SECRET_CLASSES)})\]"
    rf"|\*{{2,}}(?!\w)|x{{3,}}\b|<[A-Za-z_ \-]{{1,30}}>|\.\.\.|_{{3,}}|\[redacted\]|•",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,20}://[^\s:/@]{0,60}:(?P<value>[^\s/@]{1,100}@[\w.\-]{1,100})", re.IGNORECASE
)
_COMMAND_PASSWORD = re.compile(
    r"\b(?:mysql|mysqldump|mariadb)\b[^\n|;]{0,80}?[ ](?:-p|--password=)['\"]?(?P<value>[^\s'\"\-][^\s'\"]{2,60})"
    r"|\bcurl\b[^\n|;]{0,80}?[ ](?:-u|--user)[ ]['\"]?[^\s:'\"]{1,60}:(?P<user_value>[^\s'\"]{3,60})"
)
_VALUE = r"(?P<value>\"[^\"\n]{3,60}\"|'[^'\n]{3,60}'|\S{3,60})"
_POSSESSIVE = rf"(?:{_PASSWORDS.any_of('possessives', 'articles')}|[A-Z]\w{{1,20}}'s)"
_NOUN = rf"(?:{_PASSWORDS.any_of('word_labels')}s?|pass ?-?phrase|pass ?-?code|pin(?: code)?)"
_VALUE_BEFORE_LABEL = re.compile(
    rf"{_VALUE}[ ]{_PASSWORDS.any_of('copulas')}[ ](?:{_POSSESSIVE}[ ]){{1,2}}(?:[\w'\-]{{1,20}}[ ]){{0,2}}?{_NOUN}"
    rf"(?=[.!?,;)\"]|\s*$|[ ]{_PASSWORDS.any_of('clause_ends')}\b)",
    re.IGNORECASE,
)
_USED_AS = re.compile(
    rf"(?P<use>\b{_PASSWORDS.any_of('uses')}[ ])?{_VALUE}[ ]{_PASSWORDS.any_of('as_words')}[ ](?:{_POSSESSIVE}[ ])?"
    rf"(?:[\w'\-]{{1,20}}[ ]){{0,2}}?{_NOUN}(?!\w)",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = rf"[^\s/|]{{2,60}}?(?:[ ]?[/|,:;][ ]?|[ ](?:{_PASSWORDS.any_of('login_joints')}[ ])?)"
_LOGIN = re.compile(
    rf"(?<![^\W_])(?:{_PASSWORDS.any_of('login_labels')}"
    rf"(?:[ ]?[:=][ ]?|[ ]{_PASSWORDS.any_of('copulas', 'login_copulas')}[ ]:?"
    r"|[ ](?=[^\s/|:]{2,60}[ ]?[/|:]))"
    rf"|{_PASSWORDS.any_of('login_verbs')}[ ]{_PASSWORDS.any_of('login_as')}[ ])"
    rf"{_USER_AND_PASSWORD}(?P<value>\S{{8,60}})",
    re.IGNORECASE,
)
_MIXED_TOKEN = re.compile(r"(?=\D*\d)(?=[^A-Z]*[A-Z]|[\w.\-]*[^\w.\-])(?=[^a-z]*[a-z])\S{8,}")
"""Small letters and digits with capitals or punctuation: typical of a password, not of a second name."""
_EDGE_PUNCTUATION = ".,;:!?)]}>\"'"


def find_passwords(text: str) -> Iterator[Span]:
    """Yield the values of passwords, passphrases, passcodes and PINs, and the passwords in URLs."""
    for label in _LABEL.finditer(text):
        if span := _find_after_label(text, label):
            yield span
    for pattern in (_UNSPACED_LABEL, _URL_PASSWORD):
        for match in pattern.finditer(text):
            if not _PLACEHOLDER.match(match["value"]):
                yield match.span("value")
    for match in _COMMAND_PASSWORD.finditer(text):
        yield match.span("value" if match["value"] else "user_value")
    yield from _find_before_label(text)
    for match in _LOGIN.finditer(text):
        value = match["value"].rstrip(_EDGE_PUNCTUATION)
        if _MIXED_TOKEN.fullmatch(value) and "://" not in value:
            yield match.start("value"), match.start("value") + len(value)


def _find_after_label(text: str, label: re.Match[str]) -> Span | None:
    at = label.end()
    kind = "phrase" if label["phrase"] else "code" if label["code"] else "weak" if label["weak"] else "word"
    if label.group().lower() == "pass" and text[at : at + 1] not in ("=", ":"):
        return None
    if assigned := _ASSIGNMENT.match(text, at):
        return _value_at(text, assigned.end(), kind, plain=not label["plural"])
    if verbal := _VERB_IS.match(text, at) or (
        _POLISH_IS.match(text, at) if label.group().lower() in ("hasło", "haslo") else None
    ):
        return _value_at(text, verbal.end(), kind, plain=kind != "weak" and not label["plural"], sentence=True)
    to = _CHANGED_TO.match(text, at)
    if to and _CHANGE_BEFORE.search(text, max(0, label.start() - 60), label.start()):
        return _value_at(text, to.end(), kind, plain=kind != "weak", sentence=True)
    if (adjacent := _ADJACENT_SEPARATOR.match(text, at)) and (kind != "weak" or label.group().lower() in ("pw", "pwd")):
        return _value_at(text, adjacent.end(), kind, plain=False, adjacent=label.group())
    return None


def _value_at(text: str, at: int, kind: str, *, plain: bool, sentence: bool = False, adjacent: str = "") -> Span | None:
    while filler := _FILLER.match(text, at):
        at = filler.end()
    if quoted := _QUOTED.match(text, at):
        return (
            None
            if _PLACEHOLDER.match(text, quoted.start() + 1)
            else _non_blank_span(text, quoted.start() + 1, quoted.end() - 1)
        )
    token = _TOKEN.match(text, at)
    if token is None or _PLACEHOLDER.match(text, at):
        return None
    word = token.group().rstrip(_EDGE_PUNCTUATION)
    lowered = word.lower()
    end = at + len(word)
    if kind == "phrase" and plain and (phrase := _phrase_at(text, at)):
        return phrase
    if not word or lowered in _NON_PASSWORDS:
        return None
    if kind == "code" or word.isdigit():
        return _digits_at(text, at, end, kind, adjacent)
    if "://" in word or (adjacent and not re.match(r"(?=.*\d)[\w!#$%&@+=*?]", word)):
        return None
    if _is_strong(word):
        return at, end
    if adjacent or not plain or _is_descriptive(word):
        return None
    return _plain_value_at(text, at, end, sentence)


def _phrase_at(text: str, at: int) -> Span | None:
    """Return three or more consecutive words without function words, typical of passphrases."""
    rest = text[at : at + 300]
    clause = re.split(r"[.!?;,\n]", rest, maxsplit=1)[0].rstrip()
    return (at, at + len(clause)) if len(clause.split()) >= 3 and not _FUNCTION_WORD.search(clause) else None


def _digits_at(text: str, at: int, end: int, kind: str, adjacent: str) -> Span | None:
    """Return the digits of a passcode; a lower-case `pin 1024` without "is" is the pin of a device."""
    spaced = _SPACED_DIGITS.match(text, at)
    if spaced:
        end = spaced.end()
    word = text[at:end]
    if kind == "code" and not re.fullmatch(r"[A-Za-z]{0,3}\d[\d \-#*A-Za-z]{2,9}", word):
        return None
    if len(re.sub(r"\D", "", word)) < (3 if kind == "code" else 4) or _UNIT_AFTER.match(text, end):
        return None
    return None if adjacent in ("pin", "Pin", "pins") else (at, end)


def _plain_value_at(text: str, at: int, end: int, sentence: bool) -> Span | None:
    rest = re.split(r"[.!?;,\n]", text[end : end + 200], maxsplit=1)[0].rstrip()
    following = rest.split()
    if not following or not sentence or _CONTINUATION.match(text, end) or text[end : end + 1] in (",", ")", '"'):
        return at, end
    if any(word.strip(_EDGE_PUNCTUATION).lower() in _NON_PASSWORDS for word in following):
        return None
    return at, end + len(rest)


def _is_descriptive(word: str) -> bool:
    """Return whether a plain word describes a password rather than being one."""
    return len(word) < 3 or "'" in word or (word.islower() and word.endswith(("ing", "lich", "able")))


def _is_strong(word: str) -> bool:
    if re.search(r"\d", word):
        return len(word) >= 4
    if re.search(r"[^\w'\-./,]", word) and len(word) >= 4:
        return True
    return re.search(r"[a-z][A-Z]|[a-z]_[a-z]", word) is not None


def _non_blank_span(text: str, start: int, end: int) -> Span | None:
    return (start, end) if text[start:end].strip() else None


def _find_before_label(text: str) -> Iterator[Span]:
    for pattern in (_VALUE_BEFORE_LABEL, _USED_AS):
        for match in pattern.finditer(text):
            word = match["value"].strip(_EDGE_PUNCTUATION + "([{<").lower()
            plain = pattern is _VALUE_BEFORE_LABEL or match["use"] is not None
            if _PLACEHOLDER.match(match["value"]) or word in _NON_PASSWORDS or len(word) < 3:
                continue
            if (
                _is_strong(match["value"].strip(_EDGE_PUNCTUATION))
                or match["value"][0] in "\"'"
                or (plain and not _is_descriptive(match["value"].strip(_EDGE_PUNCTUATION)))
            ):
                yield match.span("value")
