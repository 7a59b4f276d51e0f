"""Models of consolidation: proposals and their verdicts, runs and their changes, rollbacks, maintenance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

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

from graphmem.memories.entity import EntityType
from graphmem.memories.fact import Fact
from graphmem.memories.memory import MAX_CONTENT_LENGTH
from graphmem.memories.snapshot import ElementChange, ElementKind
from graphmem.models.language_model import Receipt
from graphmem.runtime.field_types import (
    EntityName,
    Id,
    Metadata,
    NonBlankText,
    StorableText,
    deduplicate,
)
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.validation import RequestBody, invalid_input_from
from graphmem.tenants.spaces import SpaceId

MAX_PROPOSALS = 2000
"""Maximum curated proposals per request."""


def _require_two(ids: list[str]) -> list[str]:
    ids = deduplicate(ids)
    if len(ids) < 2:
        raise ValueError("must name at least two different memories")
    return ids


def _to_upper(value: object) -> object:
    return value.strip().upper() if isinstance(value, str) else value


UniqueIds = Annotated[list[Id], Field(min_length=1, max_length=100), AfterValidator(deduplicate)]
TwoOrMoreIds = Annotated[list[Id], Field(min_length=2, max_length=100), AfterValidator(_require_two)]
Evidence = Annotated[list[Id], Field(max_length=100), AfterValidator(deduplicate)]


class _Proposal(RequestBody):
    reason: StorableText = Field("", max_length=2000)


class MergeRelation(StrEnum):
    """How the statements of a merge are related, which decides from when their merge holds."""

    SAME = "same"
    COMPLETES = "completes"


class Merge(_Proposal):
    """Replace statements of one fact by a single statement that says all that they say.

    Statements that say the `same` hold together from the earliest start that is known, those of which one `completes`
    another from the latest. Up to there each of them holds by itself. `verified` says of a proposal by hand that a
    person has compared the sentence with its sources. Without it a model verifies the sentence; where none is
    configured, each source must stand in it literally.
    """

    action: Literal["MERGE"]
    memory_ids: TwoOrMoreIds
    content: NonBlankText = Field(max_length=MAX_CONTENT_LENGTH)
    relation: MergeRelation = MergeRelation.COMPLETES
    verified: bool = False


class Close(_Proposal):
    """End a plan that was carried out, given up or replaced, as other memories say; they stay as they are.

    `evidence` names the memories that say so. `verified` says of a proposal by hand that a person knows it. Without it
    a model verifies the proposal; where none is configured, it is refused.
    """

    action: Literal["CLOSE"]
    memory_id: Id
    evidence: Annotated[list[Id], Field(min_length=1, max_length=100), AfterValidator(deduplicate)]
    verified: bool = False

    @model_validator(mode="after")
    def _require_other_evidence(self) -> Close:
        if self.memory_id in self.evidence:
            raise ValueError("must name other memories as evidence")
        return self


class Associate(_Proposal):
    """Make related memories point to one another; nothing else about them changes."""

    action: Literal["ASSOCIATE"]
    memory_ids: TwoOrMoreIds


class UpdateEntity(_Proposal):
    """Set attributes of an entity and add aliases; `summary` and `type` are fields of the entity itself.

    `evidence` names the memories that say so.
    """

    action: Literal["UPDATE_ENTITY"]
    entity_id: Id
    set: Metadata = Field(default_factory=dict)
    add_aliases: list[EntityName] = Field(default_factory=list, max_length=50)
    evidence: Evidence = Field(default_factory=list)

    @model_validator(mode="after")
    def _require_change(self) -> UpdateEntity:
        if not self.set and not self.add_aliases:
            raise ValueError("must set something or add an alias")
        return self


class LinkEntities(_Proposal):
    """Make two entities one: the facts of `merge_id` move to `keep_id`.

    `evidence` names the memories that say that the two are one. `verified` says of a proposal by hand that a person
    knows that they are one: no memory and no name then needs to say so.
    """

    action: Literal["LINK_ENTITIES"]
    keep_id: Id
    merge_id: Id
    evidence: Evidence = Field(default_factory=list)
    verified: bool = False

    @model_validator(mode="after")
    def _require_two_entities(self) -> LinkEntities:
        if self.keep_id == self.merge_id:
            raise ValueError("must name two different entities")
        return self


class CreateEntity(_Proposal):
    """Create an entity for something that memories mention, and link them to it."""

    action: Literal["CREATE_ENTITY"]
    name: EntityName
    type: EntityType
    memory_ids: UniqueIds


def _normalise_action(value: object) -> object:
    if isinstance(value, dict) and "action" in value:
        return {**value, "action": _to_upper(value["action"])}
    return value


Proposal = Annotated[
    Annotated[Merge | Close | Associate | UpdateEntity | LinkEntities | CreateEntity, Field(discriminator="action")],
    BeforeValidator(_normalise_action),
]
"""One of the six actions of consolidation; any other action is invalid input."""

_PROPOSALS: TypeAdapter[list[Merge | Close | Associate | UpdateEntity | LinkEntities | CreateEntity]] = TypeAdapter(
    Annotated[list[Proposal], Field(min_length=1, max_length=MAX_PROPOSALS)]
)


def parse_proposals(values: Sequence[object]) -> list[Proposal]:
    """Parse proposals given as plain data; raise InvalidInput with one error for each invalid field."""
    try:
        return _PROPOSALS.validate_python(list(values))
    except ValidationError as error:
        detail = "A proposal is invalid: see the list of errors."
        raise invalid_input_from(error, detail, path=["proposals"]) from None


class Agreement(StrEnum):
    """How a statement and the sentence that takes its place agree; anything but `same` refuses a merge."""

    SAME = "same"
    DENIED = "denied"
    LIMITED = "limited"
    TIME = "time"
    CERTAINTY = "certainty"
    OTHER = "other"
    LOST = "lost"


class CarriedPart(BaseModel):
    """A quote from a statement and the quote from the merged sentence that says it; empty if nothing does."""

    words: str
    result: str


class StatementCheck(BaseModel):
    """How a merged sentence carries one of its sources, part by part."""

    memory_id: str
    parts: list[CarriedPart] = Field(default_factory=list)
    agreement: Agreement


class StatementQuote(BaseModel):
    """A quote from a memory."""

    memory_id: str
    words: str


class ValueQuote(StatementQuote):
    """A quote from a memory that gives an entity a name or an attribute."""

    value: str


class Verification(BaseModel):
    """What a second model call quotes for and against a proposal; its quotes are checked when it is executed.

    - `differences`: what it found different, in words
    - `one_fact`, `statements`, `added`: of a merge, whether its sources tell one fact, what carries each of them, and
      quotes of what no source says
    - `closing`: quotes that say that a plan was carried out, given up or replaced
    - `identity`, `apart`: of a link, quotes that say that the two names are one, and that they are two
    - `values`: of an entity's update, quotes for each value
    """

    differences: str = ""
    one_fact: bool | None = None
    statements: list[StatementCheck] = Field(default_factory=list)
    added: list[str] = Field(default_factory=list)
    closing: list[StatementQuote] = Field(default_factory=list)
    identity: list[StatementQuote] = Field(default_factory=list)
    apart: list[StatementQuote] = Field(default_factory=list)
    values: list[ValueQuote] = Field(default_factory=list)


class ProposalVerdict(StrEnum):
    """The outcome of a proposal; `planned` replaces `executed` in a dry run and in an aborted run."""

    WAITING = "waiting"
    PLANNED = "planned"
    EXECUTED = "executed"
    REFUSED = "refused"
    STALE = "stale"


class ReviewedProposal(BaseModel):
    """A proposal, the versions it was made from, and its verdict.

    - `seen`: the version of each memory that it names, and the time of change of each entity, by id
    - `verification`: what a second model call quoted; `verified_by`: the key of the person who verified it by hand
    - `result_id`: the memory or entity that the proposal created or changed
    """

    proposal: Proposal
    verdict: ProposalVerdict = ProposalVerdict.WAITING
    reason: str | None = None
    seen: dict[str, str] = Field(default_factory=dict)
    verification: Verification | None = None
    verified_by: str | None = None
    result_id: str | None = None


PROPOSAL_LIST = TypeAdapter(list[ReviewedProposal])


class RunStatus(StrEnum):
    """The status of a consolidation run; the loss guard ends a run as `aborted`."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled_back"

    @property
    def is_final(self) -> bool:
        """Whether the run has ended."""
        return self not in (RunStatus.QUEUED, RunStatus.RUNNING)


