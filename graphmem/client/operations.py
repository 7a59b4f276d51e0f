"""Every route of the HTTP API as a function from what a caller says to the call that says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

import httpx

from graphmem.client.call import Call, as_json, given, many, one, path, user
from graphmem.domain.context import (
    BehaviorPattern,
    Context,
    ContextItem,
    ContextRequest,
    FeedbackLesson,
    LearnedPreference,
)
from graphmem.domain.entity import Entity
from graphmem.domain.export import Forgotten, Imported
from graphmem.domain.formats.document import Format, read_format
from graphmem.domain.job import Job
from graphmem.domain.key import CreatedKey, Key, KeyIn, Role
from graphmem.domain.listing import ListFilters, Page, Sort
from graphmem.domain.memory import HistoryRow, Memory, MemoryPatch, MemoryType, SaveResult, Scope
from graphmem.domain.proposals import Proposal, Rollback, Run
from graphmem.domain.recall import EntityGraph, LookupAnswer, MessageAnswer, MessageHit, SearchAnswer, SearchQuery
from graphmem.domain.session import Accepted, FeedbackIn, Message, Session, SessionIn, Triggered
from graphmem.service.verbs import (
    ContextOptions,
    Memorable,
    Said,
    SearchFilters,
    Time,
    batch_of,
    checked,
    memories_of,
    query_of,
    request_of,
)

RUNS = "/v1/admin/consolidations"
KEYS = "/v1/admin/keys"


class MemoryFilters(TypedDict, total=False):
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
    created_after: Time | None
    created_before: Time | None
    valid_as_of: Time | None
    known_as_of: Time | None
    include_superseded: bool
    sort: Sort | str
    limit: int
    cursor: str | None


class MemoryChanges(TypedDict, total=False):
    """What to change of a memory: the fields of `MemoryPatch`."""

    content: str
    type: MemoryType | str
    tags: Sequence[str]
    importance: float
    confidence: float
    valid_at: Time | None
    invalid_at: Time | None
    expires_at: Time | None
    metadata: Mapping[str, Any]


# Memories


def add(user_id: str, memories: Memorable | Sequence[Memorable]) -> Call[list[SaveResult]]:
    """Save statements without a model: all of them or none."""
    content = as_json(
        {"memories": [each.model_dump(mode="json", exclude_unset=True) for each in memories_of(memories)]}
    )
    return Call("POST", user(user_id, "memories"), many(SaveResult, "results"), content=content, writes=True)


def memories(user_id: str, **filters: Unpack[MemoryFilters]) -> Call[Page[Memory]]:
    """List memories by attributes, without ranking."""
    params = checked(ListFilters, filters).model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return Call("GET", user(user_id, "memories"), one(Page[Memory]), params=params)


def memory(user_id: str, memory_id: str) -> Call[Memory]:
    """Read a memory, deleted or not."""
    return Call("GET", user(user_id, "memories", memory_id), one(Memory))


def update_memory(
    user_id: str, memory_id: str, *, if_version: int | None = None, **changes: Unpack[MemoryChanges]
) -> Call[Memory]:
    """Correct a memory in a new version; raise VersionConflict when `if_version` is not the latest."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    content = as_json(checked(MemoryPatch, changes))
    route = user(user_id, "memories", memory_id)
    return Call("PATCH", route, one(Memory), content=content, headers=headers, writes=True)


def delete_memory(user_id: str, memory_id: str) -> Call[Memory]:
    """End a memory, which stays in history."""
    return Call("DELETE", user(user_id, "memories", memory_id), one(Memory), writes=True)


def erase_memory(user_id: str, memory_id: str) -> Call[int]:
    """Erase a memory everywhere (admin) and return how many versions there were."""
    route = user(user_id, "memories", memory_id)
    return Call("DELETE", route, lambda answer: int(answer.json()["erased"]), params={"hard": "true"}, writes=True)


