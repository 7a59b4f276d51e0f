"""The preamble: what is added first, in which order it is rendered, and that it never exceeds its budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.context.preamble import (
    MEMORIES_HEADING,
    AnswerLine,
    PreambleContent,
    PreambleLine,
    PreambleSection,
    count_line_tokens,
    ensure_question_fits,
    pack_preamble,
)
from graphmem.runtime.errors import InvalidInput
from graphmem.text.token_counts import count_tokens


def bullet_lines(*texts: str) -> list[PreambleLine]:
    return [PreambleLine(text, f"- {text}") for text in texts]


def message_lines(count: int, words: int = 8) -> list[PreambleLine]:
    return [PreambleLine(f"m{number}", f"[USER]: turn {number} " + "word " * words) for number in range(count)]


def keys_of(lines: list[PreambleLine]) -> list[str]:
    return [line.key for line in lines]


@pytest.mark.req("CASH-17")
def test_memories_come_first_as_bullets_under_the_exact_heading() -> None:
    window = pack_preamble(
        "And now?",
        PreambleContent(profile=bullet_lines("Mara is vegetarian", "Mara has a cat"), messages=message_lines(1)),
        500,
    )
    lines = window.preamble.splitlines()
    assert lines[0] == "## Information about this user from past conversations:" == MEMORIES_HEADING
    assert lines[1:3] == ["- Mara is vegetarian", "- Mara has a cat"]
    assert sum(line.startswith("- ") for line in lines) == len(window.memory_keys) == 2


@pytest.mark.req("TRUE-12")
def test_a_question_over_the_budget_is_rejected_and_one_at_it_fits_alone() -> None:
    question = "How much did I spend on groceries last month?"
    size = count_tokens(question)
    with pytest.raises(InvalidInput):
        ensure_question_fits(question, size - 1)
    window = pack_preamble(
        question, PreambleContent(profile=bullet_lines("Mara is vegetarian"), messages=message_lines(3)), size
    )
    assert (window.preamble, window.token_count) == ("", size)


@pytest.mark.req("TRUE-12")
def test_the_question_counts_towards_the_budget() -> None:
    content = PreambleContent(messages=message_lines(2))
    short, long = pack_preamble("Why?", content, 2000), pack_preamble("Why " * 50, content, 2000)
    assert short.preamble == long.preamble
    assert long.token_count - short.token_count == count_tokens("Why " * 50) - count_tokens("Why?")


@pytest.mark.req("TRUE-12")
def test_the_profile_precedes_relevance_and_messages_in_a_small_budget() -> None:
    content = PreambleContent(
        profile=bullet_lines("Mara is vegetarian and allergic to hazelnuts"),
        relevant=bullet_lines("Mara likes Thai curries on weekdays"),
        messages=message_lines(5, words=30),
    )
    window = pack_preamble("Dinner?", content, 30)
    assert window.memory_keys == ["Mara is vegetarian and allergic to hazelnuts"]
    assert keys_of(window.messages) == []


@pytest.mark.req("TRUE-12")
def test_the_newest_messages_that_fit_are_included_in_order() -> None:
    messages = message_lines(10)
    messages[5] = PreambleLine("m5", "[USER]: " + "long " * 400)
    window = pack_preamble("And now?", PreambleContent(messages=messages), 300)
    assert keys_of(window.messages) == ["m6", "m7", "m8", "m9"]
    assert window.preamble.index("turn 6") < window.preamble.index("turn 9")


@pytest.mark.req("TRUE-12")
def test_a_newest_message_over_the_budget_is_truncated_not_dropped() -> None:
    window = pack_preamble(
        "And now?", PreambleContent(messages=[PreambleLine("m", "[USER]: begin " + "long " * 400)]), 100
    )
    assert keys_of(window.messages) == ["m"]
    assert "begin long" in window.preamble
    assert window.token_count <= 100


@pytest.mark.req("TRUE-12")
@pytest.mark.parametrize(("filling", "summarised"), [(79, True), (80, False)])
def test_omitted_messages_are_summarized_below_80_percent_usage(filling: int, summarised: bool) -> None:
    question = "?"
    budget = 400
    heading = count_line_tokens(PreambleSection.MESSAGES.value) + 1
    wanted = budget * filling // 100 - count_tokens(question) - heading
    text = "word"
    while count_line_tokens(text) < wanted:
        text += " word"
    messages = [PreambleLine("old", "long " * 400), PreambleLine("new", text)]
    window = pack_preamble(
        question,
        PreambleContent(messages=messages, summarize_omitted=lambda shown: f"{2 - shown} earlier message"),
        budget,
    )
    assert keys_of(window.messages) == ["new"]
    assert window.has_summary is summarised


@pytest.mark.req("TRUE-12")
def test_every_message_is_either_shown_or_summarized() -> None:
    asked: list[int] = []

    def rest(shown: int) -> str:
        asked.append(shown)
        return f"{20 - shown} earlier messages"

    content = PreambleContent(
        profile=bullet_lines("Mara is vegetarian"),
        style_instructions=[PreambleLine("x", "Be brief.")],
        messages=message_lines(20, 60),
        summarize_omitted=rest,
    )
    window = pack_preamble("And now?", content, 420)
    assert asked == [len(keys_of(window.messages))]
    assert f"{20 - len(keys_of(window.messages))} earlier messages" in window.preamble


@pytest.mark.req("TRUE-12")
def test_sections_come_in_their_declared_order() -> None:
    content = PreambleContent(
        profile=bullet_lines("Mara is vegetarian"),
        style_instructions=[PreambleLine("x", "Answer in Spanish.")],
        past_sessions=[PreambleLine("s", "2026-05-01: the printer")],
        messages=message_lines(3, 100),
        answers=[AnswerLine(PreambleSection.QUOTES, 0, PreambleLine("q", "2026-05-02, Mara: the printer is old"))],
        summarize_omitted=lambda shown: "earlier messages",
    )
    text = pack_preamble("And now?", content, 350).preamble
    places = [text.index(section.value) for section in PreambleSection]
    assert places == sorted(places)


def test_a_relevant_profile_memory_is_included_once_and_not_counted() -> None:
    content = PreambleContent(profile=bullet_lines("a", "b"), relevant=bullet_lines("b", "c", "d"), top=1)
    assert pack_preamble("?", content, 500).memory_keys == ["a", "b", "c"]


def test_the_most_relevant_memory_is_included_despite_a_large_profile() -> None:
    content = PreambleContent(
        profile=bullet_lines(*(f"fact number {number} of the profile" for number in range(200))),
        relevant=bullet_lines("the one thing asked about"),
        messages=message_lines(3),
    )
    window = pack_preamble("?", content, 500)
    assert "the one thing asked about" in window.memory_keys
    assert len(keys_of(window.messages)) == 3


@pytest.mark.req("QUINN-34")
@pytest.mark.parametrize("top", [0, 1, 3])
def test_top_limits_the_memories_chosen_by_relevance(top: int) -> None:
    content = PreambleContent(relevant=bullet_lines(*(f"memory {number}" for number in range(9))), top=top)
    assert pack_preamble("?", content, 2000).memory_keys == [f"memory {number}" for number in range(top)]


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)
some_lines = st.lists(texts, max_size=8).map(
    lambda line_texts: [PreambleLine(f"{n}", text) for n, text in enumerate(line_texts)]
)


@pytest.mark.req("TRUE-12")
@given(
    question=texts,
    answer_lines=some_lines,
    profile=some_lines,
    relevant=some_lines,
    style_instructions=some_lines,
    past_sessions=some_lines,
    messages=some_lines,
    digest=texts,
    spare=st.integers(0, 400),
    top=st.integers(0, 10),
)
def test_a_preamble_never_exceeds_its_budget(
    question: str,
    answer_lines: list[PreambleLine],
    profile: list[PreambleLine],
    relevant: list[PreambleLine],
    style_instructions: list[PreambleLine],
    past_sessions: list[PreambleLine],
    messages: list[PreambleLine],
    digest: str,
    spare: int,
    top: int,
) -> None:
    asked = count_tokens(question)
    budget = asked + spare
    answers = [
        AnswerLine((PreambleSection.MEMORIES, PreambleSection.QUOTES)[place % 2], place, line)
        for place, line in enumerate(answer_lines)
    ]
    content = PreambleContent(
        answers=answers,
        profile=profile,
        relevant=relevant,
        top=top,
        style_instructions=style_instructions,
        past_sessions=past_sessions,
        messages=messages,
        citation=PreambleLine("citation", digest),
        summarize_omitted=lambda shown: digest if shown < len(messages) else "",
    )
    window = pack_preamble(question, content, budget)
    assert window.token_count == count_tokens(window.preamble) + asked <= budget
    shown = [line.key for line in messages][len(messages) - len(keys_of(window.messages)) :]
    assert keys_of(window.messages) == shown
    assert len(set(window.memory_keys)) == len(window.memory_keys)
