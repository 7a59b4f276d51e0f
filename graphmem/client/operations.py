"""Every route of the HTTP API as a function from what a caller says to the call that says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import httpx

from graphmem.client.api_call import ApiCall, join_path, parse_list, parse_model, to_json_body, user_path, without_none
from graphmem.domain.api_key import ApiKey, ApiKeyIn, CreatedApiKey, KeyRole
from graphmem.domain.behavior_patterns import BehaviorPattern
from graphmem.domain.consolidation_models import ConsolidationRun, Proposal, RollbackResult
from graphmem.domain.context_models import ContextItem, ContextRequest, ContextResponse
from graphmem.domain.entity import Entity
from graphmem.domain.export import ErasureResult, ImportResult
from graphmem.domain.formats.document import ImportFormat, parse_format_name
from graphmem.domain.job import Job
from graphmem.domain.learned_preferences import FeedbackResult, LearnedPreference
from graphmem.domain.listing import ListFilters, Page, SortOrder
from graphmem.domain.memory import Memory, MemoryPatch, MemoryType, MemoryVersion, SaveResult, Scope
from graphmem.domain.search_models import (
    EntityGraph,
    LookupResponse,
    MessageHit,
    MessageSearchResponse,
    SearchQuery,
    SearchResponse,
)
from graphmem.domain.session import ExtractionTriggered, FeedbackIn, Message, MessagesAccepted, Session, SessionIn
from graphmem.service.memory_api import (
    ContextOptions,
    MemoryInput,
    MessageInput,
    SearchOptions,
    TimeInput,
    parse_context_request,
    parse_memories,
    parse_messages,
    parse_search_query,
    validate_input,
)

RUNS_PATH = "/v1/admin/consolidations"
KEYS_PATH = "/v1/admin/keys"


class ListMemoriesOptions(TypedDict, total=False):
    """Which memories to list: the fields of `ListFilters`."""

    type: Sequence[MemoryType | str]
    tag: Sequence[str]
    not_tag: Sequence[str]
    domain: str | None
    scope: Scope | str | None
    entity: str | None
    keyword: str | None
    session_id: str | None
    min_importance: float | None
    min_confidence: float | None
    created_after: TimeInput | None
    created_before: TimeInput | None
    valid_as_of: TimeInput | None
    known_as_of: TimeInput | None
    include_superseded: bool
    sort: SortOrder | str
    limit: int
    cursor: str | None


class MemoryChanges(TypedDict, total=False):
    """What to change of a memory: the fields of `MemoryPatch`."""

    content: str
    type: MemoryType | str
    tags: Sequence[str]
    importance: float
    confidence: float
    valid_at: TimeInput | None
    invalid_at: TimeInput | None
    expires_at: TimeInput | None
    metadata: Mapping[str, Any]


# Memories


def add(user_id: str, memories: MemoryInput | Sequence[MemoryInput]) -> ApiCall[list[SaveResult]]:
    """Save statements without a model: all of them or none."""
    content = to_json_body(
        {"memories": [each.model_dump(mode="json", exclude_unset=True) for each in parse_memories(memories)]}
    )
    return ApiCall(
        "POST", user_path(user_id, "memories"), parse_list(SaveResult, "results"), content=content, is_write=True
    )


def memories(user_id: str, **filters: Unpack[ListMemoriesOptions]) -> ApiCall[Page[Memory]]:
    """List memories by attributes, without ranking."""
    params = validate_input(ListFilters, filters).model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return ApiCall("GET", user_path(user_id, "memories"), parse_model(Page[Memory]), params=params)


def memory(user_id: str, memory_id: str) -> ApiCall[Memory]:
    """Read a memory, deleted or not."""
    return ApiCall("GET", user_path(user_id, "memories", memory_id), parse_model(Memory))


def update_memory(
    user_id: str, memory_id: str, *, if_version: int | None = None, **changes: Unpack[MemoryChanges]
) -> ApiCall[Memory]:
    """Correct a memory in a new version; raise VersionConflict when `if_version` is not the latest."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    content = to_json_body(validate_input(MemoryPatch, changes))
    route = user_path(user_id, "memories", memory_id)
    return ApiCall("PATCH", route, parse_model(Memory), content=content, headers=headers, is_write=True)


def delete_memory(user_id: str, memory_id: str) -> ApiCall[Memory]:
    """End a memory, which stays in history."""
    return ApiCall("DELETE", user_path(user_id, "memories", memory_id), parse_model(Memory), is_write=True)


