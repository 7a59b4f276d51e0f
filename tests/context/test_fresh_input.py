"""What a user has just said leaves out the memory whose slot it fills with another value, and no other memory."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from graphmem.context.relevance import JustSaid
from graphmem.memories.entity import EntityRef
from tests.context.test_relevance import memory

PLAIN: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("fresh_input_without_slots.toml").read_text(encoding="utf-8")
)
NOT_RECOGNISED = {
    "I got a job at Bekaert.",
    "I traded my old car for a Dacia.",
    "Ich bin jetzt bei Bekaert angestellt.",
    "Mein neues Zuhause ist in Dinant.",
    "J'ai été embauchée chez Bekaert.",
    "Me han contratado en Bekaert.",
    "Ho un nuovo lavoro alla Bekaert.",
    "Ik ben in dienst bij Bekaert.",
}
"""What is said in words that neither the memory nor the cues have."""

TAKEN_FOR_A_HOME = "I moved to Marketing."
"""Marked whether or not it is known that it may be no place."""

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


@pytest.mark.req("QUINN-40")
def test_fresh_input_marks_what_it_may_contradict_among_memories_saved_as_plain_text() -> None:
    wrong = []
    for cases in PLAIN.values():
        stored = {
            name: memory(content, type="preference" if name == "tea" else "fact")
            for name, content in cases["memories"].items()
        }
        for said, contradicted in cases["said"].items():
            just_said = JustSaid("mara", "What do you know about me?", [said])
            assert not any(just_said.contradicts(known, 0.0) for known in stored.values()), "nothing is hidden"
            marked = [name for name, known in stored.items() if just_said.may_contradict(known, 0.0)]
            if marked != ([contradicted] if contradicted else []):
                wrong.append((said, marked))
    assert dict(wrong) == {
        **{said: [] for said in NOT_RECOGNISED},
        TAKEN_FOR_A_HOME: ["home"],
    }


@pytest.mark.req("QUINN-40")
def test_a_memory_about_another_entity_is_not_marked() -> None:
    tom = _entity("Tom", "Person")
    saved = memory("Tom lives in Bergen", entities=[_entity("e", "Person"), tom])
    assert not JustSaid("mara", "I live in Dinant now.").may_contradict(saved, 0.0)
    assert JustSaid("mara", "I live in Dinant now.").may_contradict(memory("Lives in Aalst"), 0.0)
    assert not JustSaid("mara", "I live in Aalst, by the way.").may_contradict(memory("Lives in Aalst"), 0.0)
