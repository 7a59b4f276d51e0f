"""The quality of consolidation: merges, links, violations and losses over one night of each user.

    python -m quality.consolidation [--live] [--recordings FILE] [--out FOLDER] [--only ID …] [--check]

Replays recorded completions of a large language model, or with `--live` calls the configured one. Uses an embedded
database in a temporary folder. `--check` stores the cases and checks their reads without any night. Exit status 1: a
completion is not recorded, a case could not be stored, or a night failed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.models.replay import ReplayServer
from graphmem.runtime import process
from graphmem.runtime.errors import ConfigurationError, GraphmemError
from graphmem.runtime.settings import Settings
from quality.consolidation.cases import CASES, NIGHT, ConsolidationCase, load_cases
from quality.consolidation.night import DAY, CaseClock, StoredCase, finish_case, run_night, store_case
from quality.consolidation.report import render_markdown, write_report
from quality.consolidation.score import NightScore, score_case
from quality.extraction import settings_for

RECORDINGS = Path(__file__).with_name("recordings.jsonl")
"""The completions that a run replays."""

LIVE_CONCURRENCY = 12
"""Users whose nights a live model analyses at the same time."""


async def run(cases: Sequence[ConsolidationCase], settings: Settings, *, concurrency: int = 1) -> list[NightScore]:
    """Store all cases, run their nights, and score them, in order; each user has a tenant of its own."""
    clock = CaseClock(NIGHT)
    run_id = uuid.uuid4().hex[:8]
    async with Services.open(settings, clock=clock) as services:
        memory = GraphMemory(services)
        stored = [await store_case(memory.for_tenant(f"eval-{run_id}-{case.id}"), case, clock) for case in cases]
        clock.now = NIGHT
        await _run_nights(stored, concurrency)
        clock.now = NIGHT + DAY
        await _run_nights([one for one in stored if one.case.nights > 1], concurrency)
        return [_print_progress(score_case(one.case, await finish_case(one))) for one in stored]


async def _run_nights(stored: Sequence[StoredCase], concurrency: int) -> None:
    slots = asyncio.Semaphore(concurrency)

    async def run_one(one: StoredCase) -> None:
        async with slots:
            await run_night(one)

    await asyncio.gather(*map(run_one, stored))


def _print_progress(score: NightScore) -> NightScore:
    outcome = "failed" if score.outcome.error else "differs" if score.findings.all else "as expected"
    print(f"{score.case.id}: {outcome}", flush=True)
    return score


async def check(cases: Sequence[ConsolidationCase], settings: Settings) -> list[str]:
    """Store all cases without running a night; return what is wrong with them."""
    clock = CaseClock(NIGHT)
    run_id = uuid.uuid4().hex[:8]
    async with Services.open(settings, clock=clock) as services:
        memory = GraphMemory(services)
        stored = [await store_case(memory.for_tenant(f"check-{run_id}-{case.id}"), case, clock) for case in cases]
    return [f"{one.case.id}: {one.error}" for one in stored if one.error]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and return the exit status."""
    options = _parser().parse_args(arguments)
    cases = [case for case in load_cases(options.cases) if not options.only or case.id in options.only]
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-eval-")))
            settings = settings_for(folder, configured=False)
            if options.check:
                return _report_check(cases, process.run(check(cases, settings)))
            replay = None
            if not options.live:
                replay = stack.enter_context(ReplayServer(_existing(options.recordings)))
                answering = {"openai_base_url": replay.base_url, "openai_api_key": SecretStr("recorded")}
                settings = settings.model_copy(update=answering)
            elif not settings.has_model:
                raise ConfigurationError("--live needs a model: set OPENAI_BASE_URL or OPENAI_API_KEY.")
            concurrency = LIVE_CONCURRENCY if options.live else 1
            scores = process.run(run(cases, settings, concurrency=concurrency))
    except GraphmemError as error:
        print(error.detail, file=sys.stderr)
        return 1
    print(render_markdown(scores, details=False))
    print("\n".join(f"Written: {path}" for path in write_report(scores, options.out)))
    return _exit_status(scores, replay)


def _existing(recordings: Path) -> Path:
    if not recordings.exists():
        raise ConfigurationError(
            f"There are no recorded completions at {recordings}: record them with --live, or score a model of yours."
        )
    return recordings


def _report_check(cases: Sequence[ConsolidationCase], problems: Sequence[str]) -> int:
    print(
        "\n".join([*problems, f"{len(cases) - len(problems)} of {len(cases)} cases can be stored as they are meant."])
    )
    return 1 if problems else 0


def _exit_status(scores: Sequence[NightScore], replay: ReplayServer | None) -> int:
    missing = sorted(set(replay.missing)) if replay else []
    if missing:
        print(f"{len(missing)} completions are not recorded: record them with --live.", file=sys.stderr)
    errors = [(score.case.id, score.outcome.error) for score in scores if score.outcome.error]
    for case_id, error in errors:
        print(f"{case_id}: {error}", file=sys.stderr)
    return 1 if missing or errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quality.consolidation", description="Score consolidation.")
    parser.add_argument("--cases", type=Path, default=CASES, help="a folder of YAML files")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="a JSONL file or folder of completions")
    parser.add_argument("--live", action="store_true", help="call the configured model instead")
    parser.add_argument("--check", action="store_true", help="store the cases and check their reads, without any night")
    parser.add_argument("--out", type=Path, default=Path("reports/consolidation"), help="folder of the reports")
    parser.add_argument("--only", nargs="*", default=[], help="ids of the cases to run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
