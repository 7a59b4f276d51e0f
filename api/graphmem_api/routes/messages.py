"""Messages in, feedback on them, and the sessions they belong to."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.domain.context import FeedbackLesson
from graphmem.domain.identity import Owner, owner_of
from graphmem.domain.job import Job
from graphmem.domain.listing import Page
from graphmem.domain.session import Accepted, FeedbackIn, Message, MessagesIn, Session, SessionIn, Triggered
from graphmem_api import guard, schemas
from graphmem_api.auth import Caller, OwnerInPath, require_user
from graphmem_api.facade import Memory as Facade
from graphmem_api.openapi import Responses

reading = APIRouter(route_class=guard.Reading, tags=["messages"])
writing = APIRouter(route_class=guard.Writing, tags=["messages"])
administering = APIRouter(route_class=guard.AdminWriting, tags=["messages"])

MESSAGES = "/v1/users/{user_id:segment}/messages"
SESSIONS = "/v1/users/{user_id:segment}/sessions"
ONE = SESSIONS + "/{session_id:segment}"

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=2000)]
FINISHED: Responses = {200: {"model": Job, "description": "The finished job (`wait=true`)."}}


@writing.post(
    MESSAGES, summary="Store turns and extract memories", status_code=202, response_model=Accepted, responses=FINISHED
)
async def add(owner: OwnerInPath, memory: Facade, body: MessagesIn) -> Response:
    """Store the turns of a session at once and extract memories in the background, or wait for it."""
    return _answer(await memory.messages.add(owner, body))


@writing.post(
    "/v1/memories",
    summary="Store turns, the user in the body",
    status_code=202,
    response_model=Accepted,
    responses=FINISHED,
)
async def add_for(caller: Caller, memory: Facade, body: schemas.MessagesInBody) -> Response:
    """Do the same for callers that carry the user in the body."""
    require_user(caller, body.user_id)
    return _answer(await memory.messages.add(owner_of(caller.tenant, body.user_id), body.batch()))


@writing.post(MESSAGES + "/{message_id:segment}/feedback", summary="Rate a message", response_model=FeedbackLesson)
async def feedback(owner: OwnerInPath, message_id: str, memory: Facade, body: FeedbackIn) -> FeedbackLesson:
    """Record the user's verdict on a message and learn from it."""
    learned: FeedbackLesson = await memory.contexts.learn_from_feedback(owner, message_id, body.score, body.text)
    return learned


@reading.get(SESSIONS, summary="List sessions", response_model=Page[Session])
async def sessions(
    owner: OwnerInPath,
    memory: Facade,
    active: Annotated[bool | None, Query(description="Only those still open, or only closed ones.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Session]:
    """List sessions, the latest first."""
    found: Page[Session] = await memory.messages.sessions(owner, active=active, limit=limit, cursor=cursor)
    return found


@writing.post(SESSIONS, summary="Open a session", status_code=201, response_model=Session)
async def create_session(owner: OwnerInPath, memory: Facade, body: SessionIn) -> Session:
    """Open a session under the caller's id or a new one."""
    opened: Session = await memory.messages.open_session(owner, body)
    return opened


@reading.get(ONE, summary="Read a session", response_model=Session)
async def session(owner: OwnerInPath, session_id: str, memory: Facade) -> Session:
    """Read a session."""
    found: Session = await memory.messages.session(owner, session_id)
    return found


@reading.get(ONE + "/messages", summary="Messages of a session", response_model=Page[Message])
async def session_messages(
    owner: OwnerInPath, session_id: str, memory: Facade, limit: Limit = 50, cursor: Cursor = None
) -> Page[Message]:
    """List the messages of a session, oldest first."""
    found: Page[Message] = await memory.messages.messages(owner, session_id, limit=limit, cursor=cursor)
    return found


@writing.post(ONE + "/close", summary="Close a session", response_model=Session)
async def close(owner: OwnerInPath, session_id: str, memory: Facade) -> Session:
    """End a session; what was not extracted yet is extracted in the background."""
    closed: Session = await memory.messages.close(owner, session_id)
    return closed


@writing.post(
    ONE + "/summarize", summary="Summarise a session", status_code=202, response_model=Job, responses=FINISHED
)
async def summarize(
    owner: OwnerInPath,
    session_id: str,
    memory: Facade,
    response: Response,
    body: schemas.SummarizeIn | None = None,
) -> Job:
    """Write the session's summary and keep it as a memory, in the background, or wait for it."""
    wait = body.wait if body else False
    response.status_code = 200 if wait else 202
    return await memory.messages.summarize(owner, session_id, wait=wait)


@administering.post(
    "/_admin/trigger-memory-extraction-v2", summary="Extract memories from a session", response_model=Triggered
)
async def trigger(caller: Caller, memory: Facade, body: schemas.TriggerIn) -> Triggered:
    """Start an extraction in a session of its own, linked to its source, which stays as it is."""
    if body.user_id is not None:
        Owner(caller.tenant, body.user_id)
    started: Triggered = await memory.messages.trigger_extraction(caller.tenant, body.session_id, body.user_id)
    return started


def _answer(outcome: Accepted | Job) -> Response:
    status = 200 if isinstance(outcome, Job) else 202
    return Response(outcome.model_dump_json(), status, media_type="application/json")
