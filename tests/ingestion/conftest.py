"""Ingestion on a real Neo4j, a real job store and a real HTTP server whose answers the test scripts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pytest

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessagesAccepted, MessagesIn
from graphmem.ingestion.extraction_job import ExtractionJob
from graphmem.ingestion.inferred_save import InferredSave
from graphmem.ingestion.jobs import (
    CLOSING_JOB,
    EMBEDDING_JOB,
    EXTRACTION_JOB,
    SUMMARY_JOB,
    TOOL_EXTRACTION_JOB,
)
from graphmem.ingestion.service import Inbox, MessageService
from graphmem.ingestion.summary import SummaryJob
from graphmem.jobs.job import Job, JobOutcome
from graphmem.jobs.kinds import JobHandler, JobKind, JobPayload, Steps
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.declarations import DeclaredTypeService, DeclaredTypeStore
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import Memory, MemoryIn, SaveResult
from graphmem.memories.service import MemoryService
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.provider_model import ProviderModel
from graphmem.neo4j.driver import Graph
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import Settings
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.tenant_settings import InstructionStore, TrustService
from tests.conftest import FakeClock
from tests.models.scripted_server import ScriptedServer, Step, replies

Json = dict[str, Any]


class JobDispatcher:
    """Passes the jobs of the one worker to the handlers of the test that runs."""

    def __init__(self) -> None:
        self._handlers: dict[str, JobHandler[Any]] = {}

    def use(self, *handlers: JobHandler[Any]) -> None:
        """Run the jobs of these kinds by these handlers from now on."""
        self._handlers.update({handler.kind.name: handler for handler in handlers})

    def handler_for(self, kind: JobKind[Any]) -> JobHandler[Any]:
        async def handle(payload: JobPayload, steps: Steps) -> JobOutcome:
            outcome: JobOutcome = await self._handlers[kind.name].function(payload, steps)
            return outcome

        return JobHandler(kind, handle)


@pytest.fixture(scope="package")
def job_dispatcher() -> JobDispatcher:
    return JobDispatcher()


@pytest.fixture(scope="package")
async def jobs(job_dispatcher: JobDispatcher, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JobRunner]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("jobs"))
    kinds: list[JobKind[Any]] = [EMBEDDING_JOB, EXTRACTION_JOB, TOOL_EXTRACTION_JOB, SUMMARY_JOB, CLOSING_JOB]
    async with await JobRunner.open(settings) as runner:
        await runner.start_worker(
            map(job_dispatcher.handler_for, kinds),
            WorkerOptions(retry_delays=(0.05,), model_pauses=(600.0,) * 9),
        )
        yield runner


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@dataclass
class IngestionHarness:
    """One user, and the services between a message and a memory."""

    owner: Owner
    server: ScriptedServer
    jobs: JobRunner
    graph: Graph
    episodes: EpisodeStore
    entities: EntityStore
    memories: MemoryService
    conversations: MessageService
    inbox: Inbox
    job: ExtractionJob
    job_dispatcher: JobDispatcher
    clock: FakeClock

    def model_answers(self, *answers: Json | Step) -> None:
        """Script the next completions, in order."""
        steps = [replies(json.dumps(answer)) if isinstance(answer, dict) else answer for answer in answers]
        self.server.steps.extend(steps)

    @property
    def prompts(self) -> list[str]:
        """The user part of every prompt so far."""
        return [request["messages"][-1]["content"] for request in self.server.requests]

    async def send_and_extract(self, *messages: Json | str, session: str = "s1", **fields: Any) -> Job:
        """Post messages and wait for their extraction."""
        batch = MessagesIn.model_validate({**_batch(messages, session), "wait": True, **fields})
        job = await self.conversations.add(self.owner, batch)
        assert isinstance(job, Job)
        return job

    async def send(self, *messages: Json | str, session: str | None = "s1", **fields: Any) -> MessagesAccepted:
        """Post messages without waiting."""
        batch = MessagesIn.model_validate({**_batch(messages, session), **fields})
        accepted = await self.conversations.add(self.owner, batch)
        assert isinstance(accepted, MessagesAccepted)
        return accepted

    async def wait_for_job(self, job_id: str | None) -> Job:
        """Wait for a job to end."""
        assert job_id
        return await self.jobs.wait(job_id, 30)

    async def save(self, content: str, **fields: Any) -> SaveResult:
        """Save one statement without a model."""
        return (await self.memories.save(self.owner, [MemoryIn(content=content, **fields)]))[0]

    async def current_memories(self, **filters: Any) -> list[Memory]:
        """Return the current memories, oldest first."""
        page = await self.memories.page(self.owner, ListFilters.model_validate({"sort": "created_at", **filters}))
        return page.items

    async def current_contents(self, **filters: Any) -> list[str]:
        return [memory.content for memory in await self.current_memories(**filters)]


def _batch(messages: Sequence[Json | str], session: str | None) -> Json:
    turns = [message if isinstance(message, dict) else {"role": "user", "content": message} for message in messages]
    return {"session_id": session, "messages": turns}


@pytest.fixture
def profiles() -> TenantProfiles:
    """The general profile for every tenant."""
    return TenantProfiles()


@pytest.fixture
def caught() -> Literal["keep", "refuse"]:
    """What becomes of statements from text that addresses the assistant."""
    return "keep"


@pytest.fixture
def answer_seconds() -> float:
    """How long an answer of the model is waited for: on a busy machine as long as the work that a test does in one."""
    return 120


@pytest.fixture
def harness(
    owner: Owner,
    server: ScriptedServer,
    job_dispatcher: JobDispatcher,
    jobs: JobRunner,
    graph: Graph,
    embedder: Embedder,
    clock: FakeClock,
    profiles: TenantProfiles,
    caught: Literal["keep", "refuse"],
    answer_seconds: float,
) -> IngestionHarness:
    server.steps.clear()
    entities = EntityStore(graph)
    facts = FactStore(graph, entities, clock)
    episodes = EpisodeStore(graph, clock)
    policy = SecretPolicy()
    memory_writer = MemoryWriter(facts, embedder, policy, profiles)
    model = ProviderModel(
        base_url=server.base_url, retries=RetryPolicy(timeout=answer_seconds, attempts=2, backoff=0.01)
    )
    inbox = Inbox(episodes, embedder, policy, jobs)
    job = ExtractionJob(
        graph=graph,
        instructions=InstructionStore(graph),
        declared_types=DeclaredTypeStore(graph),
        episodes=episodes,
        facts=facts,
        entities=entities,
        memory_writer=memory_writer,
        policy=policy,
        profiles=profiles,
        embedder=embedder,
        model=model,
        queue_summary=inbox.summarize_session,
        quarantine=caught,
    )
    summaries = SummaryJob(
        graph=graph,
        episodes=episodes,
        facts=facts,
        memory_writer=memory_writer,
        policy=policy,
        model=model,
    )
    job_dispatcher.use(
        JobHandler(EXTRACTION_JOB, job.run),
        JobHandler(TOOL_EXTRACTION_JOB, job.run_tools),
        JobHandler(SUMMARY_JOB, summaries.run),
        JobHandler(CLOSING_JOB, summaries.close),
    )
    return IngestionHarness(
        owner=owner,
        server=server,
        jobs=jobs,
        graph=graph,
        episodes=episodes,
        entities=entities,
        memories=MemoryService(
            memory_writer,
            InferredSave(graph, facts, entities, memory_writer, policy, embedder, model, clock).save,
            DeclaredTypeService(DeclaredTypeStore(graph), policy, clock),
            facts,
            entities,
            clock,
            500,
            TrustService(graph, clock),
        ),
        conversations=MessageService(inbox, episodes, jobs, JobWaiting(graph, jobs)),
        inbox=inbox,
        job=job,
        job_dispatcher=job_dispatcher,
        clock=clock,
    )


def candidate(content: str, **fields: Any) -> Json:
    """A candidate as a model writes it, with defaults."""
    return {
        "content": content,
        "type": "fact",
        "subject": {"name": "User", "type": "Person"},
        "predicate": "STATES",
        "object": None,
        "entities": [],
        "valid_at": None,
        "invalid_at": None,
        "confidence": 0.95,
        "importance": 0.5,
        "tags": ["OTHER"],
        "domain": None,
        "single_valued": False,
        "retracts": False,
        "messages": [1],
        **fields,
    }


def screened(stated: Json, quote: str, addressee: str | None = None) -> Json:
    """A candidate with what its words do; with an `addressee` they address somebody."""
    speech = "addresses" if addressee else "informs"
    return {**stated, "screening": {"speech": speech, "addressee": addressee, "quote": quote}}


def extraction(
    *candidates: Json,
    names: Sequence[Json] = (),
    keywords: Sequence[str] = (),
    turns: Sequence[Json] = (),
    **fields: Any,
) -> Json:
    """The answer of the first call."""
    return {
        "skip": not candidates,
        "reason": "" if candidates else "small talk",
        "keywords": list(keywords),
        "names": list(names),
        "candidates": list(candidates),
        "summarize": False,
        "turns": list(turns),
        **fields,
    }


def turn(message: int, intent: str | None, **entities: str) -> Json:
    """What a message is about, as a model writes it."""
    named = [{"type": kind, "value": value} for kind, value in entities.items()]
    return {"message": message, "intent": intent, "entities": named}


def decision(new: int, action: str, *known: int, **fields: Any) -> Json:
    """One decision of the second call."""
    return {
        "new": new,
        "action": action,
        "known": list(known),
        "ended_at": None,
        "remaining": [],
        "reason": "a reason",
        **fields,
    }


def reconciliation(*decisions: Json, same: Sequence[Json] = ()) -> Json:
    """The answer of the second call."""
    return {"decisions": list(decisions), "same_entities": list(same)}


def lives_in(place: str, **fields: Any) -> Json:
    """A candidate about the user's home."""
    return candidate(
        f"User lives in {place}",
        predicate="LIVES_IN",
        object={"name": place, "type": "Place"},
        single_valued=True,
        **fields,
    )


def message_at(day: str, content: str, role: str = "user", **fields: Any) -> Json:
    """A message at noon of a day, UTC."""
    return {"role": role, "content": content, "timestamp": f"{day}T12:00:00+00:00", **fields}


def midnight(day: str) -> datetime:
    """Midnight of a day, UTC."""
    return datetime.fromisoformat(f"{day}T00:00:00+00:00")
