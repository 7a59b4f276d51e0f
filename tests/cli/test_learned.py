"""What is learned of a user, by the command line: persona, context items, preferences, contradictions, summaries."""

from __future__ import annotations

import json

import pytest

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.memories.filters import ListFilters
from graphmem.tenants.owners import Owner
from tests.cli.conftest import Cli
from tests.model_server import ModelServer


@pytest.mark.req("QUINN-07")
@pytest.mark.usefixtures("served")
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
