"""Sentences about a condition of the moment never become memories, under any profile."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphmem.tenants.profiles import load_profile, profile_names

SENTENCE_FILE = Path(__file__).parents[1] / "secrets" / "secret_sentences.yaml"
SENTENCES = yaml.safe_load(SENTENCE_FILE.read_text(encoding="utf-8"))
MONEY = yaml.safe_load(Path(__file__).with_name("money_statements.yaml").read_text(encoding="utf-8"))
MOMENTARY = yaml.safe_load(Path(__file__).with_name("momentary_statements.yaml").read_text(encoding="utf-8"))
RULES = load_profile("general").temporary_states
MOMENTARY_RULES = load_profile("general").momentary_states


@pytest.mark.req("CASH-12")
@pytest.mark.parametrize("text", SENTENCES["temporary"])
def test_a_current_balance_or_recent_transaction_is_temporary(text: str) -> None:
    assert RULES.are_met_by(text)


@pytest.mark.req("CASH-12")
@pytest.mark.parametrize("text", SENTENCES["lasting"] + SENTENCES["kept"])
def test_a_lasting_statement_is_not_temporary(text: str) -> None:
    assert not RULES.are_met_by(text)


@pytest.mark.req("CASH-12")
@pytest.mark.parametrize("name", profile_names())
def test_every_profile_rejects_a_current_balance(name: str) -> None:
    assert load_profile(name).temporary_states.are_met_by("My balance is $50.")


@pytest.mark.req("CASH-12")
def test_single_transactions_and_balances_are_temporary_in_every_language() -> None:
    assert [text for text in MONEY["temporary"] if not RULES.are_met_by(text)] == []


@pytest.mark.req("CASH-12")
def test_what_recurs_is_owed_owned_earned_or_aimed_at_is_lasting() -> None:
    assert [text for text in MONEY["lasting"] if RULES.are_met_by(text)] == []


@pytest.mark.req("CASH-12")
def test_a_condition_of_the_moment_is_told_from_what_lasts() -> None:
    assert [text for text in MOMENTARY["momentary"] if not MOMENTARY_RULES.are_met_by(text)] == []
    assert [text for text in MOMENTARY["lasting"] if MOMENTARY_RULES.are_met_by(text)] == []


@given(st.text(st.characters(codec="ascii", exclude_characters=".!?", exclude_categories=["Cc"]), max_size=300))
def test_a_sentence_about_every_month_is_never_temporary(text: str) -> None:
    assert not RULES.are_met_by(f"{text} every month")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["balance ", "$1 ", "has ", "today ", "1 ", "yesterday spent ", "bought coffee "])
def test_repetitive_text_does_not_stall_classification(unit: str) -> None:
    assert not RULES.are_met_by((unit * 8000)[:8000])
