"""The navigation of the site names every page, and every link leads to a page and a heading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.documentation.test_examples import make_anchor
from tests.documentation.test_reference import PAGES, ROOT

CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def nav_pages(entries: list[dict[str, object]]) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    for entry in entries:
        for value in entry.values():
            if isinstance(value, list):
                yield from nav_pages(value)
            else:
                yield str(value)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    return {*map(make_anchor, re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE))}


def test_navigation_names_every_page_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    home, *pages = nav_pages(site["nav"])
    assert home == "index.md"  # the README, added by `docs/mkdocs_hooks.py`
    assert sorted(pages) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", [*PAGES, "docs/reference.md"])
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    path = ROOT / page
    for target, anchor in LINK.findall(CODE.sub("", path.read_text("utf-8"))):
        linked = path.parent / target if target else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def test_every_picture_is_shown_on_a_page() -> None:
    texts = [(ROOT / page).read_text("utf-8") for page in PAGES]
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in {".png", ".svg"}]
    assert [path.name for path in pictures if not any(path.name in text for text in texts)] == []
