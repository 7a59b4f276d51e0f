"""Every query of the catalogue keeps its form, is understood by Neo4j, and is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphmem.resources import cypher_root
from graphmem.store.driver import Graph
from graphmem.store.queries import Query, QueryFileError, load_queries, parse_fragments, parse_queries

PACKAGE = Path(__file__).parents[2]


@pytest.mark.parametrize("query", load_queries().values(), ids=lambda query: query.name)
async def test_neo4j_accepts_every_query(graph: Graph, query: Query) -> None:
    async with graph._driver.session() as session:
        prefix, text = (
            ("CYPHER 25 ", query.text.removeprefix("CYPHER 25 "))
            if query.text.startswith("CYPHER 25")
            else ("", query.text)
        )
        result = await session.run(f"{prefix}EXPLAIN {text}")
        await result.consume()


def test_every_query_is_used() -> None:
    code = "\n".join(
        path.read_text("utf-8") for module in ("graphmem", "api") for path in (PACKAGE / module).rglob("*.py")
    )
    unused = [name for name in load_queries() if f'"{name}"' not in code]
    assert unused == []


def test_no_cypher_in_python() -> None:
    cypher = re.compile(r"\b(MATCH|MERGE|CREATE)\s*\(|\bDETACH DELETE\b|\bUNWIND \$")
    found = [
        str(path.relative_to(PACKAGE))
        for module in ("graphmem", "api")
        for path in (PACKAGE / module).rglob("*.py")
        if cypher.search(path.read_text("utf-8"))
    ]
    assert found == []


def load_explore_statements() -> dict[str, list[str]]:
    """Return the statements of each file for Neo4j Browser, without its comments and commands."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted((cypher_root() / "explore").glob("*.cypher"))}
    bare = {name: re.sub(r"(?m)^\s*(//|:).*$", "", text) for name, text in texts.items()}
    return {name: [part.strip() for part in text.split(";") if part.strip()] for name, text in bare.items()}


@pytest.mark.parametrize(("name", "statements"), load_explore_statements().items(), ids=list(load_explore_statements()))
async def test_neo4j_accepts_every_explore_query(graph: Graph, name: str, statements: list[str]) -> None:
    assert statements
    async with graph._driver.session() as session:
        for statement in statements:
            result = await session.run(f"EXPLAIN {statement}")
            await result.consume()


def test_a_parameter_that_is_declared_but_not_used_is_refused() -> None:
    with pytest.raises(QueryFileError, match="declares"):
        list(parse_queries("module", "// name: one(group_id, limit)\n// Say what.\nRETURN $group_id"))


def test_a_placeholder_is_replaced_by_its_fragment() -> None:
    fragments = parse_fragments("// Said of all.\n\n// fragment: one\n// Say what.\nn {.name} AS one\n")
    (query,) = parse_queries("module", "// name: first()\n// Say what.\nMATCH (n) RETURN {{one}}", fragments)
    assert query.text == "MATCH (n) RETURN n {.name} AS one"
    with pytest.raises(QueryFileError, match="no fragment other"):
        list(parse_queries("module", "// name: first()\n// Say what.\nRETURN {{other}}", fragments))


def test_every_fragment_is_used() -> None:
    files = "".join(path.read_text("utf-8") for path in (cypher_root() / "queries").glob("*.cypher"))
    fragments = parse_fragments((cypher_root() / "fragments.cypher").read_text("utf-8"))
    assert fragments
    assert [name for name in fragments if f"{{{{{name}}}}}" not in files] == []


def test_an_entry_without_a_description_is_refused() -> None:
    with pytest.raises(QueryFileError, match="what the query is for"):
        list(parse_queries("module", "// name: one()\nRETURN 1"))
