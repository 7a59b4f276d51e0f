"""The guards let right merges pass and refuse wrong ones, in any language and in any order of the memories."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.consolidation.changes import merge_facts
from graphmem.consolidation.guards import refusal_reason
from graphmem.consolidation.models import parse_proposals
from graphmem.memories.fact import Fact
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import Scope
from tests.consolidation.merge_pairs import LITERAL, NUMBERS, RESTATED, RIGHT, WRONG
from tests.consolidation.test_guards import NOW, check, entity, fact, make_context
from tests.consolidation.verifications import quoting

USER_NAMES = ["Mara", "Мара", "真弓", "小梅", "미라"]


def refusal(contents: list[str], merged: str, *, quoted: bool = False, verified: bool = False) -> str | None:
    facts = [fact(str(index), content) for index, content in enumerate(contents)]
    user = entity("user", is_user=True, aliases=USER_NAMES)
    context = replace(make_context(*facts), entities={"user": user}, curated=True)
    [proposal] = parse_proposals(
        [{"action": "MERGE", "memory_ids": [one.memory_id for one in facts], "content": merged, "verified": verified}]
    )
    return refusal_reason(proposal, context, quoting(facts, merged, *RESTATED) if quoted else None)


Pairs = list[tuple[list[str], str]]


def executed(pairs: Pairs, **given: bool) -> list[str]:
    """Return the merges that pass the guards in some order of their memories."""
    return [merged for contents, merged in pairs if not all(refusal(one, merged, **given) for one in both(contents))]


def refused(pairs: Pairs, **given: bool) -> list[str]:
    """Return the merges that are refused in some order of their memories."""
    return [merged for contents, merged in pairs if any(refusal(one, merged, **given) for one in both(contents))]


def both(contents: list[str]) -> list[list[str]]:
    return [contents, contents[::-1]]


@pytest.mark.req("UMB-15", "UMB-16")
@pytest.mark.parametrize(
    ("contents", "merged"),
    [
        (["likes tea", "no longer likes tea"], "no longer likes tea"),
        (["Mara likes tea", "Mara rows"], "Nobody believes that Mara likes tea, and Mara rows"),
        (["Mara mag Tee", "Mara mag Tee nicht"], "Mara mag Tee nicht"),
        (["isst Fleisch", "Mara isst Fleisch nie"], "Mara isst Fleisch nie"),
        (["likes tea", "likes tea longer no"], "likes tea longer no"),
        (["Mara mag Tee", "Mara mag Tee überhaupt nicht mehr"], "Mara mag Tee überhaupt nicht mehr"),
        (["Mara rows", "Mara rows in no way"], "Mara rows in no way"),
        (["Mara works at Acme", "Mara works at Acme formerly"], "Mara works at Acme formerly"),
        (["真弓はお茶が好き", "真弓はお茶が好きではない"], "真弓はお茶が好きではない"),
        (["Mara aime le thé", "Mara aime le thé vert plus jamais"], "Mara aime le thé vert plus jamais"),
    ],
)
def test_a_source_within_its_denial_is_not_literally_in_a_merge(contents: list[str], merged: str) -> None:
    assert all(refusal(one, merged) for one in both(contents))
    assert not any(refusal(one, merged, verified=True) for one in both(contents))


@pytest.mark.req("UMB-15")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mara flies on LH1234", "Mara flies on LH1235"),
        ("Mara was in Oslo on 4 May", "Mara was in Oslo on 4 June"),
    ],
)
def test_identifiers_and_months_stay_whatever_a_verification_calls_the_same(one: str, other: str) -> None:
    facts = [fact("a", one), fact("b", other)]
    [proposal] = parse_proposals([{"action": "MERGE", "memory_ids": ["a", "b"], "content": other}])
    restated = (" ".join(one.split()[-2:]), " ".join(other.split()[-2:]))
    longer = (" ".join(one.split()[-4:]), " ".join(other.split()[-4:]))
    verification = quoting(facts, other, restated, longer)
    assert refusal_reason(proposal, make_context(*facts), verification) is not None


@pytest.mark.req("UMB-15")
def test_every_memory_that_states_the_merged_text_belongs_to_the_merge() -> None:
    facts = [fact(key, "Mara rows", predicate=predicate) for key, predicate in (("a", "ROWS"), ("b", "SPORT"))]
    other = fact("c", "Mara rows")
    [proposal] = parse_proposals([{"action": "MERGE", "memory_ids": ["a", "c"], "content": "Mara rows"}])
    reason = refusal_reason(proposal, replace(make_context(*facts, other), curated=True))
    assert reason == "b states the same already: add it to memory_ids"


@pytest.mark.req("UMB-15")
def test_a_right_merge_that_is_quoted_passes_in_any_language() -> None:
    assert refused(RIGHT, quoted=True) == []


@pytest.mark.req("UMB-15", "UMB-16", "QUINN-26")
def test_without_a_verification_each_source_stands_in_a_merge_literally() -> None:
    assert refused(LITERAL) == []
    assert executed(WRONG) == []
    reason = refusal(["Mara rows.", "Mara teaches Latin."], "Mara rows and teaches Latin.")
    assert reason is not None
    assert reason.startswith("1 is not covered")
    assert refusal(["Mara rows.", "Mara teaches Latin."], "Mara rows and teaches Latin.", verified=True) is None
    assert refusal(["Mara rows.", "Mara has 3 hens"], "Mara rows. Mara has 3 henhouses."), "a part of a word is no word"
    assert refusal(["Mara rows.", "Mara sings."], "Mara rows. Mara sings. Anna paints.", verified=False), (
        "nobody said so"
    )


@pytest.mark.req("UMB-16")
def test_numbers_and_dates_stay_as_written_whatever_is_quoted_or_verified() -> None:
    assert executed(NUMBERS, quoted=True) == []
    assert executed(NUMBERS, verified=True) == []


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["", "0.", "1.", "1,", "2025-", "-"]))
def test_a_verified_merge_passes_if_its_number_is_written_as_in_its_source(one: int, other: int, mark: str) -> None:
    contents = [f"The dose is {mark}{one} units.", "There is a dose."]
    reason = refusal(contents, f"The dose is {mark}{other} units.", verified=True)
    assert (reason is None) == (one == other)
    assert refusal(contents, f"The dose is {one} units.", verified=True) is None or mark


def test_private_conversations_are_not_merged() -> None:
    facts = [
        fact(key, "Mara cooks without salt", scope=Scope.EPISODIC, session_id=session)
        for key, session in (("a", "s1"), ("b", "s2"))
    ]
    ids = [one.memory_id for one in facts]
    assert check("MERGE", make_context(*facts), memory_ids=ids, content="Mara cooks without salt")


def test_what_the_run_reports_as_contradictory_is_not_merged() -> None:
    facts = fact("a", "Mara drives a diesel"), fact("b", "Mara's car is electric"), fact("c", "Mara drives")
    context = make_context(*facts, contradicted=frozenset({"a", "b"}))
    reason = check("MERGE", context, memory_ids=["a", "c"], content="Mara drives a diesel")
    assert reason is not None
    assert "contradict" in reason


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


@st.composite
def dated_facts(draw: st.DrawFn) -> list[Fact]:
    starts = draw(st.lists(st.one_of(st.none(), st.integers(2000, 2025)), min_size=2, max_size=4))
    return [
        fact(str(index), f"statement {index}", valid_at=year(start) if start else None, object_id=None)
        for index, start in enumerate(starts)
    ]


@pytest.mark.req("UMB-15")
@given(dated_facts(), st.booleans(), st.integers(1990, 2026))
def test_no_read_loses_a_statement_that_held_before_the_merge(
    sources: list[Fact], say_same: bool, read_at: int
) -> None:
    ledger = Ledger(sources, NOW)
    merged = ledger.merge(merge_facts(sources, "merged", say_same=say_same), [one.memory_id for one in sources], "run")
    versions = {one.memory_id: one for one in ledger.created.values() if one.expired_at is None}
    instant = year(read_at)
    for source in sources:
        if source.is_valid_at(instant):
            assert versions[source.memory_id].is_valid_at(instant) or merged.is_valid_at(instant)
    assert merged.is_valid_at(NOW)
    assert not any(versions[source.memory_id].is_valid_at(NOW) for source in sources)
    if not say_same and merged.is_valid_at(instant):
        assert all(source.is_valid_at(instant) for source in sources), "a merge claims nothing before all of it holds"


def test_a_merge_of_the_same_holds_from_the_first_start_and_one_that_completes_from_the_last() -> None:
    sources = [fact("a", "x", valid_at=year(2018)), fact("b", "y", valid_at=year(2021))]
    assert merge_facts(sources, "z", say_same=True).valid_at == year(2018)
    assert merge_facts(sources, "z", say_same=False).valid_at == year(2021)


@pytest.mark.req("UMB-15")
def test_a_merged_memory_is_stronger_than_its_sources() -> None:
    sources = [fact("a", "x", strength=0.5, importance=0.4), fact("b", "y", strength=0.6, importance=0.7)]
    merged = merge_facts(sources, "z", say_same=True)
    assert merged.strength > 0.6
    assert merged.importance == 0.7
