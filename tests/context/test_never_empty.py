"""With anything stored and readable, a context with budget shows something, except what repeats the question."""

from __future__ import annotations

import uuid

import pytest

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import MessageIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.tenants.access import make_local_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceIn, SpaceRole
from tests.context.conftest import ContextHarness


def reply(text: str) -> MessageIn:
    return MessageIn(role="assistant", content=text)


QUESTIONS = (None, "Where is my boiler?", "Good morning!", "¿Dónde vivo?", "Tell me everything")

STORES = {
    "a greeting": ["Hi there!"],
    "greetings": ["Good evening!", "Hello! How can I help?"],
    "thanks": ["Thanks a lot!", "You are welcome!"],
    "questions": ["Does it rain?", "Shall I look?"],
    "a question in another language": ["Wo wohnt Lena?"],
    "one word": ["ok"],
    "a statement": ["My boiler hangs behind the freezer."],
}
"""What the user and the assistant said in turn, in one earlier conversation."""
SIMILAR_STORES = {"greetings", "thanks", "a question in another language", "one word"}


@pytest.mark.parametrize(
    "store", [pytest.param(name, marks=[pytest.mark.long] if name in SIMILAR_STORES else []) for name in STORES]
)
async def test_whatever_was_said_is_shown_for_want_of_more(harness: ContextHarness, store: str) -> None:
    said = STORES[store]
    await harness.add_messages("earlier", *said)
    for question in QUESTIONS:
        for session_id in (None, "new"):
            preamble = (await harness.build_context(question, session_id=session_id)).preamble
            assert any(text in preamble for text in said), (question, session_id)


@pytest.mark.parametrize(
    "answer", ["I do not know.", pytest.param("No.", marks=pytest.mark.long), "You asked where your boiler is."]
)
async def test_a_message_like_the_question_is_not_shown_but_what_follows_it_is(
    harness: ContextHarness, answer: str
) -> None:
    question = "Where is my boiler?"
    await harness.add_messages("earlier", question)
    assert question not in (await harness.build_context(question, session_id="new")).preamble
    await harness.add_messages("earlier", reply(answer))
    preamble = (await harness.build_context("where is my  boiler?", session_id="new")).preamble
    assert answer in preamble
    assert question not in preamble


async def test_what_states_something_leaves_questions_and_greetings_out(harness: ContextHarness) -> None:
    await harness.add_messages("earlier", "Hi there!", "Hello!", "Does it rain?", "No.", "I live in Lund, in a flat.")
    for question in QUESTIONS:
        preamble = (await harness.build_context(question, session_id="new")).preamble
        assert "Lund" in preamble, question
        assert "rain" not in preamble, question


async def test_a_memory_longer_than_the_budget_is_shown_in_part(harness: ContextHarness) -> None:
    await harness.save_memories("Mara's boiler hangs behind the freezer, " + "and next to it stands a shelf, " * 60)
    for question in QUESTIONS:
        context = await harness.build_context(question, token_budget=100)
        assert "Mara's boiler hangs behind the freezer" in context.preamble, question
        assert context.token_count <= 100
        assert len(context.memories) == 1


async def test_what_was_said_in_a_space_is_shown_to_a_reader_who_has_nothing_else(memory: Services) -> None:
    tenant = f"t{uuid.uuid4().hex[:8]}"
    admin = make_local_key("admin", tenant)
    await memory.spaces.put(admin, "team", SpaceIn(title="Team"))
    await memory.spaces.set_member(admin, "team", "bob", SpaceRole.READER)
    said = MessageIn(role="user", name="Ann", content="The release is on Friday.")
    (vector,) = await memory.components.embedder.embed([said.content])
    space = Owner.of_space(tenant, "team")
    await memory.components.episodes.append_messages(space, "planning", [PreparedMessage(said, vector)])
    scope = await memory.rights.read_scope(Owner(tenant, "bob"), admin)
    for question in QUESTIONS:
        context = await memory.contexts.build(scope, ContextRequest(question=question, session_id="new"))
        assert said.content in context.preamble, question
