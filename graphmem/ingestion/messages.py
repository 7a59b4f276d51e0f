"""The way in for messages: stored at once, read in the background, each at most once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import groupby

from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Accepted, Message, MessagesIn, Session, SessionIn, SessionKind, spoken
from graphmem.embedding import Embedder
from graphmem.ingestion.pipeline import JOB, TOOL_JOB, payload_of
from graphmem.ingestion.redaction import hider
from graphmem.ingestion.summary import CLOSING_JOB, CLOSING_MESSAGES, KEPT_MESSAGES, SUMMARY_JOB, is_long
from graphmem.ingestion.window import cut, is_spoken
from graphmem.jobs import JobRunner
from graphmem.metrics import MESSAGE_STORAGE_TIME
from graphmem.store.episode_rows import Turn
from graphmem.store.episodes import EpisodeStore

OBSERVATION_JOB = "observation"
"""The kind of the job that learns from new messages without a model: what they mention, habits, manners."""


class Inbox:
    """Takes batches of messages and queues what is to be done with them; `summaries`: also of threads grown long."""

    def __init__(
        self,
        episodes: EpisodeStore,
        embedder: Embedder,
        policy: SecretPolicy,
        jobs: JobRunner,
        *,
        summaries: bool = False,
    ) -> None:
        self._episodes = episodes
        self._embedder = embedder
        self._policy = policy
        self._jobs = jobs
        self._summaries = summaries

    async def add(self, owner: Owner, batch: MessagesIn, *, extract: bool) -> Accepted:
        """Store what is new and queue one job for what nobody has read; a batch taken before changes nothing."""
        hide = hider(self._policy.allowed(owner.tenant))
        vectors = await self._embedder.embed([spoken(each.name, each.content) for each in batch.messages])
        turns = [
            Turn(message, vector, shown if (shown := hide(message.content)) != message.content else None)
            for message, vector in zip(batch.messages, vectors, strict=True)
        ]
        # The id is stored with the messages before the job is queued, so that a crash between the two loses nothing.
        job_id = str(uuid.uuid4()) if extract else None
        with MESSAGE_STORAGE_TIME.time():
            stored = await self._episodes.append(owner, batch.session_id, turns, job_id=job_id, zone=batch.timezone)
        if stored.new_ids:
            # Before extraction, so that what was mentioned is known while a slow model still reads.
            payload = {"tenant": owner.tenant, "user_id": owner.user_id, "message_ids": stored.new_ids}
            await self._jobs.enqueue(OBSERVATION_JOB, owner.group_id, payload)
        for waiting in stored.waiting_jobs:
            await self._ensure(owner, waiting)
        if job_id and stored.unread_ids:
            await self._queue(owner, await self._episodes.load(owner, stored.unread_ids), job_id)
        else:
            job_id = stored.waiting_jobs[-1] if extract and stored.waiting_jobs else None
        if self._summaries and stored.new_ids:
            await self._compress(owner, stored.session_id)
        return Accepted(
            job_id=job_id, session_id=stored.session_id, message_ids=stored.message_ids, new_ids=stored.new_ids
        )

    async def read_rest(self, owner: Owner, session_id: str) -> str | None:
        """Queue a job for what nobody has read of a session; return its id, or None when all has been."""
        messages = await self._episodes.unread(owner, session_id)
        if not messages:
            return None
        job_id = str(uuid.uuid4())
        await self._episodes.assign(owner, [message.id for message in messages], job_id)
        return await self._queue(owner, messages, job_id)

    async def read_by_tools(self, owner: Owner, source: Session) -> tuple[Session, str]:
        """Open a session for an extraction run over a whole session, and queue it; return the session and the job's id.

        The source stays as it is.
        """
        run = await self._episodes.open_session(
            owner, SessionIn(), kind=SessionKind.EXTRACTION, source_session_id=source.session_id
        )
        messages = [message async for message in self._episodes.all_of_session(owner, source.session_id)]
        windows = cut([message for message in messages if is_spoken(message)])
        payload = payload_of(owner, run.session_id, [message.id for message in messages], windows)
        return run, await self._jobs.enqueue(TOOL_JOB, owner.group_id, payload)

    async def sum_up(self, owner: Owner, session: Session, *, through: int, task: str | None = None) -> str:
        """Queue a summary of a session's messages up to a position; return the job's id.

        One `task` is queued once between two summaries; without one, once for each position.
        """
        payload = {
            "tenant": owner.tenant,
            "user_id": owner.user_id,
            "session_id": session.session_id,
            "through": through,
        }
        return await self._jobs.enqueue(
            SUMMARY_JOB, owner.group_id, payload, _job_of(session, task or f"summary {through}")
        )

    async def finish(self, owner: Owner, session: Session) -> str:
        """Queue what follows the end of a session; return the job's id."""
        unsummed = session.message_count - session.summarized_through
        payload = {
            "tenant": owner.tenant,
            "user_id": owner.user_id,
            "session_id": session.session_id,
            "through": session.message_count,
            "summarize": unsummed >= CLOSING_MESSAGES,
        }
        job_id = _job_of(session, f"closing {session.message_count}")
        return await self._jobs.enqueue(CLOSING_JOB, owner.group_id, payload, job_id)

    async def _compress(self, owner: Owner, session_id: str) -> None:
        """Sum up the older part of a session that has grown long."""
        session = await self._episodes.session(owner, session_id)
        if session.message_count - session.summarized_through <= KEPT_MESSAGES:
            return
        unsummed = await self._episodes.of_session(owner, session_id, after=session.summarized_through)
        if is_long(unsummed):
            await self.sum_up(owner, session, through=unsummed[-KEPT_MESSAGES].position - 1, task="thread")

    async def resume(self) -> int:
        """Queue the jobs that a crash kept from being queued; return how many there were."""
        waiting = sorted(await self._episodes.waiting(), key=lambda each: (each.owner.group_id, each.job_id))
        resumed = 0
        for (owner, job_id), parts in groupby(waiting, key=lambda each: (each.owner, each.job_id)):
            if await self._jobs.get(job_id) is None:
                ids = [message_id for part in parts for message_id in part.message_ids]
                await self._queue(owner, await self._episodes.load(owner, ids), job_id)
                resumed += 1
        return resumed

    async def _ensure(self, owner: Owner, job_id: str) -> None:
        if await self._jobs.get(job_id) is None:
            await self._queue(owner, await self._episodes.of_job(owner, job_id), job_id)

    async def _queue(self, owner: Owner, messages: Sequence[Message], job_id: str) -> str:
        ids = [message.id for message in messages]
        windows = cut([message for message in messages if is_spoken(message)])
        payload = payload_of(owner, messages[0].session_id, ids, windows)
        return await self._jobs.enqueue(JOB, owner.group_id, payload, job_id)


def _job_of(session: Session, task: str) -> str:
    """Return the id of a session's job: asking twice for the same is the same job."""
    return str(uuid.uuid5(uuid.UUID(session.id), f"{session.summarized_through} {task}"))
