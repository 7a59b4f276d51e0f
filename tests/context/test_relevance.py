"""Relevance to a question: domains, sessions, references to the past, and what the user contradicts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.context.relevance import (
    JustSaid,
    content_words,
    find_ticket_ids,
    find_wish,
    is_in_scope,
    match_domains,
    refers_to_past_session,
)
from graphmem.memories.entity import EntityRef
from graphmem.memories.memory import Memory
from graphmem.search.models import ChannelRank, Explanation, SearchHit


def memory(content: str, **fields: Any) -> Memory:
    filled: dict[str, Any] = {
        "id": content, "version": 1, "user_id": "mara", "content": content, "type": "fact", "scope": "profile",
        "domain": None, "subject": EntityRef(id="e", name="mara", type="Person"), "predicate": "STATES", "object": None,
        "entities": [], "tags": [], "confidence": 0.9, "importance": 0.5, "strength": 0.5, "decay_rate": 0.01,
        "access_count": 0, "last_accessed_at": None, "valid_at": None, "invalid_at": None, "expired_at": None,
        "created_at": datetime(2026, 6, 1, tzinfo=UTC), "updated_at": datetime(2026, 6, 1, tzinfo=UTC),
        "status": "active", "superseded_by": None, "supersedes": [], "associations": [],
        "source": {"kind": "user", "session_id": None, "message_ids": []}, "immutable": False, "single_valued": False,
        "expires_at": None, "metadata": {}, "content_hash": "", **fields,
    }  # fmt: skip
    return Memory(**filled)


def hit(content: str, semantic_score: float, **fields: Any) -> SearchHit:
    explain = Explanation(
        source="database",
        semantic=ChannelRank(rank=1, score=semantic_score),
        similarity=2 * semantic_score - 1,
        words=0,
        named=0,
        rrf=1,
        persona=1,
        decay=1,
        importance=1,
        time=1,
    )
    return SearchHit(memory=memory(content, **fields), score=1.0, explain=explain)


@pytest.mark.req("QUINN-37")
@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("Regarding our last discussion on Project X, what is next?", True),
        ("What did you recommend last time?", True),
        ("As we discussed, which printer should I buy?", True),
        ("Do you remember what I said about Porto?", True),
        ("Was hatten wir zum Drucker besprochen?", True),
        ("¿Qué me recomendaste la última vez?", True),
        ("La dernière fois, de quoi avons-nous parlé ?", True),
        ("Which printer should I buy?", False),
        ("How much did I spend last month?", False),
        ("I said goodbye to my boss", False),
    ],
)
def test_questions_referring_to_a_past_session_are_recognised(question: str, meant: bool) -> None:
    assert refers_to_past_session(question) is meant


@pytest.mark.req("QUINN-03")
def test_a_domain_matches_when_requested_named_or_the_clear_topic() -> None:
    hits = [
        hit("tabs, not spaces", 0.55, scope="domain", domain="coding"),
        hit("likes curries", 0.66, scope="domain", domain="cooking"),
        hit("flies by day", 0.65, scope="domain", domain="travel"),
    ]
    assert match_domains("What shall we eat?", ["travel", "work"], hits) == {"travel", "work"}
    assert match_domains("What shall we eat?", [], hits) == {"cooking"}
    assert match_domains("Is coding fun?", [], hits[:1]) == {"coding"}
    assert match_domains("What can I cook?", [], [hit("likes it hot", 0.5, scope="domain", domain="cooking")]) == {
        "cooking"
    }
    assert match_domains("What shall we eat?", [], hits[:1]) == set()


@pytest.mark.req("QUINN-03")
@pytest.mark.parametrize(
    ("cooking", "coding", "clear"), [(0.58, 0.5, False), (0.6, 0.5, True), (0.64, 0.6, False), (0.65, 0.64, True)]
)
def test_a_topic_is_clear_from_065_on_or_when_no_other_domain_is_near(
    cooking: float, coding: float, clear: bool
) -> None:
    hits = [
        hit("likes curries", cooking, scope="domain", domain="cooking"),
        hit("uses tabs", coding, scope="domain", domain="coding"),
    ]
    assert match_domains("Dinner?", [], hits) == ({"cooking"} if clear else set())


@pytest.mark.req("QUINN-02", "QUINN-03", "QUINN-04")
def test_a_memory_is_in_scope_by_profile_domain_or_session() -> None:
    here = {"kind": "user", "session_id": "here", "message_ids": []}
    assert is_in_scope(memory("name"), set(), "here", refers_to_past=False)
    assert is_in_scope(memory("policy", scope="global"), set(), "here", refers_to_past=False)
    assert not is_in_scope(memory("tabs", scope="domain", domain="coding"), {"cooking"}, "here", refers_to_past=False)
    assert is_in_scope(memory("curry", scope="domain", domain="cooking"), {"cooking"}, "here", refers_to_past=False)
    episode = memory("we were at step 3", scope="episodic", source=here)
    assert is_in_scope(episode, set(), "here", refers_to_past=False)
    assert not is_in_scope(episode, set(), "there", refers_to_past=False)
    assert is_in_scope(episode, set(), "there", refers_to_past=True)


@pytest.mark.req("QUINN-40")
@pytest.mark.parametrize(
    ("question", "content", "stale"),
    [
        ("I've switched from Python to Java, which build tool should I use?", "Mara programs in Python", True),
        ("I've switched from Python to Java, which build tool should I use?", "Mara has a dog named Rex", False),
        ("I no longer live in Hamburg. Where can I swim?", "Mara lives in Hamburg", True),
        ("I don't eat meat anymore, ideas?", "Mara likes meat pies", True),
        ("Ich wohne nicht mehr in Hamburg", "Mara lives in Hamburg", True),
        ("Ya no vivo en Hamburg", "Mara lives in Hamburg", True),
        ("Je préfère le thé plutôt que le café", "Mara boit du café", True),
        ("Is Hamburg nice?", "Mara lives in Hamburg", False),
    ],
)
def test_a_memory_the_user_explicitly_abandons_is_contradicted(question: str, content: str, stale: bool) -> None:
    assert JustSaid("mara", question).contradicts(memory(content), 0.0) is stale
    assert JustSaid("mara", "And now?", [question]).contradicts(memory(content), 0.0) is stale


@pytest.mark.req("QUINN-40")
def test_a_preference_is_contradicted_by_a_wish_for_an_alternative() -> None:
    python = memory("User's preferred programming language is Python", type="preference")
    question = "I want to try Java this time."
    assert JustSaid("mara", question).contradicts(python, 0.62)
    assert not JustSaid("mara", question).contradicts(python, 0.61), "maybe of another kind"
    assert JustSaid("mara", question).may_contradict(python, 0.58)
    assert not JustSaid("mara", question).may_contradict(python, 0.57)
    assert find_wish("Hi! I want to try Java this time. And?") == "I want to try Java this time."
    assert find_wish("How do I write a loop?") is None, "nothing new is wanted"
    fact = memory("User works with Python", type="fact")
    assert not JustSaid("mara", question).contradicts(fact, 0.66), "a fact does not end by a wish"
    assert JustSaid("mara", question).contradicts(memory("User works with Python", single_valued=True), 0.66)


@pytest.mark.req("QUINN-40")
def test_a_preference_the_question_names_is_not_contradicted() -> None:
    seat = memory("User prefers window seats", type="preference")
    assert not JustSaid("mara", "Book a flight, with a window seat this time").contradicts(seat, 0.8)
    assert JustSaid("mara", "Book a flight, with an aisle seat this time").contradicts(seat, 0.7)


def test_content_words_skip_stop_words_and_plurals() -> None:
    assert content_words("What did the user's printers do in Porto, and why?") == {"printer", "porto"}


@pytest.mark.req("QUINN-37")
@pytest.mark.parametrize(
    ("question", "ids"),
    [
        ("This is similar to issue #1234 we had", ["1234"]),
        ("Is it like ticket 1234, or case no. T-7?", ["1234", "t-7"]),
        ("Ist es wie Vorfall 88?", ["88"]),
        ("See #PROJ-12.", ["proj-12"]),
        ("The issue is that I have 1234 files in case of need", []),
    ],
)
def test_a_ticket_is_recognised_by_its_mark_or_by_the_word_before_it(question: str, ids: list[str]) -> None:
    assert find_ticket_ids(question) == ids


@pytest.mark.req("QUINN-40")
@pytest.mark.parametrize(
    ("said", "contradicted"),
    [
        ("I live in Oslo.", ["home"]),
        ("We moved, I live in Oslo now", ["home"]),
        ("I work at Initech", ["job"]),
        ("Project Alpha is due on 15 July", ["deadline"]),
        ("Project Beta is due on 15 July", []),
        ("My sister lives in Oslo", []),
        ("Tom works at Initech", []),
        ("I work late", []),
        ("I live in Bergen and work at Acme", []),
        ("Do I live in Oslo?", []),
        ("I like Java", []),
    ],
)
def test_another_value_of_a_slot_contradicts_the_memory_of_that_slot_only(said: str, contradicted: list[str]) -> None:
    place, company = EntityRef(id="b", name="Bergen", type="Place"), EntityRef(id="a", name="Acme", type="Organization")
    alpha = EntityRef(id="p", name="Project Alpha", type="Project")
    stored = {
        "home": memory("Mara lives in Bergen", predicate="LIVES_IN", object=place, single_valued=True),
        "job": memory("Mara works at Acme", predicate="WORKS_AT", object=company, single_valued=True),
        "deadline": memory("Project Alpha is due on 1 July", subject=alpha, predicate="DUE_ON", single_valued=True),
        "taste": memory("Mara likes Python", predicate="LIKES", type="preference"),
    }
    for just_said in (JustSaid("mara", said), JustSaid("mara", "Ok", [said])):
        assert [name for name, known in stored.items() if just_said.contradicts(known, 0.0)] == contradicted
