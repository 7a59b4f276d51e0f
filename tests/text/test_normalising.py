"""Normal forms, accents, and characters that cannot be stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.normalising import (
    check_storable,
    fold,
    fold_accents,
    is_storable,
    normalise,
    remove_unstorable,
    replace_surrogates,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("  Straße\t1 ", "strasse 1"), ("ＡＣＭＥ", "acme"), ("ﬁne", "fine"), ("Zoe\u0308", "zoë"), ("İ", "i\u0307")],
)
def test_normalising_unifies_case_width_composition_and_spaces(text: str, normal: str) -> None:
    assert normalise(text) == normal


@given(st.text(max_size=50))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Café Zoë", "Cafe Zoe"), ("Ångström", "Angstrom"), ("שָׁלוֹם", "שלום"), ("مُحَمَّد", "محمد"), ("Москва", "Москва")],
)
def test_marks_that_writers_leave_out_are_folded(text: str, folded: str) -> None:
    assert fold_accents(text) == folded


@pytest.mark.parametrize("text", ["ガ", "한국", "हिन्दी"])
def test_marks_that_change_the_letter_stay(text: str) -> None:
    assert fold_accents(text) == text


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x\udfff"])
def test_unstorable_text_is_detected_and_can_be_cleaned(text: str) -> None:
    assert not is_storable(text)
    with pytest.raises(ValueError, match="NUL character or a lone surrogate"):
        check_storable(text)
    assert is_storable(remove_unstorable(text))


@given(st.text(max_size=50))
def test_storable_text_is_left_as_it_is(text: str) -> None:
    if is_storable(text):
        assert check_storable(text) == remove_unstorable(text) == replace_surrogates(text) == text


def test_each_lone_surrogate_is_replaced_by_a_question_mark() -> None:
    assert replace_surrogates("a\ud800b\udfffc") == "a?b?c"


@given(st.text(max_size=50))
def test_every_folded_character_comes_from_a_part_of_the_original(text: str) -> None:
    folded = fold(text)
    for index in range(len(folded.text)):
        start, end = folded.original_span(index, index + 1)
        assert 0 <= start < end <= len(text)
