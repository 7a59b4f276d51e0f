"""What a user has just said leaves out the memory whose slot it fills with another value, and no other memory."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from graphmem.context.relevance import JustSaid
from graphmem.memories.entity import EntityRef
from tests.context.test_relevance import memory

CASES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("fresh_input.toml").read_text(encoding="utf-8")
)


def _entity(name: str, kind: str) -> EntityRef:
    return EntityRef(id=name, name=name, type=kind)


STORED = {
    "home": memory("Lives in Aalst", predicate="LIVES_IN", object=_entity("Aalst", "Place"), single_valued=True),
    "job": memory(
        "Works at Umicore", predicate="WORKS_AT", object=_entity("Umicore", "Organization"), single_valued=True
    ),
    "tom": memory(
        "Tom lives in Bergen",
        subject=_entity("Tom", "Person"),
        predicate="LIVES_IN",
        object=_entity("Bergen", "Place"),
        single_valued=True,
    ),
    "car": memory("Drives a Skoda", predicate="DRIVES", object=_entity("Skoda", "Product"), single_valued=True),
    "deadline": memory(
        "Project Heron is due on 2 March",
        subject=_entity("Project Heron", "Project"),
        predicate="DUE_ON",
        single_valued=True,
    ),
    "tea": memory("Prefers rooibos tea", type="preference"),
}


@pytest.mark.req("QUINN-40")
@pytest.mark.parametrize(
    ("said", "contradicted"), [pair for cases in CASES.values() for pair in cases.items()], ids=lambda value: value
)
def test_fresh_input_leaves_out_what_it_contradicts_and_nothing_else(said: str, contradicted: str) -> None:
    expected = [contradicted] if contradicted else []
    for question, statements in ((said, []), ("What do you know about me?", [said])):
        left_out = [
            name for name, known in STORED.items() if JustSaid("mara", question, statements).contradicts(known, 0.0)
        ]
        assert left_out == expected
