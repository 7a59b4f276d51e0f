"""The Python API in one process: `async with GraphMemory.open() as memory: await memory.search("mara", "tea")`."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload

from graphmem.client import operations
from graphmem.client.operations import OperationMethod, Request, accept_user_by_name
from graphmem.client.operations.composed import ComposedOperations, ComposedSteps, take_steps
from graphmem.consolidation.models import ConsolidationIn, ConsolidationRun, RollbackIn, RollbackPreview, RollbackResult
from graphmem.jobs.job import Job, RetryQuery
from graphmem.runtime.errors import Unavailable
from graphmem.search.models import MessageHit, MessageSearchQuery
from graphmem.tenants.owners import DEFAULT_TENANT, Owner, make_owner
from graphmem.user_data.export_document import export_json_schema
from graphmem.user_data.export_writer import records_json_schema

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services
    from graphmem.runtime.artifacts import DownloadProgress
    from graphmem.runtime.settings import Settings

P = ParamSpec("P")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")

SOURCE_KIND = "python"
"""The `source.kind` of memories that are saved through the Python API."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call(Generic[A_co]):
    """One call of an operation: its validated arguments, and the services that execute it."""

    services: Services
    tenant: str
    user_id: str
    resource_id: str
    parameters: A_co
    actor: str | None = None

    @property
    def owner(self) -> Owner:
        """The user that the call is about; raises InvalidInput for an unusable user id."""
        return make_owner(self.tenant, self.user_id)


