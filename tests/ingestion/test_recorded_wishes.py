"""Wishes about replies as a large language model read them: what is denied, asked of others or unclear is never wanted.

With `GRAPHMEM_RECORD_FROM` set to the address of a model, that model answers instead of the recordings.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from graphmem.context.preferences import read_wished_preferences
from graphmem.conversations.session import MessageRole
from graphmem.ingestion.answers import Extraction
from graphmem.ingestion.transcript import (
    TranscriptLine,
    derive_turns,
    render_calendar,
    render_previous_conversation,
    render_transcript,
)
from graphmem.models.language_model import Prompt, load_prompts
from graphmem.models.provider_model import ProviderModel
from graphmem.models.replay import ReplayServer
from graphmem.runtime.settings import Settings
from graphmem.secrets.scanner import render_secret_rule

RECORDINGS = Path(__file__).with_name("recordings")
WISHES = tomllib.loads((Path(__file__).parents[1] / "context" / "stated_wishes.toml").read_text("utf-8"))
LANGUAGES = ["en", "de", "es", "fr", "it", "pt", "nl", "pl"]
SENT_AT = datetime.fromisoformat("2026-05-04T10:00:00+00:00")
RECORD_FROM = os.environ.get("GRAPHMEM_RECORD_FROM")


def sentences(language: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sentences of a language with what is to be learned of each, wanted and unwanted in turns."""
    asked = [(text, [("", value) for value in values]) for text, values in WISHES["asked"][language].items()]
    denied = [(text, [("avoid", value) for value in values]) for text, values in WISHES["denied"][language].items()]
    others: list[tuple[str, list[tuple[str, str]]]] = [
        (text, []) for kind in ("unclear", "others") for text in WISHES[kind][language]
    ]
    return [*denied[::2], *others[::2], *asked, *others[1::2], *denied[1::2]]


def lines_of(language: str) -> list[TranscriptLine]:
    return [
        TranscriptLine(number, str(number), MessageRole.USER, "Ada", SENT_AT + timedelta(minutes=number), text)
        for number, (text, _) in enumerate(sentences(language), 1)
    ]


def prompt_of(lines: list[TranscriptLine]) -> Prompt:
    return load_prompts()["extract"].render(
        calendar=render_calendar(lines),
        previous_conversation=render_previous_conversation(None, lines),
        secrets=render_secret_rule(frozenset()),
        known_names="Ada (Person): the user, who writes the USER lines",
        conversation=render_transcript(lines),
        **dict.fromkeys(("known_domains", "known_intents", "noted_interests", "earlier"), ""),
    )


MISREAD = {"Your answers are too technical.", "Plus de graphiques, merci."}
"""What the recorded model takes for a wish although it may be none: a complaint, and a "plus" of either meaning."""


@pytest.fixture(scope="module")
async def model() -> AsyncIterator[ProviderModel]:
    with ExitStack() as stack:
        address = RECORD_FROM or stack.enter_context(ReplayServer(RECORDINGS)).base_url
        timeout = 7000 if RECORD_FROM else Settings().llm_timeout
        settings = Settings(openai_base_url=address, openai_api_key=SecretStr("key"), llm_timeout=timeout)
        answering = ProviderModel.from_settings(settings)
        assert answering
        async with answering:
            yield answering


@pytest.mark.req("QUINN-42", "TRUE-16", "TRUE-22")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_wish_is_learned_that_the_user_does_not_have(model: ProviderModel, language: str) -> None:
    expected, lines = sentences(language), lines_of(language)
    answer = await model.complete_structured(prompt_of(lines), Extraction, use="gate")
    turns = {turn.message_id: turn for turn in derive_turns(answer.value.turns, lines, lambda value: False)}
    wrong, missed = [], []
    for line, (text, wishes) in zip(lines, expected, strict=True):
        read = read_wished_preferences(turns[line.message_id].wishes if line.message_id in turns else [])
        learned = {("avoid" if "avoid" in signal.value else "", *signal.value.values()) for signal in read}
        wrong += [(text, wish) for wish in learned - set(wishes)]
        missed += [(text, wish) for wish in set(wishes) - learned]
    assert {text for text, _ in wrong} <= MISREAD
    assert len(missed) <= 0.1 * len(expected), missed
