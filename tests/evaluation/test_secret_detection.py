"""The detection of secrets on the labelled lines."""

from __future__ import annotations

import pytest

from graphmem.secrets.detection import SECRET_CLASSES, SecretClass
from quality.secret_detection import ScannedLine, describe_errors, render_table, scan_line, score_class
from quality.secret_lines import load_secret_lines


@pytest.fixture(scope="module")
def scanned() -> list[ScannedLine]:
    return [scan_line(line) for line in load_secret_lines()]


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize("cls", SECRET_CLASSES)
def test_detectors_find_the_secrets_of_a_class_and_little_else(cls: SecretClass, scanned: list[ScannedLine]) -> None:
    score = score_class(cls, scanned)
    assert score.recall.part >= 0.95 * score.recall.whole, describe_errors(scanned)
    assert score.precision.part >= 0.95 * score.precision.whole, describe_errors(scanned)
    assert score.recall.whole >= 30


def test_lookalikes_are_kept(scanned: list[ScannedLine]) -> None:
    lookalikes = [item for item in scanned if item.line.cls is None]
    assert len(lookalikes) > 250
    assert sum(not item.found for item in lookalikes) >= 0.98 * len(lookalikes), describe_errors(scanned)


def test_table_has_a_row_for_each_class(scanned: list[ScannedLine]) -> None:
    table = render_table(scanned)
    assert all(f"| {cls} |" in table for cls in (*SECRET_CLASSES, "all"))


def test_tokens_are_the_same_each_time_and_stand_in_no_file() -> None:
    first, second = load_secret_lines(), load_secret_lines()
    assert first == second
    assert any(isinstance(line.value, str) and "ghp_" in line.value and line.cls == "api_key" for line in first)
