"""Answers of which a part cannot be used: the rest is, and what is refused is named without quoting it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from graphmem.models.language_model import CUT_OFF, AnswerPart, Labels, LenientAnswer
from graphmem.models.structured_output import UnusableAnswer, read_answer, response_schema


class Place(BaseModel):
    name: str


class Entry(AnswerPart):
    text: str
    weight: float
    place: Place | None = None
    messages: list[int]
    visited: Labels[Place] = Field(default_factory=list)


class Answer(LenientAnswer):
    skip: bool
    entries: list[Entry]
    tags: list[str] = Field(default_factory=list)
    mood: float = 0.0


def entry(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "weight": 0.5, "place": {"name": "Lund"}, "messages": [1, 2], **fields}


GOOD = {"skip": False, "entries": [entry("a"), entry('b "} ] \\'), entry("c")], "tags": ["x", "y"]}


def read(value: object) -> Answer:
    return read_answer(value if isinstance(value, str) else json.dumps(value), Answer)


def test_the_model_is_not_asked_for_what_was_refused() -> None:
    assert "refused" not in json.dumps(response_schema(Answer))
    assert read({**GOOD, "refused": ["said by the model"]}).refused == []


def test_an_item_that_does_not_fit_costs_nothing_else() -> None:
    for bad, problem in (
        (entry("b", place="tea"), "place (model_type)"),
        (entry("b", weight="much"), "weight (float_parsing)"),
        (entry("b", weight=float("nan")), "weight (float_type)"),
        ({"text": "b", "messages": [1]}, "weight (missing)"),
        (entry("b", messages=[1, "two"]), "messages.1 (int_parsing)"),
        (None, "the object (model_type)"),
        ("b", "the object (model_type)"),
        ([], "the object (model_type)"),
    ):
        answer = read({**GOOD, "entries": [entry("a"), bad, entry("c")], "tags": ["x", 5]})
        assert [kept.text for kept in answer.entries] == ["a", "c"], bad
        assert answer.tags == ["x"]
        assert answer.refused == [
            f"item 2 of entries is malformed: {problem}",
            "item 2 of tags is malformed: the object (string_type)",
        ]


def test_a_label_that_does_not_fit_costs_its_statement_nothing() -> None:
    answer = read({**GOOD, "entries": [entry("a", visited=["Lund", {"name": "Oslo"}, None]), entry("b", visited=None)]})
    assert [[place.name for place in kept.visited] for kept in answer.entries] == [["Oslo"], []]
    assert answer.refused == []


def test_a_property_that_does_not_fit_has_its_default() -> None:
    answer = read({**GOOD, "mood": "good", "tags": "x"})
    assert (answer.mood, answer.tags, len(answer.entries)) == (0.0, [], 3)
    assert answer.refused == ["tags is malformed: list_type", "mood is malformed: float_parsing"]
    assert read({**GOOD, "mood": None, "tags": None}).refused == []


def test_an_answer_may_stand_alone_in_a_list_or_under_a_name() -> None:
    for wrapped in ([GOOD], {"result": GOOD}):
        assert [kept.text for kept in read(wrapped).entries] == [kept["text"] for kept in GOOD["entries"]]
    with pytest.raises(UnusableAnswer):
        read([GOOD, GOOD])


@pytest.mark.parametrize("bad", [{"skip": "perhaps"}, {"entries": "none"}, {"entries": None}, {"entries": {}}])
def test_what_stands_in_no_list_cannot_be_left_out(bad: dict[str, Any]) -> None:
    with pytest.raises(UnusableAnswer):
        read({**GOOD, **bad})


@given(st.integers(0, len(json.dumps(GOOD)) - 1))
def test_an_answer_that_is_cut_keeps_what_was_complete(length: int) -> None:
    text = json.dumps(GOOD)[:length]
    try:
        answer = read(text)
    except UnusableAnswer:
        assert '"c"' not in text
        assert json.dumps(entry("a")) not in text
        return
    assert answer.refused == [CUT_OFF]
    complete = [one for one in GOOD["entries"] if json.dumps(one) in text]
    assert [kept.model_dump(exclude={"visited"}) for kept in answer.entries] == complete
    assert answer.tags == [tag for tag in ("x", "y") if re.search(rf'"{tag}"[],]', text)]
