"""Operations on messages and sessions: stored at once, extracted in the background, each at most once."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Literal, Protocol

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import (
    ExtractionTriggered,
    Message,
    MessageIn,
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
from graphmem.conversations.stored import PendingJob, PendingMessages, PreparedMessage
from graphmem.ingestion.jobs import (
    CLOSING_JOB,
    EMBEDDING_JOB,
    EXTRACTION_JOB,
    NO_MODEL_REASON,
    SUMMARY_JOB,
    TOOL_EXTRACTION_JOB,
    ClosingPayload,
    EmbeddingPayload,
    ExtractionPayload,
    SummaryPayload,
)
from graphmem.ingestion.transcript import is_dialogue, select_readable, split_into_batches
from graphmem.jobs.job import Job, JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import embedding_text
from graphmem.models.language_model import Receipt
from graphmem.neo4j.placed_graph import current_graph, use_tenant
from graphmem.runtime.errors import InvalidInput, ModelUnavailable, Unavailable
from graphmem.runtime.field_types import Vector, stored_values, text_length
from graphmem.runtime.metrics import MESSAGE_STORAGE_TIME
from graphmem.runtime.paging import TIME_CURSOR, Cursor, Page, PageQuery, StoredInteger
from graphmem.runtime.process import read_text
from graphmem.secrets.scanner import SecretPolicy, make_redactor
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.trust import TEXT_OF_OTHERS, StatedKind
from graphmem.text.token_counts import count_tokens

log = logging.getLogger(__name__)

EMBEDDING_SECONDS = 5.0
EMBEDDING_SECONDS_PER_MESSAGE = 0.1
"""Seconds per message that storing waits for vectors; after that, a job computes them."""

MANUAL_EXTRACTION_REASON = "no summary was written: extraction is manual, so that only a call of summarize writes one"
"""Why closing a session does not summarize it when extraction is manual."""

MAX_UNSUMMARIZED_MESSAGES = 50
"""Number of unsummarized messages at which a session is summarized."""

MAX_UNSUMMARIZED_TOKENS = 4_000
"""Tokens of unsummarized messages at which a session is summarized, unless all of them are recent."""

RECENT_MESSAGES_NOT_SUMMARIZED = 10
"""Number of latest messages left out of the summary of a continuing session."""

MIN_MESSAGES_FOR_CLOSING_SUMMARY = 10
"""Minimum unsummarized messages for a summary when a session is closed."""

FOREIGN_JOBS_AFTER = timedelta(hours=25)
"""Age at which messages whose job is in another store are queued here; a job waits up to a day for a model.

