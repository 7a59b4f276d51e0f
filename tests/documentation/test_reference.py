"""The documentation matches the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/concepts.md",
    "docs/explorer.md",
    "docs/extraction.md",
    "docs/frameworks.md",
    "docs/moving.md",
    "docs/neo4j-browser.md",
    "docs/monitoring.md",
    "docs/operations.md",
    "docs/python.md",
    "docs/records.md",
    "docs/retrieval.md",
    "graphmem/README.md",
]


def test_reference_page_matches_the_code() -> None:
    """`make reference` regenerates the page."""
    code = "import sys; sys.path.insert(0, 'docs'); import reference; sys.stdout.write(reference.render())"
    written = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert written.stdout == (ROOT / "docs/reference.md").read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_target_exists(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_every_documented_setting_exists(page: str) -> None:
    reference = (ROOT / "docs/reference.md").read_text("utf-8")
    for name in re.findall(r"GRAPHMEM_[A-Z0-9_]+", (ROOT / page).read_text("utf-8")):
        setting = name.removesuffix("_FILE")  # any secret may be given as a file
        assert f"`{setting}`" in reference or name.startswith("GRAPHMEM_TEST_"), name


def test_readme_example_runs(readme_environment: dict[str, str]) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code
    done = subprocess.run(
        [sys.executable, "-c", code[1]],
        capture_output=True,
        check=False,
        text=True,
        env=readme_environment,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "Ada lives in London / Ada lives in Turin"
    assert lines[0].startswith("supersede")
    assert len(lines) == 4
