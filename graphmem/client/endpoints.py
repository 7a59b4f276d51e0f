"""How each operation is sent over HTTP, and how its response is parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import httpx

from graphmem.changes.models import CreatedWebhook, MemoryChange, Webhook
from graphmem.client import operations
from graphmem.client.api_call import (
    ApiCall,
    ResponseParser,
    fill_path,
    parse_items,
    parse_model,
    to_body,
    to_query,
)
from graphmem.client.operations import Request
from graphmem.consolidation.maintenance_tasks import MaintenanceResults
from graphmem.consolidation.models import (
    ConsolidationRun,
    MaintenanceOut,
    RollbackPreview,
    RollbackResult,
    RunAccepted,
    UserContradiction,
)
from graphmem.context.models import (
    BehaviorPattern,
    ContextFeedbackResult,
    ContextItem,
    ContextResponse,
    EnhancedReply,
    FeedbackResult,
    LearnedIntent,
    LearnedPreference,
    MemoryUse,
)
from graphmem.conversations.session import (
    ExtractionTriggered,
    Message,
    MessagesAccepted,
    Session,
    SessionArchive,
)
from graphmem.jobs.job import Job, RetryQuery
from graphmem.memories.declared_types import DeclaredTypes
from graphmem.memories.entity import Entity
from graphmem.memories.memory import ErasedMemory, Memory, MemoryUpdate, MemoryVersion, SaveOut, SaveResult
from graphmem.models.embedding_models import EmbeddingStatus
from graphmem.runtime.paging import Page
from graphmem.search.models import (
    EntityGraph,
    LookupResponse,
    MessageHit,
    MessageSearchResponse,
    Persona,
    SearchResponse,
    UserProfile,
)
from graphmem.tenants.access import ApiKey, CreatedApiKey
from graphmem.tenants.owners import Instructions, UserSummary
from graphmem.user_data.models import ErasureResult, ImportRequest, ImportResult

P = ParamSpec("P")
T = TypeVar("T")

Encoder = Callable[[Request[Any, T]], ApiCall[T]]
"""Turns the request of an operation into an HTTP request."""

USER = "/v1/users/{user_id}"
MEMORIES = f"{USER}/memories"
MEMORY = f"{MEMORIES}/{{resource_id}}"
ENTITIES = f"{USER}/entities"
ENTITY = f"{ENTITIES}/{{resource_id}}"
CONTEXTS = f"{USER}/contexts"
MESSAGES = f"{USER}/messages"
SESSIONS = f"{USER}/sessions"
SESSION = f"{SESSIONS}/{{resource_id}}"
JOB = "/v1/jobs/{resource_id}"
REEMBED = "/v1/admin/reembed"
RUNS = "/v1/admin/consolidations"
RUN = f"{RUNS}/{{resource_id}}"
KEYS = "/v1/admin/keys"
INSTRUCTIONS = "/v1/admin/instructions"
TYPES = "/v1/admin/types"
WEBHOOKS = "/v1/admin/webhooks"


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[P, T]):
    """An operation and its route."""

    operation: Callable[P, Request[Any, T]]
    encode: Encoder[T]

    def make_call(self, *args: P.args, **kwargs: P.kwargs) -> ApiCall[T]:
        """Return the HTTP request for a call of the operation; raise InvalidInput for unusable arguments."""
        return self.encode(operations.accept_user_by_name(self.operation, args, kwargs))


def get(path: str, parse: ResponseParser[T], *, waits: bool = False) -> Encoder[T]:
    """Return an encoder of reads: the parameters become the query string."""
    return lambda request: ApiCall(
        "GET", fill_path(path, request), parse, params=to_query(request.parameters), waits_for_completion=waits
    )


def ask(path: str, parse: ResponseParser[T]) -> Encoder[T]:
    """Return an encoder of reads by POST: the parameters become the body."""
    return lambda request: ApiCall("POST", fill_path(path, request), parse, content=to_body(request.parameters))


def post(path: str, parse: ResponseParser[T], *, waits: bool = False, method: str = "POST") -> Encoder[T]:
    """Return an encoder of writes; with the parameter `wait` they wait for completion too."""
    return lambda request: ApiCall(
        method,
        fill_path(path, request),
        parse,
        content=to_body(request.parameters),
        is_write=True,
        waits_for_completion=waits or getattr(request.parameters, "wait", False),
    )


def remove(path: str, parse: ResponseParser[T], *, hard: bool = False, waits: bool = False) -> Encoder[T]:
    """Return an encoder of deletions."""
    return lambda request: ApiCall(
        "DELETE",
        fill_path(path, request),
        parse,
        params={"hard": "true"} if hard else {},
        is_write=True,
        waits_for_completion=waits,
    )


def _encode_update(request: Request[MemoryUpdate, Memory]) -> ApiCall[Memory]:
    version = request.parameters.if_version
    return ApiCall(
        "PATCH",
        fill_path(MEMORY, request),
        parse_model(Memory),
        content=to_body(request.parameters.patch),
        headers={} if version is None else {"If-Match": f'"{version}"'},
        is_write=True,
    )


def _encode_import(request: Request[ImportRequest, ImportResult]) -> ApiCall[ImportResult]:
    document = request.parameters.document
    return ApiCall(
        "POST",
        fill_path(f"{USER}/import", request),
        parse_model(ImportResult),
        params={"format": request.parameters.format.value},
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        is_write=True,
        waits_for_completion=True,
    )


def _encode_retry(request: Request[RetryQuery, Job]) -> ApiCall[Job]:
    path = fill_path(f"{JOB}/retry", request)
    return ApiCall("POST", path, _parse_job, params=to_query(request.parameters), is_write=True)


def _parse_saved(response: httpx.Response) -> list[SaveResult]:
    return SaveOut.model_validate(response.json()).results


def _parse_erased(response: httpx.Response) -> int:
    return ErasedMemory.model_validate(response.json()).erased


def _parse_message_hits(response: httpx.Response) -> list[MessageHit]:
    return MessageSearchResponse.model_validate(response.json()).results


def _parse_accepted_or_job(response: httpx.Response) -> MessagesAccepted | Job:
    if response.status_code == httpx.codes.OK:
        return _parse_job(response)
    return MessagesAccepted.model_validate(response.json())


def _parse_run_or_id(response: httpx.Response) -> ConsolidationRun | str:
    if response.status_code == httpx.codes.OK:
        return ConsolidationRun.model_validate(response.json())
    return RunAccepted.model_validate(response.json()).run_id


def _parse_rollback(response: httpx.Response) -> RollbackResult | RollbackPreview:
    answer = response.json()
    model = RollbackResult if "rollback_id" in answer else RollbackPreview
    return model.model_validate(answer)


def _parse_maintenance(response: httpx.Response) -> MaintenanceResults:
    return MaintenanceOut.model_validate(response.json()).tasks


def _parse_schema(response: httpx.Response) -> dict[str, Any]:
    return dict(response.json())


def _parse_bytes(response: httpx.Response) -> bytes:
    return response.content


def _parse_nothing(_: httpx.Response) -> None:
    return None


_parse_job = parse_model(Job, partition="")


class Endpoints:
    """The endpoint of every operation."""

    add = Endpoint(operations.add, post(MEMORIES, _parse_saved))
    memories = Endpoint(operations.memories, get(MEMORIES, parse_model(Page[Memory])))
    memory = Endpoint(operations.memory, get(MEMORY, parse_model(Memory)))
    update = Endpoint(operations.update, _encode_update)
    delete = Endpoint(operations.delete, remove(MEMORY, parse_model(Memory)))
    erase_memory = Endpoint(operations.erase_memory, remove(MEMORY, _parse_erased, hard=True))
    history = Endpoint(operations.history, get(f"{MEMORY}/history", parse_items(MemoryVersion)))
    changes = Endpoint(operations.changes, get(f"{USER}/changes", parse_model(Page[MemoryChange])))
    revert = Endpoint(operations.revert, post(f"{MEMORY}/revert", parse_model(Memory)))

    search = Endpoint(operations.search, ask(f"{USER}/search", parse_model(SearchResponse)))
    search_messages = Endpoint(operations.search_messages, ask(f"{MESSAGES}/search", _parse_message_hits))
    lookup = Endpoint(operations.lookup, get(f"{ENTITIES}/lookup", parse_model(LookupResponse)))
    entities = Endpoint(operations.entities, get(ENTITIES, parse_model(Page[Entity])))
    entity = Endpoint(operations.entity, get(ENTITY, parse_model(Entity)))
    entity_memories = Endpoint(operations.entity_memories, get(f"{ENTITY}/memories", parse_items(Memory)))
    entity_graph = Endpoint(operations.entity_graph, get(f"{ENTITY}/graph", parse_model(EntityGraph)))
    context = Endpoint(operations.context, ask(f"{USER}/context", parse_model(ContextResponse)))
    rate_context = Endpoint(
        operations.rate_context, post(f"{USER}/context/{{resource_id}}/feedback", parse_model(ContextFeedbackResult))
    )
    memory_uses = Endpoint(operations.memory_uses, get(f"{MEMORY}/uses", parse_items(MemoryUse)))
    preferences = Endpoint(operations.preferences, get(f"{USER}/preferences", parse_items(LearnedPreference)))
    patterns = Endpoint(operations.patterns, get(f"{USER}/patterns", parse_items(BehaviorPattern)))
    contexts = Endpoint(operations.contexts, get(CONTEXTS, parse_items(ContextItem)))
    add_context = Endpoint(operations.add_context, post(CONTEXTS, parse_model(ContextItem)))
    delete_context = Endpoint(operations.delete_context, remove(f"{CONTEXTS}/{{resource_id}}", _parse_nothing))
    enhance = Endpoint(operations.enhance, ask(f"{SESSION}/enhance", parse_model(EnhancedReply)))
    profile = Endpoint(operations.profile, get(f"{USER}/profile", parse_model(UserProfile)))
    persona = Endpoint(operations.persona, get(f"{USER}/persona", parse_model(Persona)))
    set_persona = Endpoint(operations.set_persona, post(f"{USER}/persona", parse_model(Persona)))
    contradictions = Endpoint(operations.contradictions, get(f"{USER}/contradictions", parse_items(UserContradiction)))
    intents = Endpoint(operations.intents, get(f"{USER}/intents", parse_items(LearnedIntent)))

    add_messages = Endpoint(operations.add_messages, post(MESSAGES, _parse_accepted_or_job))
    sessions = Endpoint(operations.sessions, get(SESSIONS, parse_model(Page[Session])))
    create_session = Endpoint(operations.create_session, post(SESSIONS, parse_model(Session)))
    session = Endpoint(operations.session, get(SESSION, parse_model(Session)))
    session_messages = Endpoint(operations.session_messages, get(f"{SESSION}/messages", parse_model(Page[Message])))
    session_archives = Endpoint(operations.session_archives, get(f"{SESSION}/archives", parse_items(SessionArchive)))
    close_session = Endpoint(operations.close_session, post(f"{SESSION}/close", parse_model(Session)))
    summarize_session = Endpoint(operations.summarize_session, post(f"{SESSION}/summarize", _parse_job))
    feedback = Endpoint(operations.feedback, post(f"{MESSAGES}/{{resource_id}}/feedback", parse_model(FeedbackResult)))
    job = Endpoint(operations.job, get(JOB, _parse_job))
    retry_job = Endpoint(operations.retry_job, _encode_retry)
    trigger_extraction = Endpoint(
        operations.trigger_extraction,
        post("/_admin/trigger-memory-extraction-v2", parse_model(ExtractionTriggered)),
    )

    consolidate = Endpoint(operations.consolidate, post(RUNS, _parse_run_or_id))
    runs = Endpoint(operations.runs, get(RUNS, parse_model(Page[ConsolidationRun])))
    run = Endpoint(operations.run, get(RUN, parse_model(ConsolidationRun)))
    rollback = Endpoint(operations.rollback, post(f"{RUN}/rollback", _parse_rollback, waits=True))
    maintain = Endpoint(operations.maintain, post("/v1/admin/maintenance", _parse_maintenance, waits=True))
    reembed = Endpoint(operations.reembed, post(REEMBED, _parse_job))
    embedding = Endpoint(operations.embedding, get(REEMBED, parse_model(EmbeddingStatus)))
    create_key = Endpoint(operations.create_key, post(KEYS, parse_model(CreatedApiKey, tenant="")))
    keys = Endpoint(operations.keys, get(KEYS, parse_items(ApiKey, tenant="")))
    revoke_key = Endpoint(operations.revoke_key, remove(f"{KEYS}/{{resource_id}}", _parse_nothing))
    create_webhook = Endpoint(operations.create_webhook, post(WEBHOOKS, parse_model(CreatedWebhook)))
    webhooks = Endpoint(operations.webhooks, get(WEBHOOKS, parse_items(Webhook)))
    delete_webhook = Endpoint(operations.delete_webhook, remove(f"{WEBHOOKS}/{{resource_id}}", _parse_nothing))
    instructions = Endpoint(operations.instructions, get(INSTRUCTIONS, parse_model(Instructions)))
    set_instructions = Endpoint(operations.set_instructions, post(INSTRUCTIONS, parse_model(Instructions)))
    declared_types = Endpoint(operations.declared_types, get(TYPES, parse_model(DeclaredTypes)))
    set_declared_types = Endpoint(operations.set_declared_types, post(TYPES, parse_model(DeclaredTypes), method="PUT"))

    export = Endpoint(operations.export, get(f"{USER}/export", _parse_bytes, waits=True))
    records_schema = Endpoint(operations.records_schema, get("/v1/schema/records", _parse_schema))
    export_schema = Endpoint(operations.export_schema, get("/v1/schema/export", _parse_schema))
    import_ = Endpoint(operations.import_, _encode_import)
    users = Endpoint(operations.users, get("/v1/users", parse_model(Page[UserSummary])))
    forget = Endpoint(operations.forget, remove(USER, parse_model(ErasureResult), waits=True))
