"""Every query of the catalogue is well-formed and used; `test_query_plans` shows that Neo4j accepts it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import LiteralString, cast

import pytest

from graphmem.neo4j.driver import GROUP_PARAMETERS, Graph, Transaction
from graphmem.neo4j.queries import (
    QueryFileError,
    load_queries,
    parse_fragments,
    parse_queries,
)
from graphmem.runtime.files import cypher_root

ROOT = Path(__file__).parents[2]


def source_files() -> list[Path]:
    return [path for package in ("graphmem", "api") for path in sorted((ROOT / package).rglob("*.py"))]


def query_names_in(source: str) -> set[str]:
    """Return the string constants of a module that look like names of queries; docstrings are left out."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and id(node) not in docstrings
        and isinstance(node.value, str)
        and re.fullmatch(r"[a-z_]+\.[a-z_]+", node.value)
    }


def test_every_query_is_used() -> None:
    used = {name for path in source_files() for name in query_names_in(path.read_text("utf-8"))}
    assert load_queries().keys() - used == set()


def test_a_query_named_in_a_comment_or_docstring_is_not_used() -> None:
    assert query_names_in('"facts.get"\n# "facts.list"\nrun("facts.set")') == {"facts.set"}


def test_no_cypher_in_python() -> None:
    cypher = re.compile(r"\b(MATCH|MERGE|CREATE)\s*\(|\bDETACH DELETE\b|\bUNWIND \$")
    files = [str(path.relative_to(ROOT)) for path in source_files() if cypher.search(path.read_text("utf-8"))]
    assert files == []


def load_explore_statements() -> dict[str, list[str]]:
    """Return the statements of each file for Neo4j Browser, without comments and browser commands."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted((cypher_root() / "explore").glob("*.cypher"))}
    bare = {name: re.sub(r"(?m)^\s*(//|:).*$", "", text) for name, text in texts.items()}
    return {name: [part.strip() for part in text.split(";") if part.strip()] for name, text in bare.items()}


@pytest.mark.parametrize(("name", "statements"), load_explore_statements().items(), ids=list(load_explore_statements()))
async def test_neo4j_accepts_every_explore_query(graph: Graph, name: str, statements: list[str]) -> None:
    assert statements
    async with graph._driver.session() as session:
        for statement in statements:
            result = await session.run(cast("LiteralString", f"EXPLAIN {statement}"))
            await result.consume()


def test_a_parameter_that_is_declared_but_not_used_is_refused() -> None:
    with pytest.raises(QueryFileError, match="declares"):
        list(parse_queries("module", "// name: one(group_id, limit)\n// Return the group.\nRETURN $group_id"))


def test_a_fragment_among_the_parameters_declares_those_that_it_takes() -> None:
    fragments = parse_fragments(
        "// All fragments.\n\n// fragment: near\n// True near it.\nn.x > $low AND n.x < $high\n"
    )
    text = "// name: find(group_id, {{near}})\n// Find it.\nMATCH (n {group_id: $group_id}) WHERE {{near}} RETURN n"
    (query,) = parse_queries("module", text, fragments)
    assert query.parameters == {"group_id", "low", "high"}
    with pytest.raises(QueryFileError, match="declares"):
        list(parse_queries("module", text.replace("WHERE {{near}}", ""), fragments))


def test_a_placeholder_is_replaced_by_its_fragment() -> None:
    fragments = parse_fragments("// All fragments.\n\n// fragment: one\n// A name.\nn {.name} AS one\n")
    (query,) = parse_queries("module", "// name: first()\n// Find it.\nMATCH (n) RETURN {{one}}", fragments)
    assert query.text == "MATCH (n) RETURN n {.name} AS one"
    with pytest.raises(QueryFileError, match="no fragment other"):
        list(parse_queries("module", "// name: first()\n// Find it.\nRETURN {{other}}", fragments))


def test_a_fragment_includes_earlier_fragments_only() -> None:
    text = "// fragment: one\n// A name.\nn.name\n\n// fragment: two\n// A list.\n[{{one}}]\n"
    assert parse_fragments(text) == {"one": "n.name", "two": "[n.name]"}
    with pytest.raises(QueryFileError, match="no fragment two"):
        parse_fragments("// fragment: one\n// A list.\n[{{two}}]\n")


def test_every_comment_line_after_the_name_describes_the_query() -> None:
    (query,) = parse_queries("module", "// name: first()\n// Find it.\n// Slowly.\nCYPHER 25\nRETURN 1")
    assert query.description == "Find it. Slowly."
    assert query.text == "CYPHER 25\nRETURN 1"


def test_every_fragment_is_used() -> None:
    fragment_file = (cypher_root() / "fragments.cypher").read_text("utf-8")
    files = [
        fragment_file,
        *(
            path.read_text("utf-8")
            for folder in ("queries", "checks")
            for path in (cypher_root() / folder).rglob("*.cypher")
        ),
    ]
    used = {name for text in files for name in re.findall(r"\{\{([a-z_]+)\}\}", text)} - {"name"}
    assert used == parse_fragments(fragment_file).keys()


def test_an_entry_without_a_description_is_refused() -> None:
    with pytest.raises(QueryFileError, match="must describe the query"):
        list(parse_queries("module", "// name: one()\nRETURN 1"))


def test_every_parameter_of_a_reading_query_that_names_groups_is_known() -> None:
    named = {
        name for query in load_queries().values() if not query.writes for name in query.parameters if "group" in name
    }
    assert named - GROUP_PARAMETERS == {"shared_group"}, "a tenant as a whole is not erased"


async def test_a_read_finds_nothing_of_a_user_who_is_being_erased(graph: Graph, tenant: str) -> None:
    """An erasure that has begun has not erased everything yet."""
    gone, other = f"{tenant}:mara", f"{tenant}:jonas"
    await graph.write(
        lambda transaction: transaction.run_text(
            "UNWIND $groups AS group_id CREATE (:Entity {group_id: group_id, uuid: group_id, name: 'x', revision: 1})",
            {"groups": [gone, other]},
        )
    )

    async def read(inner: Transaction) -> None:
        transaction = Transaction(inner._inner, frozenset({gone}))
        changes = await transaction.fetch_value("resident.load_changes", revisions=[[gone, 0], [other, 0]], limit=10)
        assert [(group_id, len(found[1])) for group_id, found in changes] == [("", 0), (other, 1)]

    await graph.read(read)


@pytest.mark.req("QUINN-39")
def test_no_index_is_searched_for_a_list_that_a_node_may_lack() -> None:
    """A search of a composite index for what is in null fails, where a filter only finds nothing: the plan decides."""
    searched = re.compile(r"\b[a-z]+\.[a-z_]+ IN (?!statement\.)[a-z]+\.[a-z_]+")
    found = {query.name: match[0] for query in load_queries().values() if (match := searched.search(query.text))}
    assert found == {}
