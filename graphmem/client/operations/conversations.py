"""Operations on messages, sessions and the jobs that extract memories from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphmem.client.inputs import MessageInput, parse_messages, without_none
from graphmem.client.operations.request import Request
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
    SummarizeIn,
    TriggerIn,
)
from graphmem.jobs.job import Job, RetryQuery
from graphmem.runtime.paging import Page, PageQuery
from graphmem.runtime.validation import validate_arguments


def add_messages(
    user_id: str,
    messages: Sequence[MessageInput],
    *,
    session_id: str | None = None,
    extract: bool = True,
    wait: bool = False,
    timezone: str | None = None,
    domain: str | None = None,
) -> Request[MessagesIn, MessagesAccepted | Job]:
    """Store messages and extract memories in the background; with `wait` return the finished job."""
    batch = parse_messages(
        messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone, domain=domain
    )
    return Request(batch, user_id)


def sessions(
    user_id: str, *, active: bool | None = None, limit: int = 50, cursor: str | None = None
) -> Request[SessionListQuery, Page[Session]]:
    """List sessions, the latest first; `active` selects the open or the closed ones."""
    return Request(
        validate_arguments(SessionListQuery, without_none(active=active, limit=limit, cursor=cursor)), user_id
    )


def create_session(
    user_id: str,
    session_id: str | None = None,
    *,
    title: str | None = None,
    topic_tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    domain: str | None = None,
) -> Request[SessionIn, Session]:
    """Open a session under an id of your own or a new one; raise Conflict when the id is taken."""
    given = without_none(
        session_id=session_id, title=title, topic_tags=list(topic_tags), metadata=metadata, domain=domain
    )
    return Request(validate_arguments(SessionIn, given), user_id)


def session(user_id: str, session_id: str) -> Request[None, Session]:
    """Read a session."""
    return Request(None, user_id, session_id)


def session_messages(
    user_id: str, session_id: str, *, limit: int = 50, cursor: str | None = None
) -> Request[PageQuery, Page[Message]]:
    """List the messages of a session, oldest first."""
    return Request(validate_arguments(PageQuery, without_none(limit=limit, cursor=cursor)), user_id, session_id)


def session_archives(user_id: str, session_id: str) -> Request[None, list[SessionArchive]]:
    """List the summaries that replaced old messages of a session, the oldest first."""
    return Request(None, user_id, session_id)


def close_session(user_id: str, session_id: str) -> Request[None, Session]:
    """Close a session; messages that were not extracted yet are extracted in the background.

    Its `reason` says why no summary is written, as when fewer than ten messages are new; None: one is.
    """
    return Request(None, user_id, session_id)


def summarize_session(user_id: str, session_id: str, *, wait: bool = False) -> Request[SummarizeIn, Job]:
    """Summarise a session and save the summary as a memory, in the background; with `wait` return the finished job."""
    return Request(SummarizeIn(wait=wait), user_id, session_id)


def feedback(
    user_id: str, message_id: str, *, score: int, text: str | None = None, context_id: str | None = None
) -> Request[FeedbackIn, FeedbackResult]:
    """Record the user's rating of a message, 1 to 5, and return what was learned from it."""
    given = without_none(score=score, text=text, context_id=context_id)
    return Request(validate_arguments(FeedbackIn, given), user_id, message_id)


def job(job_id: str) -> Request[None, Job]:
    """Read the state of a background job."""
    return Request(None, resource_id=job_id)


def retry_job(job_id: str, *, fresh: bool = False) -> Request[RetryQuery, Job]:
    """Queue a failed job again from the step that failed; raise Conflict when it has not failed.

    With `fresh` it starts again from its messages, and a model that has answered already is asked again.
    """
    return Request(validate_arguments(RetryQuery, {"fresh": fresh}), resource_id=job_id)


def trigger_extraction(session_id: str, *, user_id: str | None = None) -> Request[TriggerIn, ExtractionTriggered]:
    """Extract memories from a session again, in a new extraction session (admin)."""
    return Request(validate_arguments(TriggerIn, without_none(session_id=session_id, user_id=user_id)))
