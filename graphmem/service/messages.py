"""Conversations: their turns, their sessions, and the memories taken from them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from graphmem.domain.identity import Owner, owner_of
from graphmem.domain.job import Job
from graphmem.domain.listing import Page, read_cursor, write_cursor
from graphmem.domain.session import Accepted, Message, MessagesIn, Session, SessionIn, Triggered
from graphmem.errors import InvalidInput
from graphmem.ingestion.messages import Inbox
from graphmem.jobs import JobRunner
from graphmem.store.episodes import EpisodeStore

WAIT_SECONDS = 300.0
"""How long `wait` waits; a job that takes longer is answered as it stands."""


class Conversations:
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

    async def add(self, owner: Owner, batch: MessagesIn) -> Accepted | Job:
        """Store turns and read them in the background; with `wait`, answer the finished job where there is one."""
        accepted = await self._inbox.add(owner, batch, extract=batch.extract and self._extraction == "auto")
        if batch.wait and accepted.job_id:
            return await self._jobs.wait(accepted.job_id, WAIT_SECONDS)
        return accepted

    async def sessions(
        self, owner: Owner, *, active: bool | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Session]:
        """List sessions, the latest first."""
        if not 1 <= limit <= 200:
            raise InvalidInput("limit must lie between 1 and 200.")
        after = None
        if cursor:
            at, session_id = read_cursor(cursor, (str, str))
            after = (datetime.fromisoformat(str(at)), str(session_id))
        items = await self._episodes.sessions(owner, active=active, after=after, limit=limit)
        last = items[-1] if len(items) == limit else None
        return Page(
            items=items, next_cursor=write_cursor(last.updated_at.isoformat(), last.session_id) if last else None
        )

    async def session(self, owner: Owner, session_id: str) -> Session:
        """Return one session."""
        return await self._episodes.session(owner, session_id)

    async def open_session(self, owner: Owner, wanted: SessionIn) -> Session:
        """Make a session before its first message; raise Conflict when its id is taken."""
        return await self._episodes.open_session(owner, wanted)

    async def messages(
        self, owner: Owner, session_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Message]:
        """List the turns of a session, oldest first."""
        if not 1 <= limit <= 200:
            raise InvalidInput("limit must lie between 1 and 200.")
        await self._episodes.session(owner, session_id)
        after = read_cursor(cursor, (int,))[0] if cursor else 0
        assert isinstance(after, int)
        items = await self._episodes.of_session(owner, session_id, after=after, limit=limit)
        return Page(items=items, next_cursor=write_cursor(items[-1].position) if len(items) == limit else None)

    async def close(self, owner: Owner, session_id: str) -> Session:
        """End a session; in the background what nobody has read of it is read, and what outlives it promoted."""
        session = await self._episodes.close_session(owner, session_id)
        if self._extraction == "auto":
            await self._inbox.read_rest(owner, session_id)
        await self._inbox.finish(owner, session)
        return session

    async def summarize(self, owner: Owner, session_id: str, *, wait: bool = False) -> Job:
        """Sum up a session and keep the summary as a memory, in the background; the same again is the same job."""
        session = await self._episodes.session(owner, session_id)
        job_id = await self._inbox.sum_up(owner, session, through=session.message_count)
        return await self._jobs.wait(job_id, WAIT_SECONDS if wait else 0)

    async def trigger_extraction(self, tenant: str, session_id: str, user_id: str | None = None) -> Triggered:
        """Extract from a whole session by the tool form, in a session of its own; for admins.

        Raises NotFound, and Conflict when the id is several users' and no `user_id` says whose is meant.
        """
        owner = owner_of(tenant, user_id) if user_id else await self._episodes.owner_of_session(tenant, session_id)
        source = await self._episodes.session(owner, session_id)
        run, job_id = await self._inbox.read_by_tools(owner, source)
        return Triggered(message=f"Memory extraction triggered, session ID: {run.session_id}", job_id=job_id)
