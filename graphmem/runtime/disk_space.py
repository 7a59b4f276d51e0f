"""How much disk space must be free, and how much is."""

from __future__ import annotations

import shutil
from pathlib import Path

_MEGABYTE = 1024**2

MIN_FREE_AFTER_DOWNLOAD = 64 * _MEGABYTE
"""Bytes that must remain free on the disk of the cache after a download."""

MIN_FREE_FOR_SERVER = 512 * _MEGABYTE
"""Bytes that must be free on the disk of the data folder for the embedded Neo4j to start."""

RECOMMENDED_FREE = 1024 * _MEGABYTE
"""Bytes that must be free for `graphmem doctor` to pass a disk: more than a start needs, so that data can be added."""


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free on the disk of an existing folder."""
    return shutil.disk_usage(folder).free


def to_megabytes(size: int) -> int:
    """Return a number of bytes in megabytes (2**20 bytes), rounded."""
    return round(size / _MEGABYTE)
