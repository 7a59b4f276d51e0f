"""One meaning per name: no two classes of the product share one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def class_places(root: Path) -> dict[str, list[str]]:
    """Return where the classes of `graphmem` and `api` are defined, by name without leading underscores."""
    places: dict[str, list[str]] = defaultdict(list)
    for package in ("graphmem", "api"):
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places[node.name.lstrip("_")].append(f"{path.relative_to(root)}:{node.lineno}")
    return places


def test_no_class_name_is_defined_twice() -> None:
    places = class_places(ROOT)
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_private_class_clashes_with_a_public_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "graphmem").mkdir()
    (tmp_path / "graphmem/first.py").write_text("class Reader: ...")
    (tmp_path / "graphmem/second.py").write_text("def make():\n    class _Reader: ...")
    assert class_places(tmp_path) == {"Reader": ["graphmem/first.py:1", "graphmem/second.py:2"]}
