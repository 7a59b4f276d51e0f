"""Converting arguments of the Python API to models, and reading responses and job actions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypedDict, TypeVar, cast, overload

import httpx
from pydantic import BaseModel

from graphmem.consolidation.models import (
    ConsolidationRun,
    MaintenanceOut,
    MaintenanceResults,
    RollbackPreview,
    RollbackResult,
    RunAccepted,
)
from graphmem.conversations.session import MessageIn, MessagesAccepted, MessagesIn
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.filters import SortOrder, TagFilter
from graphmem.memories.memory import ErasedMemory, MemoryIn, MemoryType, SaveAction, SaveIn, SaveOut, SaveResult, Scope
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.validation import validate_arguments, validate_input
from graphmem.search.models import Cut, MessageHit, MessageSearchResponse
from graphmem.tenants.trust import SourceKind, StatedKind

M = TypeVar("M", bound=BaseModel)

MemoryInput = str | MemoryIn | Mapping[str, Any]
"""A statement to save: its text, or the fields of `MemoryIn`, where a name stands for an entity."""

MessageInput = MessageIn | Mapping[str, Any]
"""A message of a conversation: at least `role` and `content`."""

TimeInput = datetime | date | str
"""A time with an offset, or a date, which means its first moment in this machine's time zone.

A string is read as RFC 3339, or as a date such as 2020-01-01.
"""


SpacesInput = Literal["all", "none"] | Sequence[str]
"""Spaces to read besides the user's own memory: their ids, all that the user may read, or none."""


class FilterOptions(TypedDict, total=False):
    """The fields of `SharedFilters`."""

    subtype: str | None
    domain: str | None
    scope: Scope | str | None
    entity: str | None
    min_confidence: float | None
    min_importance: float | None
    created_after: TimeInput | None
    created_before: TimeInput | None
    source_kind: SourceKind | None
    min_trust: StatedKind | None
    speaker: str | None
    agent: str | None
    session_id: str | None
    valid_as_of: TimeInput | None
    known_as_of: TimeInput | None
    include_superseded: bool | None
    include_contested: bool | None


class SearchOptions(FilterOptions, total=False):
    """The fields of `SearchQuery` other than the query."""

    limit: int | None
    types: Sequence[MemoryType | str] | None
    tags: TagFilter | Mapping[str, Sequence[str]] | None
    metadata: Mapping[str, str | float | bool | Sequence[str | float | bool | None] | None]
    min_score: float | None
    cut: Cut | None
    include_messages: bool | None
    semantic: bool | None
    keyword: bool | None
    graph: bool | None
    rerank: bool | None
    persona: Mapping[str, float] | None
    reinforce: bool | None
    explain: bool | None
    spaces: SpacesInput | None


class ContextOptions(TypedDict, total=False):
    """The fields of `ContextRequest` other than the question."""

    session_id: str | None
    intent: str | None
    domain: str | None
    tags: TagFilter | Mapping[str, Sequence[str]] | None
    domains: Sequence[str] | None
    token_budget: int | None
    top: int | None
    sources: bool | None
    recent_messages: bool | None
    profiles: bool | None
    profile_pack: Mapping[str, Any] | None
    valid_as_of: TimeInput | None
    known_as_of: TimeInput | None
    min_trust: StatedKind | None
    spaces: SpacesInput | None
    space: str | None


class AskOptions(TypedDict, total=False):
    """The fields of `AskRequest` other than the question."""

    session_id: str | None
    token_budget: int | None
    valid_as_of: TimeInput | None
    known_as_of: TimeInput | None
    min_trust: StatedKind | None
    spaces: SpacesInput | None
    space: str | None
    reinforce: bool | None


class QueryStringOptions(FilterOptions, total=False):
    """The fields of `QueryStringFilters`."""

    type: Sequence[MemoryType | str] | None
    tag: Sequence[str] | None
    not_tag: Sequence[str] | None
    metadata: Mapping[str, str | float | bool | Sequence[str | float | bool | None] | None]


class ListMemoriesFilters(QueryStringOptions, total=False):
    """The fields of `ListFilters` except those for paging."""

    keyword: str | None
    sort: SortOrder | str | None
    space: str | None
    spaces: SpacesInput | None


class ListMemoriesOptions(ListMemoriesFilters, total=False):
    """The fields of `ListFilters`."""

    limit: int | None
    cursor: str | None


class ListChangesOptions(TypedDict, total=False):
    """The fields of `ChangesQuery`."""

    since: TimeInput | None
    until: TimeInput | None
    limit: int | None
    cursor: str | None
    space: str | None


class LookupOptions(QueryStringOptions, total=False):
    """The fields of `LookupQuery` other than the text."""

    limit: int | None
    reinforce: bool | None
    spaces: SpacesInput | None


class MemoryChanges(TypedDict, total=False):
    """The fields of `MemoryPatch`."""

    content: str | Mapping[str, Any]
    content_data: Mapping[str, Any] | None
    type: MemoryType | str
    subtype: str | None
    tags: Sequence[str]
    importance: float
    confidence: float
    valid_at: TimeInput | None
    invalid_at: TimeInput | None
    expires_at: TimeInput | None
    associations: Sequence[str]
    metadata: Mapping[str, Any]
    domain: str | None
    scope: Scope | str


