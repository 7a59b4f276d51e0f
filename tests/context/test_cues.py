"""The files of cues."""

from __future__ import annotations

from importlib.resources import files

import pytest

from graphmem.context import cues


def test_every_file_of_cues_belongs_to_a_language_that_is_read() -> None:
    names = {
        entry.name.removesuffix(".toml")
        for entry in (files("graphmem.context") / "cues").iterdir()
        if entry.name.endswith(".toml")
    }
    assert names == {*cues.LANGUAGES}


def test_cues_of_all_languages_are_merged_into_one_pattern() -> None:
    for complaint in ("That is wrong", "Das ist falsch", "Es incorrecto", "C'est faux"):
        assert cues.ISSUES["incorrect"].search(complaint), complaint


@pytest.mark.parametrize(
    ("message", "thing"),
    [
        ("I stopped using Excel for budgets", "Excel"),
        ("Prefiero Notion en lugar de Excel.", "Excel"),
        ("En vez de Excel y Word, Notion", "Excel"),
        ("Dejé de usar Excel.", "Excel"),
        ("Notion au lieu de Jira, merci", "Jira"),
        ("Plutôt que Jira, Notion", "Jira"),
    ],
)
def test_what_a_user_gives_up_is_found_in_each_language(message: str, thing: str) -> None:
    found = [match["thing"] for pattern in cues.ABANDONED if (match := pattern.search(message))]
    assert found == [thing]