class RunTrigger(StrEnum):
    """The trigger of a run."""

    NIGHTLY = "nightly"
    ON_DEMAND = "on_demand"
    CURATED = "curated"
    ROLLBACK = "rollback"


class RunPhase(StrEnum):
    """The last stage that a run has finished; an executed run writes profiles before it is done."""

    NEW = "new"
    DISCOVERED = "discovered"
    ANALYSED = "analysed"
    EXECUTED = "executed"
    DONE = "done"


class MemoryBatch(BaseModel):
    """Memories analysed in one model call; `old` ones are candidates for compression."""

    model_config = ConfigDict(frozen=True)

    memory_ids: list[str]
    old: bool = False


class ReportedContradiction(BaseModel):
    """Memories that cannot all be true, and that a run left alone because nothing decides between them."""

    model_config = ConfigDict(frozen=True)

    memory_ids: list[str]
    reason: str = ""


CONTRADICTION_LIST = TypeAdapter(list[ReportedContradiction])


class RollbackConflict(BaseModel):
    """An element that was written after the run that a rollback undoes; `fields` are those that differ."""

    kind: ElementKind
    id: str
    memory_id: str | None = None
    fields: list[str] = Field(default_factory=list)
    detail: str


class ConsolidationRun(BaseModel):
    """One consolidation run of a user or a space; of one of all, both are null, and `parts` are its runs."""

    id: str
    user_id: str | None
    space: str | None = None
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
    profiles: int = Field(0, description="Profiles of entities that it wrote.")
    profiled_at: datetime | None = Field(None, description="When its profiles were stored; null: it wrote none.")
    change_count: int = 0
    receipt: Receipt = Field(default_factory=Receipt)
    proposals: list[ReviewedProposal] = Field(default_factory=list)
    contradictions: list[ReportedContradiction] = Field(default_factory=list)
    changes: list[ElementChange] = Field(default_factory=list)
    parts: list[str] = Field(default_factory=list)


