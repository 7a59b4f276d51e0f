"""A question as a full-text query: escaped, bounded, kept to its user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphmem.store.fact_mapping import group_key

MAX_QUERY_TERMS = 150
"""Most terms one question brings to the full text; Lucene refuses queries of more than 1,024 clauses."""

_LUCENE_SYNTAX = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')
_PUNCTUATION = "".join(map(chr, range(33, 48))) + ":;<=>?@[\\]^`{|}~…“”‘’„«»‹›、。，！？；：（）「」『』·¿¡"
_UNSPACED_LETTER = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that put no spaces between words, or few: Thai, Lao, Burmese, Khmer, Kana, Han, Hangul."""

_MAX_WORD_LENGTH = 64


def query_terms(text: str, max_terms: int = MAX_QUERY_TERMS) -> list[str]:
    """Return the first distinct words of a text in lower case, without the punctuation around them."""
    found: dict[str, None] = {}
    left = max_terms
    for raw in text.split():
        word = raw.strip(_PUNCTUATION).lower()[:_MAX_WORD_LENGTH] or raw.lower()[:_MAX_WORD_LENGTH]
        if word in found:
            continue
        cost = max(1, len(_UNSPACED_LETTER.findall(word)))
        if cost > left:
            break
        left -= cost
        found[word] = None
    return list(found)


def escape_lucene_syntax(word: str) -> str:
    """Return a word without any meaning to Lucene's query syntax."""
    return _LUCENE_SYNTAX.sub(r"\\\1", word)


def build_lucene_query(words: Sequence[str], group_ids: Sequence[str], fields: Mapping[str, float]) -> str:
    """Return the Lucene query for `words` in `fields` (with their boosts) within some users' documents."""
    keys = " ".join(f"group_key:{group_key(each)}" for each in group_ids)
    body = " ".join(escape_lucene_syntax(word) for word in words)
    parts = " ".join(f"{field}:({body})^{boost:g}" for field, boost in fields.items())
    return f"+({keys})^0 +({parts})"
