"""Response bodies of the HTTP API that wrap what the services return."""

from __future__ import annotations

from pydantic import BaseModel, Field

from graphmem.domain.job import Receipt
from graphmem.domain.maintenance import MaintenanceResults
from graphmem.domain.memory import SaveResult


class SaveOut(BaseModel):
    """The result of each statement, in the order of the request."""

    results: list[SaveResult]


class ErasedMemory(BaseModel):
    """An erased memory and the number of versions it had."""

    id: str
    erased: int


class RunAccepted(BaseModel):
    """The consolidation run that was started."""

    run_id: str


class MaintenanceOut(BaseModel):
    """The results of maintenance, task by task."""

    tasks: MaintenanceResults
    receipt: Receipt = Field(default_factory=Receipt)