class UserContradiction(ReportedContradiction):
    """A contradiction with the run that reported it, and when.

    For a contested memory there is no run; `contested` is the memory to resolve.
    """

    run_id: str | None
    contested: str | None = None
    reported_at: datetime


def contested_pairs(facts: Iterable[Fact]) -> list[UserContradiction]:
    """Return contested memories as contradictions with the memories they contest."""
    return [
        UserContradiction(
            memory_ids=[fact.memory_id, *fact.contests],
            reason="contested: said both ways, with no sign which is right"
            if fact.trust_kind == "user"
            else f"contested: a less trusted source ({fact.trust_kind}) says otherwise",
            run_id=None,
            contested=fact.memory_id,
            reported_at=fact.created_at,
        )
        for fact in facts
    ]


class RollbackElement(BaseModel):
    """A memory, an entity or a message that a rollback concerns; `text` is its statement or its name."""

    kind: ElementKind
    id: str
    memory_id: str | None = None
    text: str | None = None


class RollbackPreview(BaseModel):
    """The preview of a rollback; nothing was changed.

    `goes_back`: what the run wrote and the rollback removes; `comes_back`: what gets its earlier state again; `stays`:
    what later writes keep. With `conflicts`, a rollback needs `force`.
    """

    run_id: str
    goes_back: list[RollbackElement] = Field(default_factory=list)
    comes_back: list[RollbackElement] = Field(default_factory=list)
    stays: list[RollbackElement] = Field(default_factory=list)
    conflicts: list[RollbackConflict] = Field(default_factory=list)


class RollbackResult(BaseModel):
    """The result of a rollback: the run that records it, the number of elements restored, the conflicts overwritten."""

    run_id: str
    rollback_id: str
    status: RunStatus
    restored: int
    conflicts: list[RollbackConflict] = Field(default_factory=list)


class ConsolidationIn(RequestBody):
    """A consolidation of one user, of one space or of all; `proposals`, curated for one of them, replace discovery."""

    user_id: Id | None = None
    space: SpaceId | None = Field(None, description="The space to consolidate, instead of a user.")
    dry_run: bool = False
    wait: bool = False
    proposals: Annotated[list[Proposal], Field(min_length=1, max_length=MAX_PROPOSALS)] | None = None


class RollbackIn(RequestBody):
    """Whether to overwrite later writes, or to change nothing and return what would change."""

    force: bool = False
    dry_run: bool = Field(False, description="Whether to change nothing and only return what would change.")


class MaintenanceTask(StrEnum):
    """The tasks of maintenance, in the order in which they run."""

    DECAY = "decay"
    COMPRESS = "compress"
    PRUNE = "prune"
    EXPIRE = "expire"


MaintenanceResults = dict[MaintenanceTask, dict[str, int | str]]
"""The result of each task: counts by name, and a `reason` when a task skipped work."""


class MaintenanceIn(RequestBody):
    """The maintenance tasks to run; defaults to all."""

    tasks: list[MaintenanceTask] = Field(default_factory=lambda: [*MaintenanceTask], min_length=1, max_length=4)


class RunListQuery(PageQuery):
    """The consolidation runs to list."""

    user_id: str | None = Field(None, max_length=255)
    space: SpaceId | None = Field(None, description="Only the runs of this space.")


class RunAccepted(BaseModel):
    """The consolidation run that was started."""

    run_id: str


class MaintenanceOut(BaseModel):
    """The results of maintenance, task by task."""

    tasks: MaintenanceResults
    receipt: Receipt = Field(default_factory=Receipt)
