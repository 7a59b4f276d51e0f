"""The page on large installations quotes figures that stand on the pages they come from."""

from __future__ import annotations

import re

from tests.documentation.test_reference import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_quoted_figures_stand_where_they_come_from() -> None:
    """A figure that was measured again is computed with again."""
    quoted = re.findall(r"\[(\d[^]]*)\]\(([\w-]+\.md)#[\w-]+\)", " ".join(PAGE.split()))
    assert len(quoted) >= 8
    for value, page in quoted:
        assert value in (ROOT / "docs" / page).read_text("utf-8"), f"{value} is not in docs/{page}"


def test_sums_are_those_of_the_machines() -> None:
    """The headline rounds what the tables of machines add up to."""
    headline = re.search(r"\*\*machines, € a month\*\* \| (.*) \|$", PAGE, re.MULTILINE)
    assert headline
    shown = [int(cell.strip("*").replace(",", "")) for cell in headline[1].split(" | ")]
    tables = re.findall(r"^\| machines \| each \| € a month \|\n\|[-:|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    sums = [
        sum(int(row.rstrip("| ").rpartition("|")[2].replace(",", "")) for row in rows.splitlines()) for rows in tables
    ]
    assert sums == [47, 1_709, 15_233]
    assert all(abs(total - rounded) <= 0.07 * rounded for total, rounded in zip(sums, shown, strict=True))