def without_none(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def given(model: type[M], /, **values: Any) -> M:
    """Return the arguments that are not None as a model; raise InvalidInput if they are invalid."""
    return validate_arguments(model, without_none(**values))


def with_options(model: type[M], name: str, value: object, options: Mapping[str, Any]) -> M:
    """Return a model of `value` as the field `name`, with options; they override those of a `value` of that model."""
    stated = value.model_dump(exclude_unset=True) if isinstance(value, model) else {name: value}
    return validate_arguments(model, {**stated, **options})


def as_dicts(items: Sequence[object]) -> list[object]:
    """Return a list with its mappings as dicts, since pydantic reads no other mappings."""
    return [dict(item) if isinstance(item, Mapping) else item for item in items]


def parse_memories(given: MemoryInput | Sequence[MemoryInput], *, infer: bool = False) -> SaveIn:
    """Return one statement or several as a save; raise InvalidInput if one is invalid."""
    statements = [given] if isinstance(given, (str, MemoryIn, Mapping)) else given
    fields = {"memories": [_to_memory_fields(statement) for statement in statements], "infer": infer}
    return validate_arguments(SaveIn, fields)


def _to_memory_fields(statement: MemoryInput) -> object:
    """Return a statement in a form that pydantic reads: a text becomes its content, a name an entity."""
    if isinstance(statement, str):
        return {"content": statement}
    if not isinstance(statement, Mapping):
        return statement
    fields = {name: _to_entity(statement[name]) for name in ("subject", "object") if name in statement}
    entities = statement.get("entities")
    if isinstance(entities, (list, tuple)):
        fields["entities"] = [_to_entity(entity) for entity in entities]
    return {**statement, **fields}


def _to_entity(given: object) -> object:
    return {"name": given} if isinstance(given, str) else given


def is_message(item: object) -> bool:
    """Return whether a list item is a message: only messages have a role."""
    return isinstance(item, MessageIn) or (isinstance(item, Mapping) and "role" in item)


def parse_messages(messages: Sequence[MessageInput], **options: Any) -> MessagesIn:
    """Return a batch of messages; options that are None are left at their defaults."""
    return validate_input(MessagesIn, {"messages": as_dicts(messages), **without_none(**options)})


P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class UserMethod(Protocol[P, T_co]):
    """A method whose first argument is the user; with `user_id=`, the other positional arguments keep their order."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    @overload
    def __call__(self, *args: Any, user_id: str, **kwargs: Any) -> T_co: ...


class _UnboundUserMethod(Protocol[P, T_co]):
    def __get__(self, client: Any, owner: type) -> UserMethod[P, T_co]: ...


def about_user(method: Callable[Concatenate[Any, P], T]) -> _UnboundUserMethod[P, T]:
    """Let callers pass the user of a method, its first parameter, by name next to positional arguments."""

    call: Callable[..., T] = method

    @functools.wraps(method)
    def with_user(client: Any, /, *args: Any, **kwargs: Any) -> T:
        if args and "user_id" in kwargs:
            return call(client, kwargs.pop("user_id"), *args, **kwargs)
        return call(client, *args, **kwargs)

    return cast("_UnboundUserMethod[P, T]", with_user)


def read_saves(job: Job) -> Iterator[tuple[SaveAction, str, list[str]]]:
    """Yield the memories that a job saved."""
    for action in job.actions:
        if action.get("memory_id") and action.get("action") in {*SaveAction} - {SaveAction.SKIP}:
            yield SaveAction(action["action"]), action["memory_id"], action.get("superseded") or []


def read_refusals(job: Job, *, is_empty: bool) -> list[SaveResult]:
    """Return a result for each refused statement of a job; if `is_empty`, also why the job saved nothing."""
    if job.status is JobStatus.FAILED:
        raise Unavailable(
            f"The messages are stored, but their extraction failed ({job.error}): call retry_job({job.id!r}).",
            retry_after=None,
        )
    refused = [skipped(action.get("reason")) for action in job.actions if action.get("action") == "refuse"]
    if not (is_empty and not refused):
        return refused
    if not job.status.is_final:
        return [skipped(f"The extraction has not ended: read its result with job({job.id!r}).")]
    return [skipped(job.reason)] if job.reason else []


def skipped(reason: str | None) -> SaveResult:
    """Return the result of a statement that was not saved."""
    return SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)


def parse_saved(response: httpx.Response) -> list[SaveResult]:
    """Return the results of a save."""
    return SaveOut.model_validate(response.json()).results


def parse_erased(response: httpx.Response) -> int:
    """Return the number of erased versions."""
    return ErasedMemory.model_validate(response.json()).erased


def parse_message_hits(response: httpx.Response) -> list[MessageHit]:
    """Return the messages found by a search."""
    return MessageSearchResponse.model_validate(response.json()).results


def parse_accepted_or_job(response: httpx.Response) -> MessagesAccepted | Job:
    """Return the messages' job, or their acceptance."""
    # A job that waits for a model is not finished: its status is 202, as for messages that were only accepted.
    if "status" in response.json():
        return Job.model_validate_json(response.content)
    return MessagesAccepted.model_validate(response.json())


def parse_run_or_id(response: httpx.Response) -> ConsolidationRun | str:
    """Return a finished run, or the id of a started one."""
    if response.status_code == httpx.codes.OK:
        return ConsolidationRun.model_validate(response.json())
    return RunAccepted.model_validate(response.json()).run_id


def parse_rollback(response: httpx.Response) -> RollbackResult | RollbackPreview:
    """Return the result of a rollback, or its preview."""
    answer = response.json()
    model = RollbackResult if "rollback_id" in answer else RollbackPreview
    return model.model_validate(answer)


def parse_maintenance(response: httpx.Response) -> MaintenanceResults:
    """Return the results of maintenance tasks."""
    return MaintenanceOut.model_validate(response.json()).tasks


def parse_object(response: httpx.Response) -> dict[str, Any]:
    """Return a JSON object."""
    return dict(response.json())


def read_bytes(response: httpx.Response) -> bytes:
    """Return the content unchanged."""
    return response.content
