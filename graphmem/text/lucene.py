"""Full-text queries in Lucene's syntax: escaped, bounded and limited to some users' documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphmem.text.folding import UNSPACED_LETTER, folded_words

MAX_QUERY_TERMS = 150
"""Most terms of one query; Lucene refuses more than 1,024 clauses, and each term is one clause per field."""

MAX_WORD_LENGTH = 64
"""Characters of a word that are searched for."""

_SYNTAX_CHARACTER = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')
_PUNCTUATION = "".join(map(chr, range(33, 48))) + ":;<=>?@[\\]^`{|}~…“”‘’„«»‹›、。，！？；：（）「」『』·¿¡"


def query_terms(text: str) -> list[str]:
    """Return the first distinct words of `text` in lower case, without punctuation around them, and their folded forms.

    Text that is not blank has at least one. A word of an unspaced script counts as one term per letter.
    """
    terms: dict[str, None] = {}
    free = MAX_QUERY_TERMS
    for raw in text.split():
        word = (raw.strip(_PUNCTUATION).lower() or raw.lower())[:MAX_WORD_LENGTH]
        if word in terms:
            continue
        folded = [form for form in folded_words(word) if len(form) > 1 or len(word) == 1]
        cost = max(1, len(UNSPACED_LETTER.findall(word))) + len(folded)
        if cost > free:
            break
        free -= cost
        terms |= dict.fromkeys([word, *folded])
    return list(terms)


def escape_syntax(word: str) -> str:
    """Return `word` with a backslash before each character that Lucene's query syntax reads as an operator."""
    return _SYNTAX_CHARACTER.sub(r"\\\1", word)


def build_lucene_query(terms: Sequence[str], group_keys: Iterable[str], fields: Iterable[str]) -> str:
    """Return the query for documents with one of `group_keys` and any of `terms` in any of `fields`.

    The group keys add nothing to a document's score.
    """
    groups = " ".join(f"group_key:{key}" for key in group_keys)
    words = " ".join(map(escape_syntax, terms))
    return f"+({groups})^0 +({' '.join(f'{field}:({words})' for field in fields)})"
