"""Messages in the graph: each turn an episode, tied to its session and to the turn before it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from graphmem.domain.identity import Owner
from graphmem.domain.session import Message, Session, SessionIn, SessionKind
from graphmem.domain.times import Clock
from graphmem.errors import Conflict, NotFound
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.episode_mapping import (
    PreparedMessage,
    message_from_row,
    message_to_properties,
    new_session_properties,
    session_from_node,
)


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of a batch: the ids of all its messages, of the new ones, and the jobs older ones still wait for."""

    session_id: str
    message_ids: list[str]
    new_ids: list[str]
    unextracted_ids: list[str]
    pending_jobs: list[str]


@dataclass(frozen=True, slots=True)
class PendingMessages:
    """Messages of one session that a job is to read."""

    owner: Owner
    job_id: str
    session_id: str
    message_ids: list[str]


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Messages in the order of their session, those before them, oldest first, and the user's time zone."""

    messages: list[Message]
    preceding: list[Message]
    timezone: str | None


class EpisodeStore:
    """Messages and sessions of all users."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    # Writing

    async def append_messages(
        self,
        owner: Owner,
        session_id: str | None,
        turns: Sequence[PreparedMessage],
        *,
        job_id: str | None,
        timezone: str | None = None,
    ) -> AppendResult:
        """Store the turns that are new, in order, at the end of their session; one whose id is known stays as it is.

        With `job_id`, what is new or was never read waits for that job.
        """

        async def work(transaction: Transaction) -> AppendResult:
            return await self._append_messages(transaction, owner, session_id, turns, job_id, timezone)

        return await self._graph.write(work)

    async def _append_messages(
        self,
        transaction: Transaction,
        owner: Owner,
        session_id: str | None,
        turns: Sequence[PreparedMessage],
        job_id: str | None,
        timezone: str | None,
    ) -> AppendResult:
        now = await self._lock_user(transaction, owner)
        if timezone:
            await transaction.run(
                "episodes.set_timezone",
                group_id=owner.group_id, tenant=owner.tenant, user_id=owner.user_id, timezone=timezone, now=now,
            )  # fmt: skip
        ids = [turn.message.id or str(uuid.uuid4()) for turn in turns]
        rows = await transaction.run("episodes.find_stored", group_id=owner.group_id, message_ids=ids)
        known = {row["message_id"]: row for row in rows}
        new_messages = {key: turn for key, turn in zip(ids, turns, strict=True) if key not in known}
        target_session_id = session_id or (known[ids[0]]["session_id"] if not new_messages else str(uuid.uuid4()))
        if new_messages:
            await self._create_episodes(transaction, owner, target_session_id, new_messages, now)
        unextracted = [
            key for key in dict.fromkeys(ids)
            if key in new_messages or (known[key]["pending_job"] is None and known[key]["extracted_at"] is None)
        ]  # fmt: skip
        if job_id and unextracted:
            await transaction.run(
                "episodes.assign_to_job", group_id=owner.group_id, message_ids=unextracted, job_id=job_id
            )
        pending = dict.fromkeys(row["pending_job"] for row in rows if row["pending_job"])
        return AppendResult(target_session_id, ids, list(new_messages), unextracted, list(pending))

    async def _create_episodes(
        self,
        transaction: Transaction,
        owner: Owner,
        session_id: str,
        new_messages: Mapping[str, PreparedMessage],
        now: datetime,
    ) -> None:
        session = await self._get_or_create_session(transaction, owner, session_id, new_session_properties(), now)
        first = session["message_count"] + 1
        rows = [
            message_to_properties(owner, session_id, key, turn, position, now)
            for position, (key, turn) in enumerate(new_messages.items(), first)
        ]
        chain = [session.get("last_episode"), *(row["uuid"] for row in rows)]
        await transaction.run(
            "episodes.append_messages",
            group_id=owner.group_id,
            session_id=session_id,
            rows=rows,
            links=[list(pair) for pair in pairwise(chain) if pair[0]],
            last_episode=chain[-1],
            intents=[turn.message.intent for turn in new_messages.values() if turn.message.intent],
            now=now,
        )

    async def _get_or_create_session(
        self, transaction: Transaction, owner: Owner, session_id: str, properties: Mapping[str, Any], now: datetime
    ) -> Row:
        rows = await transaction.run(
            "episodes.get_or_create_session",
            group_id=owner.group_id,
            session_id=session_id,
            properties=properties,
            now=now,
        )
        return {**rows[0]["session"], "created": rows[0]["session"]["uuid"] == properties["uuid"]}

    async def open_session(
        self,
        owner: Owner,
        session_in: SessionIn,
        *,
        kind: SessionKind = SessionKind.CONVERSATION,
        source_session_id: str | None = None,
    ) -> Session:
        """Make a session; raise Conflict when its id is taken."""
        session_id = session_in.session_id or str(uuid.uuid4())
        properties = new_session_properties(session_in, kind, source_session_id)

        async def work(transaction: Transaction) -> Row:
            return await self._get_or_create_session(transaction, owner, session_id, properties, self._clock())

        stored = await self._graph.write(work)
        if not stored["created"]:
            raise Conflict(f"There is a session {session_id} already: use it, or leave the id out.")
        return session_from_node(stored)

    async def close_session(self, owner: Owner, session_id: str) -> Session:
        """End a session; raise NotFound for one that is not this user's."""
        return _single_session(
            await self._run_locked(owner, "episodes.close_session", session_id=session_id, now=self._clock())
        )

    async def save_summary(
        self,
        owner: Owner,
        session_id: str,
        *,
        summary: str,
        title: str,
        tags: Sequence[str],
        sentiment: float | None,
        through: int,
    ) -> None:
        """Keep what stands for the messages of a session up to the position `through`."""
        await self._run_locked(
            owner,
            "episodes.save_summary",
            session_id=session_id,
            summary=summary,
            title=title,
            tags=list(tags),
            sentiment=sentiment,
            through=through,
            now=self._clock(),
        )

    async def _run_locked(self, owner: Owner, query: str, **parameters: Any) -> list[Row]:
        """Run a query under the user's lock, which tells every cache that something has changed."""

        async def work(transaction: Transaction) -> list[Row]:
            await self._lock_user(transaction, owner)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        return await self._graph.write(work)

    async def _lock_user(self, transaction: Transaction, owner: Owner) -> datetime:
        now = self._clock()
        await transaction.run(
            "facts.lock_user", group_id=owner.group_id, tenant=owner.tenant, user_id=owner.user_id, now=now, count=1
        )
        return now

    async def assign_to_job(self, owner: Owner, message_ids: Sequence[str], job_id: str) -> None:
        """Note that a job is to read some messages."""
        await self._graph.execute(
            "episodes.assign_to_job", group_id=owner.group_id, message_ids=list(message_ids), job_id=job_id
        )

    async def mark_extracted(self, owner: Owner, message_ids: Sequence[str]) -> None:
        """Note that messages have been read by extraction."""
        await self._graph.execute(
            "episodes.mark_extracted", group_id=owner.group_id, message_ids=list(message_ids), at=self._clock()
        )

    async def release_from_job(self, owner: Owner, job_id: str) -> None:
        """Let go of what a job did not read, for a later one."""
        await self._graph.execute("episodes.release_from_job", group_id=owner.group_id, job_id=job_id)

    # Reading

    async def load_messages(self, owner: Owner, message_ids: Sequence[str]) -> list[Message]:
        """Return messages in the order of their session; ids that are not this user's are left out."""
        rows = await self._graph.fetch("episodes.load_messages", group_id=owner.group_id, message_ids=list(message_ids))
        return [message_from_row(row["message"]) for row in rows]

    async def load_conversation_context(
        self, owner: Owner, message_ids: Sequence[str], preceding: int
    ) -> ConversationContext | None:
        """Return messages with up to `preceding` before them in their session; None when none of them is this user's."""

        rows = await self._graph.fetch(
            "episodes.load_conversation_context",
            group_id=owner.group_id,
            message_ids=list(message_ids),
            preceding=preceding,
        )
        found = rows[0]
        if not found["messages"]:
            return None
        return ConversationContext(
            messages=[message_from_row(each) for each in found["messages"]],
            preceding=[message_from_row(each) for each in found["preceding"]],
            timezone=found["timezone"],
        )

    async def list_session_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int = 1_000
    ) -> list[Message]:
        """Return the messages of a session behind a position, oldest first."""
        rows = await self._graph.fetch(
            "episodes.list_session_messages", group_id=owner.group_id, session_id=session_id, after=after, limit=limit
        )
        return [message_from_row(row["message"]) for row in rows]

    async def iter_session_messages(self, owner: Owner, session_id: str) -> AsyncIterator[Message]:
        """Yield every message of a session, oldest first."""
        after = 0
        while page := await self.list_session_messages(owner, session_id, after=after):
            for message in page:
                yield message
            after = page[-1].position

    async def list_unextracted(self, owner: Owner, session_id: str) -> list[Message]:
        """Return the messages of a session that no job has read or is to read."""
        rows = await self._graph.fetch("episodes.list_unextracted", group_id=owner.group_id, session_id=session_id)
        return [message_from_row(row["message"]) for row in rows]

    async def list_pending_of_job(self, owner: Owner, job_id: str) -> list[Message]:
        """Return the messages that a job is still to read."""
        rows = await self._graph.fetch("episodes.list_pending_of_job", group_id=owner.group_id, job_id=job_id)
        return [message_from_row(row["message"]) for row in rows]

    async def list_pending(self) -> list[PendingMessages]:
        """Return, over all users, the messages that jobs are to read."""
        rows = await self._graph.fetch("episodes.list_pending")
        return [
            PendingMessages(Owner(*row["group_id"].split(":", 1)), row["job_id"], row["session_id"], row["message_ids"])
            for row in rows
        ]

    async def get_session(self, owner: Owner, session_id: str) -> Session:
        """Return one session; raise NotFound for one that is not this user's."""
        return _single_session(
            await self._graph.fetch("episodes.get_session", group_id=owner.group_id, session_id=session_id)
        )

    async def list_sessions(
        self, owner: Owner, *, active: bool | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[Session]:
        """Return one page of sessions, the latest first; `after` is the last of the page before."""
        rows = await self._graph.fetch(
            "episodes.list_sessions",
            group_id=owner.group_id,
            active=active,
            after_at=after[0] if after else None,
            after_id=after[1] if after else None,
            limit=limit,
        )
        return [session_from_node(row["session"]) for row in rows]

    async def find_session_owner(self, tenant: str, session_id: str) -> Owner:
        """Return whose session of a tenant an id is; raise NotFound, and Conflict when it is several users'."""
        rows = await self._graph.fetch(
            "episodes.find_session_owners", tenant_prefix=f"{tenant}:", session_id=session_id
        )
        if not rows:
            raise NotFound("There is no such session.")
        if len(rows) > 1:
            raise Conflict("Several users have a session of that id: say whose is meant with user_id.")
        return Owner(tenant, rows[0]["group_id"].split(":", 1)[1])

    async def get_timezone(self, owner: Owner) -> str | None:
        """Return the user's time zone, where one was told."""
        rows = await self._graph.fetch("episodes.get_timezone", group_id=owner.group_id)
        return rows[0]["timezone"] if rows else None


def _single_session(rows: Sequence[Row]) -> Session:
    if not rows:
        raise NotFound("There is no such session.")
    return session_from_node(rows[0]["session"])
