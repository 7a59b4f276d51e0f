"""Talk that is hard to follow: settled plans, stated ends, partial changes, namesakes, names of the user, domains."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.memories.memory import MemoryStatus
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    message_at,
    midnight,
    reconciliation,
)

USER = {"name": "User", "type": "Person"}


def person(name: str) -> dict[str, Any]:
    return {"name": name, "type": "Person"}


@pytest.mark.parametrize(
    ("to_do", "done", "who"),
    [
        ("User must find a gift for Lea", "Ole bought a gift for Lea", "Ole"),
        pytest.param(
            "User muss ein Geschenk für Lea finden",
            "Ole hat ein Geschenk für Lea gekauft",
            "Ole",
            marks=pytest.mark.long,
        ),
        pytest.param("User要给乐雅买礼物", "小明已经给乐雅买了礼物", "小明", marks=pytest.mark.long),
    ],
)
async def test_an_open_loop_of_the_user_is_closed_by_what_somebody_else_did(
    harness: IngestionHarness, to_do: str, done: str, who: str
) -> None:
    loop = await harness.save(to_do, type="open_loop")
    harness.model_answers(extraction(candidate(done, subject=person(who))), reconciliation(decision(1, "supersede", 1)))
    job = await harness.send_and_extract(message_at("2026-04-01", done))
    assert [action["action"] for action in job.actions] == ["supersede"]
    assert await harness.current_contents() == [done]
    assert loop.memory
    closed = await harness.memories.get(harness.owner, loop.memory.id)
    assert closed.invalid_at == midnight("2026-04-01").replace(hour=12)


@pytest.mark.parametrize("content", ["User works at Acme", "User works at Acme until the end of July 2026"])
async def test_a_told_end_and_the_state_that_follows_leave_every_start_and_end_as_told(
    harness: IngestionHarness, content: str
) -> None:
    job: dict[str, Any] = {"predicate": "WORKS_AT", "single_valued": True}
    old = await harness.save(
        "User works at Acme", **job, object={"name": "Acme", "type": "Organization"}, valid_at="2020-02-01T00:00:00Z"
    )
    harness.model_answers(
        extraction(
            candidate(
                "User works at Bolt", **job, object={"name": "Bolt", "type": "Organization"}, valid_at="2026-08-15"
            ),
            candidate(content, **job, object={"name": "Acme", "type": "Organization"}, invalid_at="2026-08-01"),
        ),
        reconciliation(decision(1, "supersede", 1), decision(2, "supersede", 1)),
    )
    done = await harness.send_and_extract(message_at("2026-05-01", "Acme until the end of July, Bolt from 15 August"))
    assert old.memory
    before = await harness.memories.get(harness.owner, old.memory.id)
    assert (before.valid_at, before.invalid_at) == (midnight("2020-02-01"), midnight("2026-08-01"))
    after = next(action["memory_id"] for action in done.actions if action["action"] == "insert")
    assert (await harness.memories.get(harness.owner, after)).valid_at == midnight("2026-08-15")
    assert [action["memory_id"] for action in done.actions if action["action"] == "end"] == [old.memory.id]


async def test_a_repetition_gives_a_known_state_its_end_whatever_its_predicate_and_object(
    harness: IngestionHarness,
) -> None:
    old = await harness.save("The hotline is open from 9 to 18", predicate="PHONE_HOURS", single_valued=True)
    harness.model_answers(
        extraction(
            candidate("The hotline is open from 9 to 18 until 6 July 2026", predicate="OPEN", invalid_at="2026-07-07")
        ),
        reconciliation(decision(1, "reinforce", 1)),
    )
    done = await harness.send_and_extract(message_at("2026-06-01", "From 9 to 18 until 6 July"))
    assert old.memory
    assert (await harness.memories.get(harness.owner, old.memory.id)).invalid_at == midnight("2026-07-07")
    assert [action["action"] for action in done.actions] == ["end"]


async def test_the_part_that_still_holds_survives_a_partial_change(harness: IngestionHarness) -> None:
    await harness.save("User spielt Schach und Go", predicate="PLAYS", valid_at="2020-01-01T00:00:00Z")
    harness.model_answers(
        extraction(candidate("User spielt kein Schach mehr", predicate="PLAYS")),
        reconciliation(decision(1, "supersede", 1, remaining=[{"known": 1, "content": "User spielt Go"}])),
    )
    await harness.send_and_extract(message_at("2026-04-01", "Schach spiele ich nicht mehr, Go schon"))
    current = {memory.content: memory for memory in await harness.current_memories()}
    assert set(current) == {"User spielt kein Schach mehr", "User spielt Go"}
    assert current["User spielt Go"].valid_at == midnight("2020-01-01")


async def test_a_contradiction_is_stored_as_contested_and_both_sides_are_shown_when_asked(
    harness: IngestionHarness,
) -> None:
    known = await harness.save("The hut was built in 1962", subject={"name": "hut"}, predicate="BUILT_IN")
    assert known.memory
    said = candidate("Bob says that the hut was built in 1971", subject={"name": "hut", "type": "Place"})
    contest = reconciliation(decision(1, "contest", 1))
    harness.model_answers(extraction(said), contest)
    done = await harness.send_and_extract(message_at("2026-05-02", "Bob says 1971, nobody knows"))
    assert [action["action"] for action in done.actions] == ["contest"]
    contested = await harness.memories.get(harness.owner, done.actions[0]["memory_id"])
    assert (contested.status, contested.contests) == (MemoryStatus.CONTESTED, [known.memory.id])
    assert (await harness.memories.get(harness.owner, known.memory.id)).status is MemoryStatus.ACTIVE
    harness.model_answers(extraction(said), contest)
    again = await harness.send_and_extract(message_at("2026-05-03", "Bob says 1971 again"), session="s2")
    assert [action["memory_id"] for action in again.actions] == [contested.id]


async def test_a_plan_whose_day_has_passed_is_closed_when_its_user_speaks_again(harness: IngestionHarness) -> None:
    old = await harness.save("User plans to see Bob on 3 April 2026", type="plan", valid_at="2026-03-20T00:00:00Z")
    assert old.memory
    passed = {**reconciliation(decision(1, "insert")), "passed": [{"known": 1, "day": "2026-04-03"}]}
    harness.model_answers(
        extraction(candidate("Bob has moved to Graz", subject={"name": "Bob", "type": "Person"})), passed
    )
    done = await harness.send_and_extract(message_at("2026-05-02", "Bob has moved to Graz"))
    assert ("end", "its day has passed") in [(action["action"], action.get("reason")) for action in done.actions]
    assert (await harness.memories.get(harness.owner, old.memory.id)).invalid_at == midnight("2026-04-04")


async def test_a_span_keeps_both_bounds(harness: IngestionHarness) -> None:
    span = candidate("User was in Graz from 5 to 12 April 2026", valid_at="2026-04-05/2026-04-12")
    harness.model_answers(extraction(span))
    await harness.send_and_extract(message_at("2026-05-02", "I was in Graz from the 5th to the 12th"))
    (memory,) = await harness.current_memories()
    assert (memory.valid_at, memory.invalid_at) == (midnight("2026-04-05"), None)
    assert memory.metadata["since"] == "2026-04-05/2026-04-12"


async def test_a_secret_in_what_remains_is_not_saved(harness: IngestionHarness) -> None:
    await harness.save("User pays and dines at Rosa", predicate="PAYS")
    harness.model_answers(
        extraction(candidate("User no longer pays at Rosa", predicate="PAYS")),
        reconciliation(
            decision(
                1,
                "supersede",
                1,
                remaining=[{"known": 1, "content": "User dines at Rosa with card 4242 4242 4242 4242"}],
            )
        ),
    )
    await harness.send_and_extract(message_at("2026-04-01", "I no longer pay at Rosa"))
    assert await harness.current_contents() == ["User no longer pays at Rosa"]


async def test_a_vetoed_supersession_is_reported_with_what_became_of_the_statement(harness: IngestionHarness) -> None:
    await harness.save("Bob lives in Rome", subject=person("Bob"), predicate="LIVES_IN")
    harness.model_answers(
        extraction(candidate("Carol lives in Rome", subject=person("Carol"), predicate="LIVES_IN")),
        reconciliation(decision(1, "supersede", 1)),
    )
    job = await harness.send_and_extract("Carol lives in Rome")
    assert set(await harness.current_contents()) == {"Bob lives in Rome", "Carol lives in Rome"}
    assert [action.get("reason") for action in job.actions if action["action"] == "refuse"] == [
        "not to supersede: it is about another subject; the new statement is saved next to it"
    ]


async def test_prompts_say_who_known_people_are_and_a_shared_first_name_is_asked_about(
    harness: IngestionHarness,
) -> None:
    harness.model_answers(
        extraction(candidate("Anna is User's sister", subject=person("Anna"), predicate="SISTER_OF", object=USER)),
        extraction(candidate("Anna (colleague) is ill", subject=person("Anna (colleague)"))),
        reconciliation(decision(1, "insert"), same=[{"name": 1, "known": None}]),
        extraction(candidate("Anna got a dog", subject=person("Anna"))),
        reconciliation(decision(1, "insert"), same=[{"name": 1, "known": 2}]),
    )
    await harness.send_and_extract("My sister is called Anna")
    await harness.send_and_extract("Anna from work is ill")
    assert "Anna (Person): Anna is User's sister" in harness.prompts[1]
    assert "Anna (Person): Anna is User's sister" in harness.prompts[2]
    await harness.send_and_extract("Anna from work got a dog")
    assert len(harness.prompts) == 5, "a bare first name of two known people is asked about"
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects == {
        "Anna is User's sister": "Anna",
        "Anna (colleague) is ill": "Anna (colleague)",
        "Anna got a dog": "Anna (colleague)",
    }


async def test_the_users_entity_gets_the_users_name_and_stays_one(harness: IngestionHarness) -> None:
    job = {"predicate": "WORKS_AS"}
    harness.model_answers(
        extraction(candidate("User keeps bees")),
        extraction(candidate("Nora is a carpenter", **job), names=[{"name": "Nora Lund", "others": ["User", "Nora"]}]),
        extraction(
            candidate("Pia is Nora's sister", subject=person("Pia"), predicate="SISTER_OF", object=person("Nora"))
        ),
        reconciliation(decision(1, "insert")),
    )
    await harness.send_and_extract("I keep bees")
    await harness.send_and_extract("I am Nora Lund, by the way, a carpenter")
    await harness.send_and_extract("My sister is called Pia")
    await harness.save("saved without a model")
    memories = await harness.current_memories()
    names = {memory.subject.name for memory in memories if memory.subject.name != "Pia"}
    assert names == {"Nora Lund"}
    assert len({memory.subject.id for memory in memories if memory.subject.name != "Pia"}) == 1
    sister = next(memory for memory in memories if memory.subject.name == "Pia")
    assert sister.object
    assert sister.object.name == "Nora Lund"
    assert "Nora Lund (Person): the user, who writes the USER lines, also called Nora" in harness.prompts[2]
    assert harness.owner.user_id not in harness.prompts[2].replace("Nora", "")


async def test_another_speaker_of_the_users_account_is_no_name_of_the_user(harness: IngestionHarness) -> None:
    harness.model_answers(extraction(candidate("Nora sings")), extraction(candidate("Tom rows", subject=person("Tom"))))
    await harness.send_and_extract(message_at("2026-04-01", "I sing", name="Nora"))
    harness.model_answers(reconciliation(decision(1, "insert")))
    await harness.send_and_extract(message_at("2026-04-02", "Tom here, I row", name="Tom"))
    subjects = {memory.content: memory.subject.name for memory in await harness.current_memories()}
    assert subjects == {"Nora sings": "Nora", "Tom rows": "Tom"}


@pytest.mark.req("QUINN-03")
async def test_a_domain_reaches_the_memory_and_the_next_prompt(harness: IngestionHarness) -> None:
    harness.model_answers(
        extraction(
            candidate("User wants tests in pytest", type="preference", domain="Programming"), candidate("User is 40")
        ),
        extraction(),
    )
    await harness.send_and_extract("Tests in pytest, please. I am 40")
    domains = {memory.content: (memory.domain, memory.scope.value) for memory in await harness.current_memories()}
    assert domains == {"User wants tests in pytest": ("programming", "domain"), "User is 40": (None, "profile")}
    await harness.send_and_extract("Hello")
    assert "<known_domains>\nprogramming\n</known_domains>" in harness.prompts[1]


async def test_what_is_planned_for_a_later_day_is_current_at_once(harness: IngestionHarness) -> None:
    wedding = candidate("User marries Kim on 21 March 2030", type="plan", valid_at="2030-03-21")
    harness.model_answers(extraction(wedding))
    await harness.send_and_extract(message_at("2026-04-01", "We marry on 21 March 2030"))
    assert await harness.current_contents() == ["User marries Kim on 21 March 2030"]


async def test_a_prompt_names_the_day_and_the_weeks_in_the_users_zone(harness: IngestionHarness) -> None:
    harness.model_answers(extraction())
    await harness.send_and_extract(
        {"role": "user", "content": "Good night", "timestamp": "2026-05-03T22:30:00Z"}, timezone="Europe/Berlin"
    )
    assert "Mon 2026-05-04 (ISO week 2026-W19), time zone Europe/Berlin" in harness.prompts[0]
    assert "W17 2026-04-20, W18 2026-04-27, W19 2026-05-04, W20 2026-05-11" in harness.prompts[0]