Otherwise two services that share a graph but not a job store would both extract the same messages.
"""

_WITHOUT_SUMMARY = (JobStatus.SKIPPED, JobStatus.FAILED)


class QueueObservation(Protocol):
    """Queues the job that learns from new messages."""

    async def __call__(self, owner: Owner, message_ids: Sequence[str], *, is_model_awaited: bool) -> None:
        """Queue it for messages by their ids; with `is_model_awaited`, a model has yet to read them."""


class Inbox:
    """Stores batches of messages and queues their jobs; with a model, also summaries of long sessions."""

    def __init__(
        self,
        episodes: EpisodeStore,
        embedder: Embedder,
        policy: SecretPolicy,
        jobs: JobRunner,
        *,
        queue_observation: QueueObservation | None = None,
        has_model: bool = False,
    ) -> None:
        self._episodes = episodes
        self._embedder = embedder
        self._policy = policy
        self._jobs = jobs
        self._queue_observation = queue_observation
        self._has_model = has_model
        self._without_job: dict[str | None, set[tuple[str, str]]] = {}

    async def add(
        self,
        owner: Owner,
        batch: MessagesIn,
        *,
        extract: bool,
        author: str | None = None,
        sent_as: StatedKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> MessagesAccepted:
        """Store new messages and, with `extract`, queue one extraction of all unread ones, and a summary if needed.

        `author` is the user who sent them to a space: what is learned about a user is not learned about a space. Their
        statements are trusted no more than `sent_as`. Sending the same batch again changes nothing if its messages have
        ids or it comes with the same `request`.
        """
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        redacted, vectors = await asyncio.gather(  # in different threads
            read_text(
                sum(len(message.content) for message in batch.messages),
                lambda: [redact(message.content) for message in batch.messages],
            ),
            self._embed_in_time(batch.messages),
        )
        vector_of_each: Sequence[Vector | None] = vectors or [None] * len(redacted)
        messages = [
            PreparedMessage(message, vector, text if text != message.content else None, author, sent_as)
            for message, vector, text in zip(_with_ids(batch.messages, request), vector_of_each, redacted, strict=True)
        ]
        # The id is stored with the messages before the job is queued, so that a crash in between loses nothing.
        job = self._new_job() if extract else None
        with MESSAGE_STORAGE_TIME.time():
            stored = await self._episodes.append_messages(
                owner,
                batch.session_id,
                messages,
                job=job,
                timezone=batch.timezone,
                domain=batch.domain,
                request=request,
            )
        if stored.new_ids and vectors is None:
            await self._enqueue_embedding(owner, stored.new_ids)
        if stored.new_ids and self._queue_observation and not owner.is_space:
            # Before extraction, so that mentions are known while a slow model is still working.
            await self._queue_observation(owner, stored.new_ids, is_model_awaited=extract and self._has_model)
        for pending_job in stored.pending_jobs:
            await self._ensure_enqueued(owner, pending_job)
        if stored.job_id:
            embedded = 0 if vectors is None else len(stored.new_ids)
            await self._enqueue_pending(owner, stored.job_id, embedded)
        if self._has_model and extract and stored.new_ids:
            await self._enqueue_summary_when_long(owner, stored.session_id)
        last_pending_job = stored.pending_jobs[-1] if extract and stored.pending_jobs else None
        return MessagesAccepted(
            job_id=stored.job_id or last_pending_job,
            session_id=stored.session_id,
            message_ids=stored.message_ids,
            new_ids=stored.new_ids,
        )

    async def find_finished_job(self, owner: Owner, message_ids: Sequence[str]) -> str | None:
        """Return the job that read messages which are now sent again, if the job store still has it."""
        job_id = await self._episodes.find_job_that_read(owner, message_ids)
        return job_id if job_id and await self._jobs.find(job_id) else None

    async def _embed_in_time(self, messages: Sequence[MessageIn]) -> list[Vector] | None:
        """Return the vectors of messages; None if the embedder is unavailable or takes too long."""
        try:
            async with asyncio.timeout(EMBEDDING_SECONDS + EMBEDDING_SECONDS_PER_MESSAGE * len(messages)):
                return await self._embedder.embed(
                    [embedding_text(message.name, message.content) for message in messages]
                )
        except (ModelUnavailable, TimeoutError) as error:
            log.warning("messages are stored without vectors for now: %s", str(error) or "the embedder is slow")
            return None

    async def _enqueue_embedding(self, owner: Owner, message_ids: Sequence[str]) -> None:
        payload = EmbeddingPayload(tenant=owner.tenant, user_id=owner.user_id, message_ids=list(message_ids))
        await self._jobs.enqueue(EMBEDDING_JOB, payload, str(uuid.uuid4()))

    async def handle_embedding_job(self, payload: EmbeddingPayload, steps: Steps) -> JobOutcome:
        """Handle a job that computes the vectors of stored messages."""
        owner = payload.owner

        async def embed() -> None:
            messages = await self._episodes.load_messages(owner, payload.message_ids)
            vectors = await self._embedder.embed(
                [embedding_text(message.name, message.content) for message in messages]
            )
            ids = [message.id for message in messages]
            await self._episodes.set_vectors(owner, dict(zip(ids, vectors, strict=True)))

        await steps.run("embed", embed)
        return JobOutcome(status=JobStatus.SUCCEEDED, receipt=Receipt(embedded_texts=len(payload.message_ids)))

    async def open_session(
        self,
        owner: Owner,
        session: SessionIn,
        *,
        author: str | None = None,
        sent_as: StatedKind | None = None,
        request: IdempotentRequest | None = None,
    ) -> Session:
        """Create a session before its first message; a repetition with the same `request` returns the same session.

        `author` is the user who opens it in a space. Raises InvalidInput for a secret that the tenant may not store,
        and Conflict if the session's id is taken.
        """
        classes = await read_text(
            text_length(session), lambda: self._policy.refused_classes(stored_values(session), owner.tenant)
        )
        if classes:
            raise InvalidInput(
                f"The session contains a secret ({', '.join(classes)}), which is not stored: leave it out."
            )
        return await self._episodes.open_session(owner, session, author=author, sent_as=sent_as, request=request)

    def _new_job(self) -> PendingJob:
        return PendingJob(str(uuid.uuid4()), self._jobs.store_id)

    async def extract_unread(self, owner: Owner, session_id: str) -> str | None:
        """Queue the extraction of a session's unread messages; return the job's id, or None if there are none."""
        messages = await self._episodes.list_unextracted(owner, session_id)
        if not messages:
            return None
        job = self._new_job()
        await self._episodes.assign_to_job(owner, [message.id for message in messages], job)
        return await self._enqueue_extraction(owner, messages, job.id)

    async def extract_session(self, owner: Owner, source: Session) -> tuple[Session, str]:
        """Queue the extraction of a whole session by tool calls, in a new session; return it and the job's id."""
        job_id = str(uuid.uuid4())
        run = await self._episodes.open_session(
            owner, SessionIn(), kind=SessionKind.EXTRACTION, source_session_id=source.session_id, job_id=job_id
        )
        messages = [message async for message in self._episodes.iter_session_messages(owner, source.session_id)]
        payload = _extraction_payload(owner, run.session_id, messages)
        dialogue = split_into_batches([message for message in messages if is_dialogue(message)])
        payload = payload.model_copy(update={"batches": dialogue})
        return run, await self._jobs.enqueue(TOOL_EXTRACTION_JOB, payload, job_id)

    async def summarize(self, owner: Owner, session: Session, *, through: int, task: str | None = None) -> str:
        """Queue the summary of a session's messages up to the position `through`; return the job's id.

        Between two summaries, each `task` is queued once; without a task, each position is. A job that wrote no summary
        may be queued again.
        """
        payload = SummaryPayload(
            tenant=owner.tenant, user_id=owner.user_id, session_id=session.session_id, through=through
        )
        job_id = _session_job_id(session, task or f"summary {through}")
        while task is None and (job := await self._jobs.find(job_id)) and job.status in _WITHOUT_SUMMARY:
            job_id = str(uuid.uuid5(uuid.UUID(job_id), "again"))
        return await self._jobs.enqueue(SUMMARY_JOB, payload, job_id)

    async def summarize_session(self, owner: Owner, session_id: str) -> str:
        """Queue the summary of a whole session at its user's request; return the job's id."""
        session = await self._episodes.get_session(owner, session_id)
        return await self.summarize(owner, session, through=session.message_count)

    async def enqueue_closing(
        self, owner: Owner, session: Session, *, summarize: bool = True
    ) -> tuple[str, str | None]:
        """Queue the job that follows the end of a session, including its summary with `summarize`.

        Returns the job's id, and why the session is not summarized, or None if it is.
        """
        reason = self._find_reason_against_summary(session) if summarize else MANUAL_EXTRACTION_REASON
        payload = ClosingPayload(
            tenant=owner.tenant,
            user_id=owner.user_id,
            session_id=session.session_id,
            through=session.message_count,
            summarize=reason is None,
            reason=reason,
        )
        job_id = _session_job_id(session, f"closing {session.message_count}")
        return await self._jobs.enqueue(CLOSING_JOB, payload, job_id), reason

    def _find_reason_against_summary(self, session: Session) -> str | None:
        unsummarized = session.message_count - session.summarized_through
        if session.message_count and not unsummarized:
            return "no summary was written: the session's summary has all of its messages"
        if unsummarized < MIN_MESSAGES_FOR_CLOSING_SUMMARY:
            return (
                f"no summary was written: {unsummarized} of its {session.message_count} messages are not summarized "
                f"yet, and a closing summarizes from {MIN_MESSAGES_FOR_CLOSING_SUMMARY} on; summarize the session to "
                "have one all the same"
            )
        return None if self._has_model else f"no summary was written: {NO_MODEL_REASON}"

    async def _enqueue_summary_when_long(self, owner: Owner, session_id: str) -> None:
        """Queue the summary of a session with many unsummarized messages, leaving out the latest."""
        session = await self._episodes.get_session(owner, session_id)
        if session.message_count - session.summarized_through <= RECENT_MESSAGES_NOT_SUMMARIZED:
            return
        unsummarized = await self._episodes.list_session_messages(owner, session_id, after=session.summarized_through)
        if _needs_summary(unsummarized):
            await self.summarize(
                owner, session, through=unsummarized[-RECENT_MESSAGES_NOT_SUMMARIZED].position - 1, task="thread"
            )

    async def requeue_unread(self) -> int:
        """Queue the jobs that a crash or an outage kept from being queued; return the number of extractions.

        Messages that cannot be queued are logged and skipped.
        """
        return await self._requeue_all(await self._find_without_job())

    async def requeue_stranded(self) -> int:
        """Requeue only messages that had no job at the last call either; newer ones may be queued right now."""
        found = await self._find_without_job()
        graph = current_graph()
        known = self._without_job.get(graph, set())
        self._without_job[graph] = set(found)
        return await self._requeue_all({job: parts for job, parts in found.items() if job in known})

    async def _find_without_job(self) -> dict[tuple[str, str], list[PendingMessages]]:
        """Return the stored messages whose job was not queued, by user and job."""
        pending = await self._episodes.list_pending(self._jobs.store_id, FOREIGN_JOBS_AFTER)
        missing = await self._jobs.find_missing({part.job_id for part in pending})
        found: dict[tuple[str, str], list[PendingMessages]] = {}
        for part in pending:
            if part.job_id in missing:
                found.setdefault((part.group_id, part.job_id), []).append(part)
        return found

    async def _requeue_all(self, found: Mapping[tuple[str, str], Sequence[PendingMessages]]) -> int:
        requeued = 0
        for (group_id, job_id), parts in sorted(found.items()):
            message_ids = [message_id for part in parts for message_id in part.message_ids]
            owner = Owner.from_group_id(group_id)
            try:
                with use_tenant(owner.tenant):
                    requeued += await self._requeue(owner, job_id, message_ids)
            except Unavailable:
                raise
            except Exception:
                log.exception("the extraction of stored messages cannot be queued", extra={"job_id": job_id})
        return requeued

    async def _requeue(self, owner: Owner, job_id: str, message_ids: Sequence[str]) -> bool:
        """Queue the jobs of stored messages; return False if the messages have since been erased."""
        messages = await self._episodes.load_messages(owner, message_ids)
        if not messages:
            log.warning("stored messages without a job cannot be found", extra={"job_id": job_id})
            return False
        if self._queue_observation and not owner.is_space:
            # Learning twice from the same messages changes nothing.
            message_ids = [message.id for message in messages]
            await self._queue_observation(owner, message_ids, is_model_awaited=self._has_model)
        await self._enqueue_extraction(owner, messages, job_id)
        log.info("stored messages queued", extra={"job_id": job_id, "messages": len(messages)})
        return True

    async def _ensure_enqueued(self, owner: Owner, job_id: str) -> None:
        if await self._jobs.find(job_id) is None:
            await self._enqueue_pending(owner, job_id)

    async def _enqueue_pending(self, owner: Owner, job_id: str, embedded: int = 0) -> None:
        """Queue the extraction of the messages that a job has not read yet, if any."""
        if messages := await self._episodes.list_pending_of_job(owner, job_id):
            await self._enqueue_extraction(owner, messages, job_id, embedded)

    async def _enqueue_extraction(
        self, owner: Owner, messages: Sequence[Message], job_id: str, embedded: int = 0
    ) -> str:
        payload = _extraction_payload(owner, messages[0].session_id, messages, embedded)
        return await self._jobs.enqueue(EXTRACTION_JOB, payload, job_id)


