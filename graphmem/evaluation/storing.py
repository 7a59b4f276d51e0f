"""Storing conversations session by session, each after the extraction of the one before.

Graphmem gets them as users store theirs, and each system that extracts by itself gets the same messages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from graphmem.client.async_client import AsyncClient
from graphmem.client.job_results import failed_jobs, wait_for_job
from graphmem.conversations.session import split_into_batches
from graphmem.evaluation.benchmark import BenchmarkConversation, BenchmarkMessage, GivenFact
from graphmem.evaluation.compared_system import CONVERSATIONS_AT_ONCE, ExtractingSystem
from graphmem.evaluation.run_folder import GRAPHMEM, RunFolder, StoredSession
from graphmem.jobs.job import Job
from graphmem.models.receipt import Receipt
from graphmem.runtime.errors import ModelUnavailable
from graphmem.runtime.progress import ProgressCallback, ProgressCounter

FACTS_PER_SAVE = 100
"""Given facts of one save."""


class ConversationStorer:
    """Stores conversations for users of their ids; what a run has stored is not stored again."""

    def __init__(self, memory: AsyncClient, folder: RunFolder, *, given_facts: bool) -> None:
        self._memory = memory
        self._folder = folder
        self._given_facts = given_facts

    async def store_all(self, conversations: Sequence[BenchmarkConversation], on_progress: ProgressCallback) -> None:
        """Store conversations; raise ModelUnavailable when an extraction failed, after all others have ended."""
        await _store_each(conversations, self._store, on_progress, CONVERSATIONS_AT_ONCE)

    async def _store(self, conversation: BenchmarkConversation, progress: ProgressCounter) -> None:
        for session, messages in conversation.sessions():
            stored = self._folder.sessions.find(GRAPHMEM, conversation.id, session)
            if stored is None or stored.receipt is None:
                await self._store_session(conversation.id, session, messages)
            progress.add(len(messages))
        if self._given_facts:
            await self._save_facts(conversation)

    async def _store_session(self, user: str, session: str, messages: Sequence[BenchmarkMessage]) -> None:
        """Send a session and wait until it is extracted from; raise ModelUnavailable when that failed."""
        started = time.monotonic()
        receipt = Receipt()
        fields = {"id", "role", "name", "content", "timestamp"}
        sent = [message.model_dump(mode="json", include=fields, exclude_none=True) for message in messages]
        for batch in split_into_batches(sent):
            accepted = await self._memory.add_messages(user, batch, session_id=session, extract=not self._given_facts)
            job_id = accepted.id if isinstance(accepted, Job) else accepted.job_id
            if job_id is not None:
                job = await wait_for_job(self._memory, job_id)
                if failed_jobs([job]):  # an answer that cannot be used is asked for once more, also if it is recorded
                    job = await wait_for_job(self._memory, job_id)
                if failed_jobs([job]):
                    raise ModelUnavailable(
                        f"The extraction of {user}, {session}, is not done ({job.error or job.reason}): "
                        "run the same command again to continue.",
                    )
                receipt += job.receipt
        self._folder.sessions.add(
            StoredSession(
                conversation=user,
                session=session,
                messages=len(messages),
                receipt=receipt,
                seconds=time.monotonic() - started,
            )
        )

    async def _save_facts(self, conversation: BenchmarkConversation) -> None:
        """Save the facts that the file states; a repeated save strengthens them and adds none."""
        if self._folder.sessions.find(GRAPHMEM, conversation.id, GIVEN_FACTS) is not None:
            return
        for start in range(0, len(conversation.facts), FACTS_PER_SAVE):
            facts = conversation.facts[start : start + FACTS_PER_SAVE]
            await self._memory.add(conversation.id, list(map(_to_memory, facts)))
        record = StoredSession(conversation=conversation.id, session=GIVEN_FACTS, messages=0, receipt=Receipt())
        self._folder.sessions.add(record)


GIVEN_FACTS = "given facts"
"""The name under which a run records that the facts of a conversation are saved."""


def _to_memory(fact: GivenFact) -> dict[str, object]:
    return {**fact.memory, "source": {"message_ids": fact.message_ids}}


class ExtractingSystemStorer:
    """Gives conversations to a system that extracts by itself; what it has got in a run it does not get again."""

    def __init__(self, name: str, system: ExtractingSystem, folder: RunFolder) -> None:
        self._name = name
        self._system = system
        self._folder = folder

    async def store_all(self, conversations: Sequence[BenchmarkConversation], on_progress: ProgressCallback) -> None:
        """Store conversations and measure what is stored; raise ModelUnavailable when an extraction failed."""
        await _store_each(conversations, self._store, on_progress, self._system.conversations_at_once)

    async def _store(self, conversation: BenchmarkConversation, progress: ProgressCounter) -> None:
        for session, messages in conversation.sessions():
            await self._store_session(conversation, session, messages, progress)
        if self._folder.sizes.find(self._name, conversation.id) is None:
            self._folder.sizes.add(await self._system.measure(conversation))

    async def _store_session(
        self,
        conversation: BenchmarkConversation,
        session: str,
        messages: Sequence[BenchmarkMessage],
        progress: ProgressCounter,
    ) -> None:
        """Send what is left of a session, and record after each part that it is stored."""
        stored = self._folder.sessions.find(self._name, conversation.id, session) or StoredSession(
            system=self._name, conversation=conversation.id, session=session, messages=0, receipt=Receipt()
        )
        progress.add(stored.messages)
        while stored.messages < len(messages):
            started = time.monotonic()
            part = messages[stored.messages : stored.messages + self._system.messages_per_add]
            receipt = await self._system.add(conversation, part)
            seconds = time.monotonic() - started
            stored = stored.model_copy(
                update={
                    "messages": stored.messages + len(part),
                    "receipt": (stored.receipt or Receipt()) + receipt.model_copy(update={"seconds": seconds}),
                    "seconds": stored.seconds + seconds,
                }
            )
            self._folder.sessions.add(stored)
            progress.add(len(part))


async def _store_each(
    conversations: Sequence[BenchmarkConversation],
    store: Callable[[BenchmarkConversation, ProgressCounter], Awaitable[None]],
    on_progress: ProgressCallback,
    at_once: int,
) -> None:
    """Store so many conversations at the same time; raise the first error after all others have ended."""
    progress = ProgressCounter(on_progress, sum(len(conversation.messages) for conversation in conversations))
    slots = asyncio.Semaphore(at_once)

    async def store_in_turn(conversation: BenchmarkConversation) -> None:
        async with slots:
            await store(conversation, progress)

    ended = await asyncio.gather(*map(store_in_turn, conversations), return_exceptions=True)
    if errors := [error for error in ended if isinstance(error, BaseException)]:
        raise errors[0]
