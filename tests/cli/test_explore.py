"""The queries for Neo4j Browser, on the data of one user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, LiteralString, cast

import pytest
from neo4j.graph import Path as GraphPath
from neo4j.graph import Relationship

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import query_names, read_query, setup_commands
from graphmem.neo4j.schema import RESERVED_LABELS, LinkType
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.files import cypher_root
from graphmem.tenants.owners import Owner
from tests.cli.conftest import Cli

MARA = {"name": "Mara", "type": "Person"}


@pytest.fixture
async def corrected(memory: Services, owner: Owner) -> Owner:
    """Mara moved, one statement about her was corrected, and a message holds a card number."""
    card = {"id": "m1", "role": "user", "content": "4111 1111 1111 1111"}
    sent = {"session_id": "s1", "extract": False, "messages": [card]}
    await memory.messages.add(owner, MessagesIn.model_validate(sent))
    lives = {"subject": MARA, "predicate": "LIVES_IN", "single_valued": True}
    lisbon, porto = ({"name": name, "type": "Place"} for name in ("Lisbon", "Porto"))
    source = {"session_id": "s1", "message_ids": ["m1"]}
    rows: list[dict[str, Any]] = [
        {"content": "Mara lives in Lisbon", "object": lisbon, "valid_at": "2021-03-01T00:00:00Z", **lives},
        {
            "content": "Mara lives in Porto",
            "object": porto,
            "valid_at": "2025-05-01T00:00:00Z",
            **lives,
            "source": source,
        },
        {"content": "Mara is allergic to peanuts", "subject": MARA},
    ]
    saved = await memory.memories.save(owner, [MemoryIn.model_validate(row) for row in rows])
    assert saved[2].memory
    await memory.memories.patch(owner, saved[2].memory.id, MemoryPatch(content="Mara is allergic to hazelnuts"))
    return owner


async def run_query(graph: Graph, owner: Owner, name: str) -> list[dict[str, Any]]:
    """Run a query as Browser does and return its rows with relationships and paths intact."""
    async with graph._driver.session() as session:
        result = await session.run(cast("LiteralString", read_query(name, owner.group_id)))
        return [dict(zip(record.keys(), record.values(), strict=True)) async for record in result]


def drawn_edges(rows: list[dict[str, Any]]) -> set[str]:
    """Return the predicates and objects of the edges that Browser draws for rows."""
    values = [value for row in rows for value in row.values()]
    edges = [value for value in values if isinstance(value, Relationship)]
    edges += [edge for value in values if isinstance(value, GraphPath) for edge in value.relationships]
    return {f"{edge['fact']}" for edge in edges if edge.type == "RELATES_TO"}


async def test_explore_queries_answer_from_data_and_draw_no_superseded_or_looping_edge(
    graph: Graph, corrected: Owner
) -> None:
    for name in query_names():
        rows = await run_query(graph, corrected, name)
        earlier = {"Mara lives in Lisbon"} if name == "during" else set()
        assert drawn_edges(rows) <= {"Mara lives in Porto"} | earlier, name
        assert "4111" not in str([value for row in rows for value in row.values() if isinstance(value, str)]), name
    people = await run_query(graph, corrected, "people")
    assert {row["statement"] for row in people} == {"Mara lives in Porto", "Mara is allergic to hazelnuts"}
    assert drawn_edges(await run_query(graph, corrected, "around_entity")) == {"Mara lives in Porto"}
    history = await run_query(graph, corrected, "memory_history")
    assert [row["statement"] for row in history] == ["Mara is allergic to peanuts", "Mara is allergic to hazelnuts"]
    changes = {(row["change"], row["statement"]) for row in await run_query(graph, corrected, "recent_changes")}
    assert ("learned", "Mara lives in Porto") in changes
    [source] = {row["said"] for row in await run_query(graph, corrected, "memory_sources")}
    assert "4111" not in source
    entity = await run_query(graph, corrected, "entity")
    assert {row["statement"] for row in entity} == {"Mara lives in Porto", "Mara is allergic to hazelnuts"}
    assert {row["statement"] for row in await run_query(graph, corrected, "as_of")} == {
        row["statement"] for row in entity
    }
    texts = {row["text"] for row in await run_query(graph, corrected, "during")}
    assert {"Mara lives in Porto", "Mara is allergic to hazelnuts"} <= texts
    assert [row["entity"]["name"] for row in await run_query(graph, corrected, "orphan_entities")] == ["Lisbon"]
    [user] = await run_query(graph, corrected, "users")
    assert (user["user"], user["current_facts"], user["messages"]) == ("mara", 2, 1)


def test_an_unknown_query_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidInput, match="people"):
        read_query("peple", "default:mara")


def test_the_user_is_quoted_into_the_query() -> None:
    assert 'WITH "default:o\'neil \\"x\\"" AS group_id' in read_query("people", 'default:o\'neil "x"')


def test_the_legend_names_every_label_and_relationship() -> None:
    legend = (Path(__file__).parents[2] / "docs/explorer.md").read_text("utf-8").partition("## Legend")[2]
    for name in (*RESERVED_LABELS, *LinkType, "RELATES_TO", "REFERS_TO", "ALIAS_OF", "CHANGED", "PART"):
        assert f"`{name}`" in legend, name


def test_every_explore_query_has_defaults_for_its_parameters() -> None:
    for name in query_names():
        query = read_query(name, "default:mara")
        assert "$" not in query, name
        assert re.search(r"^WITH .+ AS group_id", query, re.MULTILINE), name


def test_style_covers_every_label_and_type_and_shows_no_raw_message() -> None:
    grass = (cypher_root() / "explore" / "style.grass").read_text("utf-8")
    for label in RESERVED_LABELS:
        assert f"node.{label} {{" in grass, label
    for link in (*LinkType, "RELATES_TO", "REFERS_TO", "ALIAS_OF", "CHANGED", "PART"):
        assert f"relationship.{link} {{" in grass, link
    assert "{content}" not in grass
    assert '"node.Person"' in setup_commands()[1]


async def test_a_reverted_replacement_ends_where_it_starts(graph: Graph, memory: Services, owner: Owner) -> None:
    home = {"subject": MARA, "predicate": "LIVES_IN", "single_valued": True}
    saved = []
    for name, since in (("Vienna", "2020-01-01T00:00:00Z"), ("Oslo", "2024-01-01T00:00:00Z")):
        place = {"name": name, "type": "Place"}
        row = {"content": f"Mara lives in {name}", "object": place, "valid_at": since, **home}
        saved += await memory.memories.save(owner, [MemoryIn.model_validate(row)])
    vienna, oslo = (result.memory for result in saved)
    assert vienna
    assert oslo
    await memory.memories.revert(owner, vienna.id)
    for name in query_names():
        drawn = drawn_edges(await run_query(graph, owner, name))
        assert drawn <= {"Mara lives in Vienna"}, name
    query = read_query("memory_history", owner.group_id).replace("'' AS memory_id", f"'{oslo.id}' AS memory_id")
    async with graph._driver.session() as session:
        rows = [record.data() async for record in await session.run(cast("LiteralString", query))]
    assert rows[-1]["invalid_at"] == rows[-1]["valid_at"]
    assert rows[-1]["known_to"] == rows[0]["known_to"]
    changes = await run_query(graph, owner, "recent_changes")
    assert ("learned", "Mara lives in Oslo", 2) not in {
        (row["change"], row["statement"], row["version"]) for row in changes
    }


async def test_a_piped_query_has_its_brackets_and_is_about_nobody_but_the_user_named(cli: Cli, user: str) -> None:
    shown = await cli("db", "browser", "--user", user, "--no-open", "--query", "as_of")
    assert shown.code == 0, shown.err
    assert read_query("as_of", f"default:{user}") in shown.out
    assert "-[fact:RELATES_TO {group_id: group_id}]->" in shown.out
    narrow = await cli("db", "browser", "--user", user, "--no-open", "--query", "as_of", COLUMNS="60")
    access = (await cli("db", "browser", "--user", user, "--no-open", "--query", "as_of", "--json")).json
    assert f"open: {access['open']}\n" in narrow.out, "the address is whole, to be copied"
    users = await cli("db", "browser", "--no-open")
    assert (users.code, "mara" in users.out, "MATCH (user:User)" in users.out) == (0, False, True)
    unnamed = await cli("db", "browser", "--no-open", "--query", "people")
    assert (unnamed.code, "--user" in unnamed.err) == (2, True)
