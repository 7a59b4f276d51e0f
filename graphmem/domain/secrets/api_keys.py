"""Keys and tokens of programs, recognised by their issuers' formats or by a label before them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from graphmem.domain.secrets.models import Span
from graphmem.domain.secrets.vocabulary import load_vocabulary

_KNOWN_KEY_FORMATS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"-{5}BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}"
    r"(?:.{0,12000}?-{5}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{5}|.*)"
    r"|eyJ[A-Za-z0-9_\-]{6,}+\.[A-Za-z0-9_\-]{6,}+\.[A-Za-z0-9_\-]*+"
    r"|sk-[A-Za-z0-9_\-]{16,}+|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9]{16,}+"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+|glpat-[A-Za-z0-9_\-]{16,}+"
    r"|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_\-]{30,}+|ya29\.[A-Za-z0-9_\-]{20,}+"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}+|xapp-[A-Za-z0-9\-]{10,}+"
    r"|hf_[A-Za-z0-9]{20,}+|SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+|shp(?:at|ss|ca)_[a-fA-F0-9]{20,}+"
    r"|dop_v1_[a-f0-9]{40,}+"
    r"|\d{8,10}:AA[A-Za-z0-9_\-]{30,}+"
    r")",
    re.DOTALL,
)
_BEARER_TOKEN = re.compile(r"\bBearer\s{1,3}(?P<value>[A-Za-z0-9._~+/\-]{12,}+={0,2})", re.IGNORECASE)
_WORDS = load_vocabulary("api_keys")
_LABELLED_KEY = re.compile(
    rf"(?:\b|(?<=_)){_WORDS.any_of('labels')}(?![A-Za-z0-9_])"
    rf"(?:[ ]{_WORDS.any_of('prepositions')}[ ][\w.'\-]{{1,30}}(?:[ ][\w.'\-]{{1,30}})?)?"
    rf"['\"]?[ ]?(?::=|=>|->|[:=]|(?:{_WORDS.any_of('copulas')}|lautet|это)\b[ ]?:?|是|为)?[ ]{{0,2}}['\"`]?"
    r"(?P<value>[A-Za-z0-9_\-./+=~]{8,}+)",
    re.IGNORECASE,
)


def find_api_keys(text: str) -> Iterator[Span]:
    """Yield keys, tokens and private keys of programs."""
    for match in _KNOWN_KEY_FORMATS.finditer(text):
        yield match.span()
    for match in _BEARER_TOKEN.finditer(text):
        if _looks_random(match["value"]):
            yield match.span("value")
    for match in _LABELLED_KEY.finditer(text):
        if _looks_random(match["value"].rstrip(".")):
            yield match.start("value"), match.start("value") + len(match["value"].rstrip("."))


def _looks_random(token: str) -> bool:
    """Return whether a token mixes letters and digits with a Shannon entropy of at least 2.5 bits per character."""
    if len(token) < 8 or not re.search(r"\d", token) or not re.search(r"[A-Za-z]", token) or "://" in token:
        return False
    counts = Counter(token)
    entropy = -sum(count / len(token) * math.log2(count / len(token)) for count in counts.values())
    return entropy >= 2.5 and not re.fullmatch(
        r"\d+(?:[.\-/]\d+)*[a-z]{0,3}|[A-Za-z]+[-_]?v?\d{1,4}|v?\d+(?:\.\d+)+(?:-\w+)?", token
    )