def _with_ids(messages: Sequence[MessageIn], request: IdempotentRequest | None) -> Iterator[MessageIn]:
    """Yield the messages of a request; those without an id get one that is the same for every repetition."""
    for index, message in enumerate(messages):
        if request is None or message.id is not None:
            yield message
        else:
            yield message.model_copy(update={"id": request.derive_id(f"message {index}")})


def _extraction_payload(
    owner: Owner, session_id: str, messages: Sequence[Message], embedded: int = 0
) -> ExtractionPayload:
    return ExtractionPayload(
        tenant=owner.tenant,
        user_id=owner.user_id,
        session_id=session_id,
        message_ids=[message.id for message in messages],
        batches=split_into_batches(select_readable(messages)),
        embedded_texts=embedded,
    )


def _session_job_id(session: Session, task: str) -> str:
    """Return the id of a session's job, which stays the same for a task until the next summary."""
    return str(uuid.uuid5(uuid.UUID(session.id), f"{session.summarized_through} {task}"))


def _needs_summary(messages: Sequence[Message]) -> bool:
    """Return whether unsummarized messages are numerous or long enough for a summary."""
    if len(messages) > MAX_UNSUMMARIZED_MESSAGES:
        return True
    return (
        sum(count_tokens(message.content) for message in messages) > MAX_UNSUMMARIZED_TOKENS
        and len(messages) > RECENT_MESSAGES_NOT_SUMMARIZED
    )


