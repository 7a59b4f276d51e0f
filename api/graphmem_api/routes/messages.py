"""Messages, feedback on them, and their sessions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import AliasChoices, Field

from graphmem.app.bootstrap import Services
from graphmem.context.models import FeedbackResult
from graphmem.conversations.session import (
    ExtractionTriggered,
    FeedbackIn,
    Message,
    MessagesAccepted,
    MessagesIn,
    Session,
    SessionArchive,
    SessionIn,
    SessionListQuery,
    SessionMessagesQuery,
    SummarizeIn,
    TriggerIn,
)
from graphmem.jobs.job import Job
from graphmem.runtime.field_types import Id, SessionId
from graphmem.runtime.paging import Page
from graphmem.tenants.access import ApiKey
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.spaces import SpaceQuery, SpaceRole
from graphmem_api import route_classes
from graphmem_api.dependencies import (
    USER_PATH,
    Caller,
    IdempotentRequestDep,
    OwnerInPath,
    ServicesDep,
    forbid_third_party_text,
)
from graphmem_api.openapi import Responses


class MessagesWithUserIn(MessagesIn):
    """A batch of messages with the user in the body, as `userId` or `user_id`."""

    user_id: Id = Field(validation_alias=AliasChoices("userId", "user_id"), serialization_alias="userId")

    def without_user(self) -> MessagesIn:
        """Return the batch without its user."""
        return MessagesIn.model_validate(self.model_dump(exclude={"user_id"}, exclude_unset=True))


read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["messages"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["messages"])
admin_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["messages"])

MESSAGES_PATH = USER_PATH + "/messages"
SESSIONS_PATH = USER_PATH + "/sessions"
SESSION_PATH = SESSIONS_PATH + "/{session_id:segment}"

FINISHED_JOB: Responses = {
    200: {"model": Job, "description": "The finished job (`wait=true`); 202 with the job while it waits for a model."}
}


@write_router.post(
    MESSAGES_PATH,
    summary="Store messages and extract memories",
    status_code=202,
    response_model=MessagesAccepted,
    responses=FINISHED_JOB,
)
async def add(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, body: MessagesIn, request: IdempotentRequestDep
) -> Response:
    """Store the messages of a session and extract memories in the background; with `wait`, return the finished job."""
    return await _add(services, owner, caller, body, request)


@write_router.post(
    "/v1/memories",
    summary="Store messages of the user in the body",
    status_code=202,
    response_model=MessagesAccepted,
    responses=FINISHED_JOB,
)
async def add_with_user_in_body(
    caller: Caller, services: ServicesDep, body: MessagesWithUserIn, request: IdempotentRequestDep
) -> Response:
    """Store messages like `POST /v1/users/{user_id}/messages`, with the user in the body."""
    caller.require_access(body.user_id)
    owner = make_owner(caller.tenant, body.user_id)
    return await _add(services, owner, caller, body.without_user(), request)


@write_router.post(MESSAGES_PATH + "/{message_id:segment}/feedback", summary="Rate a message")
async def feedback(
    owner: OwnerInPath, message_id: str, caller: Caller, services: ServicesDep, body: FeedbackIn
) -> FeedbackResult:
    """Record the user's rating of a message and learn from it."""
    forbid_third_party_text(caller, "A rating")
    scope = await services.rights.read_scope(owner, caller)
    return await services.learner.learn_from_feedback(
        scope, message_id, body.score, body.text, body.context_id, kind=caller.changes_as
    )


@read_router.get(SESSIONS_PATH, summary="List sessions", operation_id="sessions_list")
async def sessions(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[SessionListQuery, Query()]
) -> Page[Session]:
    """List sessions, latest first."""
    group = await services.rights.find_group(owner, caller, query.space)
    return await services.messages.list_sessions(group, query)


