"""Full-text queries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.tokenising import MAX_QUERY_TERMS, MAX_WORD_LENGTH, build_lucene_query, query_terms


def test_a_query_is_limited_to_groups_and_asks_for_every_term_in_every_field() -> None:
    query = build_lucene_query(["tea", "pot"], ["g1", "g2"], ["fact", "search_text"])
    assert query == "+(group_key:g1 group_key:g2)^0 +(fact:(tea pot) search_text:(tea pot))"


def test_operators_in_terms_are_escaped() -> None:
    query = build_lucene_query(query_terms('OR group_key:x "quoted" a/b* (~)'), ["g1"], ["fact"])
    assert query == r"+(group_key:g1)^0 +(fact:(or group_key\:x quoted a\/b \(\~\)))"


@given(st.text(max_size=5_000))
def test_terms_are_distinct_and_bounded_for_any_text(text: str) -> None:
    terms = query_terms(text)
    assert len(terms) == len(set(terms)) <= MAX_QUERY_TERMS
    assert all(0 < len(term) <= MAX_WORD_LENGTH for term in terms)
    assert bool(terms) == bool(text.strip())


def test_each_letter_of_an_unspaced_script_counts_as_a_term() -> None:
    words = " ".join(chr(0x4E00 + number) * 60 for number in range(4))
    assert len(query_terms(words)) == 2
