"""Messages in, feedback on them, and the sessions they belong to."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.domain.identity import Owner, make_owner
from graphmem.domain.job import Job
from graphmem.domain.learned_preferences import FeedbackResult
from graphmem.domain.listing import Page
from graphmem.domain.session import (
    ExtractionTriggered,
    FeedbackIn,
    Message,
    MessagesAccepted,
    MessagesIn,
    Session,
    SessionIn,
)
from graphmem_api import route_classes, schemas
from graphmem_api.auth import Caller, OwnerInPath, require_user
from graphmem_api.dependencies import GraphMemoryDep
from graphmem_api.openapi import Responses

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["messages"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["messages"])
admin_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["messages"])

MESSAGES_PATH = "/v1/users/{user_id:segment}/messages"
SESSIONS_PATH = "/v1/users/{user_id:segment}/sessions"
SESSION_PATH = SESSIONS_PATH + "/{session_id:segment}"

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=2000)]
FINISHED: Responses = {200: {"model": Job, "description": "The finished job (`wait=true`)."}}


@write_router.post(
    MESSAGES_PATH,
    summary="Store turns and extract memories",
    status_code=202,
    response_model=MessagesAccepted,
    responses=FINISHED,
)
async def add(owner: OwnerInPath, memory: GraphMemoryDep, body: MessagesIn) -> Response:
    """Store the turns of a session at once and extract memories in the background, or wait for it."""
    return _to_response(await memory.messages.add(owner, body))


@write_router.post(
    "/v1/memories",
    summary="Store turns, the user in the body",
    status_code=202,
    response_model=MessagesAccepted,
    responses=FINISHED,
)
async def add_with_user_in_body(caller: Caller, memory: GraphMemoryDep, body: schemas.MessagesWithUserIn) -> Response:
    """Do the same for callers that carry the user in the body."""
    require_user(caller, body.user_id)
    return _to_response(await memory.messages.add(make_owner(caller.tenant, body.user_id), body.without_user()))


@write_router.post(
    MESSAGES_PATH + "/{message_id:segment}/feedback", summary="Rate a message", response_model=FeedbackResult
)
async def feedback(owner: OwnerInPath, message_id: str, memory: GraphMemoryDep, body: FeedbackIn) -> FeedbackResult:
    """Record the user's verdict on a message and learn from it."""
    learned: FeedbackResult = await memory.learner.learn_from_feedback(owner, message_id, body.score, body.text)
    return learned


@read_router.get(SESSIONS_PATH, summary="List sessions", response_model=Page[Session])
async def sessions(
    owner: OwnerInPath,
    memory: GraphMemoryDep,
    active: Annotated[bool | None, Query(description="Only those still open, or only closed ones.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Session]:
    """List sessions, the latest first."""
    found: Page[Session] = await memory.messages.list_sessions(owner, active=active, limit=limit, cursor=cursor)
    return found


@write_router.post(SESSIONS_PATH, summary="Open a session", status_code=201, response_model=Session)
async def create_session(owner: OwnerInPath, memory: GraphMemoryDep, body: SessionIn) -> Session:
    """Open a session under the caller's id or a new one."""
    opened: Session = await memory.messages.open_session(owner, body)
    return opened


@read_router.get(SESSION_PATH, summary="Read a session", response_model=Session)
async def session(owner: OwnerInPath, session_id: str, memory: GraphMemoryDep) -> Session:
    """Read a session."""
    found: Session = await memory.messages.get_session(owner, session_id)
    return found


@read_router.get(SESSION_PATH + "/messages", summary="Messages of a session", response_model=Page[Message])
async def session_messages(
    owner: OwnerInPath, session_id: str, memory: GraphMemoryDep, limit: Limit = 50, cursor: Cursor = None
) -> Page[Message]:
    """List the messages of a session, oldest first."""
    found: Page[Message] = await memory.messages.list_messages(owner, session_id, limit=limit, cursor=cursor)
    return found


@write_router.post(SESSION_PATH + "/close", summary="Close a session", response_model=Session)
async def close(owner: OwnerInPath, session_id: str, memory: GraphMemoryDep) -> Session:
    """End a session; what was not extracted yet is extracted in the background."""
    closed: Session = await memory.messages.close(owner, session_id)
    return closed


@write_router.post(
    SESSION_PATH + "/summarize", summary="Summarise a session", status_code=202, response_model=Job, responses=FINISHED
)
async def summarize(
    owner: OwnerInPath,
    session_id: str,
    memory: GraphMemoryDep,
    response: Response,
    body: schemas.SummarizeIn | None = None,
) -> Job:
    """Write the session's summary and keep it as a memory, in the background, or wait for it."""
    wait = body.wait if body else False
    response.status_code = 200 if wait else 202
    return await memory.messages.summarize(owner, session_id, wait=wait)


@admin_router.post(
    "/_admin/trigger-memory-extraction-v2",
    summary="Extract memories from a session",
    response_model=ExtractionTriggered,
)
async def trigger_extraction(caller: Caller, memory: GraphMemoryDep, body: schemas.TriggerIn) -> ExtractionTriggered:
    """Start an extraction in a session of its own, linked to its source, which stays as it is."""
    if body.user_id is not None:
        Owner(caller.tenant, body.user_id)
    started: ExtractionTriggered = await memory.messages.trigger_extraction(
        caller.tenant, body.session_id, body.user_id
    )
    return started


def _to_response(outcome: MessagesAccepted | Job) -> Response:
    status = 200 if isinstance(outcome, Job) else 202
    return Response(outcome.model_dump_json(), status, media_type="application/json")
