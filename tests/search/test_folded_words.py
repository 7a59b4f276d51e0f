"""One folding of words for every channel: the database, the copies in memory and the fit of a memory."""

from __future__ import annotations

from graphmem.text.folding import folded_words
from graphmem.text.tokenising import query_terms, tokenize

SPELLINGS = {
    "Besuch in Ko\u0308ln": ["K\u00f6ln", "Ko\u0308ln", "koln"],
    "Cafe\u0301 Rene\u0301": ["Caf\u00e9", "cafe", "Rene\u0301"],
    "plain cafe": ["cafe\u0301", "caf\u00e9"],
    "\u0643\u062a\u0627\u0628\u064c": ["\u0643\u062a\u0627\u0628"],
    "Reise nach M\u00fcnchen": ["Munchen", "Mu\u0308nchen", "M\u00dcNCHEN"],
    "\u0130STANBUL trip": ["istanbul", "\u0130stanbul"],
    "Flug nach \u0141\u00f3d\u017a": ["Lodz", "\u0142\u00f3d\u017a"],
    "Die Stra\u00dfe ist nass": ["Strasse", "STRASSE"],
    "\uff34\uff4f\uff4b\uff59\uff4f Tower": ["Tokyo"],
    "plain Zurich": ["Z\u00fcrich"],
    "\uc0ac\uc6a9\uc790\ub294 \uc11c\uc6b8\uc5d0\uc11c": [
        "\uc11c\uc6b8",
        "\u1109\u1165\u110b\u116e\u11af",
    ],
    "\u30b9\u30de\u30fc\u30c8\u30d5\u30a9\u30f3\u3092\u8cb7\u3063\u305f": ["\u30d5\u30a9\u30f3", "\uff8c\uff6b\uff9d"],
}


def test_each_spelling_of_a_word_shares_its_terms_and_its_stems() -> None:
    lost = []
    for text, queries in SPELLINGS.items():
        stored = {*text.lower().split(), *folded_words(text)}
        for query in queries:
            if not stored & {*query_terms(query)}:
                lost.append(("terms", text, query))
            if not {*tokenize(text)} & {*tokenize(query)}:
                lost.append(("stems", text, query))
    assert lost == []


def test_ascii_text_has_no_further_words() -> None:
    assert folded_words("Ada lives in Turin") == []
    assert query_terms("Ada Turin") == ["ada", "turin"]


def test_a_word_search_asks_for_no_single_letter_of_a_longer_word() -> None:
    assert query_terms("\uc11c\uc6b8\uc5d0") == ["\uc11c\uc6b8\uc5d0", "\uc11c\uc6b8", "\uc6b8\uc5d0"]
