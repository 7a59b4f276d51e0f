"""What the dialogues of `dialogues.yaml` leave in memory, with the recorded completions of a large language model.

With `GRAPHMEM_RECORD_FROM` set to the address of a model, that model answers instead of the recordings.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from tests.stories.dialogues import RECORD_FROM, DialogueUser, serve_dialogues

pytestmark = pytest.mark.timeout(0 if RECORD_FROM in os.environ else 480)
"""The first test waits until all dialogues are extracted."""


@pytest.fixture(scope="module")
async def users(
    settings: Settings, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, DialogueUser]]:
    async with serve_dialogues(settings, embedder, tmp_path_factory.mktemp("dialogues")) as users:
        yield users


def says(memories: list[dict[str, Any]], *words: str, types: set[str]) -> bool:
    """Return whether a memory of one of the types has all the words, which are parts of a pattern."""
    return any(
        memory["type"] in types and all(re.search(word, memory["content"], re.IGNORECASE) for word in words)
        for memory in memories
    )


@pytest.mark.req("UMB-02")
async def test_really_into_sailing_is_an_interest_and_what_the_assistant_suggested_a_recommendation(
    users: Mapping[str, DialogueUser],
) -> None:
    memories = await users["sailing"].memories()
    assert [memory["type"] for memory in memories if memory["type"] != "recommendation"] == ["preference"]
    assert says(memories, "sailing", types={"preference"})
    for place in ("Boston Harbor", "Marblehead"):
        assert says(memories, place, "recommended", types={"recommendation"})
    assert {memory["metadata"]["said_by"] for memory in memories} == {"user", "assistant"}
    quotes = [memory["source"]["quote"] for memory in memories]
    assert any("really into sailing" in quote for quote in quotes)


@pytest.mark.req("QUINN-39")
async def test_what_was_said_or_suggested_comes_with_the_day_of_the_conversation(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["sailing"]
    hints = (await user.post("context", question="Where can I sail near Boston?"))["personalization_hints"]
    assert any(phrase.startswith("As I suggested before (2026-05-04)") for phrase in hints["continuity"])
    assert {solution["said_at"][:10] for solution in hints["past_solutions"]} == {"2026-05-04"}
    [liked] = [memory for memory in await user.memories() if memory["type"] != "recommendation"]
    reply = await user.post("sessions/sailing-1/enhance", reply="Try Marblehead.", sources=[liked["id"]])
    assert reply["text"] == "Try Marblehead.\n\nThis rests on what you told me on 2026-05-04."


@pytest.mark.req("UMB-02")
async def test_coffee_is_my_jam_means_that_the_user_likes_coffee_and_tough_mornings_are_a_feeling(
    users: Mapping[str, DialogueUser],
) -> None:
    memories = await users["coffee"].saved()
    assert says(memories, "likes coffee", types={"preference"})
    assert says(memories, "mornings", types={"feeling", "preference"})


@pytest.mark.req("UMB-02", "UMB-05")
async def test_asking_about_sailing_once_is_no_memory_and_asking_twice_is_an_interest(
    users: Mapping[str, DialogueUser],
) -> None:
    first, second = (job["actions"] for job in users["questions"].jobs)
    assert [action["action"] for action in first] == ["note"]
    assert [action["action"] for action in second] == ["insert"]
    [memory] = await users["questions"].memories()
    assert (memory["type"], "sailing" in memory["content"]) == ("inferred_interest", True)


@pytest.mark.req("UMB-04")
async def test_a_job_is_a_fact_a_trip_a_plan_and_stress_a_feeling_that_fades(
    users: Mapping[str, DialogueUser],
) -> None:
    memories = await users["work"].saved()
    assert says(memories, "Acme Corp", types={"fact"})
    assert says(memories, "Japan", "spring", types={"plan"})
    assert says(memories, "stressed", "deadline", types={"feeling"})
    assert {memory["type"] for memory in memories if memory["expires_at"]} == {"feeling"}


@pytest.mark.req("UMB-18")
async def test_bob_now_works_at_newco_and_acme_is_kept_for_audit(users: Mapping[str, DialogueUser]) -> None:
    bob = users["bob"]
    assert [memory["content"] for memory in await bob.memories()] == ["Bob works at NewCo."]
    old, new = await bob.saved()
    assert (old["status"], old["superseded_by"]) == ("superseded", new["id"])
    assert "Acme" not in await bob.preamble("Where does Bob work?")


@pytest.mark.req("GO-07", "GO-11")
async def test_moving_to_london_ends_new_york_and_inserts_london(users: Mapping[str, DialogueUser]) -> None:
    user = users["user_12345"]
    current = await user.memories()
    assert says(current, "London", "lives", types={"fact"})
    assert not says(current, "lives in New York", types={"fact"})
    assert "lives in New York" not in await user.preamble("Where do I live?")
    [before] = await user.memories(valid_as_of="2026-05-20T00:00:00Z", type="fact")
    assert "New York" in before["content"], "the move is next month"


@pytest.mark.req("CASH-07", "CASH-08", "CASH-19")
async def test_weekly_summaries_and_the_bakery_are_saved_by_tool_calls_until_the_model_makes_no_more(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["bakery"]
    memories = {memory["type"]: memory for memory in await user.memories()}
    assert "weekly spending summaries" in memories["preference"]["content"]
    assert "small bakery" in memories["fact"]["content"]
    assert (memories["preference"]["confidence"], memories["fact"]["confidence"]) == (0.9, 0.95)
    assert user.jobs[0]["receipt"]["llm_calls"] == 2, "the second gets the results of the first"
    [run] = [item for item in (await user.get("sessions"))["items"] if item["source_session_id"] == "bakery-1"]
    transcript = (await user.get(f"sessions/{run['session_id']}/messages"))["items"]
    assert [turn["role"] for turn in transcript] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    preamble: str = (await user.post("context"))["preamble"]
    heading, *bullets = preamble.split("\n\n")[0].splitlines()
    assert heading == "## Information about this user from past conversations:"
    assert sorted(bullets) == sorted(f"- {memory['content']}" for memory in memories.values())


@pytest.mark.req("QUINN-42")
async def test_a_casual_tone_replaces_the_formal_one_and_spanish_stays(users: Mapping[str, DialogueUser]) -> None:
    context = await users["tone"].post("context", question="Can you help me with an e-mail?", session_id="next")
    assert context["personalization_hints"]["language"] == "Spanish"
    assert context["personalization_hints"]["communication_style"] == "casual"
    assert "formal" not in context["preamble"]


@pytest.mark.req("QUINN-42")
async def test_a_complaint_about_too_much_information_keeps_later_answers_short(
    users: Mapping[str, DialogueUser],
) -> None:
    [memory] = await users["concise"].memories()
    assert (memory["type"], memory["domain"], "concise" in memory["content"]) == ("preference", None, True)
    context = await users["concise"].post("context", question="How does a mortgage work?", session_id="next")
    assert context["personalization_hints"]["detail_level"] == "brief"


@pytest.mark.req("QUINN-03")
async def test_python_on_linux_helps_to_debug_a_deployment_and_not_to_cook(users: Mapping[str, DialogueUser]) -> None:
    user = users["coding"]
    assert {memory["domain"] for memory in await user.memories()} == {"coding"}
    helped = await user.preamble("The deployment isn't working, can you help debug?", domain="coding")
    assert "Python" in helped
    assert "Linux" in helped
    for question, place in (("Which pan do I need?", {"domain": "cooking"}), ("What shall I have for dinner?", {})):
        assert "Python" not in await user.preamble(question, **place)


@pytest.mark.req("QUINN-06")
async def test_a_switch_to_linux_and_a_dislike_of_spicy_food_are_kept_as_they_emerge(
    users: Mapping[str, DialogueUser],
) -> None:
    memories = await users["switched"].memories()
    assert says(memories, "Linux", "Windows", types={"fact"})
    assert says(memories, "spicy", types={"preference"})
    assert not [memory for memory in memories if "last week" in memory["content"]], "dates are written out"


@pytest.mark.req("QUINN-44", "QUINN-41", "QUINN-19")
async def test_a_birthday_to_remember_is_found_as_a_special_date_where_birthdays_may_be_stored(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["birthday"]
    [memory] = await user.memories()
    assert ("10" in memory["content"], "October" in memory["content"]) == (True, True)
    assert memory["importance"] >= 0.8
    assert memory["content"] in await user.preamble("Do you know what special date is coming up for me?")


@pytest.mark.req("QUINN-44", "QUINN-41")
async def test_an_account_number_to_remember_is_recalled_where_account_numbers_may_be_stored(
    users: Mapping[str, DialogueUser],
) -> None:
    assert "40302010" in await users["account"].preamble("Which account do I pay the invoice from?")


@pytest.mark.req("QUINN-27")
async def test_the_deadline_of_project_alpha_is_15_july_only_and_30_june_is_history(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["alpha"]
    preamble = await user.preamble("What's the deadline for Project Alpha?")
    assert ("July 15, 2025" in preamble, "30 June" in preamble) == (True, False)
    old, new = await user.saved()
    assert ("30 June 2025" in old["content"], old["superseded_by"]) == (True, new["id"])


@pytest.mark.req("QUINN-43")
async def test_john_is_greeted_by_name_a_month_later(users: Mapping[str, DialogueUser]) -> None:
    later = await users["john"].post("context")
    assert later["personalization_hints"]["greeting"].startswith("Welcome back, John! Last time we talked about ")
    assert "premium account" in later["preamble"]


@pytest.mark.req("QUINN-40")
async def test_java_this_time_leaves_python_out(users: Mapping[str, DialogueUser]) -> None:
    context = await users["java"].post("context", question="I want to try Java this time.")
    assert context["personalization_hints"]["left_out"] == ["User's preferred language is Python."]
    assert "Python" not in context["preamble"]
    assert "Java" in context["preamble"]


@pytest.mark.req("QUINN-07", "QUINN-37")
async def test_a_discussion_that_is_to_be_remembered_comes_back_with_its_issue(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["issue"]
    [summary] = await user.memories(tag="summary")
    assert all(word in summary["content"] for word in ("API", "memory"))
    assert summary["metadata"]["ticket_id"] == "1234"
    assert summary["content"] in await user.preamble("This is similar to issue #1234 we had.")


SESSION_FIELDS = {
    *("id", "user_id", "session_id", "title", "summary", "intent_sequence", "topic_tags", "sentiment_score"),
    *("is_active", "created_at", "updated_at", "ended_at"),
}
MESSAGE_FIELDS = {
    *("id", "session_id", "user_id", "role", "content", "rich_content", "intent", "entities", "confidence"),
    *("feedback_score", "sql_executed", "query_results", "execution_time_ms", "created_at"),
}
MEMORY_FIELDS = {
    *("user_id", "id", "type", "content", "content_hash", "source", "confidence", "strength", "importance"),
    *("decay_rate", "access_count", "tags", "associations", "entities", "metadata", "last_accessed_at", "status"),
}


@pytest.mark.req("TRUE-02")
async def test_a_session_has_every_field_and_an_id_of_at_most_255_characters(
    users: Mapping[str, DialogueUser],
) -> None:
    user = users["issue"]
    session = await user.get("sessions/issue-1")
    assert session.keys() >= SESSION_FIELDS
    assert all(session[name] for name in ("title", "summary", "intent_sequence", "topic_tags", "is_active"))
    for length, status in ((255, 201), (256, 422)):
        opened = await user.client.post("/v1/users/issue/sessions", json={"session_id": "x" * length})
        assert opened.status_code == status, opened.text


@pytest.mark.req("TRUE-03")
async def test_a_message_has_every_field_and_a_feedback_score_of_at_most_5(users: Mapping[str, DialogueUser]) -> None:
    user = users["issue"]
    question, answer, _ = (await user.get("sessions/issue-1/messages"))["items"]
    assert question.keys() >= MESSAGE_FIELDS
    assert (question["intent"] is None, question["entities"] == {}) == (False, False), "extraction adds both"
    for score, status in ((5, 200), (6, 422)):
        path = f"/v1/users/issue/messages/{answer['id']}/feedback"
        assert (await user.client.post(path, json={"score": score})).status_code == status
    assert (await user.get("sessions/issue-1/messages"))["items"][1]["feedback_score"] == 5


@pytest.mark.req("UMB-03", "UMB-19")
async def test_a_memory_of_talk_has_every_field_and_its_entities(users: Mapping[str, DialogueUser]) -> None:
    recommended = [m for m in await users["sailing"].memories() if m["type"] == "recommendation"]
    for memory in recommended:
        assert memory.keys() >= MEMORY_FIELDS
        assert {"Marblehead", "Boston Harbor"} & {entity["name"] for entity in memory["entities"]}
        assert memory["source"]["quote"].startswith("Great choice!")
        assert memory["source"]["session_id"] == "sailing-1"