@write_router.post(SESSIONS_PATH, summary="Open a session", operation_id="sessions_open", status_code=201)
async def create_session(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, body: SessionIn, request: IdempotentRequestDep
) -> Session:
    """Open a session with the caller's id or a new one."""
    group = await services.rights.find_group(owner, caller, body.space, SpaceRole.WRITER)
    return await services.messages.open_session(
        group, body, author=owner.author_in(group), sent_as=caller.source_kind, request=request
    )


@read_router.get(SESSION_PATH, summary="Read a session", operation_id="sessions_get")
async def session(
    owner: OwnerInPath,
    session_id: SessionId,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[SpaceQuery, Query()],
) -> Session:
    """Read a session."""
    group = await services.rights.find_group(owner, caller, query.space)
    return await services.messages.get_session(group, session_id)


@read_router.get(SESSION_PATH + "/messages", summary="List the messages of a session", operation_id="sessions_messages")
async def session_messages(
    owner: OwnerInPath,
    session_id: SessionId,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[SessionMessagesQuery, Query()],
) -> Page[Message]:
    """List the messages of a session, oldest first."""
    group = await services.rights.find_group(owner, caller, query.space)
    return await services.messages.list_messages(group, session_id, query)


@read_router.get(
    SESSION_PATH + "/archives", summary="List the archives of a session", operation_id="sessions_list_archives"
)
async def session_archives(
    owner: OwnerInPath,
    session_id: SessionId,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[SpaceQuery, Query()],
) -> Page[SessionArchive]:
    """List the summaries that replaced old messages of a session, oldest first."""
    group = await services.rights.find_group(owner, caller, query.space)
    return Page(items=await services.messages.list_archives(group, session_id))


@write_router.post(SESSION_PATH + "/close", summary="Close a session", operation_id="sessions_close")
async def close(
    owner: OwnerInPath,
    session_id: SessionId,
    caller: Caller,
    services: ServicesDep,
    query: Annotated[SpaceQuery, Query()],
) -> Session:
    """Close a session; remaining messages are extracted in the background."""
    group = await services.rights.find_group(owner, caller, query.space, SpaceRole.WRITER)
    return await services.messages.close(group, session_id)


@write_router.post(
    SESSION_PATH + "/summarize",
    summary="Summarise a session",
    operation_id="sessions_summarize",
    status_code=202,
    responses=FINISHED_JOB,
)
async def summarize(
    owner: OwnerInPath,
    session_id: SessionId,
    caller: Caller,
    services: ServicesDep,
    response: Response,
    query: Annotated[SpaceQuery, Query()],
    body: SummarizeIn | None = None,
) -> Job:
    """Summarise a session in the background and save the summary as a memory; with `wait`, return the finished job."""
    wait = body.wait if body else False
    group = await services.rights.find_group(owner, caller, query.space, SpaceRole.WRITER)
    job = await services.messages.summarize(group, session_id, wait=wait)
    response.status_code = 200 if wait and job.status.is_final else 202
    return job


@admin_router.post("/_admin/trigger-memory-extraction-v2", summary="Extract memories from a session again")
async def trigger_extraction(caller: Caller, services: ServicesDep, body: TriggerIn) -> ExtractionTriggered:
    """Start an extraction in a new session that is linked to its source; the source does not change."""
    if body.user_id is not None:
        Owner(caller.tenant, body.user_id)
    return await services.messages.trigger_extraction(caller.tenant, body.session_id, body.user_id)


async def _add(
    services: Services, owner: Owner, caller: ApiKey, batch: MessagesIn, request: IdempotentRequest | None
) -> Response:
    """Store messages of a user, as their author, in the user's own memory or in a space."""
    group = await services.rights.find_group(owner, caller, batch.space, SpaceRole.WRITER)
    stored = await services.messages.add(
        group, batch, author=owner.author_in(group), sent_as=caller.source_kind, request=request
    )
    return _to_response(stored)


def _to_response(outcome: MessagesAccepted | Job) -> Response:
    status = 200 if isinstance(outcome, Job) and outcome.status.is_final else 202
    return Response(outcome.model_dump_json(), status, media_type="application/json")
