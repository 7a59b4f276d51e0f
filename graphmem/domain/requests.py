"""The parameters of operations that no other module defines: request bodies and query strings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphmem.domain.consolidation_models import MAX_PROPOSALS, Proposal
from graphmem.domain.entity import EntityType
from graphmem.domain.formats.document import ImportFormat
from graphmem.domain.listing import QueryStringFilters
from graphmem.domain.maintenance import MaintenanceTask
from graphmem.domain.memory import MemoryIn, MemoryPatch
from graphmem.domain.stored_values import check_request_size
from graphmem.domain.times import Instant
from graphmem.domain.types import Domain, Id

MAX_PAGE_SIZE = 200
"""Most items of one page."""

MAX_LOOKUP_LIMIT = 200
"""Most memories of each entity that a lookup returns."""

MAX_GRAPH_DEPTH = 3
"""Most steps from an entity to the edge of the graph around it."""

ExportFormat = Literal["json", "yaml"]
"""The formats in which a user is exported."""

ExportView = Literal["full", "records"]
"""What an export contains: everything without loss, or the current memories as records to read and edit."""

PageLimit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)]


class RequestBody(BaseModel):
    """A request body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class SaveIn(RequestBody):
    """Statements to save together."""

    memories: list[MemoryIn] = Field(min_length=1)
    infer: bool = Field(
        False, description="Let a model compare them with what is known: insert, reinforce, supersede or skip."
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """The changes of one memory, and the version that they apply to (None: the latest)."""

    patch: MemoryPatch
    if_version: int | None = None


class SummarizeIn(RequestBody):
    """Whether to wait for the summary."""

    wait: bool = False


class TriggerIn(RequestBody):
    """The session to extract from; `user_id` is needed when several users have a session of that id."""

    session_id: Id
    user_id: Id | None = None


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


class PageQuery(BaseModel):
    """Which page of a list to return."""

    limit: PageLimit = 50
    cursor: str | None = Field(None, max_length=2000)


class SessionListQuery(PageQuery):
    """Which sessions to list."""

    active: bool | None = Field(None, description="true: open sessions only; false: closed sessions only.")


class RetryQuery(BaseModel):
    """Where a job that is retried starts."""

    fresh: bool = Field(False, description="true: from its messages; false: from the step that failed.")


class RunListQuery(PageQuery):
    """Which consolidation runs to list."""

    user_id: str | None = Field(None, max_length=255)


class UserListQuery(PageQuery):
    """Which users to list."""

    query: str | None = Field(None, max_length=255, description="Part of a user id, in any case.")


class EntityListQuery(PageQuery):
    """Which entities to list."""

    query: str | None = Field(None, max_length=300, description="Part of a name or alias.")
    type: EntityType | None = Field(None, max_length=64, description="Kind of the entities.")


class LookupQuery(QueryStringFilters):
    """A text that names entities, and which memories of them to return."""

    q: str = Field(description="Any text that names entities.")
    limit: int = Field(20, ge=1, le=MAX_LOOKUP_LIMIT, description="Most memories of each entity.")
    reinforce: bool = Field(True, description="Whether each memory counts as retrieved, which strengthens it.")


class AsOfQuery(BaseModel):
    """The times that a read looks back to; absent: now."""

    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None


class EntityMemoriesQuery(AsOfQuery):
    """Which memories of an entity to list."""

    limit: PageLimit = 50
    include_superseded: bool = False


class EntityGraphQuery(AsOfQuery):
    """How much of the graph around an entity to return."""

    depth: int = Field(1, ge=1, le=MAX_GRAPH_DEPTH, description="Steps from the entity.")


class ContextItemsQuery(BaseModel):
    """Which context items to list."""

    session_id: str | None = Field(None, max_length=255)


class ProfileQuery(BaseModel):
    """Which profile to read."""

    domain: Domain | None = Field(None, description="Also the memories of this domain.")


class ExportQuery(BaseModel):
    """The format and the view of an export."""

    format: ExportFormat = "json"
    view: ExportView = Field("full", description="records: the current memories in a lean form to read and edit.")


class ImportQuery(BaseModel):
    """The format of a document to import."""

    format: ImportFormat = Field(ImportFormat.AUTO, description="Absent: detected from the document.")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A document to import and its format."""

    document: bytes
    format: ImportFormat
