"""What was said in one line and is asked for in other words, without a model: the context shows it while it fits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphmem.memories.memory import MemoryIn, MemorySourceIn, Scope
from tests.context.conftest import ContextHarness

CONVERSATIONS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("told_facts.yaml").read_text(encoding="utf-8")
)
BUDGET = 1_000


@pytest.mark.parametrize(
    "conversation",
    [
        pytest.param(made, id=made["said"][0], marks=[pytest.mark.long] if number % 3 else [])
        for number, made in enumerate(CONVERSATIONS)
    ],
)
async def test_what_was_said_is_shown_to_a_question_in_other_words(
    harness: ContextHarness, conversation: dict[str, Any]
) -> None:
    for number, text in enumerate(conversation["said"]):
        await harness.add_messages(f"day {number // 4}", text, "Noted.")
    missing = []
    for number, (question, answer) in enumerate(conversation["asked"].items()):
        context = await harness.build_context(question, session_id=f"asked {number}", token_budget=BUDGET)
        if answer not in context.preamble:
            missing.append(question)
        asked_before = f"the user: {question}"
        assert asked_before not in context.preamble
        await harness.add_messages(f"asked {number}", question, "I do not know.")
        again = await harness.build_context(question, session_id="again", token_budget=BUDGET)
        if answer not in again.preamble or asked_before in again.preamble:
            missing.append(f"again: {question}")
        if os.environ.get("SHOW"):
            print(number, again.token_count, again.preamble)
    assert not missing, f"{len(missing)} {missing}"


async def test_what_was_said_opens_a_conversation_of_which_nothing_else_is_known(harness: ContextHarness) -> None:
    await harness.add_messages("monday", "Does it rain?", "No.")
    await harness.add_messages("tuesday", "The spare key hangs behind the freezer.", "Noted.")
    for session_id in (None, "wednesday"):
        assert "behind the freezer" in (await harness.build_context(session_id=session_id)).preamble


@pytest.mark.parametrize(
    "memory",
    [
        MemoryIn(
            content="The boiler was serviced in May", scope=Scope.EPISODIC, source=MemorySourceIn(session_id="old")
        ),
        MemoryIn(content="The boiler was serviced in May", scope=Scope.DOMAIN, domain="house"),
    ],
    ids=["of another session", "of a domain"],
)
async def test_the_only_memory_is_shown_whatever_it_belongs_to(harness: ContextHarness, memory: MemoryIn) -> None:
    await harness.save_memories(memory)
    for question in (None, "When was the boiler serviced?", "Good morning"):
        context = await harness.build_context(question, session_id="new")
        assert "serviced in May" in context.preamble, question