def erase_memory(user_id: str, memory_id: str) -> ApiCall[int]:
    """Erase a memory everywhere (admin) and return how many versions there were."""
    route = user_path(user_id, "memories", memory_id)
    return ApiCall("DELETE", route, lambda answer: int(answer.json()["erased"]), params={"hard": "true"}, is_write=True)


def history(user_id: str, memory_id: str) -> ApiCall[list[MemoryVersion]]:
    """Return every version of a memory, oldest first, with why it ended and what replaced it."""
    return ApiCall("GET", user_path(user_id, "memories", memory_id, "history"), parse_list(MemoryVersion))


def revert_memory(user_id: str, memory_id: str) -> ApiCall[Memory]:
    """Undo one supersession: reopen the memory and close what replaced it."""
    return ApiCall("POST", user_path(user_id, "memories", memory_id, "revert"), parse_model(Memory), is_write=True)


# Recall


def search(user_id: str, query: str | SearchQuery, **filters: Unpack[SearchOptions]) -> ApiCall[SearchResponse]:
    """Return the memories that answer a query, best first."""
    return ApiCall(
        "POST",
        user_path(user_id, "search"),
        parse_model(SearchResponse),
        content=to_json_body(parse_search_query(query, filters)),
    )


def search_messages(user_id: str, query: str, *, limit: int = 5) -> ApiCall[list[MessageHit]]:
    """Return the messages that answer a query, best first."""
    content = to_json_body({"query": query, "limit": limit})
    read = parse_model(MessageSearchResponse)
    return ApiCall(
        "POST", user_path(user_id, "messages", "search"), lambda answer: read(answer).results, content=content
    )


def lookup(user_id: str, text: str, *, limit: int = 20) -> ApiCall[LookupResponse]:
    """Return the entities a text names and what is known about them; no model, no embedding."""
    route = user_path(user_id, "entities", "lookup")
    return ApiCall("GET", route, parse_model(LookupResponse), params={"q": text, "limit": limit})


def entities(
    user_id: str, *, query: str | None = None, type: str | None = None, limit: int = 50, cursor: str | None = None
) -> ApiCall[Page[Entity]]:
    """List entities by name; `query` is part of a name or alias."""
    params = without_none(query=query, type=type, limit=limit, cursor=cursor)
    return ApiCall("GET", user_path(user_id, "entities"), parse_model(Page[Entity]), params=params)


def entity(user_id: str, entity_id: str) -> ApiCall[Entity]:
    """Read an entity with its aliases and attributes."""
    return ApiCall("GET", user_path(user_id, "entities", entity_id), parse_model(Entity))


def entity_memories(
    user_id: str,
    entity_id: str,
    *,
    valid_as_of: TimeInput | None = None,
    known_as_of: TimeInput | None = None,
    include_superseded: bool = False,
    limit: int = 50,
) -> ApiCall[list[Memory]]:
    """Return what is known about an entity, the most important first."""
    times = validate_input(ListFilters, {"valid_as_of": valid_as_of, "known_as_of": known_as_of})
    params = without_none(
        limit=limit,
        include_superseded=include_superseded,
        **times.model_dump(mode="json", include={"valid_as_of", "known_as_of"}),
    )
    return ApiCall("GET", user_path(user_id, "entities", entity_id, "memories"), parse_list(Memory), params=params)


def entity_graph(
    user_id: str,
    entity_id: str,
    *,
    depth: int = 1,
    valid_as_of: TimeInput | None = None,
    known_as_of: TimeInput | None = None,
) -> ApiCall[EntityGraph]:
    """Return the entities within `depth` (1 to 3) steps and the memories between them."""
    times = validate_input(ListFilters, {"valid_as_of": valid_as_of, "known_as_of": known_as_of})
    params = without_none(depth=depth, **times.model_dump(mode="json", include={"valid_as_of", "known_as_of"}))
    return ApiCall("GET", user_path(user_id, "entities", entity_id, "graph"), parse_model(EntityGraph), params=params)


def context(
    user_id: str, question: str | ContextRequest, **options: Unpack[ContextOptions]
) -> ApiCall[ContextResponse]:
    """Return what to put before the model for a question, within a token budget."""
    return ApiCall(
        "POST",
        user_path(user_id, "context"),
        parse_model(ContextResponse),
        content=to_json_body(parse_context_request(question, options)),
    )


def preferences(user_id: str) -> ApiCall[list[LearnedPreference]]:
    """List the preferences learned from messages and feedback."""
    return ApiCall("GET", user_path(user_id, "preferences"), parse_list(LearnedPreference))


def patterns(user_id: str) -> ApiCall[list[BehaviorPattern]]:
    """List the behavioural patterns detected in messages."""
    return ApiCall("GET", user_path(user_id, "patterns"), parse_list(BehaviorPattern))


