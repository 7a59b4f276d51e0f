"""Sources are compared in one place: `TrustOrder.decide`, and the reads by a least trust next to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphmem
from graphmem.neo4j.queries import load_queries
from graphmem.tenants.trust import STATED_KINDS, TEXT_OF_OTHERS

PACKAGE = Path(graphmem.__file__).parent
TRUST = PACKAGE / "tenants" / "trust.py"
COMPARISON = re.compile(r"order\._?(?:is_less|level)\(")
KINDS = "|".join(STATED_KINDS)


def test_no_module_compares_sources_by_itself() -> None:
    compared = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path != TRUST and COMPARISON.search(path.read_text("utf-8"))
    }
    assert compared == set()


@pytest.mark.parametrize("name", ["source_kind", "trusted_as", "sent_as", "detail_sources"])
def test_no_query_compares_sources_by_itself(name: str) -> None:
    kind = re.compile(rf"\b{name}\b\)?\s*(?:=|<>|<|>|\bIN\b|STARTS WITH|ENDS WITH|CONTAINS)\s*\[?'(?:{KINDS})\b")
    parsed = re.compile(rf"\b{name}\b[^\n]*(?:STARTS WITH|ENDS WITH|split\()")
    for query in load_queries().values():
        without_fragment = query.text.replace(str(sorted(TEXT_OF_OTHERS)), "$text_of_others")
        assert not kind.search(without_fragment), query.name
        assert not parsed.search(without_fragment), query.name
