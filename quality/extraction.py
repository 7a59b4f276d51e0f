"""The quality of extraction: precision, recall and cost over conversations.

    python -m quality.extraction [--live] [--conversations FILE …] [--recordings FILE] [--out FOLDER] [--only ID …]
                                    [--configured-database]

Replays recorded completions of a large language model, or with `--live` calls the configured one. Uses an embedded
database in a temporary folder, or with `--configured-database` the one of the settings, in a tenant whose users are
forgotten afterwards; that database must not be in use, because its unread messages would be extracted from too.

Each file of conversations is scored by itself. A case with a prompt whose completion is not recorded is not scored but
counted as not recorded. Exit status 1: nothing is recorded, or a batch could not be extracted from.

The overhead of a batch is the time of its job, from its start to its end, less its model calls and embeddings; storing
the messages and waiting in the queue do not count. It is measured in replay, where cases run one after the other, in
their second run.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence, Set
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessageRole, MessagesIn
from graphmem.jobs.job import Job
from graphmem.memories.entity import EntityRef
from graphmem.memories.memory import Memory, MemoryStatus
from graphmem.models.embedder import create_embedder
from graphmem.models.provider_model import ProviderModel
from graphmem.models.replay import ReplayServer
from graphmem.runtime import process
from graphmem.runtime.errors import ConfigurationError, GraphmemError
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from quality.cases import (
    CONVERSATIONS,
    HARD_CONVERSATIONS,
    NUANCED_CONVERSATIONS,
    UNSEEN_CONVERSATIONS,
    EvaluationCase,
    fold_text,
    load_cases,
)
from quality.report import SuiteScore, render_markdown, write_report
from quality.results import USER, BatchOutcome, CaseResult, ScoredMemory
from quality.score import CaseScore, score_case
from quality.timing import ModelTimer, TimedEmbedder, TimedModel

RECORDINGS = Path(__file__).with_name("recordings.jsonl")
"""The completions that a run replays."""

LIVE_CONCURRENCY = 12
"""Cases that a live model extracts from at the same time."""

JOB_WAIT_SECONDS = 60.0
"""Seconds of one wait for a job; it is repeated until the job has ended."""


async def run_case(services: Services, owner: Owner, case: EvaluationCase, timer: ModelTimer | None) -> CaseScore:
    """Extract from a case batch by batch, up to one that fails, and score the memories at its end."""
    stored_ids = await save_stored(services, owner, case)
    batches, touched, reinforced = [], set(stored_ids), set()
    for session in case.sessions:
        batch = MessagesIn(session_id=session.session_id, messages=session.messages, timezone=case.timezone, wait=True)
        job = await services.messages.add(owner, batch)
        assert isinstance(job, Job)
        while not job.status.is_final:
            job = await services.jobs.wait(job.id, JOB_WAIT_SECONDS)
        calls = job.receipt.llm_calls
        batches.append(BatchOutcome(job.status.value, calls, timer.overhead_ms(job) if timer else None, job.error))
        touched |= {action["memory_id"] for action in job.actions if "memory_id" in action}
        touched |= {memory_id for action in job.actions for memory_id in action.get("superseded", [])}
        reinforced |= {action["memory_id"] for action in job.actions if action["action"] == "reinforce"}
        if job.error:
            break
    memories = [await services.memories.get(owner, memory_id) for memory_id in sorted(touched)]
    reader = MemoryReader(case, stored_ids, reinforced)
    kept = [reader.to_scored_memory(memory) for memory in memories]
    kept.sort(key=lambda memory: (not memory.current, memory.content))
    return score_case(case, CaseResult(kept, batches, reader.count_user_entities(memories)))


async def save_stored(services: Services, owner: Owner, case: EvaluationCase) -> list[str]:
    """Save the memories that a case starts with and return their ids, in order."""
    if not case.stored:
        return []
    results = await services.memories.save(owner, [stored.memory for stored in case.stored])
    if refused := [result.reason for result in results if result.memory is None]:
        raise ConfigurationError(f"A stored memory of {case.id} was refused: {refused[0]}")
    return [result.memory.id for result in results if result.memory]


def case_zone(case: EvaluationCase) -> tzinfo:
    """Return the zone of a case's dates."""
    if case.timezone:
        return ZoneInfo(case.timezone)
    first_time = next((message.timestamp for message in case.sessions[0].messages if message.timestamp), None)
    return (first_time.tzinfo if first_time else None) or UTC


