"""Keys and tokens of programs, recognised by their issuers' formats or by a label before them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from graphmem.secrets.detection import Span, load_vocabulary

_WORDS = load_vocabulary("api_keys")
_KNOWN_FORMATS = re.compile(_WORDS.any_of("formats"))
_KNOWN_FORMATS_OF_WORDS = re.compile(rf"(?<![A-Za-z0-9_\-]){_WORDS.any_of('loose')}")
_BEGIN = re.compile(r"-{5}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}")
_END = re.compile(r"-{5}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}")
_LONGEST_PRIVATE_KEY = 16_000
"""Characters in which the end of a private key is looked for; without an end, all the rest is the key."""

_BEARER_TOKEN = re.compile(r"\bBearer\s{1,3}(?P<value>[A-Za-z0-9._~+/\-]{12,}+={0,2})", re.IGNORECASE)
_LABELLED_KEY = re.compile(
    rf"(?:\b|(?<=_)){_WORDS.any_of('labels')}(?![A-Za-z0-9_])"
    rf"(?:[ ]{_WORDS.any_of('prepositions')}[ ][\w.'\-]{{1,30}}(?:[ ][\w.'\-]{{1,30}})?)?"
    rf"['\"]?[ ]?(?::=|=>|->|[:=]|(?:{_WORDS.any_of('copulas')}|lautet|это)\b[ ]?:?|是|为)?[ ]{{0,2}}['\"`]?"
    r"(?P<value>[A-Za-z0-9_\-./+=~]{8,}+)",
    re.IGNORECASE,
)


_KEY_BEFORE_LABEL = re.compile(
    r"(?<![A-Za-z0-9_\-./+=~])(?P<value>[A-Za-z0-9_\-./+=~]{16,}+)['\"`]?[ ]"
    rf"{_WORDS.any_of('copulas')}[ ](?:{_WORDS.any_of('possessives')}[ ])?(?:[\w'\-]{{1,20}}[ ]){{0,2}}?"
    rf"{_WORDS.any_of('labels')}(?!\w)",
    re.IGNORECASE,
)


def find_private_keys(text: str) -> Iterator[Span]:
    """Yield private keys in PEM format, from their first line to their last one."""
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
