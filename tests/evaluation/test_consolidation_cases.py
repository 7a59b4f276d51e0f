"""The cases of the evaluation of consolidation: their format, their variety, and that each can be met."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from graphmem.memories.memory import MemoryIn
from graphmem.runtime.field_types import content_hash
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.profiles import load_profile
from quality.consolidation.cases import LANGUAGES, NIGHT, ConsolidationCase, load_cases, matches
from quality.consolidation.night import to_memory_input

CASES = load_cases()
THEMES = {
    *("same-statement", "different-starts", "completing", "separate-intervals", "different-values", "ends"),
    *("numbers-in-words", "user-by-name", "namesakes", "nickname", "initials", "transliteration", "renamed", "link"),
    *("similar-names", "contradiction", "negation", "past-and-present", "plan-and-fact", "other-people", "scopes"),
    *("across-languages", "several-actions", "secret-like", "injection", "immutable", "sessions", "nothing-to-do"),
    *("time-zone", "as-of-reads", "chain", "carried-out", "attributes", "activity", "alike"),
}


def parse(**fields: Any) -> ConsolidationCase:
    given: dict[str, Any] = {
        "id": "en-example",
        "themes": ["same-statement"],
        "why": "an example",
        "user": "ida",
        "memories": {"a": {"text": "Ida rows."}, "b": {"text": "Ida goes rowing."}},
        "expected": {"merges": [{"memories": ["a", "b"], "keeps": ["row"]}]},
    }
    return ConsolidationCase.model_validate({**given, **fields})


def test_there_are_many_cases_in_every_language_and_of_every_theme() -> None:
    assert len(CASES) >= 60
    per_language = Counter(case.language for case in CASES)
    assert set(per_language) == set(LANGUAGES)
    assert min(per_language.values()) >= 10
    assert {theme for case in CASES for theme in case.themes} == THEMES


def test_the_memories_of_each_case_can_be_stored() -> None:
    rules = load_profile("general").temporary_states
    for case in CASES:
        for key, memory in case.memories.items():
            MemoryIn.model_validate(to_memory_input(case, memory))
            assert SecretPolicy().refused_classes(memory.text, "default") == [], (case.id, key)
            assert not rules.are_met_by(memory.text), (case.id, key)
            known = case.to_instant(memory.known)
            assert known is None or known < NIGHT, (case.id, key)
        hashes = {content_hash(memory.text) for memory in case.memories.values()}
        # A repeated statement would be reinforced, not stored twice.
        assert len(hashes) == len(case.memories), case.id


def test_what_a_merge_must_keep_is_in_its_sources_and_what_it_must_lack_is_not() -> None:
    for case in CASES:
        for merge in case.expected.merges:
            sources = [case.memories[key].text for key in merge.memories]
            for wanted in merge.keeps:
                # Words of one pattern may come from several sources.
                assert any(matches(" ".join(sources), [pattern]) for pattern in wanted), (case.id, wanted)
            found = [pattern for pattern in merge.lacks for source in sources if matches(source, [pattern])]
            assert found == [], case.id


def test_a_local_time_is_read_in_the_zone_of_the_case() -> None:
    case = parse(timezone="Asia/Tokyo")
    assert case.to_instant("2025-04-01") == datetime(2025, 3, 31, 15, tzinfo=UTC)
    assert case.to_instant("2025-04-01T09:30") == datetime(2025, 4, 1, 0, 30, tzinfo=UTC)
    assert case.to_instant(None) is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"expected": {"merges": [{"memories": ["a", "c"], "keeps": ["row"]}]}}, "there is no memory c"),
        ({"expected": {"links": [["user", "oar"]]}}, "there is no entity oar"),
        ({"entities": {"oar": {"name": "Oar"}}}, "no memory names the entity oar"),
        (
            {"expected": {"may_merge": [["a", "b"]], "contradictions": [["a", "b"]]}},
            "must and must not be merged",
        ),
        (
            {"expected": {"merges": [{"memories": ["a", "b"], "keeps": ["row"]}], "unchanged": True}},
            "nothing may change and something must",
        ),
        (
            {
                "entities": {"tom": {"name": "Tom"}},
                "memories": {"a": {"text": "Ida rows."}, "b": {"text": "Tom rows.", "about": "tom"}},
            },
            "different entities that are not linked",
        ),
        ({"expected": {"reads": [{"at": "2025-01-01"}]}}, "checks nothing"),
        ({"expects": {}}, "Extra inputs are not permitted"),
    ],
)
def test_a_case_that_contradicts_itself_is_rejected(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(**fields)


def test_a_case_must_be_in_the_file_of_its_language(tmp_path: Path) -> None:
    case = {"id": "en-x", "themes": ["link"], "why": "w", "user": "u", "memories": {"a": {"text": "t"}}, "expected": {}}
    (tmp_path / "de.yaml").write_text(str([case]), "utf-8")
    with pytest.raises(ValueError, match="must begin with the language of the file"):
        load_cases(tmp_path)


@pytest.mark.parametrize(
    ("text", "pattern", "met"),
    [
        ("Ida moved to Leipzig", "leipzig moved", True),
        ("Ida ist Vegetarierin", "vegetar", True),
        ("Ida hat drei Katzen", "3", False),
        ("Ida has 30 cats", "3", False),
        ("Ida pays 1,150 pounds", "1,150", True),
        ("Ida pays 1,150 pounds", "150", False),
        ("Ida ran it in 4:07.", "4:07", True),
        ("由紀子には子どもが三人いる。", "三人", True),
        ("由紀子には子どもが13人いる。", "3人", False),
        ("千尋は2025年4月1日に入職した。", "2025年 4月1日", True),
        ("Вера всё помнит", "все", True),
    ],
)
def test_a_pattern_matches_words_by_their_beginning_and_numbers_as_a_whole(text: str, pattern: str, met: bool) -> None:
    assert matches(text, [pattern]) is met
