"""The tags that extraction and summaries give a session, by the profile of its tenant."""

from __future__ import annotations

import pytest

from graphmem.conversations.session import SessionIn
from graphmem.tenants.profiles import TenantProfiles
from tests.ingestion.conftest import IngestionHarness, candidate, extraction

TAGS = ["CASHFLOW_AND_SPENDING", "sailing"]
TOPICS = ["RISK_TOLERANCE", "boats"]
SUMMARY = {"title": "Boats", "summary": "Mara saves for a boat", "takeaways": [], "topics": TOPICS, "sentiment": 0.5}
LABELS = {"general": ["sailing"], "finance": ["CASHFLOW_AND_SPENDING"]}


@pytest.fixture(params=sorted(LABELS))
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def profiles(profile: str) -> TenantProfiles:
    """The tested profile for every tenant."""
    return TenantProfiles([profile])


@pytest.mark.req("CASH-10")
async def test_a_session_gets_the_tags_of_its_profile_and_the_topics_of_its_summary(
    harness: IngestionHarness, profile: str
) -> None:
    given = ["mine", "OTHER"]
    extracted = LABELS[profile]
    await harness.conversations.open_session(harness.owner, SessionIn(session_id="s1", topic_tags=given))
    harness.model_answers(extraction(candidate("User saves for a boat", tags=TAGS)), SUMMARY)
    await harness.send_and_extract("I save for a boat")
    (memory,) = await harness.current_memories()
    assert set(memory.tags) == set(TAGS), "memories keep every tag under both profiles"
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert session.topic_tags == [*given, *extracted]
    await harness.conversations.summarize(harness.owner, "s1", wait=True)
    session = await harness.conversations.get_session(harness.owner, "s1")
    assert session.topic_tags == [*given, *extracted, *TOPICS]
