"""A run: store conversations, build contexts, answer questions, judge the answers, find the causes of wrong ones.

    store      messages of each session → extraction jobs, awaited; the same messages → systems with their own
               extraction
    contexts   `systems`: for every question one context per system and budget, timed, one after another
    read       1 model call per context; `ask` makes its own calls
    judge      `judging`: 1 model call per question, over its distinct answers
    causes     `judging`: 1 model call per question that was answered wrongly from graphmem's context
    report     `report`: tables, plots, and every answer with its judgement

Each step resumes where an earlier start of the run stopped (`run_folder`). Questions go through read, judge and causes
independently of each other, so that the model receives as many concurrent requests as allowed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from graphmem.client.async_client import AsyncClient
from graphmem.client.waiting import failed_jobs, wait_for_job
from graphmem.conversations.session import split_into_batches
from graphmem.evaluation.benchmark import (
    AskedQuestion,
    BenchmarkConversation,
    BenchmarkData,
    BenchmarkMessage,
    GivenFact,
)
from graphmem.evaluation.compared_system import (
    CONVERSATIONS_AT_ONCE,
    MAX_HITS,
    ContextSystem,
    ExtractingSystem,
    SystemResources,
    complete_usably,
)
from graphmem.evaluation.graphiti_system import measure_group
from graphmem.evaluation.judging import (
    RIGHT_SCORE,
    Cause,
    CauseAnswer,
    ReaderAnswer,
    cause_prompt,
    distinct_answers,
    find_cause,
    judge_prompt,
    reader_prompt,
    score_answers,
)
from graphmem.evaluation.plan import ASK, CONTEXT
from graphmem.evaluation.run_folder import (
    GRAPHMEM,
    AnswerContext,
    GivenAnswer,
    Judgement,
    RequestCost,
    RunFolder,
    StoredSession,
    StoredSize,
    WrongAnswerCause,
)
from graphmem.evaluation.systems import CONTEXT_SYSTEMS, EXTRACTING_SYSTEMS, ask_memory
from graphmem.jobs.job import Job
from graphmem.models.language_model import Completion, LanguageModel, Prompt, Receipt
from graphmem.runtime.errors import ConfigurationError, ModelAnswerUnusable, ModelUnavailable, Unavailable
from graphmem.runtime.progress import ProgressCallback, ProgressCounter
from graphmem.runtime.retries import RetryPolicy
from graphmem.tenants.owners import Owner

FACTS_PER_SAVE = 100
"""Given facts per save."""


class ConversationStorer:
    """Stores conversations for users with their ids, except those that the run has already stored."""

    def __init__(self, memory: AsyncClient, folder: RunFolder, *, given_facts: bool) -> None:
        self._memory = memory
        self._folder = folder
        self._given_facts = given_facts

    async def store_all(self, conversations: Sequence[BenchmarkConversation], on_progress: ProgressCallback) -> None:
        """Store conversations; raise ModelUnavailable if an extraction failed, once all others have ended."""
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
        """Send a session and wait for its extraction; raise ModelUnavailable if it failed."""
        started = time.monotonic()
        receipt = Receipt()
        fields = {"id", "role", "name", "content", "timestamp"}
        sent = [message.model_dump(mode="json", include=fields, exclude_none=True) for message in messages]
        for batch in split_into_batches(sent):
            accepted = await self._memory.add_messages(user, batch, session_id=session, extract=not self._given_facts)
            job_id = accepted.id if isinstance(accepted, Job) else accepted.job_id
            if job_id is not None:
                job = await wait_for_job(self._memory, job_id)
                if failed_jobs([job]):  # request an unusable answer again, even if it is recorded
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
        """Save the facts that the file states; saving again reinforces them without adding any."""
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
    """Sends conversations to a system with its own extraction, except those that it has received in this run."""

    def __init__(self, name: str, system: ExtractingSystem, folder: RunFolder) -> None:
        self._name = name
        self._system = system
        self._folder = folder

    async def store_all(self, conversations: Sequence[BenchmarkConversation], on_progress: ProgressCallback) -> None:
        """Store conversations and measure their stored size; raise ModelUnavailable if an extraction failed."""
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
        """Send the rest of a session, recording after each part that it is stored."""
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
    """Store `at_once` conversations concurrently; raise the first error once all others have ended."""
    progress = ProgressCounter(on_progress, sum(len(conversation.messages) for conversation in conversations))
    slots = asyncio.Semaphore(at_once)

    async def store_in_turn(conversation: BenchmarkConversation) -> None:
        async with slots:
            await store(conversation, progress)

    ended = await asyncio.gather(*map(store_in_turn, conversations), return_exceptions=True)
    if errors := [error for error in ended if isinstance(error, BaseException)]:
        raise errors[0]


T = TypeVar("T", bound=BaseModel)

_BUSY = RetryPolicy(attempts=5, backoff=2.0)
"""Retries of building a context while the database is busy."""

ShowProgress = Callable[[str, str], AbstractContextManager[ProgressCallback]]
"""Shows the progress of a step, given its label and unit."""


@dataclass(frozen=True, slots=True)
class Models:
    """The reader and the judge, and the number of concurrent requests."""

    reader: LanguageModel
    judge: LanguageModel
    in_flight: int


class EvaluationRun:
    """Runs the steps over the conversations and questions of `data`."""

    def __init__(
        self,
        data: BenchmarkData,
        folder: RunFolder,
        resources: SystemResources,
        systems: Sequence[str],
        budgets: Sequence[int],
    ) -> None:
        self._data = data
        self._folder = folder
        self._resources = resources
        self._systems = systems
        self._budgets = budgets

        self._conversations = {conversation.id: conversation for conversation in data.conversations}

    async def store(self, show: ShowProgress, *, given_facts: bool) -> None:
        """Store the conversations and extract from them, also with the systems that have their own extraction."""
        storer = ConversationStorer(self._resources.memory, self._folder, given_facts=given_facts)
        with show("Storing", "messages") as on_progress:
            await storer.store_all(self._data.conversations, on_progress)
        for conversation in self._data.conversations:
            if self._folder.sizes.find(GRAPHMEM, conversation.id) is None:
                self._folder.sizes.add(await self._measure(conversation))
        for name in self._extracting_systems():
            async with EXTRACTING_SYSTEMS[name](self._resources) as system:
                with show(f"Storing, {name}", "messages") as on_progress:
                    await ExtractingSystemStorer(name, system, self._folder).store_all(
                        self._data.conversations, on_progress
                    )
        await self._resources.graph.fetch("schema.await_indexes")

    def _extracting_systems(self) -> list[str]:
        return [name for name in self._systems if name in EXTRACTING_SYSTEMS]

    async def _measure(self, conversation: BenchmarkConversation) -> StoredSize:
        """Return the size of a conversation stored by graphmem."""
        group_id = Owner(self._resources.tenant, conversation.id).group_id
        dimension = self._resources.embedder.dimension
        return await measure_group(self._resources.graph, GRAPHMEM, conversation, group_id, dimension)

    async def build_contexts(self, show: ShowProgress) -> None:
        """Build the contexts of all questions, one after another, so that their times are comparable.

        Afterwards, data that other systems stored outside the run folder is removed.
        """
        async with AsyncExitStack() as stack:
            systems = {
                name: await stack.enter_async_context(CONTEXT_SYSTEMS[name](self._resources))
                for name in self._systems
                if name != ASK
            }
            with show("Contexts", "questions") as on_progress:
                progress = ProgressCounter(on_progress, len(self._data.questions))
                for question in self._data.questions:
                    for name, system in systems.items():
                        if not self._contexts_of(question, name):
                            self._folder.contexts.add(*await self._find(system, question))
                    progress.add(1)
        for name in self._extracting_systems():
            async with EXTRACTING_SYSTEMS[name](self._resources) as system:
                await system.remove(self._data.conversations)

    async def _find(self, system: ContextSystem, question: AskedQuestion) -> list[AnswerContext]:
        """Return a system's contexts; retry while the database is busy, not counting the time of failed attempts."""
        conversation = self._conversations[question.conversation]
        return await _BUSY.run(
            "contexts",
            lambda: system.find(conversation, question, self._budgets),
            lambda error: isinstance(error, Unavailable) and not isinstance(error, ConfigurationError),
        )

    async def answer_all(self, models: Models, show: ShowProgress) -> list[Unavailable]:
        """Have all questions answered and judged; return the errors of failed requests, repeated by the next start."""
        asking = _Asking(models)
        with show("Answers", "questions") as on_progress:
            progress = ProgressCounter(on_progress, len(self._data.questions))

            async def answer(question: AskedQuestion) -> None:
                try:
                    await self._read(asking, question)
                    if ASK in self._systems:
                        await self._ask_memory(asking, question)
                    await self._judge(asking, question)
                    await self._find_causes(asking, question)
                except Unavailable as error:
                    asking.failures.append(error)
                progress.add(1)

            await asyncio.gather(*map(answer, self._data.questions))
        return asking.failures

    def _contexts_of(self, question: AskedQuestion, system: str | None = None) -> list[AnswerContext]:
        return [
            context
            for context in self._folder.contexts
            if context.question_id == question.id and system in (None, context.system)
        ]

    async def _read(self, asking: _Asking, question: AskedQuestion) -> None:
        """Have a question answered from each of its contexts; equal contexts are read only once."""
        by_text: dict[str, list[AnswerContext]] = {}
        for context in self._contexts_of(question):
            if context.system != ASK and self._folder.answers.find(*context.key) is None:
                by_text.setdefault(context.text, []).append(context)

        async def read(text: str, contexts: Sequence[AnswerContext]) -> None:
            given = await asking.read(reader_prompt(question, text))
            self._folder.answers.add(
                *(
                    GivenAnswer(
                        question_id=question.id,
                        system=context.system,
                        budget=context.budget,
                        answer=given.value.answer,
                        receipt=given.receipt,
                    )
                    for context in contexts
                )
            )

        await _gather(read(text, contexts) for text, contexts in by_text.items())

    async def _ask_memory(self, asking: _Asking, question: AskedQuestion) -> None:
        """Have `ask` answer a question with each budget."""
        conversation = self._conversations[question.conversation]

        async def ask(budget: int) -> None:
            async with asking.slots:
                context, answer = await ask_memory(self._resources.memory, conversation, question, budget)
            self._folder.contexts.add(context)
            self._folder.answers.add(answer)

        missing = (budget for budget in self._budgets if self._folder.answers.find(question.id, ASK, budget) is None)
        await _gather(map(ask, missing))

    async def _judge(self, asking: _Asking, question: AskedQuestion) -> None:
        """Have the distinct answers to a question judged, unless they already are."""
        given = [answer.answer for answer in self._folder.answers if answer.question_id == question.id]
        answers = distinct_answers(question, given)
        if all(self._folder.judgements.find(question.id, answer) for answer in answers):
            return
        prompt, schema = judge_prompt(self._data.benchmark, question, answers)
        judged = await asking.judge(prompt, schema)
        scored = score_answers(question, answers, judged.value)
        if len(scored) < len(answers):
            judged = await asking.judge(prompt, schema)
            scored = score_answers(question, answers, judged.value)
        if len(scored) < len(answers):
            raise ModelAnswerUnusable(f"The judge rated {len(scored)} of {len(answers)} answers to {question.id}.")
        self._folder.judgements.add(
            *(
                Judgement(question_id=question.id, answer=answer, score=score.score, reason=score.reason)
                for answer, score in scored.items()
            )
        )
        self._folder.costs.add(RequestCost(question_id=question.id, purpose="judge", receipt=judged.receipt))

    async def _find_causes(self, asking: _Asking, question: AskedQuestion) -> None:
        """Have the causes of wrong answers from graphmem's contexts found."""
        wrong = [context for context in self._contexts_of(question, CONTEXT) if self._is_wrong(context)]
        wrong = [context for context in wrong if self._folder.causes.find(*context.key) is None]
        if not wrong:
            return
        if question.is_unanswerable:
            self._add_causes({context.key: Cause.ANSWERED_UNSAID for context in wrong})
            return
        conversation = self._conversations[question.conversation]
        messages = [message for message in conversation.messages if message.id in question.evidence]
        if not messages:
            return
        stored = await self._resources.memory.get_all(conversation.id, include_superseded=True)
        memories = [memory for memory in stored if set(memory.source.message_ids) & set(question.evidence)]
        found = await self._resources.memory.search(conversation.id, question.text, limit=MAX_HITS, reinforce=False)
        prompt = cause_prompt(question, messages, memories, [context.text for context in wrong])
        known = await asking.judge(prompt, CauseAnswer)
        found_ids = {hit.memory.id for hit in found.results}
        self._add_causes(
            {
                context.key: find_cause(known.value, memories, number, found_ids)
                for number, context in enumerate(wrong, start=1)
            }
        )
        self._folder.costs.add(RequestCost(question_id=question.id, purpose="cause", receipt=known.receipt))

    def _is_wrong(self, context: AnswerContext) -> bool:
        judged = self._folder.find_judgement(context)
        return judged is not None and judged.score < RIGHT_SCORE

    def _add_causes(self, causes: Mapping[tuple[str, str, int | None], Cause]) -> None:
        self._folder.causes.add(
            *(
                WrongAnswerCause(question_id=question_id, system=system, budget=budget, cause=cause.value)
                for (question_id, system, budget), cause in causes.items()
            )
        )


class _Asking:
    """Sends requests to the models, a limited number concurrently, and collects the failures."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.slots = asyncio.Semaphore(models.in_flight)
        self.failures: list[Unavailable] = []

    async def read(self, prompt: Prompt) -> Completion[ReaderAnswer]:
        """Return the reader's answer."""
        return await self._ask(self._models.reader, prompt, ReaderAnswer)

    async def judge(self, prompt: Prompt, schema: type[T]) -> Completion[T]:
        """Return the judge's answer."""
        return await self._ask(self._models.judge, prompt, schema)

    async def _ask(self, model: LanguageModel, prompt: Prompt, schema: type[T]) -> Completion[T]:
        async with self.slots:
            return await complete_usably(model, prompt, schema)


async def _gather(works: Iterable[Awaitable[None]]) -> None:
    """Wait for all tasks, then raise the first error."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    if errors := [error for error in ended if isinstance(error, BaseException)]:
        raise errors[0]
