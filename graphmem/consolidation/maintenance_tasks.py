"""The tasks of maintenance and their results."""

from __future__ import annotations

from enum import StrEnum


class MaintenanceTask(StrEnum):
    """The tasks of maintenance, in the order in which they run."""

    DECAY = "decay"
    COMPRESS = "compress"
    PRUNE = "prune"
    EXPIRE = "expire"


MaintenanceResults = dict[MaintenanceTask, dict[str, int | str]]
"""What each task did: counts by name, and a `reason` when a task skipped work."""
