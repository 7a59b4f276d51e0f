"""Consolidation as callers see it: what may be proposed, what became of it, what it changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from graphmem.domain.entity import EntityType
from graphmem.domain.job import Receipt
from graphmem.domain.memory import MAX_CONTENT_LENGTH
from graphmem.domain.text import NonBlankText, StorableText
from graphmem.domain.types import EntityName, Id, Metadata, deduplicate
from graphmem.domain.validation import invalid_input_from

MAX_PROPOSALS = 2000


def _require_two(ids: list[str]) -> list[str]:
    ids = deduplicate(ids)
    if len(ids) < 2:
        raise ValueError("must name at least two different memories")
    return ids


def _to_upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


UniqueIds = Annotated[list[Id], Field(min_length=1, max_length=100), AfterValidator(deduplicate)]
TwoOrMoreIds = Annotated[list[Id], Field(min_length=2, max_length=100), AfterValidator(_require_two)]


class _Proposal(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: StorableText = Field("", max_length=2000)


class Merge(_Proposal):
    """Two or more statements of one fact become one, which says all that they said."""

    action: Literal["MERGE"]
    memory_ids: TwoOrMoreIds
    content: NonBlankText = Field(max_length=MAX_CONTENT_LENGTH)


class Associate(_Proposal):
    """Memories that belong together point to one another; nothing else about them changes."""

    action: Literal["ASSOCIATE"]
    memory_ids: TwoOrMoreIds


class UpdateEntity(_Proposal):
    """An entity gets attributes (`summary` and `type` are its own) and further names."""

    action: Literal["UPDATE_ENTITY"]
    entity_id: Id
    set: Metadata = Field(default_factory=dict)
    add_aliases: list[EntityName] = Field(default_factory=list, max_length=50)

    @model_validator(mode="after")
    def _require_change(self) -> UpdateEntity:
        if not self.set and not self.add_aliases:
            raise ValueError("must set something or add an alias")
        return self


class LinkEntities(_Proposal):
    """Two entities are one thing under two names; the facts of `merge_id` move to `keep_id`."""

    action: Literal["LINK_ENTITIES"]
    keep_id: Id
    merge_id: Id

    @model_validator(mode="after")
    def _require_two_entities(self) -> LinkEntities:
        if self.keep_id == self.merge_id:
            raise ValueError("must name two different entities")
        return self


class CreateEntity(_Proposal):
    """Something that memories speak of becomes an entity of its own, which they mention."""

    action: Literal["CREATE_ENTITY"]
    name: EntityName
    type: EntityType
    memory_ids: UniqueIds


def _normalise_action(value: object) -> object:
    if isinstance(value, dict) and "action" in value:
        return {**value, "action": _to_upper(value["action"])}
    return value


Proposal = Annotated[
    Annotated[Merge | Associate | UpdateEntity | LinkEntities | CreateEntity, Field(discriminator="action")],
    BeforeValidator(_normalise_action),
]
"""One of the five actions of consolidation; anything else is refused."""

_PROPOSALS: TypeAdapter[list[Merge | Associate | UpdateEntity | LinkEntities | CreateEntity]] = TypeAdapter(
    Annotated[list[Proposal], Field(min_length=1, max_length=MAX_PROPOSALS)]
)


def parse_proposals(values: Sequence[object]) -> list[Proposal]:
    """Return proposals given as plain data; raise InvalidInput that lists what is wrong with which."""
    try:
        return _PROPOSALS.validate_python(list(values))
    except ValidationError as error:
        detail = "A proposal cannot be used: see the list of errors."
        raise invalid_input_from(error, detail, path=["proposals"]) from None


class ProposalVerdict(StrEnum):
    """What became of a proposal."""

    WAITING = "waiting"
    PLANNED = "planned"
    EXECUTED = "executed"
    REFUSED = "refused"
    STALE = "stale"


class ReviewedProposal(BaseModel):
    """A proposal, the state of things it was made from, and what became of it.

    `seen` maps the ids it rests on to their version (a memory) or time of change (an entity); `result_id` is the
    memory or entity that came of it.
    """

    proposal: Proposal
    verdict: ProposalVerdict = ProposalVerdict.WAITING
    reason: str | None = None
    seen: dict[str, str] = Field(default_factory=dict)
    result_id: str | None = None

    @staticmethod
    def list_from_json(text: str | None) -> list[ReviewedProposal]:
        """Return the list that `list_to_json` wrote."""
        return _REVIEWED_PROPOSALS.validate_json(text or "[]")

    @staticmethod
    def list_to_json(reviewed: Sequence[ReviewedProposal]) -> str:
        """Return proposals and what became of them as JSON."""
        return _REVIEWED_PROPOSALS.dump_json(list(reviewed)).decode()


_REVIEWED_PROPOSALS = TypeAdapter(list[ReviewedProposal])


class RunStatus(StrEnum):
    """Where a consolidation run stands; `aborted` is the loss guard's."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled_back"

    @property
    def is_final(self) -> bool:
        """Whether the run does nothing more by itself."""
        return self not in (RunStatus.QUEUED, RunStatus.RUNNING)


class RunTrigger(StrEnum):
    """What a run was started by."""

    NIGHTLY = "nightly"
    ON_DEMAND = "on_demand"
    CURATED = "curated"
    ROLLBACK = "rollback"


class RunPhase(StrEnum):
    """What a run has behind it."""

    NEW = "new"
    DISCOVERED = "discovered"
    ANALYSED = "analysed"
    DONE = "done"


class GraphChange(BaseModel):
    """One element of the graph before and after a run; None where it did not exist.

    `kind` is fact (one version of a memory), entity, episode or mention; the images hold its properties and, as
    `from`, `to` and `labels`, where it lies. The vector, which no run changes, is kept on the node in the graph.
    """

    kind: str
    id: str
    memory_id: str | None = None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class RollbackConflict(BaseModel):
    """Something a rollback would restore that has been written to since; `fields` are those that differ."""

    kind: str
    id: str
    memory_id: str | None = None
    fields: list[str] = Field(default_factory=list)
    detail: str


class ConsolidationRun(BaseModel):
    """One consolidation run of a user, or of all users of a tenant (`user_id` null, `parts` its runs)."""

    id: str
    user_id: str | None
    status: RunStatus
    phase: RunPhase = RunPhase.NEW
    trigger: RunTrigger
    dry_run: bool = False
    actor: str | None = None
    reason: str | None = None
    created_at: datetime
    finished_at: datetime | None = None
    undoes: str | None = None
    undone_by: str | None = None
    candidates: int = 0
    batches: int = 0
    batches_done: int = 0
    executed: int = 0
    refused: int = 0
    change_count: int = 0
    receipt: Receipt = Field(default_factory=Receipt)
    proposals: list[ReviewedProposal] = Field(default_factory=list)
    changes: list[GraphChange] = Field(default_factory=list)
    parts: list[str] = Field(default_factory=list)


class RollbackResult(BaseModel):
    """What a rollback did: the run that records it, how many elements it restored, what it overwrote with force."""

    run_id: str
    rollback_id: str
    status: RunStatus
    restored: int
    conflicts: list[RollbackConflict] = Field(default_factory=list)