def contexts(user_id: str, *, session_id: str | None = None) -> ApiCall[list[ContextItem]]:
    """List the context items that have not expired, of one session or of all."""
    return ApiCall(
        "GET", user_path(user_id, "contexts"), parse_list(ContextItem), params=without_none(session_id=session_id)
    )


# Conversations


def add_messages(
    user_id: str,
    messages: Sequence[MessageInput],
    *,
    session_id: str | None = None,
    extract: bool = True,
    wait: bool = False,
    timezone: str | None = None,
) -> ApiCall[MessagesAccepted | Job]:
    """Store turns and extract memories in the background; with `wait` return the finished job."""
    batch = parse_messages(messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone)
    return ApiCall(
        "POST",
        user_path(user_id, "messages"),
        _parse_accepted_or_job,
        content=to_json_body(batch),
        is_write=True,
        waits_for_completion=wait,
    )


def sessions(
    user_id: str, *, active: bool | None = None, limit: int = 50, cursor: str | None = None
) -> ApiCall[Page[Session]]:
    """List sessions, the latest first; with `active` only those still open, or only closed ones."""
    params = without_none(active=active, limit=limit, cursor=cursor)
    return ApiCall("GET", user_path(user_id, "sessions"), parse_model(Page[Session]), params=params)


def create_session(
    user_id: str,
    session_id: str | None = None,
    *,
    title: str | None = None,
    topic_tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> ApiCall[Session]:
    """Open a session under an id of your own or a new one; raise Conflict when the id is taken."""
    wanted = without_none(session_id=session_id, title=title, topic_tags=list(topic_tags), metadata=metadata)
    content = to_json_body(validate_input(SessionIn, wanted))
    return ApiCall("POST", user_path(user_id, "sessions"), parse_model(Session), content=content, is_write=True)


def session(user_id: str, session_id: str) -> ApiCall[Session]:
    """Read a session."""
    return ApiCall("GET", user_path(user_id, "sessions", session_id), parse_model(Session))


def session_messages(
    user_id: str, session_id: str, *, limit: int = 50, cursor: str | None = None
) -> ApiCall[Page[Message]]:
    """List the messages of a session, oldest first."""
    params = without_none(limit=limit, cursor=cursor)
    return ApiCall(
        "GET", user_path(user_id, "sessions", session_id, "messages"), parse_model(Page[Message]), params=params
    )


def close_session(user_id: str, session_id: str) -> ApiCall[Session]:
    """End a session; what was not extracted yet is extracted in the background."""
    return ApiCall("POST", user_path(user_id, "sessions", session_id, "close"), parse_model(Session), is_write=True)


def summarize_session(user_id: str, session_id: str, *, wait: bool = False) -> ApiCall[Job]:
    """Write the session's summary and keep it as a memory, in the background; with `wait` the job is finished."""
    route = user_path(user_id, "sessions", session_id, "summarize")
    return ApiCall(
        "POST",
        route,
        parse_model(Job, partition=""),
        content=to_json_body({"wait": wait}),
        is_write=True,
        waits_for_completion=wait,
    )


def feedback(user_id: str, message_id: str, score: int, text: str | None = None) -> ApiCall[FeedbackResult]:
    """Record the user's verdict (1 to 5) on a message and return what was learned from it."""
    content = to_json_body(validate_input(FeedbackIn, without_none(score=score, text=text)))
    route = user_path(user_id, "messages", message_id, "feedback")
    return ApiCall("POST", route, parse_model(FeedbackResult), content=content, is_write=True)


def job(job_id: str) -> ApiCall[Job]:
    """Read where a background job stands."""
    return ApiCall("GET", join_path("v1", "jobs", job_id), parse_model(Job, partition=""))


def retry_job(job_id: str) -> ApiCall[Job]:
    """Queue a failed job again; raise Conflict when it has not failed."""
    return ApiCall("POST", join_path("v1", "jobs", job_id, "retry"), parse_model(Job, partition=""), is_write=True)


def trigger_extraction(session_id: str, user_id: str | None = None) -> ApiCall[ExtractionTriggered]:
    """Extract memories from a session again, in a session of its own (admin)."""
    content = to_json_body(without_none(session_id=session_id, user_id=user_id))
    return ApiCall(
        "POST",
        join_path("_admin", "trigger-memory-extraction-v2"),
        parse_model(ExtractionTriggered),
        content=content,
        is_write=True,
    )


# Administration


def consolidate(
    user_id: str | None = None,
    *,
    dry_run: bool = False,
    wait: bool = False,
    proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
) -> ApiCall[ConsolidationRun | str]:
    """Start a consolidation of one user or all and return the run's id; with `wait` the finished run (admin)."""
    content = to_json_body(without_none(user_id=user_id, dry_run=dry_run, wait=wait, proposals=proposals))
    return ApiCall("POST", RUNS_PATH, _parse_run_or_id, content=content, is_write=True, waits_for_completion=wait)


def runs(*, user_id: str | None = None, limit: int = 50, cursor: str | None = None) -> ApiCall[Page[ConsolidationRun]]:
    """List consolidation runs, the latest first, without their changes (admin)."""
    return ApiCall(
        "GET",
        RUNS_PATH,
        parse_model(Page[ConsolidationRun]),
        params=without_none(user_id=user_id, limit=limit, cursor=cursor),
    )


def run(run_id: str) -> ApiCall[ConsolidationRun]:
    """Read a consolidation run with its proposals and every change it made (admin)."""
    return ApiCall("GET", RUNS_PATH + join_path(run_id), parse_model(ConsolidationRun))


def rollback(run_id: str, *, force: bool = False) -> ApiCall[RollbackResult]:
    """Undo a consolidation run; raise Conflict when later writes touched the same things and not `force` (admin)."""
    content = to_json_body({"force": force})
    return ApiCall(
        "POST",
        RUNS_PATH + join_path(run_id, "rollback"),
        parse_model(RollbackResult),
        content=content,
        is_write=True,
        waits_for_completion=True,
    )


def maintain(*tasks: Literal["decay", "compress", "prune", "expire"]) -> ApiCall[dict[str, Any]]:
    """Run maintenance now, all of it when no task is named, and return what each task did (admin)."""
    content = to_json_body({"tasks": tasks} if tasks else {})
    route = join_path("v1", "admin", "maintenance")
    return ApiCall("POST", route, _parse_maintenance_results, content=content, is_write=True, waits_for_completion=True)


def create_key(name: str, role: KeyRole | str, users: Sequence[str] | None = None) -> ApiCall[CreatedApiKey]:
    """Make a key; its secret is in this answer only (admin)."""
    content = to_json_body(validate_input(ApiKeyIn, without_none(name=name, role=role, users=users)))
    return ApiCall("POST", KEYS_PATH, parse_model(CreatedApiKey, tenant=""), content=content, is_write=True)


def keys() -> ApiCall[list[ApiKey]]:
    """List the tenant's keys without their secrets, oldest first (admin)."""
    return ApiCall("GET", KEYS_PATH, parse_list(ApiKey, tenant=""))


def revoke_key(key_id: str) -> ApiCall[None]:
    """Revoke a key at once (admin)."""
    return ApiCall("DELETE", KEYS_PATH + join_path(key_id), lambda _: None, is_write=True)


# Whole users


def export(user_id: str, *, format: Literal["json", "yaml"] = "json") -> ApiCall[bytes]:
    """Return everything of a user, history and vectors included."""
    route = user_path(user_id, "export")
    return ApiCall("GET", route, lambda answer: answer.content, params={"format": format}, waits_for_completion=True)


def export_schema() -> ApiCall[dict[str, Any]]:
    """Return the JSON Schema of an export."""
    return ApiCall("GET", "/v1/schema/export", lambda answer: dict(answer.json()))


def import_(
    user_id: str,
    document: bytes,
    *,
    format: ImportFormat | Literal["auto", "graphmem", "mem0", "graphiti", "openai"] = "auto",
) -> ApiCall[ImportResult]:
    """Read an export back, or take what one of mem0, of Graphiti or a chat log holds; `ids` maps old to new."""
    return ApiCall(
        "POST",
        user_path(user_id, "import"),
        parse_model(ImportResult),
        params={"format": parse_format_name(format).value},
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        is_write=True,
        waits_for_completion=True,
    )


def forget(user_id: str) -> ApiCall[ErasureResult]:
    """Erase everything of a user everywhere and count what is left of it (admin)."""
    return ApiCall("DELETE", user_path(user_id), parse_model(ErasureResult), is_write=True, waits_for_completion=True)


def _parse_accepted_or_job(answer: httpx.Response) -> MessagesAccepted | Job:
    return (
        parse_model(Job, partition="")(answer)
        if answer.status_code == httpx.codes.OK
        else parse_model(MessagesAccepted)(answer)
    )


def _parse_maintenance_results(answer: httpx.Response) -> dict[str, Any]:
    return dict(answer.json()["tasks"])


def _parse_run_or_id(answer: httpx.Response) -> ConsolidationRun | str:
    return (
        parse_model(ConsolidationRun)(answer) if answer.status_code == httpx.codes.OK else str(answer.json()["run_id"])
    )
