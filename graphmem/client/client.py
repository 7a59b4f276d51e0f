"""The asyncio client of the HTTP API, one method per operation; `client.py` is its blocking form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, cast

from graphmem.ask.models import AskRequest, AskResponse
from graphmem.changes.models import ChangeKind, ChangesQuery, CreatedWebhook, MemoryChange, Webhook, WebhookIn
from graphmem.client.inputs import (
    AskOptions,
    ContextOptions,
    ListChangesOptions,
    ListMemoriesFilters,
    ListMemoriesOptions,
    LookupOptions,
    MemoryChanges,
    MemoryInput,
    MessageInput,
    SearchOptions,
    SpacesInput,
    TimeInput,
    about_user,
    as_dicts,
    given,
    is_message,
    parse_accepted_or_job,
    parse_erased,
    parse_maintenance,
    parse_memories,
    parse_message_hits,
    parse_messages,
    parse_object,
    parse_rollback,
    parse_run_or_id,
    parse_saved,
    read_bytes,
    read_refusals,
    read_saves,
    skipped,
    with_options,
    without_none,
)
from graphmem.client.transport import (
    ApiCall,
    BlockingTransport,
    CallRetryPolicy,
    ask,
    delete,
    get,
    items_of,
    nothing,
    patch,
    post,
    upload,
)
from graphmem.consolidation.models import (
    ConsolidationIn,
    ConsolidationRun,
    MaintenanceIn,
    MaintenanceResults,
    MaintenanceTask,
    Proposal,
    RollbackIn,
    RollbackPreview,
    RollbackResult,
    RunListQuery,
    UserContradiction,
)
from graphmem.context.models import (
    BehaviorPattern,
    ContextFeedbackIn,
    ContextFeedbackResult,
    ContextItem,
    ContextItemIn,
    ContextItemsQuery,
    ContextRequest,
    ContextResponse,
    EnhancedReply,
    EnhanceIn,
    FeedbackResult,
    LearnedIntent,
    LearnedPreference,
    MemoryUse,
    MemoryUsesQuery,
    ProfileQuery,
)
from graphmem.conversations.session import (
    ExtractionTriggered,
    FeedbackIn,
    Message,
    MessageIn,
    MessagesAccepted,
    Session,
    SessionArchive,
    SessionIn,
    SessionListQuery,
    SessionMessagesQuery,
    SummarizeIn,
    TriggerIn,
)
from graphmem.ingestion.quarantined_statement import QuarantinedStatement, QuarantineQuery
from graphmem.jobs.job import Job, JobListQuery, JobStatus, RetryQuery
from graphmem.memories.declared_types import DeclaredTypes, DeclaredTypesIn
from graphmem.memories.entity import Entity
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryPatch,
    MemoryVersion,
    ResolutionIn,
    SaveResult,
)
from graphmem.models.embedding_models import EmbeddingStatus, ReembeddingIn
from graphmem.placement.models import DrainIn, PlacementIn, PlacementList
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import Page
from graphmem.runtime.validation import validate_arguments
from graphmem.search.models import (
    EntityGraph,
    EntityGraphQuery,
    EntityListQuery,
    EntityMemoriesQuery,
    LookupQuery,
    LookupResponse,
    MessageHit,
    MessageSearchQuery,
    Persona,
    ProfiledEntity,
    SearchQuery,
    SearchResponse,
    UserProfile,
)
from graphmem.tenants.access import ApiKey, ApiKeyIn, CreatedApiKey, KeyRole
from graphmem.tenants.owners import Instructions, InstructionsIn, UserListQuery, UserSummary
from graphmem.tenants.spaces import (
    MemberKind,
    MemberQuery,
    Space,
    SpaceIn,
    SpaceMember,
    SpaceQuery,
    SpaceRole,
    SpaceRoleIn,
)
from graphmem.tenants.trust import StatedKind, Trust, TrustIn
from graphmem.user_data.models import (
    ErasureResult,
    ExportFormat,
    ExportQuery,
    ExportView,
    ImportFormat,
    ImportQuery,
    ImportResult,
)

T = TypeVar("T")

DEFAULT_SERVER_URL = "http://127.0.0.1:8321"
"""Address of a server that `graphmem serve` started with its default settings."""

PAGE_SIZE = 200
"""Memories that `get_all` reads at once."""


class Client:
    """The HTTP API, blocking: `with Client(key) as memory: memory.search("mara", "tea")`.

    `timeout` is in seconds per attempt; calls that wait for work to finish have none. `attempts` is how often a call is
    sent if the server is unreachable, unavailable or rate-limiting. With `trust_env`, the proxies of the environment
    are used. Writes carry an idempotency key, so that they happen once even if they are sent again. Methods raise the
    errors of `graphmem`.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = DEFAULT_SERVER_URL,
        *,
        timeout: float = 30,
        attempts: int = 4,
        trust_env: bool = True,
    ) -> None:
        self._transport = BlockingTransport(api_key, base_url, timeout, CallRetryPolicy(attempts), trust_env)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _send(self, call: ApiCall[T]) -> T:
        return self._transport.send(call)

    # Memories

    @about_user
    def add(
        self,
        user_id: str,
        memories: MemoryInput | MessageIn | Sequence[MemoryInput | MessageIn],
        *,
        session_id: str | None = None,
        infer: bool = False,
    ) -> list[SaveResult]:
        """Save statements without a language model, all or none; or store messages and return what was extracted.

        With `infer`, a model compares the statements with what is known: they are inserted, reinforce or supersede
        memories, or are skipped. A list of `{"role", "content"}` is a conversation in the session `session_id`; the
        call returns after its extraction. `add_messages` extracts in the background.
        """
        items = [memories] if isinstance(memories, (str, MemoryIn, MessageIn, Mapping)) else list(memories)
        if not any(map(is_message, items)):
            if session_id is not None:
                raise InvalidInput("session_id is the session of messages: give a statement a `source` instead.")
            return self._save_statements(user_id, cast("MemoryInput | Sequence[MemoryInput]", memories), infer=infer)
        if not all(map(is_message, items)):
            raise InvalidInput("The list mixes messages, which have a role, with statements: add them in two calls.")
        messages = cast("Sequence[MessageInput]", items)
        job = self.add_messages(user_id, messages, session_id=session_id, wait=True)
        if not isinstance(job, Job):
            return [skipped("No memories are extracted: the messages are known already, or extraction is manual.")]
        results = []
        for action, memory_id, superseded in read_saves(job):
            memory = self.memory(user_id, memory_id)
            results.append(SaveResult(action=action, memory=memory, superseded=superseded))
        return results + read_refusals(job, is_empty=not results)

    @about_user
    def get_all(
        self, user_id: str, *, limit: int | None = None, **filters: Unpack[ListMemoriesFilters]
    ) -> list[Memory]:
        """Return all current memories, or the first `limit`, filtered by attributes: every page of `memories`."""
        found: list[Memory] = []
        cursor: str | None = None
        while limit is None or len(found) < limit:
            size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(found))
            page = self.memories(user_id, limit=size, cursor=cursor, **filters)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    @about_user
    def _save_statements(
        self, user_id: str, memories: MemoryInput | Sequence[MemoryInput], *, infer: bool = False
    ) -> list[SaveResult]:
        """Save one statement or several: all of them or none.

        No language model is called, unless with `infer` one compares them with what is known.
        """
        return self._send(
            post(parse_saved, "/v1/users/{}/memories", user_id, body=parse_memories(memories, infer=infer))
        )

    @about_user
    def memories(self, user_id: str, **filters: Unpack[ListMemoriesOptions]) -> Page[Memory]:
        """List current memories by attributes, without ranking."""
        query = validate_arguments(ListFilters, filters)
        return self._send(get(Page[Memory], "/v1/users/{}/memories", user_id, query=query))

    @about_user
    def memory(self, user_id: str, memory_id: str) -> Memory:
        """Read a memory, deleted or not."""
        return self._send(get(Memory, "/v1/users/{}/memories/{}", user_id, memory_id))

    @about_user
    def update(
        self, user_id: str, memory_id: str, *, if_version: int | None = None, **changes: Unpack[MemoryChanges]
    ) -> Memory:
        """Correct a memory in a new version; raise VersionConflict if `if_version` is not the latest."""
        body = validate_arguments(MemoryPatch, changes)
        return self._send(
            patch(Memory, "/v1/users/{}/memories/{}", user_id, memory_id, body=body, if_version=if_version)
        )

    @about_user
    def delete(self, user_id: str, memory_id: str) -> Memory:
        """End a memory; its history stays."""
        return self._send(delete(Memory, "/v1/users/{}/memories/{}", user_id, memory_id))

    @about_user
    def erase_memory(self, user_id: str, memory_id: str) -> int:
        """Erase every version of a memory everywhere (admin) and return the number of versions."""
        return self._send(delete(parse_erased, "/v1/users/{}/memories/{}", user_id, memory_id, hard=True))

    @about_user
    def history(self, user_id: str, memory_id: str) -> list[MemoryVersion]:
        """Return every version of a memory, oldest first, with why it ended and what replaced it."""
        return self._send(get(items_of(MemoryVersion), "/v1/users/{}/memories/{}/history", user_id, memory_id))

    @about_user
    def changes(self, user_id: str, **options: Unpack[ListChangesOptions]) -> Page[MemoryChange]:
        """List what graphmem learned, corrected, merged, deleted and restored between two times, oldest first."""
        query = given(ChangesQuery, **options)
        return self._send(get(Page[MemoryChange], "/v1/users/{}/changes", user_id, query=query))

    @about_user
    def resolve(self, user_id: str, memory_id: str, *, holds: bool) -> Memory:
        """Accept or reject a contested memory: it replaces what it contests (`holds`), or is retired."""
        body = given(ResolutionIn, holds=holds)
        return self._send(post(Memory, "/v1/users/{}/memories/{}/resolve", user_id, memory_id, body=body))

    @about_user
    def revert(self, user_id: str, memory_id: str) -> Memory:
        """Undo one supersession: reopen the memory and retire the one that replaced it.

        A contested memory that was resolved is contested again.
        """
        return self._send(post(Memory, "/v1/users/{}/memories/{}/revert", user_id, memory_id))

    # Search

    @about_user
    def search(self, user_id: str, query: str | SearchQuery, **filters: Unpack[SearchOptions]) -> SearchResponse:
        """Return the memories that answer a query, best first."""
        return self._send(
            ask(SearchResponse, "/v1/users/{}/search", user_id, body=with_options(SearchQuery, "query", query, filters))
        )

    @about_user
    def search_messages(
        self,
        user_id: str,
        query: str,
        *,
        limit: int = 5,
        valid_as_of: TimeInput | None = None,
        known_as_of: TimeInput | None = None,
        spaces: SpacesInput | None = None,
    ) -> list[MessageHit]:
        """Return the messages that answer a query, best first, among those said and stored by the given times."""
        body = given(
            MessageSearchQuery,
            query=query,
            limit=limit,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
            spaces=spaces,
        )
        return self._send(ask(parse_message_hits, "/v1/users/{}/messages/search", user_id, body=body))

    @about_user
    def lookup(self, user_id: str, text: str, **options: Unpack[LookupOptions]) -> LookupResponse:
        """Return the entities that a text names and what is known about them, without a language model or embedding."""
        query = validate_arguments(LookupQuery, {**options, "q": text})
        return self._send(get(LookupResponse, "/v1/users/{}/entities/lookup", user_id, query=query))

    @about_user
    def entities(
        self,
        user_id: str,
        *,
        query: str | None = None,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        spaces: SpacesInput | None = None,
    ) -> Page[Entity]:
        """List entities by name; `query` matches part of a name or alias."""
        params = given(EntityListQuery, query=query, type=type, limit=limit, cursor=cursor, spaces=spaces)
        return self._send(get(Page[Entity], "/v1/users/{}/entities", user_id, query=params))

    @about_user
    def entity(self, user_id: str, entity_id: str) -> ProfiledEntity:
        """Read an entity with its aliases, attributes and profile, a few sentences about it."""
        return self._send(get(ProfiledEntity, "/v1/users/{}/entities/{}", user_id, entity_id))

    @about_user
    def entity_memories(
        self,
        user_id: str,
        entity_id: str,
        *,
        valid_as_of: TimeInput | None = None,
        known_as_of: TimeInput | None = None,
        include_superseded: bool = False,
        limit: int = 50,
        spaces: SpacesInput | None = None,
    ) -> list[Memory]:
        """Return what is known about an entity, the most important memories first."""
        query = given(
            EntityMemoriesQuery,
            valid_as_of=valid_as_of,
            known_as_of=known_as_of,
            include_superseded=include_superseded,
            limit=limit,
            spaces=spaces,
        )
        return self._send(get(items_of(Memory), "/v1/users/{}/entities/{}/memories", user_id, entity_id, query=query))

    @about_user
    def entity_graph(
        self,
        user_id: str,
        entity_id: str,
        *,
        depth: int = 1,
        valid_as_of: TimeInput | None = None,
        known_as_of: TimeInput | None = None,
        spaces: SpacesInput | None = None,
    ) -> EntityGraph:
        """Return the entities within `depth` (1 to 3) steps of an entity, and the memories between them."""
        query = given(EntityGraphQuery, depth=depth, valid_as_of=valid_as_of, known_as_of=known_as_of, spaces=spaces)
        return self._send(get(EntityGraph, "/v1/users/{}/entities/{}/graph", user_id, entity_id, query=query))

    # Context

    @about_user
    def ask(self, user_id: str, question: str | AskRequest, **options: Unpack[AskOptions]) -> AskResponse:
        """Answer a question from memory, with citations, or say that memory has no answer.

        This takes one or two language model calls; without a model, the server answers 501.
        """
        return self._send(
            ask(
                AskResponse,
                "/v1/users/{}/ask",
                user_id,
                body=with_options(AskRequest, "question", question, options),
                waits=True,
            )
        )

    @about_user
    def context(
        self, user_id: str, question: str | ContextRequest | None = None, **options: Unpack[ContextOptions]
    ) -> ContextResponse:
        """Return the context for the model's prompt; without a question, for the start of a conversation."""
        return self._send(
            ask(
                ContextResponse,
                "/v1/users/{}/context",
                user_id,
                body=with_options(ContextRequest, "question", question, options),
            )
        )

    @about_user
    def rate_context(self, user_id: str, context_id: str, score: int) -> ContextFeedbackResult:
        """Rate the answer that a context led to, 1 to 5; a positive rating strengthens the context's memories."""
        body = given(ContextFeedbackIn, score=score)
        return self._send(
            post(ContextFeedbackResult, "/v1/users/{}/context/{}/feedback", user_id, context_id, body=body)
        )

    @about_user
    def memory_uses(self, user_id: str, memory_id: str, *, limit: int = 50) -> list[MemoryUse]:
        """List the contexts that held a memory and how the answers were rated, latest first."""
        query = given(MemoryUsesQuery, limit=limit)
        return self._send(get(items_of(MemoryUse), "/v1/users/{}/memories/{}/uses", user_id, memory_id, query=query))

    @about_user
    def preferences(self, user_id: str) -> list[LearnedPreference]:
        """List the preferences learned from messages and feedback."""
        return self._send(get(items_of(LearnedPreference), "/v1/users/{}/preferences", user_id))

    @about_user
    def patterns(self, user_id: str) -> list[BehaviorPattern]:
        """List the behavioural patterns detected in messages."""
        return self._send(get(items_of(BehaviorPattern), "/v1/users/{}/patterns", user_id))

    @about_user
    def contexts(self, user_id: str, *, session_id: str | None = None) -> list[ContextItem]:
        """List unexpired context items, of one session or of all."""
        query = given(ContextItemsQuery, session_id=session_id)
        return self._send(get(items_of(ContextItem), "/v1/users/{}/contexts", user_id, query=query))

    @about_user
    def add_context(
        self,
        user_id: str,
        *,
        type: str,
        key: str,
        value: Any,
        relevance: float = 0.8,
        ttl: int = 7200,
        session_id: str | None = None,
    ) -> ContextItem:
        """Store a topic, preference or goal that contexts use for `ttl` seconds, for one session or for all."""
        stated = without_none(type=type, key=key, relevance=relevance, ttl=ttl, session_id=session_id)
        body = validate_arguments(ContextItemIn, {**stated, "value": value})
        return self._send(post(ContextItem, "/v1/users/{}/contexts", user_id, body=body))

    @about_user
    def delete_context(self, user_id: str, item_id: str) -> None:
        """Delete a context item before it expires."""
        return self._send(delete(nothing, "/v1/users/{}/contexts/{}", user_id, item_id))

    @about_user
    def enhance(
        self, user_id: str, session_id: str, *, reply: str, question: str | None = None, sources: Sequence[str] = ()
    ) -> EnhancedReply:
        """Return a draft reply with continuity, style, an example, likely follow-ups and sources; nothing is stored."""
        body = given(EnhanceIn, reply=reply, question=question, sources=list(sources))
        return self._send(ask(EnhancedReply, "/v1/users/{}/sessions/{}/enhance", user_id, session_id, body=body))

    @about_user
    def profile(self, user_id: str, *, domain: str | None = None, spaces: SpacesInput | None = None) -> UserProfile:
        """Read the profile by memory type, and its core, without a search; with a domain, also that domain's."""
        query = given(ProfileQuery, domain=domain, spaces=spaces)
        return self._send(get(UserProfile, "/v1/users/{}/profile", user_id, query=query))

    @about_user
    def persona(self, user_id: str) -> Persona:
        """Read the weights by memory type or tag that the user's searches use when they give none."""
        return self._send(get(Persona, "/v1/users/{}/persona", user_id))

    @about_user
    def set_persona(self, user_id: str, weights: Mapping[str, float] | None = None) -> Persona:
        """Set the weights by memory type or tag that the user's searches use when they give none; none removes them."""
        body = given(Persona, weights=dict(weights or {}))
        return self._send(post(Persona, "/v1/users/{}/persona", user_id, body=body))

    @about_user
    def contradictions(self, user_id: str, *, space: str | None = None) -> list[UserContradiction]:
        """List the memories that cannot all be true: contested ones first, then what consolidation runs reported."""
        return self._send(
            get(
                items_of(UserContradiction),
                "/v1/users/{}/contradictions",
                user_id,
                query=given(SpaceQuery, space=space),
            )
        )

    @about_user
    def intents(self, user_id: str) -> list[LearnedIntent]:
        """List the intents learned from feedback, with the database queries that answered them well."""
        return self._send(get(items_of(LearnedIntent), "/v1/users/{}/intents", user_id))

    # Conversations

    @about_user
    def add_messages(
        self,
        user_id: str,
        messages: Sequence[MessageInput],
        *,
        session_id: str | None = None,
        extract: bool = True,
        wait: bool = False,
        timezone: str | None = None,
        domain: str | None = None,
        space: str | None = None,
    ) -> MessagesAccepted | Job:
        """Store messages and extract memories in the background; with `wait`, return the finished job.

        With `space`, the session and what is extracted from it are shared with the members of that space.
        """
        batch = parse_messages(
            messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone, domain=domain, space=space
        )
        return self._send(post(parse_accepted_or_job, "/v1/users/{}/messages", user_id, body=batch))

    @about_user
    def sessions(
        self,
        user_id: str,
        *,
        active: bool | None = None,
        limit: int = 50,
        cursor: str | None = None,
        space: str | None = None,
    ) -> Page[Session]:
        """List sessions, latest first; `active` selects open or closed ones."""
        query = given(SessionListQuery, active=active, limit=limit, cursor=cursor, space=space)
        return self._send(get(Page[Session], "/v1/users/{}/sessions", user_id, query=query))

    @about_user
    def create_session(
        self,
        user_id: str,
        session_id: str | None = None,
        *,
        title: str | None = None,
        topic_tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        domain: str | None = None,
        space: str | None = None,
    ) -> Session:
        """Open a session with your own id or a new one; raise Conflict if the id is taken."""
        body = given(
            SessionIn,
            session_id=session_id,
            title=title,
            topic_tags=list(topic_tags),
            metadata=metadata,
            domain=domain,
            space=space,
        )
        return self._send(post(Session, "/v1/users/{}/sessions", user_id, body=body))

    @about_user
    def session(self, user_id: str, session_id: str, *, space: str | None = None) -> Session:
        """Read a session."""
        return self._send(
            get(Session, "/v1/users/{}/sessions/{}", user_id, session_id, query=given(SpaceQuery, space=space))
        )

    @about_user
    def session_messages(
        self,
        user_id: str,
        session_id: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        space: str | None = None,
    ) -> Page[Message]:
        """List the messages of a session, oldest first."""
        query = given(SessionMessagesQuery, limit=limit, cursor=cursor, space=space)
        return self._send(get(Page[Message], "/v1/users/{}/sessions/{}/messages", user_id, session_id, query=query))

    @about_user
    def session_archives(self, user_id: str, session_id: str, *, space: str | None = None) -> list[SessionArchive]:
        """List the summaries that replaced old messages of a session, oldest first."""
        return self._send(
            get(
                items_of(SessionArchive),
                "/v1/users/{}/sessions/{}/archives",
                user_id,
                session_id,
                query=given(SpaceQuery, space=space),
            )
        )

    @about_user
    def close_session(self, user_id: str, session_id: str, *, space: str | None = None) -> Session:
        """Close a session; messages that were not extracted yet are extracted in the background.

        `reason` of the result says why no summary is written, such as fewer than ten new messages; None if one is
        written.
        """
        return self._send(
            post(Session, "/v1/users/{}/sessions/{}/close", user_id, session_id, query=given(SpaceQuery, space=space))
        )

    @about_user
    def summarize_session(self, user_id: str, session_id: str, *, wait: bool = False, space: str | None = None) -> Job:
        """Summarise a session in the background and save the summary; with `wait`, return the finished job."""
        body, query = SummarizeIn(wait=wait), given(SpaceQuery, space=space)
        return self._send(post(Job, "/v1/users/{}/sessions/{}/summarize", user_id, session_id, body=body, query=query))

    @about_user
    def feedback(
        self, user_id: str, message_id: str, *, score: int, text: str | None = None, context_id: str | None = None
    ) -> FeedbackResult:
        """Record the user's rating of a message, from 1 to 5, and return what was learned from it."""
        body = given(FeedbackIn, score=score, text=text, context_id=context_id)
        return self._send(post(FeedbackResult, "/v1/users/{}/messages/{}/feedback", user_id, message_id, body=body))

    def job(self, job_id: str) -> Job:
        """Read the state of a background job."""
        return self._send(get(Job, "/v1/jobs/{}", job_id))

    def jobs(
        self,
        user_id: str | None = None,
        *,
        space: str | None = None,
        status: JobStatus | str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Job]:
        """List the background jobs of a user or a space, or of the whole tenant (admin), latest first."""
        query = given(JobListQuery, user_id=user_id, space=space, status=status, limit=limit, cursor=cursor)
        return self._send(get(Page[Job], "/v1/jobs", query=query))

    def retry_job(self, job_id: str, *, fresh: bool = False) -> Job:
        """Queue a failed job again from the step that failed; raise Conflict if it has not failed.

        With `fresh`, it starts again from its messages, and the model is asked again.
        """
        return self._send(post(Job, "/v1/jobs/{}/retry", job_id, query=given(RetryQuery, fresh=fresh)))

    def trigger_extraction(self, session_id: str, *, user_id: str | None = None) -> ExtractionTriggered:
        """Extract memories from a session again, in a new extraction session (admin)."""
        body = given(TriggerIn, session_id=session_id, user_id=user_id)
        return self._send(post(ExtractionTriggered, "/_admin/trigger-memory-extraction-v2", body=body))

    # Administration

    @about_user
    def consolidate(
        self,
        user_id: str | None = None,
        *,
        space: str | None = None,
        dry_run: bool = False,
        wait: bool = False,
        proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
    ) -> ConsolidationRun | str:
        """Start a consolidation of a user, a space or all; return its id or, with `wait`, the finished run (admin)."""
        curated = None if proposals is None else as_dicts(proposals)
        body = given(ConsolidationIn, user_id=user_id, space=space, dry_run=dry_run, wait=wait, proposals=curated)
        return self._send(post(parse_run_or_id, "/v1/admin/consolidations", body=body))

    def runs(
        self, *, user_id: str | None = None, space: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[ConsolidationRun]:
        """List consolidation runs, latest first, without their changes (admin)."""
        query = given(RunListQuery, user_id=user_id, space=space, limit=limit, cursor=cursor)
        return self._send(get(Page[ConsolidationRun], "/v1/admin/consolidations", query=query))

    def run(self, run_id: str) -> ConsolidationRun:
        """Read a consolidation run with its proposals and changes (admin)."""
        return self._send(get(ConsolidationRun, "/v1/admin/consolidations/{}", run_id))

    def rollback(self, run_id: str, *, force: bool = False, dry_run: bool = False) -> RollbackResult | RollbackPreview:
        """Undo a consolidation run; raise Conflict if later writes touched its changes, unless `force` (admin).

        With `dry_run`, nothing is changed, and the result lists what would go back, come back and stay.
        """
        body = RollbackIn(force=force, dry_run=dry_run)
        return self._send(post(parse_rollback, "/v1/admin/consolidations/{}/rollback", run_id, body=body, waits=True))

    def maintain(self, *tasks: MaintenanceTask | Literal["decay", "compress", "prune", "expire"]) -> MaintenanceResults:
        """Run the given maintenance tasks now, or all, and return what each did (admin)."""
        body = validate_arguments(MaintenanceIn, {"tasks": list(tasks)} if tasks else {})
        return self._send(post(parse_maintenance, "/v1/admin/maintenance", body=body, waits=True))

    def reembed(self, model: str | None = None) -> Job:
        """Start to replace all vectors by those of another model, by default the configured one (admin)."""
        return self._send(post(Job, "/v1/admin/reembed", body=given(ReembeddingIn, model=model)))

    def embedding(self) -> EmbeddingStatus:
        """Read the model of all vectors and the progress of a re-embedding (admin)."""
        return self._send(get(EmbeddingStatus, "/v1/admin/reembed"))

    def create_key(
        self,
        name: str,
        *,
        role: KeyRole | str,
        users: Sequence[str] | None = None,
        spaces: Sequence[str] | None = None,
        source_kind: StatedKind | str | None = None,
    ) -> CreatedApiKey:
        """Create an API key; only this result holds its secret (admin).

        `users` and `spaces` limit what the key can access. `source_kind` is the source of what it saves; by default,
        the user.
        """
        body = given(ApiKeyIn, name=name, role=role, users=users, spaces=spaces, source_kind=source_kind)
        return self._send(post(CreatedApiKey, "/v1/admin/keys", body=body))

    def keys(self) -> list[ApiKey]:
        """List the tenant's API keys without their secrets, oldest first (admin)."""
        return self._send(get(items_of(ApiKey), "/v1/admin/keys"))

    def revoke_key(self, key_id: str) -> None:
        """Revoke an API key with immediate effect (admin)."""
        return self._send(delete(nothing, "/v1/admin/keys/{}", key_id))

    def create_webhook(
        self,
        url: str,
        *,
        secret: str | None = None,
        users: Sequence[str] | None = None,
        kinds: Sequence[ChangeKind | str] | None = None,
        since: datetime | str | None = None,
    ) -> CreatedWebhook:
        """Create a webhook that receives changes as signed requests; only this result holds its secret (admin)."""
        body = given(WebhookIn, url=url, secret=secret, users=users, kinds=kinds, since=since)
        return self._send(post(CreatedWebhook, "/v1/admin/webhooks", body=body))

    def webhooks(self) -> list[Webhook]:
        """List the tenant's webhooks and the state of their deliveries, oldest first (admin)."""
        return self._send(get(items_of(Webhook), "/v1/admin/webhooks"))

    def delete_webhook(self, webhook_id: str) -> None:
        """Delete a webhook; pending changes are not delivered (admin)."""
        return self._send(delete(nothing, "/v1/admin/webhooks/{}", webhook_id))

    def quarantine(
        self, user_id: str | None = None, *, space: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[QuarantinedStatement]:
        """List the quarantined statements of a user, a space or the tenant (admin)."""
        query = given(QuarantineQuery, user_id=user_id, space=space, limit=limit, cursor=cursor)
        return self._send(get(Page[QuarantinedStatement], "/v1/admin/quarantine", query=query))

    def release_quarantined(self, statement_id: str) -> SaveResult:
        """Save a quarantined statement as a memory (admin)."""
        return self._send(post(SaveResult, "/v1/admin/quarantine/{}/release", statement_id))

    def drop_quarantined(self, statement_id: str) -> None:
        """Erase a quarantined statement (admin)."""
        return self._send(delete(nothing, "/v1/admin/quarantine/{}", statement_id))

    # Spaces

    def put_space(
        self,
        space: str,
        *,
        title: str,
        about: str = "",
        members: Sequence[SpaceMember | Mapping[str, Any]] | None = None,
    ) -> Space:
        """Create or change a space; `members`, such as `{"user": "ann", "role": "writer"}`, replace its members."""
        body = given(SpaceIn, title=title, about=about, members=None if members is None else as_dicts(members))
        return self._send(post(Space, "/v1/spaces/{}", space, body=body, method="PUT"))

    def spaces(self) -> list[Space]:
        """List the spaces that the key or one of its users is a member of; with an admin's key, all."""
        return self._send(get(items_of(Space), "/v1/spaces"))

    def space(self, space: str) -> Space:
        """Read a space with its members."""
        return self._send(get(Space, "/v1/spaces/{}", space))

    def set_space_member(
        self, space: str, member: str, *, role: SpaceRole | str, kind: MemberKind | str | None = None
    ) -> Space:
        """Give a user or a key a role in a space; without `kind`, the id of a key means that key."""
        body = given(SpaceRoleIn, role=role)
        query = given(MemberQuery, kind=kind)
        return self._send(post(Space, "/v1/spaces/{}/members/{}", space, member, body=body, query=query, method="PUT"))

    def remove_space_member(self, space: str, member: str, *, kind: MemberKind | str | None = None) -> None:
        """Remove a user or a key from a space; takes effect with the next request."""
        query = given(MemberQuery, kind=kind)
        return self._send(delete(nothing, "/v1/spaces/{}/members/{}", space, member, query=query))

    def delete_space(self, space: str) -> ErasureResult:
        """Erase a space with all its data and count what is left."""
        return self._send(delete(ErasureResult, "/v1/spaces/{}", space, waits=True))

    # What a tenant wants

    def instructions(self) -> Instructions:
        """Read what the tenant wants remembered, and what must not be (admin)."""
        return self._send(get(Instructions, "/v1/admin/instructions"))

    def set_instructions(self, text: str) -> Instructions:
        """Set what the tenant wants remembered, and what must not be; an empty text removes it (admin)."""
        return self._send(post(Instructions, "/v1/admin/instructions", body=given(InstructionsIn, text=text)))

    def trust(self) -> Trust:
        """Read which sources the tenant trusts more than others, most trusted first (admin)."""
        return self._send(get(Trust, "/v1/admin/trust"))

    def set_trust(self, order: Sequence[str | Sequence[str]]) -> Trust:
        """Set which sources the tenant trusts more than others; an empty order restores the default (admin).

        Sources in one list are equally trusted; those left out follow in the default order.
        """
        return self._send(post(Trust, "/v1/admin/trust", body=given(TrustIn, order=order), method="PUT"))

    def placements(self) -> PlacementList:
        """List the graphs that tenants can be stored in, and which one stores the tenant (admin)."""
        return self._send(get(PlacementList, "/v1/admin/placements"))

    def move_tenant(self, graph: str) -> Job:
        """Start to move the tenant to another graph and return the job (admin)."""
        return self._send(post(Job, "/v1/admin/placements", body=given(PlacementIn, graph=graph)))

    def drain_graph(self, graph: str, to: str) -> Page[Job]:
        """Start to move all tenants of a graph to another one; return the jobs (only on the server's machine)."""
        return self._send(post(Page[Job], "/v1/admin/placements/{}/drain", graph, body=given(DrainIn, to=to)))

    def declared_types(self) -> DeclaredTypes:
        """Read the types of memories and entities that the tenant declared (admin)."""
        return self._send(get(DeclaredTypes, "/v1/admin/types"))

    def set_declared_types(
        self, *, memory_types: Sequence[Mapping[str, Any]] = (), entity_types: Sequence[Mapping[str, Any]] = ()
    ) -> DeclaredTypes:
        """Declare types of memories and entities; replaces the earlier declaration (admin)."""
        body = given(DeclaredTypesIn, memory_types=as_dicts(memory_types), entity_types=as_dicts(entity_types))
        return self._send(post(DeclaredTypes, "/v1/admin/types", body=body, method="PUT"))

    # All data of a user

    @about_user
    def export(
        self,
        user_id: str,
        *,
        format: ExportFormat = "json",
        view: ExportView = "full",
        space: str | None = None,
    ) -> bytes:
        """Return all data of a user, with history and vectors; with the view `records`, current memories to edit.

        With `space`, return all data of a space that the user may read.
        """
        query = given(ExportQuery, format=format, view=view, space=space)
        return self._send(get(read_bytes, "/v1/users/{}/export", user_id, query=query, waits=True))

    def records_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of records."""
        return self._send(get(parse_object, "/v1/schema/records"))

    def export_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an export."""
        return self._send(get(parse_object, "/v1/schema/export"))

    @about_user
    def import_(
        self,
        user_id: str,
        document: bytes | str,
        *,
        format: ImportFormat | Literal["auto", "records", "graphmem", "graphiti", "mem0", "chat"] = "auto",
        space: str | None = None,
    ) -> ImportResult:
        """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log; with `space`, into it.

        `ids` of the result maps ids of the document to the new ones.
        """
        query = given(ImportQuery, format=format, space=space)
        if isinstance(document, str):
            document = document.encode("utf-8", "surrogatepass")
        if not isinstance(document, bytes):
            message = (
                f"The document to import must be bytes or text, not {type(document).__name__}: json.dumps writes text."
            )
            raise InvalidInput(message)
        return self._send(upload(ImportResult, "/v1/users/{}/import", user_id, document=document, query=query))

    def users(self, *, query: str | None = None, limit: int = 50, cursor: str | None = None) -> Page[UserSummary]:
        """List the tenant's users by id; `query` matches part of an id."""
        params = given(UserListQuery, query=query, limit=limit, cursor=cursor)
        return self._send(get(Page[UserSummary], "/v1/users", query=params))

    @about_user
    def forget(self, user_id: str) -> ErasureResult:
        """Erase all data of a user and count what is left (admin)."""
        return self._send(delete(ErasureResult, "/v1/users/{}", user_id, waits=True))
