"""Shapes of requests and answers that only HTTP has; all others are the domain's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from graphmem.domain.api_key import ApiKey
from graphmem.domain.consolidation_models import Proposal
from graphmem.domain.job import Receipt
from graphmem.domain.memory import MemoryIn, SaveResult
from graphmem.domain.session import MessagesIn
from graphmem.domain.types import Id


class StrictModel(BaseModel):
    """A request body that names no unknown field."""

    model_config = ConfigDict(extra="forbid")


class SaveIn(StrictModel):
    """Statements to be saved together."""

    memories: list[MemoryIn] = Field(min_length=1)


class SaveOut(BaseModel):
    """What became of each statement, in the order they were sent."""

    results: list[SaveResult]


class ErasedMemory(BaseModel):
    """A memory erased everywhere, and how many versions of it there were."""

    id: str
    erased: int


class MessagesWithUserIn(MessagesIn):
    """A batch of turns from callers that carry the user in the body; `user_id` is read too."""

    user_id: Id = Field(validation_alias=AliasChoices("userId", "user_id"), serialization_alias="userId")

    def without_user(self) -> MessagesIn:
        """Return the batch without its user."""
        return MessagesIn.model_validate(self.model_dump(exclude={"user_id"}, exclude_unset=True))


class SummarizeIn(StrictModel):
    """Whether to wait for the summary."""

    wait: bool = False


class TriggerIn(StrictModel):
    """The session to extract from; `user_id` tells whose it is when several users have one of that id."""

    session_id: Id
    user_id: Id | None = None


class ConsolidationIn(StrictModel):
    """A consolidation of one user or all; with `proposals`, curated by hand for one user, nothing is discovered."""

    user_id: Id | None = None
    dry_run: bool = False
    wait: bool = False
    proposals: Annotated[list[Proposal], Field(min_length=1, max_length=2000)] | None = None


class RunAccepted(BaseModel):
    """The run that will do it."""

    run_id: str


class RollbackIn(StrictModel):
    """Whether to restore over later writes."""

    force: bool = False


MaintenanceTask = Literal["decay", "compress", "prune", "expire"]
ALL_MAINTENANCE_TASKS: list[MaintenanceTask] = ["decay", "compress", "prune", "expire"]


class MaintenanceIn(StrictModel):
    """Which maintenance to do, in this order; absent: all of it."""

    tasks: list[MaintenanceTask] = Field(default_factory=ALL_MAINTENANCE_TASKS.copy, min_length=1, max_length=4)


class KeyList(BaseModel):
    """Keys without their secrets."""

    items: list[ApiKey]


class HealthOut(BaseModel):
    """Alive."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """Ready, part by part."""

    status: Literal["ready"] = "ready"
    parts: dict[str, str]


class MaintenanceOut(BaseModel):
    """What maintenance did, task by task."""

    tasks: dict[str, Any]
    receipt: Receipt = Field(default_factory=Receipt)
