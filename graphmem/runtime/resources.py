"""Locations of the files of graphmem that are not Python, in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def cypher_root() -> Path:
    """Return the folder of the `.cypher` files: inside the installed package, or beside it in a checkout."""
    packaged = _PACKAGE / "_resources" / "cypher"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "cypher"