class BoundMethod(ABC, Generic[P, T]):
    """A method of `GraphMemory` that gets its arguments from a table of operations."""

    @overload
    def __get__(self, memory: None, owner: type) -> Self: ...

    @overload
    def __get__(self, memory: GraphMemory, owner: type) -> OperationMethod[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, memory: GraphMemory | None, owner: type) -> object:
        return self if memory is None else self._bind(memory)

    @abstractmethod
    def _bind(self, memory: GraphMemory) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return the method of one object."""


class Method(BoundMethod[P, T], Generic[P, A, T]):
    """A method of one operation, and the function that executes it."""

    def __init__(self, operation: Callable[P, Request[A, T]], handle: Callable[[Call[A]], Awaitable[T]]) -> None:
        self._operation = operation
        self._handle = handle

    def _bind(self, memory: GraphMemory) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(self._operation)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            request = accept_user_by_name(self._operation, args, kwargs)
            return await self._handle(
                Call(
                    memory.services,
                    memory.tenant,
                    request.user_id,
                    request.resource_id,
                    request.parameters,
                    memory.actor,
                )
            )

        return method


class ComposedMethod(BoundMethod[P, T]):
    """A method that calls several others, one after the other."""

    def __init__(self, compose: Callable[P, ComposedSteps[T]]) -> None:
        self._compose = compose

    def _bind(self, memory: GraphMemory) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(self._compose)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await take_steps(memory, accept_user_by_name(self._compose, args, kwargs))

        return method


async def _search_messages(call: Call[MessageSearchQuery]) -> list[MessageHit]:
    return (await call.services.retrieval.search_messages(call.owner, call.parameters)).results


async def _retry_job(call: Call[RetryQuery]) -> Job:
    job = await call.services.jobs.get_for_tenant(call.tenant, call.resource_id)
    return await call.services.jobs.retry(job.id, fresh=call.parameters.fresh)


async def _consolidate(call: Call[ConsolidationIn]) -> ConsolidationRun | str:
    body = call.parameters
    return await call.services.consolidations.start(
        call.tenant,
        user_id=body.user_id,
        dry_run=body.dry_run,
        wait=body.wait,
        proposals=body.proposals,
        actor=call.actor,
    )


async def _records_schema(_: Call[None]) -> dict[str, Any]:
    return records_json_schema()


async def _roll_back(call: Call[RollbackIn]) -> RollbackResult | RollbackPreview:
    if call.parameters.dry_run:
        return await call.services.consolidations.preview_rollback(call.tenant, call.resource_id)
    return await call.services.consolidations.rollback(
        call.tenant, call.resource_id, force=call.parameters.force, actor=call.actor
    )


async def _export_schema(_: Call[None]) -> dict[str, Any]:
    return export_json_schema()


class GraphMemory:
    """The memories of one tenant's users, with the methods of the HTTP clients; `for_tenant` gives another tenant's.

    Methods raise the errors of `graphmem`: InvalidInput for unusable arguments, Unavailable when a dependency
    such as Neo4j is unavailable.
    """

    def __init__(self, services: Services, tenant: str = DEFAULT_TENANT, *, actor: str | None = None) -> None:
        """Use open services; `actor` is recorded as who writes. Raise InvalidInput for a tenant that cannot be one."""
        self.services = services
        self.actor = actor
        self.tenant = Owner(tenant, "").tenant

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings | None = None, *, worker: bool = True, progress: DownloadProgress | None = None
    ) -> AsyncIterator[GraphMemory]:
        """Open the services of this process for `async with`; with `worker` it also runs background jobs.

        Without `settings` they are read from the environment. What the start waits for is written to standard error,
        such as a Neo4j that is downloaded or starts; with `progress` nothing is written, and it is called with the
        bytes downloaded and in total. Raises ConfigurationError or DatabaseUnavailable with what to do.
        """
        from graphmem.app.bootstrap import Services  # takes most of the time of a program that only imports this class
        from graphmem.runtime.progress import StartProgress

        report = StartProgress(on_download=progress) if progress else StartProgress.on_standard_error()
        async with AsyncExitStack() as stack:
            try:
                services = await stack.enter_async_context(Services.open(settings, worker=worker, progress=report))
            except Unavailable as error:
                _log.debug("the services cannot be opened", exc_info=True)
                raise error from None  # it says what to do; what caused it is a hundred lines of the driver
            yield cls(services)

    def for_tenant(self, tenant: str) -> GraphMemory:
        """Return the same services for the users of another tenant."""
        return GraphMemory(self.services, tenant, actor=self.actor)

    add = ComposedMethod(ComposedOperations.add)
    get_all = ComposedMethod(ComposedOperations.get_all)
    _save_statements = Method(
        operations.add,
        lambda call: call.services.memories.save(
            call.owner,
            call.parameters.memories,
            actor=call.actor,
            kind=call.actor or SOURCE_KIND,
            infer=call.parameters.infer,
        ),
    )
    memories = Method(operations.memories, lambda call: call.services.memories.page(call.owner, call.parameters))
    memory = Method(operations.memory, lambda call: call.services.memories.get(call.owner, call.resource_id))
    update = Method(
        operations.update,
        lambda call: call.services.memories.patch(
            call.owner, call.resource_id, call.parameters.patch, if_version=call.parameters.if_version, actor=call.actor
        ),
    )
    delete = Method(
        operations.delete, lambda call: call.services.memories.delete(call.owner, call.resource_id, actor=call.actor)
    )
    erase_memory = Method(
        operations.erase_memory, lambda call: call.services.forgetting.erase_memory(call.owner, call.resource_id)
    )
    history = Method(operations.history, lambda call: call.services.memories.history(call.owner, call.resource_id))
    changes = Method(operations.changes, lambda call: call.services.changes.page(call.owner, call.parameters))
    revert = Method(
        operations.revert, lambda call: call.services.memories.revert(call.owner, call.resource_id, actor=call.actor)
    )

    search = Method(operations.search, lambda call: call.services.retrieval.search(call.owner, call.parameters))
    search_messages = Method(operations.search_messages, _search_messages)
    lookup = Method(
        operations.lookup,
        lambda call: call.services.retrieval.lookup(
            call.owner,
            call.parameters.q,
            call.parameters.limit,
            filters=call.parameters.to_memory_filters(),
            reinforce=call.parameters.reinforce,
        ),
    )
    entities = Method(operations.entities, lambda call: call.services.entities.page(call.owner, call.parameters))
    entity = Method(operations.entity, lambda call: call.services.entities.get(call.owner, call.resource_id))
    entity_memories = Method(
        operations.entity_memories,
        lambda call: call.services.entities.list_memories(call.owner, call.resource_id, call.parameters),
    )
    entity_graph = Method(
        operations.entity_graph,
        lambda call: call.services.entities.get_graph(call.owner, call.resource_id, call.parameters),
    )
    context = Method(operations.context, lambda call: call.services.contexts.build(call.owner, call.parameters))
    rate_context = Method(
        operations.rate_context,
        lambda call: call.services.contexts.rate(call.owner, call.resource_id, call.parameters.score),
    )
    memory_uses = Method(
        operations.memory_uses,
        lambda call: call.services.contexts.list_uses(call.owner, call.resource_id, call.parameters.limit),
    )
    preferences = Method(operations.preferences, lambda call: call.services.contexts.list_preferences(call.owner))
    patterns = Method(operations.patterns, lambda call: call.services.contexts.list_patterns(call.owner))
    contexts = Method(
        operations.contexts, lambda call: call.services.contexts.list_items(call.owner, call.parameters.session_id)
    )
    add_context = Method(
        operations.add_context, lambda call: call.services.contexts.add_item(call.owner, call.parameters)
    )
    delete_context = Method(
        operations.delete_context, lambda call: call.services.contexts.delete_item(call.owner, call.resource_id)
    )
    enhance = Method(
        operations.enhance,
        lambda call: call.services.contexts.enhance(call.owner, call.resource_id, call.parameters),
    )
    profile = Method(
        operations.profile, lambda call: call.services.retrieval.load_profile(call.owner, call.parameters.domain)
    )
    persona = Method(operations.persona, lambda call: call.services.retrieval.get_persona(call.owner))
    set_persona = Method(
        operations.set_persona, lambda call: call.services.retrieval.set_persona(call.owner, call.parameters)
    )
    contradictions = Method(
        operations.contradictions, lambda call: call.services.consolidations.list_contradictions(call.owner)
    )
    intents = Method(operations.intents, lambda call: call.services.contexts.list_intents(call.owner))

    add_messages = Method(operations.add_messages, lambda call: call.services.messages.add(call.owner, call.parameters))
    sessions = Method(
        operations.sessions, lambda call: call.services.messages.list_sessions(call.owner, call.parameters)
    )
    create_session = Method(
        operations.create_session, lambda call: call.services.messages.open_session(call.owner, call.parameters)
    )
    session = Method(operations.session, lambda call: call.services.messages.get_session(call.owner, call.resource_id))
    session_messages = Method(
        operations.session_messages,
        lambda call: call.services.messages.list_messages(call.owner, call.resource_id, call.parameters),
    )
    session_archives = Method(
        operations.session_archives, lambda call: call.services.messages.list_archives(call.owner, call.resource_id)
    )
    close_session = Method(
        operations.close_session, lambda call: call.services.messages.close(call.owner, call.resource_id)
    )
    summarize_session = Method(
        operations.summarize_session,
        lambda call: call.services.messages.summarize(call.owner, call.resource_id, wait=call.parameters.wait),
    )
    feedback = Method(
        operations.feedback,
        lambda call: call.services.learner.learn_from_feedback(
            call.owner, call.resource_id, call.parameters.score, call.parameters.text, call.parameters.context_id
        ),
    )
    job = Method(operations.job, lambda call: call.services.jobs.get_for_tenant(call.tenant, call.resource_id))
    retry_job = Method(operations.retry_job, _retry_job)
    trigger_extraction = Method(
        operations.trigger_extraction,
        lambda call: call.services.messages.trigger_extraction(
            call.tenant, call.parameters.session_id, call.parameters.user_id
        ),
    )

    consolidate = Method(operations.consolidate, _consolidate)
    runs = Method(operations.runs, lambda call: call.services.consolidations.page(call.tenant, call.parameters))
    run = Method(operations.run, lambda call: call.services.consolidations.get(call.tenant, call.resource_id))
    rollback = Method(operations.rollback, _roll_back)
    maintain = Method(
        operations.maintain, lambda call: call.services.maintenance.run(call.tenant, call.parameters.tasks)
    )
    users = Method(operations.users, lambda call: call.services.users.page(call.tenant, call.parameters))
    reembed = Method(
        operations.reembed, lambda call: call.services.reembedding.start(call.tenant, call.parameters.model)
    )
    embedding = Method(operations.embedding, lambda call: call.services.reembedding.status())
    create_key = Method(operations.create_key, lambda call: call.services.keys.create(call.tenant, call.parameters))
    keys = Method(operations.keys, lambda call: call.services.keys.list(call.tenant))
    revoke_key = Method(operations.revoke_key, lambda call: call.services.keys.revoke(call.tenant, call.resource_id))
    create_webhook = Method(
        operations.create_webhook,
        lambda call: call.services.webhooks.create(call.tenant, call.parameters, actor=call.actor or SOURCE_KIND),
    )
    webhooks = Method(operations.webhooks, lambda call: call.services.webhooks.list(call.tenant))
    delete_webhook = Method(
        operations.delete_webhook, lambda call: call.services.webhooks.delete(call.tenant, call.resource_id)
    )
    instructions = Method(operations.instructions, lambda call: call.services.instructions.get(call.tenant))
    set_instructions = Method(
        operations.set_instructions,
        lambda call: call.services.instructions.set(call.tenant, call.parameters, actor=call.actor or SOURCE_KIND),
    )
    declared_types = Method(operations.declared_types, lambda call: call.services.declared_types.get(call.tenant))
    set_declared_types = Method(
        operations.set_declared_types,
        lambda call: call.services.declared_types.set(call.tenant, call.parameters, actor=call.actor or SOURCE_KIND),
    )

    export = Method(
        operations.export,
        lambda call: call.services.exports.export(call.owner, call.parameters.format, call.parameters.view),
    )
    export_schema = Method(operations.export_schema, _export_schema)
    records_schema = Method(operations.records_schema, _records_schema)
    import_ = Method(
        operations.import_,
        lambda call: call.services.imports.import_(
            call.owner, call.parameters.document, source_format=call.parameters.format, actor=call.actor
        ),
    )
    forget = Method(operations.forget, lambda call: call.services.forgetting.forget(call.owner))
