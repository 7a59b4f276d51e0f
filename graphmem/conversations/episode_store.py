"""Messages and sessions in the graph: a message is an episode, linked to its session and its predecessor."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter

from graphmem.conversations.session import (
    Message,
    MessageIn,
    RunMessage,
    Session,
    SessionArchive,
    SessionIn,
    SessionKind,
    require_conversation,
)
from graphmem.conversations.stored import (
    AppendResult,
    BatchFingerprint,
    ConversationContext,
    PendingJob,
    PendingMessages,
    PreparedMessage,
    message_from_columns,
    message_to_properties,
)
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import Conflict, Forbidden, NotFound
from graphmem.runtime.field_types import Vector, deduplicate, name_key, to_json
from graphmem.runtime.times import AS_OF_NOW, Clock, parse_times
from graphmem.tenants.idempotency import IdempotentRequest, write_once
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import Effect, StatedKind
from graphmem.tenants.users import lock_or_create_user, lock_user
from graphmem.text.normalising import fold

_SESSION_FIELDS = (
    "session_id", "source_session_id", "title", "summary", "sentiment_score", "created_at", "updated_at", "ended_at",
    "domain", "job_id",
)  # fmt: skip
"""Session fields that are stored unchanged and may be absent."""

_SESSION_TIME_FIELDS = ("created_at", "updated_at", "ended_at")
"""A session's times, in the order of the fragment `session_columns`."""


def run_messages_from_session(stored: Mapping[str, Any]) -> list[Message]:
    """Return the messages of an extraction session from the properties of its node."""
    session = session_from_node(stored)
    empty = {name: None for name, field in Message.model_fields.items() if field.is_required()}
    turns = [RunMessage.model_validate_json(text) for text in stored.get("transcript") or ()]
    return [
        Message.model_validate(
            {
                **empty,
                "id": f"{session.session_id} {position}",
                "session_id": session.session_id,
                "user_id": session.user_id,
                "role": turn.role,
                "content": turn.content,
                "timestamp": session.updated_at,
                "created_at": session.updated_at,
                "entities": {},
                "metadata": {"tool_calls": turn.tool_calls} if turn.tool_calls else {},
                "position": position,
                "utc_offset_minutes": 0,
            }
        )
        for position, turn in enumerate(turns, 1)
    ]


def session_from_node(stored: Mapping[str, Any]) -> Session:
    """Return a session from the properties of its node."""
    owner = Owner.from_group_id(stored["group_id"])
    plain: dict[str, Any] = {name: stored.get(name) for name in _SESSION_FIELDS}
    return Session(
        **plain,
        id=stored["uuid"],
        user_id=stored.get("author") or owner.user_id,
        space=owner.space,
        kind=SessionKind(stored["kind"]),
        summarized_through=stored["summarized_through"],
        intent_sequence=list(stored.get("intent_sequence") or ()),
        topic_tags=list(stored.get("topic_tags") or ()),
        message_count=stored["message_count"],
        is_active=stored["is_active"],
        sent_as=stored.get("sent_as"),
        metadata=json.loads(stored["metadata"]),
    )


def session_from_columns(columns: Sequence[Any]) -> Session:
    """Return a session from the value of the fragment `session_columns`."""
    properties, times = columns
    return session_from_node({**properties, **parse_times(_SESSION_TIME_FIELDS, times)})


def new_session_properties(
    session_in: SessionIn | None = None,
    kind: SessionKind = SessionKind.CONVERSATION,
    source_session_id: str | None = None,
    job_id: str | None = None,
    author: str | None = None,
    sent_as: StatedKind | None = None,
) -> dict[str, Any]:
    """Return the properties of a new session node, except its session id and times.

    `author` opens it in a space, with a key whose source is `sent_as` if that is not the user.
    """
    session = session_in or SessionIn()
    return {
        "uuid": str(uuid.uuid4()),
        "kind": kind.value,
        "title": session.title,
        "source_session_id": source_session_id,
        "job_id": job_id,
        "author": author,
        "sent_as": sent_as,
        "message_count": 0,
        "summarized_through": 0,
        "topic_tags": session.topic_tags or None,
        "domain": session.domain,
        "metadata": to_json(session.metadata),
        "is_active": True,
    }


FoundSessions = Mapping[str, Row | None]
"""Session properties by requested id; None for sessions that do not exist."""


