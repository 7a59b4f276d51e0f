"""The cases of the evaluation of verification: how many there are, how they vary, and what a file may not hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from graphmem.text.word_lists import WRITTEN_LANGUAGES
from quality.consolidation.verification_cases import (
    ErrorKind,
    Expected,
    LinkCase,
    load_verification_cases,
)

CASES = load_verification_cases()

EXAMPLE: dict[str, Any] = {
    "id": "en-example",
    "language": "en",
    "kind": "merge",
    "sources": [{"subject": "Ida", "content": "Ida rows."}, {"subject": "Ida", "content": "Ida goes rowing."}],
    "content": "Ida rows.",
    "relation": "same",
    "expected": "right",
    "why": "an example",
}


def test_there_are_150_cases_in_twelve_languages_of_which_nearly_half_are_right() -> None:
    assert len(CASES) == 150
    assert Counter(case.kind for case in CASES) == {"merge": 110, "link": 40}
    assert len({case.language for case in CASES}) == 12
    for kind in ("merge", "link"):
        verdicts = Counter(case.expected for case in CASES if case.kind == kind)
        assert 0.7 <= verdicts[Expected.RIGHT] / verdicts[Expected.WRONG] <= 1


def test_at_least_six_languages_have_no_word_lists() -> None:
    assert len({case.language for case in CASES} - set(WRITTEN_LANGUAGES)) >= 6


def test_every_language_has_right_and_wrong_merges_and_links() -> None:
    found = {(case.language, case.kind, case.expected) for case in CASES}
    languages = {case.language for case in CASES}
    assert len(found) == 4 * len(languages)


def test_every_kind_of_error_occurs() -> None:
    assert {case.error for case in CASES} == {None, *ErrorKind}


def test_every_name_of_a_link_stands_in_the_file_as_a_name_of_two_entities() -> None:
    assert all(len(set(case.names)) == 2 for case in CASES if isinstance(case, LinkCase))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "de-example"}, "begin with the language"),
        ({"expected": "wrong"}, "has an error"),
        ({"sources": [EXAMPLE["sources"][0], {"content": "The user rows."}]}, "one subject"),
        ({"kind": "link", "names": ["Ida", "Ada"]}, "Extra inputs"),
    ],
)
def test_an_invalid_case_is_refused_with_its_id(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(json.dumps([{**EXAMPLE, **change}]), "utf-8")
    with pytest.raises(ValueError, match=problem) as raised:
        load_verification_cases(path)
    assert str({**EXAMPLE, **change}["id"]) in str(raised.value)


def test_an_id_or_a_name_of_a_language_belongs_to_one_case(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(json.dumps([EXAMPLE, {**EXAMPLE, "id": "en-other"}]), "utf-8")
    with pytest.raises(ValueError, match="used by another case: en: Ida"):
        load_verification_cases(path)
