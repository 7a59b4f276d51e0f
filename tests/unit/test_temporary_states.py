"""States of the moment never become memories."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.domain.temporary_states import is_temporary_state

SENTENCES = yaml.safe_load((Path(__file__).parent / "secret_sentences.yaml").read_text(encoding="utf-8"))


@pytest.mark.req("CASH-12")
@pytest.mark.parametrize("text", SENTENCES["temporary"])
def test_a_current_balance_or_recent_transaction_is_temporary(text: str) -> None:
    assert is_temporary_state(text)


@pytest.mark.req("CASH-12")
@pytest.mark.parametrize("text", SENTENCES["lasting"] + SENTENCES["kept"])
def test_lasting_statement_is_not_temporary(text: str) -> None:
    assert not is_temporary_state(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_classified_without_error(text: str) -> None:
    assert is_temporary_state(text) in (True, False)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("unit", ["spent $5 ", "balance ", "$1 ", "has ", "today ", "1 ", "yesterday spent "])
def test_repetitive_text_does_not_stall_classification(unit: str) -> None:
    is_temporary_state((unit * 8000)[:8000])
