"""The window: what goes in first, what order it has, and that it never outgrows its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.context.window import HEADING, Line, Material, Section, pack, require_room
from graphmem.domain.tokens import count_tokens
from graphmem.errors import InvalidInput


def bullets(*texts: str) -> list[Line]:
    return [Line(text, f"- {text}") for text in texts]


def turns(count: int, words: int = 8) -> list[Line]:
    return [Line(f"m{number}", f"[USER]: turn {number} " + "word " * words) for number in range(count)]


@pytest.mark.req("CASH-17")
def test_memories_stand_first_one_bullet_each_under_the_exact_heading() -> None:
    window = pack("And now?", Material(profile=bullets("Mara is vegetarian", "Mara has a cat"), messages=turns(1)), 500)
    lines = window.preamble.splitlines()
    assert lines[0] == "## Information about this user from past conversations:" == HEADING
    assert lines[1:3] == ["- Mara is vegetarian", "- Mara has a cat"]
    assert sum(line.startswith("- ") for line in lines) == len(window.memory_keys) == 2


@pytest.mark.req("TRUE-12")
def test_a_question_over_the_budget_is_refused_and_one_of_just_the_budget_stands_alone() -> None:
    question = "How much did I spend on groceries last month?"
    size = count_tokens(question)
    with pytest.raises(InvalidInput):
        require_room(question, size - 1)
    window = pack(question, Material(profile=bullets("Mara is vegetarian"), messages=turns(3)), size)
    assert (window.preamble, window.token_count) == ("", size)


@pytest.mark.req("TRUE-12")
def test_the_question_is_counted() -> None:
    material = Material(messages=turns(2))
    short, long = pack("Why?", material, 2000), pack("Why " * 50, material, 2000)
    assert short.preamble == long.preamble
    assert long.token_count - short.token_count == count_tokens("Why " * 50) - count_tokens("Why?")


@pytest.mark.req("TRUE-12")
def test_the_profile_comes_before_relevance_and_messages_when_room_is_short() -> None:
    material = Material(
        profile=bullets("Mara is vegetarian and allergic to hazelnuts"),
        relevant=bullets("Mara likes Thai curries on weekdays"),
        messages=turns(5, words=30),
    )
    window = pack("Dinner?", material, 30)
    assert window.memory_keys == ["Mara is vegetarian and allergic to hazelnuts"]
    assert window.message_keys == []


@pytest.mark.req("TRUE-12")
def test_messages_are_the_newest_up_to_the_first_misfit_and_in_the_order_they_were_said() -> None:
    messages = turns(10)
    messages[5] = Line("m5", "[USER]: " + "long " * 400)
    window = pack("And now?", Material(messages=messages), 300)
    assert window.message_keys == ["m6", "m7", "m8", "m9"]
    assert window.preamble.index("turn 6") < window.preamble.index("turn 9")


@pytest.mark.req("TRUE-12")
def test_a_newest_message_too_long_for_the_room_is_cut_not_lost() -> None:
    window = pack("And now?", Material(messages=[Line("m", "[USER]: begin " + "long " * 400)]), 100)
    assert window.message_keys == ["m"]
    assert "begin long" in window.preamble
    assert window.token_count <= 100


@pytest.mark.req("TRUE-12")
@pytest.mark.parametrize(("filling", "summarised"), [(79, True), (80, False)])
def test_what_is_left_out_is_summed_up_while_less_than_80_percent_are_used(filling: int, summarised: bool) -> None:
    question = "?"
    budget = 400
    heading = count_tokens(Section.MESSAGES.value) + 2
    wanted = budget * filling // 100 - count_tokens(question) - heading - 1
    text = "word"
    while count_tokens(text) < wanted:
        text += " word"
    messages = [Line("old", "long " * 400), Line("new", text)]
    window = pack(question, Material(messages=messages, rest=lambda shown: f"{2 - shown} earlier message"), budget)
    assert window.message_keys == ["new"]
    assert window.summarised is summarised


@pytest.mark.req("TRUE-12")
def test_no_message_is_lost_between_those_shown_and_the_summary_whatever_else_is_told() -> None:
    asked: list[int] = []

    def rest(shown: int) -> str:
        asked.append(shown)
        return f"{20 - shown} earlier messages"

    material = Material(
        profile=bullets("Mara is vegetarian"), manner=[Line("x", "Be brief.")], messages=turns(20, 60), rest=rest
    )
    window = pack("And now?", material, 420)
    assert asked == [len(window.message_keys)]
    assert f"{20 - len(window.message_keys)} earlier messages" in window.preamble


@pytest.mark.req("TRUE-12")
def test_sections_are_told_from_the_critical_to_the_latest() -> None:
    material = Material(
        profile=bullets("Mara is vegetarian"),
        manner=[Line("x", "Answer in Spanish.")],
        talks=[Line("s", "2026-05-01: the printer")],
        messages=turns(3, 100),
        rest=lambda shown: "earlier messages",
    )
    text = pack("And now?", material, 330).preamble
    places = [text.index(section.value) for section in Section]
    assert places == sorted(places)


def test_a_memory_of_the_profile_that_is_also_relevant_is_told_once_and_not_counted_as_chosen() -> None:
    material = Material(profile=bullets("a", "b"), relevant=bullets("b", "c", "d"), top=1)
    assert pack("?", material, 500).memory_keys == ["a", "b", "c"]


def test_the_most_relevant_memory_is_told_although_the_profile_alone_would_fill_the_room() -> None:
    material = Material(
        profile=bullets(*(f"fact number {number} of the profile" for number in range(200))),
        relevant=bullets("the one thing asked about"),
        messages=turns(3),
    )
    window = pack("?", material, 500)
    assert "the one thing asked about" in window.memory_keys
    assert len(window.message_keys) == 3


@pytest.mark.req("QUINN-34")
@pytest.mark.parametrize("top", [0, 1, 3])
def test_only_so_many_memories_are_chosen_by_relevance(top: int) -> None:
    material = Material(relevant=bullets(*(f"memory {number}" for number in range(9))), top=top)
    assert pack("?", material, 2000).memory_keys == [f"memory {number}" for number in range(top)]


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)
some_lines = st.lists(texts, max_size=8).map(lambda each: [Line(f"{n}", text) for n, text in enumerate(each)])


@pytest.mark.req("TRUE-12")
@settings(max_examples=150, deadline=None)
@given(
    question=texts, profile=some_lines, relevant=some_lines, manner=some_lines, talks=some_lines, messages=some_lines,
    rest=texts, spare=st.integers(0, 400), top=st.integers(0, 10),
)  # fmt: skip
def test_a_window_never_exceeds_its_budget_and_always_leaves_room_for_the_question(
    question: str, profile: list[Line], relevant: list[Line], manner: list[Line], talks: list[Line],
    messages: list[Line], rest: str, spare: int, top: int,
) -> None:  # fmt: skip
    asked = count_tokens(question)
    budget = asked + spare
    material = Material(
        profile, relevant, top, manner, talks, messages, lambda shown: rest if shown < len(messages) else ""
    )
    window = pack(question, material, budget)
    assert window.token_count == count_tokens(window.preamble) + asked <= budget
    shown = [line.key for line in messages][len(messages) - len(window.message_keys) :]
    assert window.message_keys == shown
    assert len(set(window.memory_keys)) == len(window.memory_keys)