def history(user_id: str, memory_id: str) -> Call[list[HistoryRow]]:
    """Return every version of a memory, oldest first, with why it ended and what replaced it."""
    return Call("GET", user(user_id, "memories", memory_id, "history"), many(HistoryRow))


def revert_memory(user_id: str, memory_id: str) -> Call[Memory]:
    """Undo one supersession: reopen the memory and close what replaced it."""
    return Call("POST", user(user_id, "memories", memory_id, "revert"), one(Memory), writes=True)


# Recall


def search(user_id: str, query: str | SearchQuery, **filters: Unpack[SearchFilters]) -> Call[SearchAnswer]:
    """Return the memories that answer a query, best first."""
    return Call("POST", user(user_id, "search"), one(SearchAnswer), content=as_json(query_of(query, filters)))


def search_messages(user_id: str, query: str, *, limit: int = 5) -> Call[list[MessageHit]]:
    """Return the messages that answer a query, best first."""
    content = as_json({"query": query, "limit": limit})
    read = one(MessageAnswer)
    return Call("POST", user(user_id, "messages", "search"), lambda answer: read(answer).results, content=content)


def lookup(user_id: str, text: str, *, limit: int = 20) -> Call[LookupAnswer]:
    """Return the entities a text names and what is known about them; no model, no embedding."""
    route = user(user_id, "entities", "lookup")
    return Call("GET", route, one(LookupAnswer), params={"q": text, "limit": limit})


def entities(
    user_id: str, *, query: str | None = None, type: str | None = None, limit: int = 50, cursor: str | None = None
) -> Call[Page[Entity]]:
    """List entities by name; `query` is part of a name or alias."""
    params = given(query=query, type=type, limit=limit, cursor=cursor)
    return Call("GET", user(user_id, "entities"), one(Page[Entity]), params=params)


def entity(user_id: str, entity_id: str) -> Call[Entity]:
    """Read an entity with its aliases and attributes."""
    return Call("GET", user(user_id, "entities", entity_id), one(Entity))


def entity_memories(
    user_id: str,
    entity_id: str,
    *,
    valid_as_of: Time | None = None,
    known_as_of: Time | None = None,
    include_superseded: bool = False,
    limit: int = 50,
) -> Call[list[Memory]]:
    """Return what is known about an entity, the most important first."""
    times = checked(ListFilters, {"valid_as_of": valid_as_of, "known_as_of": known_as_of})
    params = given(
        limit=limit,
        include_superseded=include_superseded,
        **times.model_dump(mode="json", include={"valid_as_of", "known_as_of"}),
    )
    return Call("GET", user(user_id, "entities", entity_id, "memories"), many(Memory), params=params)


def entity_graph(
    user_id: str,
    entity_id: str,
    *,
    depth: int = 1,
    valid_as_of: Time | None = None,
    known_as_of: Time | None = None,
) -> Call[EntityGraph]:
    """Return the entities within `depth` (1 to 3) steps and the memories between them."""
    times = checked(ListFilters, {"valid_as_of": valid_as_of, "known_as_of": known_as_of})
    params = given(depth=depth, **times.model_dump(mode="json", include={"valid_as_of", "known_as_of"}))
    return Call("GET", user(user_id, "entities", entity_id, "graph"), one(EntityGraph), params=params)


def context(user_id: str, question: str | ContextRequest, **options: Unpack[ContextOptions]) -> Call[Context]:
    """Return what to put before the model for a question, within a token budget."""
    return Call("POST", user(user_id, "context"), one(Context), content=as_json(request_of(question, options)))


def preferences(user_id: str) -> Call[list[LearnedPreference]]:
    """List the preferences learned from messages and feedback."""
    return Call("GET", user(user_id, "preferences"), many(LearnedPreference))


def patterns(user_id: str) -> Call[list[BehaviorPattern]]:
    """List the behavioural patterns detected in messages."""
    return Call("GET", user(user_id, "patterns"), many(BehaviorPattern))


