"""Domains of conversations: what extraction makes of them, and how a correction moves a memory."""

from __future__ import annotations

import pytest

from graphmem.domain.memory import MemoryPatch
from graphmem.domain.session import SessionIn
from tests.ingestion.conftest import IngestionHarness, candidate, extraction


@pytest.mark.req("QUINN-03")
async def test_what_is_told_in_a_conversation_about_a_field_stays_in_it(harness: IngestionHarness) -> None:
    await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1", domain="Python"))
    harness.model_answers(extraction(candidate("User develops Python on Linux", domain="python")))
    await harness.send_and_extract("I develop Python on Linux")
    assert "<conversation_domain>\npython\n</conversation_domain>" in harness.prompts[-1]
    harness.model_answers(extraction(candidate("User fries with butter", domain="cooking")))
    await harness.send_and_extract("I fry with butter", session="s2", domain="cooking")
    assert "<conversation_domain>\ncooking\n</conversation_domain>" in harness.prompts[-1]
    python, butter = await harness.current_memories()
    assert [(memory.scope.value, memory.domain) for memory in (python, butter)] == [
        ("domain", "python"),
        ("domain", "cooking"),
    ]
    moved = await harness.memories.patch(harness.owner, butter.id, MemoryPatch.model_validate({"domain": None}))
    assert (moved.scope.value, moved.domain) == ("profile", None)
    moved = await harness.memories.patch(harness.owner, butter.id, MemoryPatch(domain="baking"))
    assert (moved.scope.value, moved.domain) == ("domain", "baking")
