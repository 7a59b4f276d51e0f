"""The documentation matches the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forks import run_python

ROOT = Path(__file__).parents[2]
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name != "reference.md")
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "graphmem/README.md", *DOCS]


def test_reference_page_matches_the_code() -> None:
    """`make reference` regenerates the page."""
    code = "import sys; sys.path.insert(0, 'docs'); import reference; sys.stdout.write(reference.render())"
    written = run_python(["-c", code], folder=ROOT)
    assert written.returncode == 0, written.stderr
    assert written.stdout == (ROOT / "docs/reference.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_documented_setting_exists(page: str) -> None:
    reference = (ROOT / "docs/reference.md").read_text("utf-8")
    for name in re.findall(r"GRAPHMEM_[A-Z0-9_]+", (ROOT / page).read_text("utf-8")):
        setting = name.removesuffix("_FILE")  # any secret may be given as a file
        assert f"`{setting}`" in reference or name.startswith(("GRAPHMEM_TEST_", "GRAPHMEM_RECORD_")), name


def test_the_example_in_ones_own_process_prints_what_it_shows(
    local_environment: dict[str, str], local_user: str
) -> None:
    section = (ROOT / "docs/clients.md").read_text("utf-8").partition("## In your own process")[2]
    shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, re.DOTALL)
    assert shown
    done = run_python(["-c", shown[1].replace('"ada"', f'"{local_user}"')], local_environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown[2]