async def recognise_batch(
    transaction: Transaction,
    owner: Owner,
    session_id: str | None,
    messages: Sequence[MessageIn],
    sent_as: StatedKind | None,
    new_ids: Sequence[str],
    window: timedelta,
    now: datetime,
) -> tuple[str | None, list[str], FoundSessions]:
    """Return the session of a batch and its message ids: the existing ids if it was stored before.

    Within `window`, a batch without ids is recognised if it repeats the latest turns of its session, or opened a
    session and is sent again without one. In a batch with some ids, the other messages are recognised by these. New
    messages get `new_ids`. Also returns the sessions that were looked up.
    """
    life, _ = transaction.revisions[owner.group_id]
    fingerprint = BatchFingerprint(life, session_id, messages, sent_as)
    given = [message.id for message in messages]
    if any(given):
        return session_id, fingerprint.complete_ids(given), {}
    if session_id is not None:
        sessions = await _find_sessions(transaction, owner, [session_id])
        count = (sessions[session_id] or {}).get("message_count", 0)
        ids = await _ids_in_session(transaction, owner, fingerprint, count, len(given), now - window)
        return session_id, ids, sessions
    period = int(now.timestamp() // window.total_seconds())
    candidates = [fingerprint.session_id(period), fingerprint.session_id(period - 1)]
    sessions = await _find_sessions(transaction, owner, candidates)
    for key, session in sessions.items():
        if session and session["created_at"] >= now - window and session["message_count"] == len(given):
            return key, fingerprint.message_ids(key), sessions
    if sessions[candidates[0]]:
        return str(uuid.uuid4()), list(new_ids), sessions
    return candidates[0], fingerprint.message_ids(candidates[0]), sessions


async def _find_sessions(transaction: Transaction, owner: Owner, session_ids: Sequence[str]) -> FoundSessions:
    rows = await transaction.run("episodes.find_sessions", group_id=owner.group_id, session_ids=list(session_ids))
    found = {row["session"]["session_id"]: row["session"] for row in rows}
    return {key: found.get(key) for key in session_ids}


async def _ids_in_session(
    transaction: Transaction,
    owner: Owner,
    fingerprint: BatchFingerprint,
    count: int,
    size: int,
    oldest: datetime,
) -> list[str]:
    """Return the ids of a batch in a session of `count` messages, or the ids of the latest turns that it repeats."""
    if count < size:
        return fingerprint.message_ids(str(count))
    earlier = fingerprint.message_ids(str(count - size))
    stored = await transaction.run("episodes.find_stored", group_id=owner.group_id, message_ids=earlier)
    if len(stored) == size and all(row["created_at"] >= oldest for row in stored):
        return earlier
    return fingerprint.message_ids(str(count))


async def _refuse_taken_ids(transaction: Transaction, owner: Owner, stored: Sequence[Row], kind: StatedKind) -> None:
    """Raise Conflict for a message id already used by a less trusted source, because the new message would be lost."""
    order = await find_trust_order(transaction, owner.tenant, {kind, *(row["sent_as"] for row in stored)})
    for row in stored:
        if not order.permits(Effect.HIDE, row["sent_as"], kind):
            raise Conflict(
                f"A message of a less trusted source ({row['sent_as']}) has the id {row['message_id']} already: send "
                "this one with another id, or without one."
            )


_APPEND_RESULT = TypeAdapter(AppendResult)
_SESSION = TypeAdapter(Session)


def _assignment(owner: Owner, message_ids: Sequence[str], job: PendingJob) -> dict[str, Any]:
    return {"group_id": owner.group_id, "message_ids": list(message_ids), "job_id": job.id, "job_store": job.store}


class EpisodeStore:
    """The messages and sessions of all users."""

    def __init__(self, graph: Graph, clock: Clock, repeat_window: timedelta = timedelta(0)) -> None:
        """Use a graph; repeated batches without ids are recognised within `repeat_window` (0: never)."""
        self._graph = graph
        self._clock = clock
        self._repeat_window = repeat_window

    async def find_job_that_read(self, owner: Owner, message_ids: Sequence[str]) -> str | None:
        """Return the id of the job that last extracted from messages, or None."""
        rows = await self._graph.fetch("episodes.find_reading", group_id=owner.group_id, message_ids=list(message_ids))
        return rows[0]["extraction_id"].rpartition(":")[0] if rows else None

    # Writing

    async def append_messages(
        self,
        owner: Owner,
        session_id: str | None,
        messages: Sequence[PreparedMessage],
        *,
        job: PendingJob | None = None,
        timezone: str | None = None,
        domain: str | None = None,
        request: IdempotentRequest | None = None,
    ) -> AppendResult:
        """Append the new messages of a batch, which may have a domain, to their session in order.

        Messages with a known id stay unchanged, as do those of a batch that `recognise_batch` recognises. With a `job`,
        messages that no job has read or will read are assigned to it. `timezone` becomes the user's time zone, unless a
        more trusted source has set one. With `request`, they are stored only once for it. Raises Conflict for an id
        used by a less trusted source's message.
        """
        # Ids are assigned before the transaction, which runs again if its outcome is unknown.
        received = [prepared.message for prepared in messages]
        ids = [message.id or str(uuid.uuid4()) for message in received]
        may_be_repeated = request is None and self._repeat_window and not all(message.id for message in received)

        async def append(transaction: Transaction) -> AppendResult:
            now = await lock_or_create_user(transaction, owner, self._clock())
            if timezone:
                await self._set_timezone(transaction, owner, timezone, messages[0].sent_as or "user")
            sessions: FoundSessions = {}
            target, message_ids = session_id, ids
            if may_be_repeated:
                target, message_ids, sessions = await recognise_batch(
                    transaction, owner, session_id, received, messages[0].sent_as, ids, self._repeat_window, now
                )
            batch = list(zip(message_ids, messages, strict=True))
            return await self._append_messages(transaction, owner, target, batch, job, domain, now, sessions)

        async def work(transaction: Transaction) -> AppendResult:
            return await write_once(transaction, request, _APPEND_RESULT, lambda: append(transaction))

        return await self._graph.write(work)

    async def _set_timezone(self, transaction: Transaction, owner: Owner, timezone: str, kind: StatedKind) -> None:
        order = await find_trust_order(transaction, owner.tenant)
        await transaction.run(
            "episodes.set_timezone",
            group_id=owner.group_id,
            timezone=timezone,
            timezone_source_kind=kind,
            permitted=order.permitted_on(Effect.END, kind),
        )

    async def _append_messages(
        self,
        transaction: Transaction,
        owner: Owner,
        session_id: str | None,
        messages: Sequence[tuple[str, PreparedMessage]],
        job: PendingJob | None,
        domain: str | None,
        now: datetime,
        sessions: FoundSessions,
    ) -> AppendResult:
        ids = [message_id for message_id, _ in messages]
        rows = await transaction.run("episodes.find_stored", group_id=owner.group_id, message_ids=ids)
        stored = {row["message_id"]: row for row in rows}
        await _refuse_taken_ids(transaction, owner, rows, messages[0][1].sent_as or "user")
        new_messages: dict[str, PreparedMessage] = {}
        for message_id, prepared in messages:
            if message_id not in stored:
                new_messages.setdefault(message_id, prepared)  # of several messages with one id, the first is stored
        target_session_id = session_id or (stored[ids[0]]["session_id"] if not new_messages else str(uuid.uuid4()))
        if new_messages:
            if target_session_id not in sessions:
                sessions = await _find_sessions(transaction, owner, [target_session_id])
            session = sessions[target_session_id]
            await self._create_episodes(transaction, owner, target_session_id, session, new_messages, job, domain, now)
        unread = [key for key, row in stored.items() if row["pending_job"] is None and row["extracted_at"] is None]
        if job and unread:
            await transaction.run("episodes.assign_to_job", **_assignment(owner, unread, job))
        pending_jobs = deduplicate(row["pending_job"] for row in rows if row["pending_job"])
        assigned = job.id if job and (new_messages or unread) else None
        return AppendResult(target_session_id, ids, list(new_messages), assigned, pending_jobs)

    async def refuse_names_of_members(self, space: Owner, author: str, names: Sequence[str]) -> None:
        """Raise Forbidden if a name is the id of a space member other than the author."""
        given = {name_key(fold(name).text): name for name in names}
        keys = {key: name for key, name in given.items() if key != name_key(author)}
        if not keys:
            return
        rows = await self._graph.fetch("spaces.list_spaces", group_ids=[space.group_id])
        for user, _, _ in (member for row in rows for member in row["members"]):
            if user and name_key(user) in keys:
                raise Forbidden(
                    f"{keys[name_key(user)]!r} is the name of another member: leave `name` out, or have that member "
                    "send the message."
                )

    async def _create_episodes(
        self,
        transaction: Transaction,
        owner: Owner,
        session_id: str,
        known: Row | None,
        new_messages: Mapping[str, PreparedMessage],
        job: PendingJob | None,
        domain: str | None,
        now: datetime,
    ) -> None:
        author = next(iter(new_messages.values())).author
        properties = new_session_properties(author=author)
        session = known or properties
        require_conversation(session_id, SessionKind(session["kind"]))
        rows = [
            message_to_properties(owner, session_id, message_id, prepared, position, domain, now)
            for position, (message_id, prepared) in enumerate(new_messages.items(), session["message_count"] + 1)
        ]
        chain = [session.get("last_episode"), *(row["uuid"] for row in rows)]
        await transaction.run(
            "episodes.append_messages",
            group_id=owner.group_id,
            session_id=session_id,
            properties=properties,
            rows=rows,
            last_episode=chain[-1],
            batch={
                "links": [list(pair) for pair in pairwise(chain) if pair[0]],
                "intents": [prepared.message.intent for prepared in new_messages.values() if prepared.message.intent],
                "job_id": job.id if job else None,
                "job_store": job.store if job else None,
            },
            now=now,
        )

    async def _get_or_create_session(
        self, transaction: Transaction, owner: Owner, session_id: str, properties: Row, now: datetime
    ) -> tuple[Row, bool]:
        """Return a session's properties, and whether it was created now with `properties`."""
        rows = await transaction.run(
            "episodes.get_or_create_session",
            group_id=owner.group_id,
            session_id=session_id,
            properties=properties,
            now=now,
        )
        session: Row = rows[0]["session"]
        return session, session["uuid"] == properties["uuid"]

    async def open_session(
        self,
        owner: Owner,
        session_in: SessionIn,
        *,
        kind: SessionKind = SessionKind.CONVERSATION,
        source_session_id: str | None = None,
        job_id: str | None = None,
        author: str | None = None,
        sent_as: StatedKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> Session:
        """Create a session, with `job_id` for an extraction; raise Conflict if its id is taken.

        `author` is the user who opens a session in a space. With `request`, it is created only once for it.
        """
        session_id = session_in.session_id or str(uuid.uuid4())
        properties = new_session_properties(session_in, kind, source_session_id, job_id, author, sent_as)

        async def create(transaction: Transaction) -> Session:
            now = await lock_or_create_user(transaction, owner, self._clock())
            session, is_new = await self._get_or_create_session(transaction, owner, session_id, properties, now)
            if not is_new:
                raise Conflict(f"There is a session {session_id} already: use it, or leave the id out.")
            return session_from_node(session)

        async def work(transaction: Transaction) -> Session:
            return await write_once(transaction, request, _SESSION, lambda: create(transaction))

        return await self._graph.write(work)

    async def close_session(self, owner: Owner, session_id: str) -> Session:
        """End a session; raise NotFound if the user has no such session."""
        rows = await self._run_locked(owner, "episodes.close_session", session_id=session_id, now=self._clock())
        return _single_session(rows)

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
        """Store a summary of a session's messages up to the position `through`."""
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

    async def list_archives(self, owner: Owner, session_id: str) -> list[SessionArchive]:
        """Return the archives of a session, oldest first."""
        rows = await self._graph.fetch("episodes.list_archives", group_id=owner.group_id, session_id=session_id)
        return [SessionArchive.model_validate(row["archive"]) for row in rows]

    async def set_vectors(self, owner: Owner, vectors: Mapping[str, Vector]) -> None:
        """Store the vectors of messages, by message id."""
        rows = [{"message_id": message_id, "vector": vector} for message_id, vector in vectors.items()]
        await self._run_locked(owner, "episodes.set_vectors", rows=rows)

    async def _run_locked(self, owner: Owner, query: str, *, count: int = 1, **parameters: Any) -> list[Row]:
        """Run a query under the user's lock; a `count` other than 0 invalidates every cache of their data."""

        async def work(transaction: Transaction) -> list[Row]:
            await lock_user(transaction, owner, self._clock(), count)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        return await self._graph.write(work)

    async def assign_to_job(self, owner: Owner, message_ids: Sequence[str], job: PendingJob) -> None:
        """Record that a job will read the messages."""
        await self._graph.execute("episodes.assign_to_job", **_assignment(owner, message_ids, job))

    async def mark_extracted(self, owner: Owner, message_ids: Sequence[str]) -> None:
        """Record that extraction has read the messages."""
        await self._run_locked(
            owner, "episodes.mark_extracted", count=0, message_ids=list(message_ids), at=self._clock()
        )

    async def release_from_job(self, owner: Owner, job_id: str) -> None:
        """Release a job's unread messages for a later job."""
        await self._graph.execute("episodes.release_from_job", group_id=owner.group_id, job_id=job_id)

    # Reading

    async def load_messages(self, owner: Owner, message_ids: Sequence[str]) -> list[Message]:
        """Return messages in session order; other users' ids are left out."""
        rows = await self._graph.fetch("episodes.load_messages", group_id=owner.group_id, message_ids=list(message_ids))
        return [message_from_columns(row["message"]) for row in rows]

    async def load_conversation_context(
        self, owner: Owner, message_ids: Sequence[str], preceding: int
    ) -> ConversationContext | None:
        """Return messages and up to `preceding` messages before them; None if none belongs to this user."""
        rows = await self._graph.fetch(
            "episodes.load_conversation_context",
            group_id=owner.group_id,
            message_ids=list(message_ids),
            preceding=preceding,
            known_at=AS_OF_NOW,
        )
        context = rows[0]
        if not context["messages"]:
            return None
        return ConversationContext(
            messages=[message_from_columns(columns) for columns in context["messages"]],
            preceding=[message_from_columns(columns) for columns in context["preceding"]],
            timezone=context["timezone"],
            domain=context["domain"],
            previous_at=context["previous_at"],
        )

    async def list_session_messages(
        self, owner: Owner, session_id: str, *, after: int = 0, limit: int = 1_000
    ) -> list[Message]:
        """Return the messages of a session after a position, oldest first."""
        rows = await self._graph.fetch(
            "episodes.list_session_messages", group_id=owner.group_id, session_id=session_id, after=after, limit=limit
        )
        # A message erased at the same moment has lost its properties.
        return [message_from_columns(row["message"]) for row in rows if "content" in row["message"][0]]

    async def iter_session_messages(self, owner: Owner, session_id: str, *, after: int = 0) -> AsyncIterator[Message]:
        """Yield every message of a session after a position, oldest first."""
        while page := await self.list_session_messages(owner, session_id, after=after):
            for message in page:
                yield message
            after = page[-1].position

    async def list_unextracted(self, owner: Owner, session_id: str) -> list[Message]:
        """Return the messages of a session that no job has read or will read."""
        rows = await self._graph.fetch("episodes.list_unextracted", group_id=owner.group_id, session_id=session_id)
        return [message_from_columns(row["message"]) for row in rows]

    async def list_pending_of_job(self, owner: Owner, job_id: str) -> list[Message]:
        """Return the messages that a job has not read yet."""
        rows = await self._graph.fetch("episodes.list_pending_of_job", group_id=owner.group_id, job_id=job_id)
        return [message_from_columns(row["message"]) for row in rows]

    async def list_pending(self, job_store: str, foreign_after: timedelta) -> list[PendingMessages]:
        """Return all users' messages that their jobs in a job store have not read yet.

        Messages with jobs in another store are included once they have waited for `foreign_after`.
        """
        rows = await self._graph.fetch("episodes.list_pending", job_store=job_store, foreign_after=foreign_after)
        return [PendingMessages(row["group_id"], row["job_id"], row["session_id"], row["message_ids"]) for row in rows]

    async def get_session(self, owner: Owner, session_id: str) -> Session:
        """Return one session; raise NotFound if the user has no such session."""
        return _single_session(
            await self._graph.fetch("episodes.get_session", group_id=owner.group_id, session_id=session_id)
        )

    async def list_run_messages(self, owner: Owner, session_id: str) -> list[Message]:
        """Return the messages between an extraction and its model; raise NotFound for an unknown session."""
        rows = await self._graph.fetch("episodes.get_session", group_id=owner.group_id, session_id=session_id)
        if not rows:
            raise NotFound("There is no such session.")
        return run_messages_from_session(rows[0]["session"])

    async def list_sessions(
        self, owner: Owner, *, active: bool | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[Session]:
        """Return one page of sessions, latest first; `after` is the time and id of the previous page's last session."""
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
        """Return the tenant's user with a session; raise NotFound if there is none, Conflict if there are several."""
        rows = await self._graph.fetch(
            "episodes.find_session_owners", tenant_prefix=f"{tenant}:", session_id=session_id
        )
        if not rows:
            raise NotFound("There is no such session.")
        if len(rows) > 1:
            raise Conflict("Several users have a session with that id: add user_id.")
        return Owner.from_group_id(rows[0]["group_id"])

    async def get_timezone(self, owner: Owner) -> str | None:
        """Return the user's time zone, or None if it is unknown."""
        rows = await self._graph.fetch("episodes.get_timezone", group_id=owner.group_id)
        return rows[0]["timezone"] if rows else None


def _single_session(rows: Sequence[Row]) -> Session:
    if not rows:
        raise NotFound("There is no such session.")
    return session_from_node(rows[0]["session"])
