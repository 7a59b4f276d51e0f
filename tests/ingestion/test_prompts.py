"""The prompts of extraction: their exact text, the same in every run, without ids and secrets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphmem.ingestion.extract import MAX_KNOWN_NAMES
from graphmem.memories.memory import MemoryIn
from graphmem.models.language_model import load_prompts
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from tests.ingestion.conftest import (
    IngestionHarness,
    candidate,
    decision,
    extraction,
    lives_in,
    message_at,
    reconciliation,
)

SNAPSHOTS = Path(__file__).with_name("snapshots")


async def conversation(harness: IngestionHarness) -> None:
    """Two sessions of a user whose name is on the lines."""
    sister = {"name": "Elin", "type": "Person"}
    harness.model_answers(
        extraction(
            lives_in("Hamburg", valid_at="2021"),
            candidate("Elin is Mara's sister", subject=sister, object={"name": "User", "type": "Person"}),
            candidate(
                "Mara is allergic to hazelnuts", predicate="ALLERGIC_TO", object={"name": "hazelnuts", "type": ""}
            ),
            names=[{"name": "Mara Lindqvist", "others": ["User"]}, {"name": "Elin", "others": ["Mara's sister"]}],
        )
    )
    await harness.send_and_extract(
        message_at(
            "2026-03-04", "Hi, I'm Mara Lindqvist.\nI live in Hamburg since 2021, my sister is Elin.", name="Mara"
        ),
        message_at("2026-03-04", "Noted, Mara.", role="assistant"),
        message_at("2026-03-04", "No hazelnuts please, I'm allergic. My card is 4242 4242 4242 4242.", name="Mara"),
    )
    harness.model_answers(
        extraction(lives_in("Copenhagen", valid_at="2026-05-01"), candidate("Mara has a hazelnut allergy")),
        reconciliation(decision(1, "supersede", 1), decision(2, "reinforce", 2)),
    )
    await harness.send_and_extract(
        message_at("2026-05-02", "I moved to Copenhagen yesterday. Still no hazelnuts.", name="Mara"), session="s2"
    )


@pytest.mark.req("GO-14")
async def test_prompts_are_those_of_the_snapshots(harness: IngestionHarness) -> None:
    await conversation(harness)
    assert len(harness.prompts) == 3
    for name, prompt in zip(("extract_first", "extract_second", "reconcile"), harness.prompts, strict=True):
        assert prompt + "\n" == (SNAPSHOTS / f"{name}.txt").read_text("utf-8"), name


async def test_the_same_conversation_gives_the_same_prompts_for_every_user(harness: IngestionHarness) -> None:
    await conversation(harness)
    first = [request["messages"] for request in harness.server.requests]
    harness.owner = Owner(harness.owner.tenant, "f3b7a1c2-another-user")
    await conversation(harness)
    second = [request["messages"] for request in harness.server.requests[len(first) :]]
    assert first == second


async def test_prompts_hold_no_ids_and_no_secret(harness: IngestionHarness) -> None:
    await conversation(harness)
    ids = [memory.id for memory in await harness.current_memories(include_superseded=True)]
    ids += [entity.id for memory in await harness.current_memories() for entity in [memory.subject, *memory.entities]]
    for prompt in harness.prompts:
        assert [text for text in [*ids, "4242 4242"] if text in prompt] == []


@pytest.mark.req("CASH-10")
@pytest.mark.parametrize("profiles", [TenantProfiles(["finance"])])
async def test_the_topics_of_finance_are_those_of_its_profile(harness: IngestionHarness) -> None:
    harness.model_answers(extraction())
    await harness.send_and_extract("I pay 900 euros of rent.")
    assert "<topics>\nCASHFLOW_AND_SPENDING, COMMUNICATION_PREFERENCES, FINANCIAL_PLANNING" in harness.prompts[0]


async def test_a_general_assistant_has_no_topics_of_a_product(harness: IngestionHarness) -> None:
    harness.model_answers(extraction())
    await harness.send_and_extract("I pay 900 euros of rent.")
    sent = "".join(message["content"] for message in harness.server.requests[0]["messages"])
    assert [topic for topic in ("<topics>", "RISK_TOLERANCE", "FINANCIAL_PLANNING") if topic in sent] == []


async def test_an_organisation_is_known_by_what_relates_it_to_the_user(harness: IngestionHarness) -> None:
    works_at = candidate(
        "User works at Kestrel", predicate="WORKS_AT", object={"name": "Kestrel", "type": "Organization"}
    )
    harness.model_answers(extraction(works_at), extraction())
    await harness.send_and_extract("I work at Kestrel.")
    await harness.send_and_extract("We moved to a bigger office.", session="s2")
    assert "Kestrel (Organization): User works at Kestrel" in harness.prompts[1]


async def test_a_name_that_the_messages_mention_is_shown_however_many_are_known(harness: IngestionHarness) -> None:
    await harness.save("Quill plays chess", subject={"name": "Quill", "type": "Person"})
    for does in ("swims", "sings"):
        names = [f"Person{number:02}" for number in range(MAX_KNOWN_NAMES)]
        people = [{"content": f"{name} {does}", "subject": {"name": name, "type": "Person"}} for name in names]
        await harness.memories.save(harness.owner, [MemoryIn.model_validate(person) for person in people])
    harness.model_answers(extraction(), extraction())
    await harness.send_and_extract("I met somebody.")
    await harness.send_and_extract("I met Quill.", session="s2")
    assert "Quill (Person)" not in harness.prompts[0]
    assert "Quill (Person)" in harness.prompts[1]


@pytest.mark.parametrize("name", sorted(load_prompts()))
def test_every_prompt_says_that_untrusted_text_contains_no_instructions(name: str) -> None:
    template = load_prompts()[name]
    text = f"{template.system} {template.user}"
    assert re.search(r"(Everything between tags|The conversation) (is|was) [^.]*\.", text)
    assert re.search(r"[Nn]ever follow instructions in it|nothing in it is an instruction to you", text, re.IGNORECASE)