def user_names(case: EvaluationCase) -> set[str]:
    """Return the names of the user's own entity, folded."""
    messages = [message for session in case.sessions for message in session.messages]
    names = [message.name for message in messages if message.name and message.role is MessageRole.USER]
    return {fold_text(name) for name in (case.id, *(case.user_names or names))}


class MemoryReader:
    """Reads the memories of a case as they are scored."""

    def __init__(self, case: EvaluationCase, stored_ids: Sequence[str], reinforced: Set[str]) -> None:
        self._stored_ids = stored_ids
        self._reinforced = reinforced
        self._user_names = user_names(case)
        self._zone = case_zone(case)

    def to_scored_memory(self, memory: Memory) -> ScoredMemory:
        """Return a memory as it is scored."""
        ended = memory.invalid_at is not None and memory.invalid_at <= datetime.now(UTC)
        return ScoredMemory(
            id=memory.id,
            content=memory.content,
            type=memory.type.value,
            subject=self._name_of(memory.subject),
            subject_id=memory.subject.id,
            object=self._name_of(memory.object) if memory.object else None,
            entities=tuple(self._name_of(entity) for entity in memory.entities),
            valid_at=self._local(memory.valid_at),
            invalid_at=self._local(memory.invalid_at),
            current=memory.status is MemoryStatus.ACTIVE and not ended,
            replaced=memory.status in (MemoryStatus.SUPERSEDED, MemoryStatus.DELETED),
            taken_back=memory.status is MemoryStatus.DELETED,
            domain=memory.domain,
            stored=self._stored_ids.index(memory.id) if memory.id in self._stored_ids else None,
            reinforced=memory.id in self._reinforced,
        )

    def count_user_entities(self, memories: Iterable[Memory]) -> int:
        """Return how many entities of the memories have a name of the user."""
        named = (entity for memory in memories for entity in (memory.subject, memory.object, *memory.entities))
        return len({entity.id for entity in named if entity and self._is_user(entity)})

    def _is_user(self, entity: EntityRef) -> bool:
        name = fold_text(entity.name)
        return any(name == user_name or name.startswith(f"{user_name} ") for user_name in self._user_names)

    def _name_of(self, entity: EntityRef) -> str:
        return USER if self._is_user(entity) else entity.name

    def _local(self, moment: datetime | None) -> str | None:
        return moment.astimezone(self._zone).strftime("%Y-%m-%dT%H:%M") if moment else None


async def run(cases: Sequence[EvaluationCase], settings: Settings, replay: ReplayServer | None) -> list[CaseScore]:
    """Extract from all cases, with a live model unless there is a `replay`, and score those that are recorded.

    A replay extracts from each case twice and times the second run, because a new server is slow.
    """
    tenant, warmup_tenant = f"eval-{uuid.uuid4().hex[:12]}", f"eval-{uuid.uuid4().hex[:12]}"
    timer = ModelTimer()
    async with open_timed_services(settings, timer) as services:
        try:
            if replay is None:
                slots = asyncio.Semaphore(LIVE_CONCURRENCY)

                async def score(case: EvaluationCase) -> CaseScore:
                    async with slots:
                        return _print_progress(await run_case(services, Owner(tenant, case.id), case, None))

                return await asyncio.gather(*map(score, cases))
            recorded = []
            for case in cases:
                missing = len(replay.missing)
                await run_case(services, Owner(warmup_tenant, case.id), case, None)
                if len(replay.missing) == missing:
                    recorded.append(case)
                else:
                    print(f"{case.id}: not recorded", flush=True)
            return [_print_progress(await run_case(services, Owner(tenant, case.id), case, timer)) for case in recorded]
        finally:
            for used_tenant in (tenant, warmup_tenant):
                for case in cases:
                    await services.forgetting.forget(Owner(used_tenant, case.id))


