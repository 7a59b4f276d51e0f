"""Extraction in a space: statements are about the member who said them, and the prompt knows what belongs there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import Job, JobStatus
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.access import make_local_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.space_store import SpaceService, SpaceStore
from graphmem.tenants.spaces import SpaceIn
from graphmem.tenants.tenant_settings import TrustService
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    reconciliation,
    screened,
)


@pytest.fixture
async def space(harness: IngestionHarness) -> Owner:
    """A space, of which the harness sends and reads from now on."""
    tenant = harness.owner.tenant
    spaces = SpaceService(
        SpaceStore(harness.graph), TrustService(harness.graph, harness.clock), SecretPolicy(), harness.clock
    )
    request = SpaceIn(title="Team Atlas", about="What concerns the Atlas project.")
    await spaces.put(make_local_key("admin", tenant), "atlas", request)
    harness.owner = Owner.of_space(tenant, "atlas")
    return harness.owner


async def say(harness: IngestionHarness, author: str, content: str, **fields: Any) -> Job:
    """Send a message of a member to the space and wait for its extraction."""
    turns = [{"role": "user", "content": content, **fields}]
    batch = MessagesIn.model_validate({"session_id": "s1", "messages": turns, "wait": True})
    job = await harness.conversations.add(harness.owner, batch, author=author)
    assert isinstance(job, Job)
    return job


async def test_the_user_of_a_statement_is_the_member_who_said_it(harness: IngestionHarness, space: Owner) -> None:
    harness.model_answers(extraction(screened(lives_in("Lisbon"), "I live in Lisbon")))
    job = await say(harness, "ann@example.com", "I live in Lisbon", name="Ann")
    assert job.status is JobStatus.SUCCEEDED, job.error
    harness.model_answers(
        extraction(screened(lives_in("Porto"), "I live in Porto")), reconciliation(decision(1, "insert"))
    )
    harness.clock.advance(timedelta(minutes=1))
    await say(harness, "bob", "I live in Porto")
    harness.clock.advance(timedelta(minutes=1))
    memories = await harness.current_memories()
    assert {(memory.subject.name, memory.source.speaker, memory.content) for memory in memories} == {
        ("ann@example.com", "ann@example.com", "User lives in Lisbon"),
        ("bob", "bob", "User lives in Porto"),
    }
    assert all(memory.space == "atlas" and memory.user_id is None for memory in memories)


async def test_the_prompt_says_what_belongs_in_the_space_and_who_speaks(
    harness: IngestionHarness, space: Owner
) -> None:
    harness.model_answers(extraction())
    await say(harness, "bob", "The launch is on Friday")
    (prompt,) = harness.prompts
    assert "What concerns the Atlas project." in prompt
    assert "bob (Person): the user on the lines USER bob" in prompt
    assert "USER bob," in prompt
    assert "who writes the USER lines" not in prompt


async def test_a_member_is_one_entity_by_the_user_id_and_the_name(harness: IngestionHarness, space: Owner) -> None:
    harness.model_answers(extraction(screened(candidate("Ann leads Atlas"), "I lead Atlas")))
    await say(harness, "u-1", "I lead Atlas", name="Ann Smith")
    about_ann = candidate("Ann Smith is on holiday", subject={"name": "Ann Smith", "type": "Person"})
    harness.model_answers(extraction(screened(about_ann, "Ann Smith is on holiday")), reconciliation())
    await say(harness, "bob", "Ann Smith is on holiday")
    memories = await harness.current_memories()
    assert {memory.subject.id for memory in memories} == {memories[0].subject.id}
    assert [memory.source.speaker for memory in memories] == ["u-1", "bob"]
