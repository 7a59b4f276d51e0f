"""How well memories are taken from conversations.

    python -m evaluation.extraction [--live] [--recordings FILE] [--out FOLDER] [--only ID …] [--configured-database]

Replays recorded completions of a large language model, or with `--live` asks the configured one. Runs on an embedded
database in a temporary folder, or with `--configured-database` on that of the settings (which must not be in use:
unread messages in it would be read too), as a tenant of its own whose users are forgotten. Exit status 1: a completion
is not recorded, or a batch could not be read.

The overhead of a batch is the time of its job, from its start to its end, less the model calls and embeddings made in
it; the message store before the job and the wait in the queue are not in it. It is measured in replay, where cases run
one after the other, the second time they are read.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from evaluation.cases import CONVERSATIONS, EvaluationCase, fold_text, load_cases
from evaluation.report import render_markdown, write_report
from evaluation.score import USER, BatchOutcome, CaseResult, CaseScore, ScoredMemory, score_case
from graphmem import eventloop
from graphmem.bootstrap import Services
from graphmem.domain.entity import EntityRef
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job
from graphmem.domain.memory import Memory, MemoryStatus
from graphmem.domain.session import MessageRole, MessagesIn
from graphmem.errors import ConfigurationError, GraphmemError
from graphmem.llm.replay import ReplayServer
from graphmem.settings import Settings

RECORDINGS = Path(__file__).with_name("recordings.jsonl")
LIVE_CONCURRENCY = 12
"""So many cases are read at once by a live model."""

JOB_WAIT_SECONDS = 60.0
"""Seconds between two looks at a job that a slow model keeps waiting."""


class ModelTimer:
    """Notes when the model and the embedder were at work, in seconds of the wall clock."""

    def __init__(self, memory: Services) -> None:
        self.busy_spans: list[tuple[float, float]] = []
        # The jobs hold these objects already, so their methods are wrapped in place.
        for part, name in ((memory.components.model, "complete_structured"), (memory.components.embedder, "embed")):
            setattr(part, name, self._timed(getattr(part, name)))

    def _timed(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def timed(*args: Any, **options: Any) -> Any:
            started = time.time()
            try:
                return await call(*args, **options)
            finally:
                self.busy_spans.append((started, time.time()))

        return timed

    def overhead_ms(self, job: Job) -> float | None:
        """Return the milliseconds a job spent outside model and embedder while nothing else ran."""
        if job.finished_at is None or job.error:
            return None
        end = job.finished_at.timestamp()
        start = end - job.receipt.seconds
        inside = sum(max(0.0, min(end, last) - max(start, first)) for first, last in self.busy_spans)
        return 1000 * max(0.0, job.receipt.seconds - inside)


async def run_case(memory: Services, owner: Owner, case: EvaluationCase, timer: ModelTimer | None) -> CaseScore:
    """Read a case batch by batch and judge what is kept at its end."""
    batches, touched = [], set()
    for told in case.sessions:
        batch = MessagesIn(session_id=told.session_id, messages=told.messages, timezone=case.timezone, wait=True)
        job = await memory.messages.add(owner, batch)
        assert isinstance(job, Job)
        while not job.status.is_final:
            job = await memory.jobs.wait(job.id, JOB_WAIT_SECONDS)
        calls = job.receipt.llm_calls
        batches.append(BatchOutcome(job.status.value, calls, timer.overhead_ms(job) if timer else None, job.error))
        touched |= {action["memory_id"] for action in job.actions if "memory_id" in action}
        touched |= {each for action in job.actions for each in action.get("superseded", [])}
    memories = [await memory.memories.get(owner, each) for each in sorted(touched)]
    kept = [to_scored_memory(each, user_names(case), case_zone(case)) for each in memories]
    return score_case(case, CaseResult(sorted(kept, key=lambda each: (not each.current, each.content)), batches))


def case_zone(case: EvaluationCase) -> tzinfo:
    """Return the zone a case's dates are told in."""
    if case.timezone:
        return ZoneInfo(case.timezone)
    told_at = next((each.timestamp for each in case.sessions[0].messages if each.timestamp), None)
    return (told_at.tzinfo if told_at else None) or UTC


def user_names(case: EvaluationCase) -> set[str]:
    """Return what the user's own entity may be called, folded."""
    lines = [message for told in case.sessions for message in told.messages if message.role is MessageRole.USER]
    return {fold_text(name) for name in (case.id, *(line.name for line in lines if line.name))}