@asynccontextmanager
async def open_timed_services(settings: Settings, timer: ModelTimer) -> AsyncIterator[Services]:
    """Open the services of the settings with a model and an embedder whose calls are timed."""
    async with AsyncExitStack() as stack:
        embedder = create_embedder(settings)
        stack.push_async_callback(embedder.aclose)
        model = ProviderModel.from_settings(settings)
        assert model is not None
        await stack.enter_async_context(model)
        yield await stack.enter_async_context(
            Services.open(settings, embedder=TimedEmbedder(embedder, timer), model=TimedModel(model, timer))
        )


def _print_progress(score: CaseScore) -> CaseScore:
    has_failed = any(batch.error for batch in score.result.batches)
    differs = score.missed or score.wrong or score.metrics.skips.value == 0
    print(f"{score.case.id}: {'failed' if has_failed else 'differs' if differs else 'as expected'}", flush=True)
    return score


def settings_for(folder: Path, *, configured: bool) -> Settings:
    """Return the settings of a run with its job store, and unless `configured` its database, in `folder`."""
    changes: dict[str, Any] = {"data_dir": folder, "jobs_url": None, "nightly": False, "timezone": "UTC"}
    return Settings().model_copy(update=changes if configured else {**changes, "neo4j_uri": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and return the exit status."""
    options = _parser().parse_args(arguments)
    suites = {
        path.stem.replace("_", " "): [case for case in load_cases(path) if not options.only or case.id in options.only]
        for path in options.conversations
    }
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-eval-")))
            settings = settings_for(folder, configured=options.configured_database)
            replay = None
            if not options.live:
                replay = stack.enter_context(ReplayServer(options.recordings))
                answering = {"openai_base_url": replay.base_url, "openai_api_key": SecretStr("recorded")}
                settings = settings.model_copy(update=answering)
            elif not settings.has_model:
                raise ConfigurationError("--live needs a model: set OPENAI_BASE_URL or OPENAI_API_KEY.")
            scores = process.run(run([case for cases in suites.values() for case in cases], settings, replay))
    except GraphmemError as error:
        print(error.detail, file=sys.stderr)
        return 1
    results = [SuiteScore.of(name, cases, scores) for name, cases in suites.items() if cases]
    print(render_markdown(results, details=False))
    print("\n".join(f"Written: {path}" for path in write_report(results, options.out)))
    return exit_status(results)


def exit_status(suites: Sequence[SuiteScore]) -> int:
    """Return 1 when a batch could not be extracted from or nothing is recorded, and say so on stderr."""
    scores = [score for suite in suites for score in suite.scores]
    missing = sum(len(suite.not_recorded) for suite in suites)
    if missing:
        print(f"{missing} cases are not recorded: record them with --live.", file=sys.stderr)
    errors = [(score.case.id, batch.error) for score in scores for batch in score.result.batches if batch.error]
    for case_id, error in errors:
        print(f"{case_id} could not be extracted from: {error}", file=sys.stderr)
    return 1 if errors or not scores else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quality.extraction", description="Score extraction.")
    files = [CONVERSATIONS, HARD_CONVERSATIONS, UNSEEN_CONVERSATIONS, NUANCED_CONVERSATIONS]
    parser.add_argument("--conversations", type=Path, nargs="+", default=files, help="files of cases, as JSONL")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="a JSONL file or folder of completions")
    parser.add_argument("--live", action="store_true", help="call the configured model instead")
    parser.add_argument("--out", type=Path, default=Path("reports/extraction"), help="folder of the reports")
    parser.add_argument("--only", nargs="*", default=[], help="ids of the cases to run")
    parser.add_argument("--configured-database", action="store_true", help="use the database of the settings")
    return parser


if __name__ == "__main__":
    sys.exit(main())
