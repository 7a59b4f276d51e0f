"""A module that calls itself pure is one that import-linter keeps away from stores, and the other way round."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_contract_of_pure_modules_lists_those_that_say_so() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (listed,) = [contract["source_modules"] for contract in contracts if contract["name"].startswith("Pure modules")]
    marked = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "graphmem").rglob("*.py")
        if path.read_text("utf-8").partition("\n")[0].removesuffix('"""').endswith(" Pure.")
    ]
    assert listed == sorted(marked)
