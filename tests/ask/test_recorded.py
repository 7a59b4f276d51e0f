"""What memory answers to the questions of `cases.yaml`, with the recorded completions of a large language model.

With `GRAPHMEM_RECORD_FROM` set to the address of a model, that model answers instead of the recordings.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from graphmem.runtime.settings import Settings
from tests.ask.asking import AskedQuestion, ask, read_cases, serve_cases
from tests.stories.dialogues import RECORD_FROM

pytestmark = pytest.mark.timeout(480)

QUESTIONS = [(user.user, question) for user in read_cases() for question in user.questions]


@pytest.fixture(scope="module")
async def answers(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[tuple[str, str], dict[str, Any]]]:
    """The response to each question; a model that is recorded is asked all of them at once."""
    tenant = f"t{uuid.uuid4().hex[:12]}"
    async with serve_cases(settings, tmp_path_factory.mktemp("asking"), tenant) as client:
        at_once = asyncio.Semaphore(len(QUESTIONS) if RECORD_FROM in os.environ else 1)

        async def respond(user: str, question: AskedQuestion) -> dict[str, Any]:
            async with at_once:
                return await ask(client, user, question)

        responses = await asyncio.gather(*(respond(user, question) for user, question in QUESTIONS))
        yield {(user, question.ask): response for (user, question), response in zip(QUESTIONS, responses, strict=True)}


@pytest.mark.parametrize(("user", "question"), QUESTIONS, ids=[question.ask for _, question in QUESTIONS])
def test_memory_answers_what_it_has_and_nothing_else(
    answers: Mapping[tuple[str, str], dict[str, Any]], user: str, question: AskedQuestion
) -> None:
    response = answers[user, question.ask]
    assert question.find_fault(response) is None
    assert response["llm_calls"] in (1, 2)
    assert response["receipt"]["prompt_tokens"] > 0


def test_an_answer_in_what_a_small_budget_leaves_out_takes_a_second_look(
    answers: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    assert answers["ines", "What does the husband of my choir director do?"]["llm_calls"] == 2


def test_citations_say_since_when_they_hold_or_when_they_were_said(
    answers: Mapping[tuple[str, str], dict[str, Any]],
) -> None:
    [lives] = answers["mara", "Where do I live?"]["citations"]
    assert lives["valid_at"] == "2026-05-15T00:00:00Z"
    rent = answers["mara", "What is my rent?"]["citations"][0]
    assert (rent["memory_id"], rent["valid_at"]) == (None, "2026-03-01T09:00:00Z")
