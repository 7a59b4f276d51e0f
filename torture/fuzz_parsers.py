"""Any text for every parser of the domain: it answers or refuses with InvalidInput, in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import hypothesis
from hypothesis import given

from graphmem.consolidation.text_checks import find_changed_numbers, find_source_not_literal, split_statement
from graphmem.context.preferences import extract_stated_preferences
from graphmem.ingestion.answers import parse_local_date
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import TIME_CURSOR
from graphmem.secrets.scanner import find_secrets, redact
from graphmem.text.names import fold_name, may_be_same_first_name
from graphmem.text.normalising import fold
from graphmem.text.time_expressions import find_time_ranges
from graphmem.text.tokenising import build_lucene_query, detect_languages, query_terms, tokenize
from graphmem.user_data.foreign import detect_format, parse_structured_text
from torture.findings import Findings
from torture.fuzz_requests import SETTINGS
from torture.hostile_values import texts

SLOW_SECONDS = 5.0
"""Seconds of CPU after which a parser counts as hanging on a text of at most some 10,000 characters."""

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)

PARSERS: dict[str, Callable[[str], Any]] = {
    "import": lambda text: detect_format(parse_structured_text(text.encode())),
    "list cursor": TIME_CURSOR.decode,
    "secrets": find_secrets,
    "redaction": redact,
    "languages": detect_languages,
    "Lucene query": lambda text: build_lucene_query(query_terms(text), ["g"], ["content"]),
    "tokens": lambda text: tokenize(text, ("en", "de")),
    "folding": fold,
    "names": lambda text: (fold_name(text), may_be_same_first_name(text, "Mara")),
    "times in a question": lambda text: find_time_ranges(text, NOW, ("en", "de")),
    "date of a model": lambda text: parse_local_date(text, UTC),
    "preferences": extract_stated_preferences,
    "tokens of a statement": split_statement,
    "sources of a merge": lambda text: find_source_not_literal({"m": text, "n": text[::-1]}, text),
    "numbers of a merge": lambda text: find_changed_numbers({"m": text, "n": text[::-1]}, text),
}
"""What reads text of a caller or a model, by name."""


def fuzz_parsers(cases: int, findings: Findings) -> None:
    """Give generated texts to each parser, about as many in total as given."""
    for name, parse in PARSERS.items():
        fuzz_parser(name, parse, max(1, cases // len(PARSERS)), findings)


def fuzz_parser(name: str, parse: Callable[[str], Any], cases: int, findings: Findings) -> None:
    """Give generated texts to one parser."""

    @given(text=texts())
    @hypothesis.settings(max_examples=cases, **SETTINGS)
    def read(text: str) -> None:
        findings.count_case()
        started = time.thread_time()
        try:
            parse(text)
        except InvalidInput:
            pass
        except Exception as error:
            findings.add(f"{name}: {type(error).__name__}", f"{error!r} ← {text[:500]!r}")
        if (seconds := time.thread_time() - started) > SLOW_SECONDS:
            findings.add(f"{name}: slow", f"{seconds:.1f} s ← {len(text)} characters, {text[:200]!r}")

    read()
