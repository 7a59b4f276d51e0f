"""Split of domain/requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from graphmem.consolidation.maintenance_domain import MaintenanceResults, MaintenanceTask
from graphmem.consolidation.models import MAX_PROPOSALS, Proposal
from graphmem.models.receipt import Receipt
from graphmem.runtime.field_types import Id
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.validation import RequestBody


class ConsolidationIn(RequestBody):
    """A consolidation of one user or of all; `proposals`, curated by hand for one user, replace discovery."""

    user_id: Id | None = None
    dry_run: bool = False
    wait: bool = False
    proposals: Annotated[list[Proposal], Field(min_length=1, max_length=MAX_PROPOSALS)] | None = None


class RollbackIn(RequestBody):
    """Whether to overwrite later writes, or to change nothing and return what would change."""

    force: bool = False
    dry_run: bool = False


class MaintenanceIn(RequestBody):
    """The maintenance tasks to run; absent: all of them."""

    tasks: list[MaintenanceTask] = Field(default_factory=lambda: [*MaintenanceTask], min_length=1, max_length=4)


class RunListQuery(PageQuery):
    """Which consolidation runs to list."""

    user_id: str | None = Field(None, max_length=255)


class RunAccepted(BaseModel):
    """The consolidation run that was started."""

    run_id: str


class MaintenanceOut(BaseModel):
    """The results of maintenance, task by task."""

    tasks: MaintenanceResults
    receipt: Receipt = Field(default_factory=Receipt)