def contexts(user_id: str, *, session_id: str | None = None) -> Call[list[ContextItem]]:
    """List the context items that have not expired, of one session or of all."""
    return Call("GET", user(user_id, "contexts"), many(ContextItem), params=given(session_id=session_id))


# Conversations


def add_messages(
    user_id: str,
    messages: Sequence[Said],
    *,
    session_id: str | None = None,
    extract: bool = True,
    wait: bool = False,
    timezone: str | None = None,
) -> Call[Accepted | Job]:
    """Store turns and extract memories in the background; with `wait` return the finished job."""
    batch = batch_of(messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone)
    return Call("POST", user(user_id, "messages"), _accepted_or_job, content=as_json(batch), writes=True, patient=wait)


def sessions(
    user_id: str, *, active: bool | None = None, limit: int = 50, cursor: str | None = None
) -> Call[Page[Session]]:
    """List sessions, the latest first; with `active` only those still open, or only closed ones."""
    params = given(active=active, limit=limit, cursor=cursor)
    return Call("GET", user(user_id, "sessions"), one(Page[Session]), params=params)


def create_session(
    user_id: str,
    session_id: str | None = None,
    *,
    title: str | None = None,
    topic_tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Call[Session]:
    """Open a session under an id of your own or a new one; raise Conflict when the id is taken."""
    wanted = given(session_id=session_id, title=title, topic_tags=list(topic_tags), metadata=metadata)
    content = as_json(checked(SessionIn, wanted))
    return Call("POST", user(user_id, "sessions"), one(Session), content=content, writes=True)


def session(user_id: str, session_id: str) -> Call[Session]:
    """Read a session."""
    return Call("GET", user(user_id, "sessions", session_id), one(Session))


def session_messages(
    user_id: str, session_id: str, *, limit: int = 50, cursor: str | None = None
) -> Call[Page[Message]]:
    """List the messages of a session, oldest first."""
    params = given(limit=limit, cursor=cursor)
    return Call("GET", user(user_id, "sessions", session_id, "messages"), one(Page[Message]), params=params)


def close_session(user_id: str, session_id: str) -> Call[Session]:
    """End a session; what was not extracted yet is extracted in the background."""
    return Call("POST", user(user_id, "sessions", session_id, "close"), one(Session), writes=True)


def summarize_session(user_id: str, session_id: str, *, wait: bool = False) -> Call[Job]:
    """Write the session's summary and keep it as a memory, in the background; with `wait` the job is finished."""
    route = user(user_id, "sessions", session_id, "summarize")
    return Call("POST", route, one(Job, partition=""), content=as_json({"wait": wait}), writes=True, patient=wait)


def feedback(user_id: str, message_id: str, score: int, text: str | None = None) -> Call[FeedbackLesson]:
    """Record the user's verdict (1 to 5) on a message and return what was learned from it."""
    content = as_json(checked(FeedbackIn, given(score=score, text=text)))
    route = user(user_id, "messages", message_id, "feedback")
    return Call("POST", route, one(FeedbackLesson), content=content, writes=True)


def job(job_id: str) -> Call[Job]:
    """Read where a background job stands."""
    return Call("GET", path("v1", "jobs", job_id), one(Job, partition=""))


def retry_job(job_id: str) -> Call[Job]:
    """Queue a failed job again; raise Conflict when it has not failed."""
    return Call("POST", path("v1", "jobs", job_id, "retry"), one(Job, partition=""), writes=True)


def trigger_extraction(session_id: str, user_id: str | None = None) -> Call[Triggered]:
    """Extract memories from a session again, in a session of its own (admin)."""
    content = as_json(given(session_id=session_id, user_id=user_id))
    return Call("POST", path("_admin", "trigger-memory-extraction-v2"), one(Triggered), content=content, writes=True)


# Administration


def consolidate(
    user_id: str | None = None,
    *,
    dry_run: bool = False,
    wait: bool = False,
    proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
) -> Call[Run | str]:
    """Start a consolidation of one user or all and return the run's id; with `wait` the finished run (admin)."""
    content = as_json(given(user_id=user_id, dry_run=dry_run, wait=wait, proposals=proposals))
    return Call("POST", RUNS, _run_or_id, content=content, writes=True, patient=wait)


def runs(*, user_id: str | None = None, limit: int = 50, cursor: str | None = None) -> Call[Page[Run]]:
    """List consolidation runs, the latest first, without their changes (admin)."""
    return Call("GET", RUNS, one(Page[Run]), params=given(user_id=user_id, limit=limit, cursor=cursor))


def run(run_id: str) -> Call[Run]:
    """Read a consolidation run with its proposals and every change it made (admin)."""
    return Call("GET", RUNS + path(run_id), one(Run))


def rollback(run_id: str, *, force: bool = False) -> Call[Rollback]:
    """Undo a consolidation run; raise Conflict when later writes touched the same things and not `force` (admin)."""
    content = as_json({"force": force})
    return Call("POST", RUNS + path(run_id, "rollback"), one(Rollback), content=content, writes=True, patient=True)


def maintain(*tasks: Literal["decay", "compress", "prune", "expire"]) -> Call[dict[str, Any]]:
    """Do upkeep now, all of it when no task is named, and return what each task did (admin)."""
    content = as_json({"tasks": tasks} if tasks else {})
    route = path("v1", "admin", "maintenance")
    return Call("POST", route, _tasks, content=content, writes=True, patient=True)


def create_key(name: str, role: Role | str, users: Sequence[str] | None = None) -> Call[CreatedKey]:
    """Make a key; its secret is in this answer only (admin)."""
    content = as_json(checked(KeyIn, given(name=name, role=role, users=users)))
    return Call("POST", KEYS, one(CreatedKey, tenant=""), content=content, writes=True)


def keys() -> Call[list[Key]]:
    """List the tenant's keys without their secrets, oldest first (admin)."""
    return Call("GET", KEYS, many(Key, tenant=""))


def revoke_key(key_id: str) -> Call[None]:
    """Revoke a key at once (admin)."""
    return Call("DELETE", KEYS + path(key_id), lambda _: None, writes=True)


# Whole users


def export(user_id: str, *, format: Literal["json", "yaml"] = "json") -> Call[bytes]:
    """Return everything of a user, history and vectors included."""
    route = user(user_id, "export")
    return Call("GET", route, lambda answer: answer.content, params={"format": format}, patient=True)


def export_schema() -> Call[dict[str, Any]]:
    """Return the JSON Schema of an export."""
    return Call("GET", "/v1/schema/export", lambda answer: dict(answer.json()))


def import_(
    user_id: str,
    document: bytes,
    *,
    format: Format | Literal["auto", "graphmem", "mem0", "graphiti", "openai"] = "auto",
) -> Call[Imported]:
    """Read an export back, or take what one of mem0, of Graphiti or a chat log holds; `ids` maps old to new."""
    return Call(
        "POST",
        user(user_id, "import"),
        one(Imported),
        params={"format": read_format(format).value},
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        writes=True,
        patient=True,
    )


def forget(user_id: str) -> Call[Forgotten]:
    """Erase everything of a user everywhere and count what is left of it (admin)."""
    return Call("DELETE", user(user_id), one(Forgotten), writes=True, patient=True)


def _accepted_or_job(answer: httpx.Response) -> Accepted | Job:
    return one(Job, partition="")(answer) if answer.status_code == httpx.codes.OK else one(Accepted)(answer)


def _tasks(answer: httpx.Response) -> dict[str, Any]:
    return dict(answer.json()["tasks"])


def _run_or_id(answer: httpx.Response) -> Run | str:
    return one(Run)(answer) if answer.status_code == httpx.codes.OK else str(answer.json()["run_id"])
