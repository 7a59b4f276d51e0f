"""The queries for Neo4j Browser run unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.cli.quickstart_render import read_explore_query
from graphmem.domain.identity import Owner
from graphmem.resources import cypher_root
from graphmem.store.driver import Graph


@pytest.mark.parametrize("path", sorted((cypher_root() / "explore").glob("*.cypher")), ids=lambda path: path.stem)
async def test_explore_query_runs_and_has_a_description(graph: Graph, owner: Owner, path: Path) -> None:
    text = read_explore_query(path.stem)
    assert text.startswith("// ")
    noon = "2026-06-01T12:00:00Z"
    params: dict[str, str | int] = {
        "group_id": owner.group_id,
        "tenant": owner.tenant,
        "memory_id": "none",
        "run_id": "none",
    }
    params |= {"days": 7, "known_as_of": noon, "valid_as_of": noon}
    assert await graph.read(lambda transaction: transaction.run_text(text, params)) == []
