"""Messages: their turns, their sessions, and the memories taken from them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from graphmem.domain.identity import Owner, make_owner
from graphmem.domain.job import Job
from graphmem.domain.listing import Page, decode_cursor, encode_cursor
from graphmem.domain.session import ExtractionTriggered, Message, MessagesAccepted, MessagesIn, Session, SessionIn
from graphmem.errors import InvalidInput
from graphmem.ingestion.inbox import Inbox
from graphmem.jobs import JobRunner
from graphmem.store.episodes import EpisodeStore

WAIT_SECONDS = 300.0
"""How long `wait` waits; a job that takes longer is answered as it stands."""


class MessageService:
    """The verbs of messages and sessions; `extraction` manual leaves reading to the trigger and to closing."""

    def __init__(
        self,
        inbox: Inbox,
        episodes: EpisodeStore,
        jobs: JobRunner,
        extraction: Literal["auto", "manual"] = "auto",
    ) -> None:
        self._inbox = inbox
        self._episodes = episodes
        self._jobs = jobs
        self._extraction = extraction

    async def add(self, owner: Owner, batch: MessagesIn) -> MessagesAccepted | Job:
        """Store turns and read them in the background; with `wait`, answer the finished job where there is one."""
        accepted = await self._inbox.add(owner, batch, extract=batch.extract and self._extraction == "auto")
        if batch.wait and accepted.job_id:
            return await self._jobs.wait(accepted.job_id, WAIT_SECONDS)
        return accepted

    async def list_sessions(
        self, owner: Owner, *, active: bool | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Session]:
        """List sessions, the latest first."""
        if not 1 <= limit <= 200:
            raise InvalidInput("limit must lie between 1 and 200.")
        after = None
        if cursor:
            at, session_id = decode_cursor(cursor, (str, str))
            after = (datetime.fromisoformat(str(at)), str(session_id))
        items = await self._episodes.list_sessions(owner, active=active, after=after, limit=limit)
        last = items[-1] if len(items) == limit else None
        return Page(
            items=items, next_cursor=encode_cursor(last.updated_at.isoformat(), last.session_id) if last else None
        )

    async def get_session(self, owner: Owner, session_id: str) -> Session:
        """Return one session."""
        return await self._episodes.get_session(owner, session_id)

    async def open_session(self, owner: Owner, session_in: SessionIn) -> Session:
        """Make a session before its first message; raise Conflict when its id is taken."""
        return await self._episodes.open_session(owner, session_in)

    async def list_messages(
        self, owner: Owner, session_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Message]:
        """List the turns of a session, oldest first."""
        if not 1 <= limit <= 200:
            raise InvalidInput("limit must lie between 1 and 200.")
        await self._episodes.get_session(owner, session_id)
        after = decode_cursor(cursor, (int,))[0] if cursor else 0
        assert isinstance(after, int)
        items = await self._episodes.list_session_messages(owner, session_id, after=after, limit=limit)
        return Page(items=items, next_cursor=encode_cursor(items[-1].position) if len(items) == limit else None)

    async def close(self, owner: Owner, session_id: str) -> Session:
        """End a session; in the background what nobody has read of it is read, and what outlives it promoted."""
        session = await self._episodes.close_session(owner, session_id)
        if self._extraction == "auto":
            await self._inbox.extract_unread(owner, session_id)
        await self._inbox.enqueue_closing(owner, session)
        return session

    async def summarize(self, owner: Owner, session_id: str, *, wait: bool = False) -> Job:
        """Sum up a session and keep the summary as a memory, in the background; the same again is the same job."""
        session = await self._episodes.get_session(owner, session_id)
        job_id = await self._inbox.summarize(owner, session, through=session.message_count)
        return await self._jobs.wait(job_id, WAIT_SECONDS if wait else 0)

    async def trigger_extraction(self, tenant: str, session_id: str, user_id: str | None = None) -> ExtractionTriggered:
        """Extract from a whole session by the tool form, in a session of its own; for admins.

        Raises NotFound, and Conflict when the id is several users' and no `user_id` says whose is meant.
        """
        owner = make_owner(tenant, user_id) if user_id else await self._episodes.find_session_owner(tenant, session_id)
        source = await self._episodes.get_session(owner, session_id)
        run, job_id = await self._inbox.extract_session(owner, source)
        return ExtractionTriggered(message=f"Memory extraction triggered, session ID: {run.session_id}", job_id=job_id)
