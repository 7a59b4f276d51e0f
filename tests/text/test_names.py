"""The primitives of comparing names."""

from __future__ import annotations

import pytest

from graphmem.text.names import (
    edit_distance,
    fold_name,
    is_first_name,
    is_possessive_phrase,
    max_typos,
    may_be_same_first_name,
    strip_possessive,
)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("José  O'Brien-Łuk", "jose o brien luk"),
        ("ACME, Inc.", "acme inc"),
        ("snake_case", "snake case"),
        ("Café Zoë", "cafe zoe"),
        ("हिन्दी", "हिन्दी"),
        ("東京・大阪", "東京 大阪"),
        ("!?", ""),
    ],
)
def test_a_folded_name_has_no_case_accents_or_punctuation(name: str, folded: str) -> None:
    assert fold_name(name) == folded


@pytest.mark.parametrize(
    ("one", "other", "limit", "distance"),
    [("ostrander", "ostrandr", 2, 1), ("jhon", "john", 1, 1), ("fred", "frieda", 1, None), ("bob", "bob", 0, 0)],
)
def test_edit_distance_counts_a_transposition_as_one_and_stops_at_the_limit(
    one: str, other: str, limit: int, distance: int | None
) -> None:
    assert edit_distance(one, other, limit) == distance


def test_longer_names_may_contain_more_typos() -> None:
    assert [max_typos(length) for length in (4, 5, 8, 9, 40)] == [0, 1, 1, 2, 2]


def test_initials_and_nicknames_may_be_the_same_first_name() -> None:
    assert may_be_same_first_name("j", "john")
    assert may_be_same_first_name("bob", "robert")
    assert not may_be_same_first_name("bob", "alice")
    assert is_first_name("Bob")
    assert not is_first_name("Acme")


def test_possessives_are_recognised_with_either_apostrophe() -> None:
    assert strip_possessive("Mara's and Levi’s") == "Mara and Levi"
    assert all(map(is_possessive_phrase, ("Mara's sister", "Mara’s boss", "the Smiths' dog")))
    assert not is_possessive_phrase("O'Brien")