WAIT_SECONDS = 300.0
"""Maximum seconds that a call with `wait` waits for a job, after which it returns the unfinished job."""

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

        `author` is the user who sends them to a space; their statements are trusted no more than `sent_as`. A
        repetition with the same `request` stores nothing and returns the same. The time zone becomes the user's, unless
        the source is third-party text. Raises Forbidden for a user message under another member's name, and Conflict
        for an id that a message from a less trusted source has.
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
        """Return one session; for an extraction's session, with its job's status."""
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
        """Create a session before its first message; a repetition with the same `request` returns the same session.

        `author` is the user who opens it in a space. Raises Conflict if its id is taken, and InvalidInput for a secret.
        """
        kind = None if sent_as == "user" else sent_as
        return await self._inbox.open_session(owner, session_in, author=author, sent_as=kind, request=request)

    async def list_messages(self, owner: Owner, session_id: str, query: PageQuery) -> Page[Message]:
        """List the messages of a session, oldest first; for an extraction, those between graphmem and the model."""
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

        The session's `job_id` is the job that promotes and summarizes; `reason` says why no summary is written, if none
        is. Raises Conflict for the session of an extraction.
        """
        await self._get_conversation(owner, session_id)
        session = await self._episodes.close_session(owner, session_id)
        if self._is_automatic:
            await self._inbox.extract_unread(owner, session_id)
        job_id, reason = await self._inbox.enqueue_closing(owner, session, summarize=self._is_automatic)
        return session.model_copy(update={"job_id": job_id, "reason": reason})

    async def summarize(self, owner: Owner, session_id: str, *, wait: bool = False) -> Job:
        """Queue the summary of a session and return its job; with `wait`, once it is final.

        Repeating the call returns the same job until further messages arrive or it ends without a summary.
        """
        session = await self._get_conversation(owner, session_id)
        job_id = await self._inbox.summarize(owner, session, through=session.message_count)
        return await (self._waiting.wait(job_id, WAIT_SECONDS) if wait else self._jobs.get(job_id))

    async def trigger_extraction(self, tenant: str, session_id: str, user_id: str | None = None) -> ExtractionTriggered:
        """Queue the extraction of a whole session by tool calls, in a session of its own; for admins.

        Raises NotFound, and Conflict for the session of an extraction or if several users have a session with this id
        and `user_id` is not given.
        """
        owner = make_owner(tenant, user_id) if user_id else await self._episodes.find_session_owner(tenant, session_id)
        source = await self._get_conversation(owner, session_id)
        run, job_id = await self._inbox.extract_session(owner, source)
        return ExtractionTriggered(message=f"Memory extraction triggered, session ID: {run.session_id}", job_id=job_id)

    async def _get_conversation(self, owner: Owner, session_id: str) -> Session:
        session = await self._episodes.get_session(owner, session_id)
        require_conversation(session_id, session.kind)
        return session
