"""What callers do with messages and sessions."""

from __future__ import annotations

import uuid
from typing import Literal

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import (
    ExtractionTriggered,
    Message,
    MessagesAccepted,
    MessagesIn,
    Session,
    SessionArchive,
    SessionIn,
    SessionKind,
    SessionListQuery,
    require_conversation,
    with_author,
)
from graphmem.ingestion.inbox import Inbox
from graphmem.jobs.job import Job
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.runtime.paging import TIME_CURSOR, Cursor, Page, PageQuery, StoredInteger
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.trust import TEXT_OF_OTHERS, StatedKind

WAIT_SECONDS = 300.0
"""Seconds that a call with `wait` waits for a job; after them it returns the job as it is."""

_MESSAGE_CURSOR: Cursor[tuple[int]] = Cursor(tuple[StoredInteger])


class MessageService:
    """The operations on messages and sessions.

    With manual extraction, only `trigger_extraction` extracts memories, and only `summarize` sums up a session.
    """

    def __init__(
        self,
        inbox: Inbox,
        episodes: EpisodeStore,
        jobs: JobRunner,
        waiting: JobWaiting,
        extraction: Literal["auto", "manual"] = "auto",
    ) -> None:
        self._inbox = inbox
        self._episodes = episodes
        self._jobs = jobs
        self._waiting = waiting
        self._is_automatic = extraction == "auto"

    async def add(
        self,
        owner: Owner,
        batch: MessagesIn,
        *,
        author: str | None = None,
        sent_as: StatedKind = "user",
        request: IdempotentRequest | None = None,
    ) -> MessagesAccepted | Job:
        """Store messages and queue their extraction; with `wait`, return its job once it is final.

        `author` is the user who sends them to a space; what they state is trusted no more than `sent_as`. A repetition
        with the same `request` stores nothing and returns the same. The time zone is that of the user, whom a source of
        text of others does not speak for. Raises Forbidden for a message of the user that has the name of another
        member, Conflict for an id that a message of a less trusted source has.
        """
        batch, skipped = batch.without_blank()
        if not batch.messages:
            session_id = batch.session_id or str(uuid.uuid4())
            return MessagesAccepted(job_id=None, session_id=session_id, message_ids=[], skipped=skipped)
        extract = batch.extract and self._is_automatic
        if author is not None:
            named = [message.name for message in batch.messages if message.name]
            await self._episodes.refuse_names_of_members(owner, author, named)
            batch = with_author(batch, author)
        if sent_as in TEXT_OF_OTHERS:
            batch = batch.model_copy(update={"timezone": None})
        accepted = await self._inbox.add(
            owner,
            batch,
            extract=extract,
            author=author,
            sent_as=None if sent_as == "user" else sent_as,
            request=request,
        )
        job_id = accepted.job_id
        if batch.wait and extract and job_id is None:
            job_id = await self._inbox.find_finished_job(owner, accepted.message_ids)
        if batch.wait and job_id:
            return await self._waiting.wait(job_id, WAIT_SECONDS)
        return accepted.model_copy(update={"skipped": skipped})

    async def list_sessions(self, owner: Owner, query: SessionListQuery) -> Page[Session]:
        """List sessions, the most recently updated first."""
        after = TIME_CURSOR.decode(query.cursor) if query.cursor else None
        sessions = await self._episodes.list_sessions(owner, active=query.active, after=after, limit=query.limit + 1)
        return TIME_CURSOR.make_page(sessions, query.limit, lambda session: (session.updated_at, session.session_id))

    async def get_session(self, owner: Owner, session_id: str) -> Session:
        """Return one session, that of an extraction with the status of its job."""
        session = await self._episodes.get_session(owner, session_id)
        job = await self._jobs.find(session.job_id) if session.job_id else None
        return session.model_copy(update={"job_status": job.status}) if job else session

    async def open_session(
        self,
        owner: Owner,
        session_in: SessionIn,
        *,
        author: str | None = None,
        sent_as: StatedKind = "user",
        request: IdempotentRequest | None = None,
    ) -> Session:
        """Create a session before its first message; a repetition with the same `request` returns the same one.

        `author` is the user who opens one in a space. Raises Conflict when its id is taken, InvalidInput for a secret.
        """
        kind = None if sent_as == "user" else sent_as
        return await self._inbox.open_session(owner, session_in, author=author, sent_as=kind, request=request)

    async def list_messages(self, owner: Owner, session_id: str, query: PageQuery) -> Page[Message]:
        """List the messages of a session, oldest first; those of an extraction are between graphmem and the model."""
        session = await self._episodes.get_session(owner, session_id)
        after = _MESSAGE_CURSOR.decode(query.cursor)[0] if query.cursor else 0
        if session.kind is SessionKind.EXTRACTION:
            messages = await self._episodes.list_run_messages(owner, session_id)
            messages = [message for message in messages if message.position > after]
        else:
            messages = await self._episodes.list_session_messages(owner, session_id, after=after, limit=query.limit + 1)
        return _MESSAGE_CURSOR.make_page(messages, query.limit, lambda message: (message.position,))

    async def list_archives(self, owner: Owner, session_id: str) -> list[SessionArchive]:
        """Return what is left of the archived messages of a session; raise NotFound for an unknown session."""
        await self._episodes.get_session(owner, session_id)
        return await self._episodes.list_archives(owner, session_id)

    async def close(self, owner: Owner, session_id: str) -> Session:
        """Close a session, and queue the extraction of its unread messages, its promotions and its summary.

        The `job_id` of the session is the job that promotes and summarizes; `reason` says why no summary is written, if
        none is. Raises Conflict for the session of an extraction.
        """
        await self._get_conversation(owner, session_id)
        session = await self._episodes.close_session(owner, session_id)
        if self._is_automatic:
            await self._inbox.extract_unread(owner, session_id)
        job_id, reason = await self._inbox.enqueue_closing(owner, session, summarize=self._is_automatic)
        return session.model_copy(update={"job_id": job_id, "reason": reason})

    async def summarize(self, owner: Owner, session_id: str, *, wait: bool = False) -> Job:
        """Queue the summary of a session and return its job, with `wait` once it is final.

        The same call is the same job until further messages arrive, or until it ends without a summary.
        """
        session = await self._get_conversation(owner, session_id)
        job_id = await self._inbox.summarize(owner, session, through=session.message_count)
        return await (self._waiting.wait(job_id, WAIT_SECONDS) if wait else self._jobs.get(job_id))

    async def trigger_extraction(self, tenant: str, session_id: str, user_id: str | None = None) -> ExtractionTriggered:
        """Queue the extraction of a whole session by tool calls, in a session of its own; for admins.

        Raises NotFound, and Conflict when several users have a session of this id and `user_id` is not given, and for
        the session of an extraction.
        """
        owner = make_owner(tenant, user_id) if user_id else await self._episodes.find_session_owner(tenant, session_id)
        source = await self._get_conversation(owner, session_id)
        run, job_id = await self._inbox.extract_session(owner, source)
        return ExtractionTriggered(message=f"Memory extraction triggered, session ID: {run.session_id}", job_id=job_id)

    async def _get_conversation(self, owner: Owner, session_id: str) -> Session:
        session = await self._episodes.get_session(owner, session_id)
        require_conversation(session_id, session.kind)
        return session