def to_scored_memory(memory: Memory, own: set[str], zone: tzinfo) -> ScoredMemory:
    """Return a memory as it is scored."""

    def name_of(entity: EntityRef) -> str:
        name = fold_text(entity.name)
        return USER if any(name == each or name.startswith(f"{each} ") for each in own) else entity.name

    def local(moment: datetime | None) -> str | None:
        return moment.astimezone(zone).strftime("%Y-%m-%dT%H:%M") if moment else None

    ended = memory.invalid_at is not None and memory.invalid_at <= datetime.now(UTC)
    return ScoredMemory(
        id=memory.id,
        content=memory.content,
        type=memory.type.value,
        subject=name_of(memory.subject),
        object=name_of(memory.object) if memory.object else None,
        entities=tuple(name_of(entity) for entity in memory.entities),
        valid_at=local(memory.valid_at),
        invalid_at=local(memory.invalid_at),
        current=memory.status is MemoryStatus.ACTIVE and not ended,
        replaced=memory.status in (MemoryStatus.SUPERSEDED, MemoryStatus.DELETED),
        taken_back=memory.status is MemoryStatus.DELETED,
    )


async def run(cases: Sequence[EvaluationCase], settings: Settings, *, live: bool) -> list[CaseScore]:
    """Read all cases and judge them, in order; a replay reads them twice, because a server is slow when it is new."""
    judged_tenant, warmup_tenant = f"eval-{uuid.uuid4().hex[:12]}", f"eval-{uuid.uuid4().hex[:12]}"
    places = asyncio.Semaphore(LIVE_CONCURRENCY)
    async with Services.open(settings) as memory:

        async def one(case: EvaluationCase, timer: ModelTimer | None) -> CaseScore:
            async with places:
                score = await run_case(memory, Owner(judged_tenant, case.id), case, timer)
            failed = any(batch.error for batch in score.result.batches)
            differs = score.missed or score.wrong or score.metrics.skips.value == 0
            print(f"{case.id}: {'failed' if failed else 'differs' if differs else 'as expected'}", flush=True)
            return score

        try:
            if live:
                return await asyncio.gather(*(one(case, None) for case in cases))
            for case in cases:
                await run_case(memory, Owner(warmup_tenant, case.id), case, None)
            timer = ModelTimer(memory)
            return [await one(case, timer) for case in cases]
        finally:
            for tenant in (judged_tenant, warmup_tenant):
                for case in cases:
                    await memory.forgetting.forget(Owner(tenant, case.id))


def settings_for(folder: Path, *, configured: bool) -> Settings:
    """Return the settings of a run; its jobs, and unless `configured` its database, lie in a folder of its own."""
    changes: dict[str, Any] = {"data_dir": folder, "jobs_url": None, "nightly": False, "timezone": "UTC"}
    return Settings().model_copy(update=changes if configured else {**changes, "neo4j_uri": None})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and return the exit status."""
    options = _parser().parse_args(arguments)
    cases = [case for case in load_cases(options.conversations) if not options.only or case.id in options.only]
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
            scores = eventloop.run(run(cases, settings, live=options.live))
    except GraphmemError as error:
        print(error.detail, file=sys.stderr)
        return 1
    print(render_markdown(scores, details=False))
    print("\n".join(f"Written: {path}" for path in write_report(scores, options.out)))
    return _exit_status(scores, replay)


def _exit_status(scores: Sequence[CaseScore], replay: ReplayServer | None) -> int:
    missing = sorted(set(replay.missing)) if replay else []
    if missing:
        print(f"{len(missing)} completions are not recorded: record them with --live.", file=sys.stderr)
    errors = [(each.case.id, batch.error) for each in scores for batch in each.result.batches if batch.error]
    for case_id, error in errors:
        print(f"{case_id} could not be read: {error}", file=sys.stderr)
    return 1 if missing or errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evaluation.extraction", description="Score extraction.")
    parser.add_argument("--conversations", type=Path, default=CONVERSATIONS, help="the cases, as JSONL")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="a JSONL file or folder of completions")
    parser.add_argument("--live", action="store_true", help="ask the configured model instead")
    parser.add_argument("--out", type=Path, default=Path("reports/extraction"), help="folder of the reports")
    parser.add_argument("--only", nargs="*", default=[], help="ids of the cases to run")
    parser.add_argument("--configured-database", action="store_true", help="not an embedded one of its own")
    return parser


if __name__ == "__main__":
    sys.exit(main())
