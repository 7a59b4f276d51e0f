"""Chains of facts that lead from what a question names to what it asks for, and overviews."""

from __future__ import annotations

import pytest

from graphmem.memories.memory import MemoryIn
from tests.context.conftest import ContextHarness

STEPS = [
    ("Ingrid is the sister of Mara", "Mara", "SISTER", "Ingrid"),
    ("Ingrid sings in the choir Nordlys", "Ingrid", "MEMBER_OF", "Nordlys"),
    ("Nordlys is led by Peder Moe", "Nordlys", "LED_BY", "Peder Moe"),
    ("Peder Moe was born in Tromsø", "Peder Moe", "BORN_IN", "Tromsø"),
]
OTHERS = [
    (f"{name} {verb} {thing}", name, relation, thing)
    for name in ("Olav", "Sigrid", "Harald", "Astrid", "Leif", "Runa")
    for verb, relation, thing in (
        ("was born in", "BORN_IN", f"{name}stad"),
        ("sings in", "MEMBER_OF", f"Choir of {name}"),
        ("is led by", "LED_BY", f"Captain {name[::-1].title()}"),
    )
]


def statement(content: str, subject: str, predicate: str, target: str) -> MemoryIn:
    return MemoryIn(content=content, subject={"name": subject}, predicate=predicate, object={"name": target})


@pytest.mark.req("UMB-06", "UMB-07")
async def test_a_question_of_one_or_several_steps_gets_each_of_them_in_order(harness: ContextHarness) -> None:
    await harness.save_memories(*(statement(*fact) for fact in [*OTHERS, *STEPS]))
    for question, steps in (
        ("Where was Peder Moe born?", 1),
        ("In which choir does the sister of Mara sing?", 2),
        ("Who leads the choir in which the sister of Mara sings?", 3),
        ("Where was the leader born who leads the choir in which the sister of Mara sings?", 4),
        ("Where was the man born by whom Nordlys is led?", 2),
    ):
        last = 4 if "born" in question else steps
        built = await harness.build_context(question, token_budget=300)
        shown = [line.removeprefix("- ") for line in built.preamble.splitlines() if line.startswith("- ")]
        assert shown[:steps] == [content for content, *_ in STEPS[last - steps : last]], question


@pytest.mark.req("QUINN-37")
async def test_an_overview_takes_from_every_session_that_speaks_of_it(harness: ContextHarness) -> None:
    for session, subjects in {
        "spring": [f"Mara's garden got {plant} in spring" for plant in ("roses", "tulips", "ferns", "leeks", "beans")],
        "pond": ["Mara's garden has a pond with six frogs"],
        "shed": ["The shed of Mara's garden was painted green"],
    }.items():
        source = {"session_id": session}
        await harness.save_memories(*(MemoryIn(content=content, source=source) for content in subjects))
    for question in (
        "What do you know about my garden?",
        "Summarise our talks about my garden",
        "Tell me about my garden",
    ):
        built = await harness.build_context(question, token_budget=180)
        assert {memory.source.session_id for memory in built.memories} == {"spring", "pond", "shed"}, question
