"""What is learned of a user, by the command line: persona, context items, preferences, contradictions, summaries."""

from __future__ import annotations

import json

import pytest

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.memories.listing import ListFilters
from graphmem.tenants.owners import Owner
from tests.cli.conftest import Cli
from tests.model_server import ModelServer


@pytest.mark.req("UMB-07")
async def test_a_persona_is_set_shown_and_cleared(cli: Cli, user: str) -> None:
    refused = await cli("persona", "set", "plan", "--user", user)
    assert (refused.code, "write preference=2" in refused.err) == (2, True)
    stored = await cli("persona", "set", "plan=0.5", "preference=2", "--user", user, "--json")
    assert stored.json == {"weights": {"plan": 0.5, "preference": 2.0}}
    assert "preference: 2" in (await cli("persona", "show", "--user", user)).out
    assert (await cli("persona", "clear", "--user", user, "--json")).json == {"weights": {}}


@pytest.mark.req("TRUE-04")
async def test_a_context_item_is_added_listed_and_deleted(cli: Cli, user: str) -> None:
    added = await cli("contexts", "add", "goal", "house", "Buy a house", "--ttl", "600", "--user", user, "--json")
    assert added.json["context_value"] == "Buy a house"
    assert "Buy a house" in (await cli("contexts", "list", "--user", user)).out
    assert (await cli("contexts", "delete", added.json["id"][:8], "--user", user)).code == 0
    assert (await cli("contexts", "list", "--user", user, "--json")).json == {"items": []}


@pytest.mark.req("QUINN-07")
async def test_a_session_is_summarized_and_remembered(
    cli_with_models: Cli, models: ModelServer, memory: Services, user: str
) -> None:
    owner = Owner("default", user)
    turns = {"session_id": "s", "messages": [{"role": "user", "content": "A Folkboat it is."}], "extract": False}
    await memory.messages.add(owner, MessagesIn.model_validate(turns))
    models.completion = json.dumps(
        {
            "title": "A boat",
            "summary": "Mara chose a boat.",
            "takeaways": ["Mara has decided on a Folkboat."],
            "topics": ["boats"],
            "sentiment": None,
        }
    )
    summarized = await cli_with_models("summarize", "s", "--user", user)
    assert summarized.code == 0, summarized.err
    page = await memory.memories.page(owner, ListFilters())
    assert {"Mara chose a boat.", "Mara has decided on a Folkboat."} <= {item.content for item in page.items}
    assert "Mara chose a boat." in (await cli_with_models("sessions", "--user", user)).out


async def test_a_question_is_answered_with_what_the_answer_rests_on(
    cli: Cli, cli_with_models: Cli, models: ModelServer, user: str
) -> None:
    await cli("add", "Mara lives in Lund.", "--user", user)
    refused = await cli("ask", "Where do I live?", "--user", user)
    assert (refused.code, "GRAPHMEM_LLM_MODEL" in refused.err) == (1, True)
    sources = [{"source": 1, "quote": "lives in Lund"}]
    models.completion = json.dumps({"sources": sources, "answer": "You live in Lund.", "search": None})
    shown = await cli_with_models("ask", "Where do I live?", "--user", user)
    assert "You live in Lund." in shown.out
    assert "lives in Lund" in shown.out
    answered = await cli_with_models("ask", "Where do I live?", "--user", user, "--min-trust", "user", "--json")
    assert (answered.json["answered"], answered.json["citations"][0]["quote"]) == (True, "lives in Lund")
    models.completion = json.dumps({"sources": [], "answer": None, "search": None})
    unknown = await cli_with_models("ask", "What is my blood type?", "--user", user)
    assert (unknown.code, unknown.out.strip()) == (0, "Memory has no answer to this.")
