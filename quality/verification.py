"""How well proposals of a model are verified: the wrong ones that are executed, and the right ones that are refused.

    python -m quality.verification [--live] [--recordings FILE] [--configured-database] [--only ID …] [--details]

Stores the statements of `consolidation/verification_cases.yaml` and executes the proposals as a model's: the guards
and the verification of a batch decide. Replays recorded completions, or with `--live` calls the configured model. Uses
an embedded database in a temporary folder, or with `--configured-database` that of the settings; the users are
forgotten at the end. Exit status 1: a wrong proposal was executed, or a completion is not recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.app.components import ConsolidationComponents
from graphmem.consolidation.analysis import ProposalVerifier
from graphmem.consolidation.models import (
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    RunPhase,
    RunTrigger,
)
from graphmem.graph_memory import GraphMemory
from graphmem.models.language_model import load_prompts
from graphmem.models.replay import ReplayServer
from graphmem.runtime import process
from graphmem.runtime.errors import ConfigurationError, GraphmemError
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from quality.consolidation.cases import NIGHT
from quality.consolidation.night import CaseClock
from quality.consolidation.verification_cases import (
    MAX_SOURCES,
    VERIFICATION_CASES,
    Expected,
    LinkCase,
    MergeCase,
    Statement,
    VerificationCase,
    load_verification_cases,
)
from quality.extraction import settings_for

RECORDINGS = Path(__file__).with_name("consolidation") / "verification_recordings.jsonl"
"""The completions that a run replays."""

BATCH_SIZE = 5
"""Cases of one user, whose proposals one call of the model verifies."""

LIVE_CONCURRENCY = 6
"""Batches that a live model verifies at the same time."""

RIGHT_GOAL = 0.9
"""Share of the right proposals that should be executed."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of the proposal of a case."""

    case: VerificationCase
    verdict: ProposalVerdict
    reason: str | None

    @property
    def is_executed(self) -> bool:
        """Whether the proposal was carried out."""
        return self.verdict is ProposalVerdict.EXECUTED

    @property
    def is_as_expected(self) -> bool:
        """Whether a right proposal was executed, or a wrong one refused."""
        return self.is_executed == (self.case.expected is Expected.RIGHT)


async def judge_batch(
    services: Services, verifier: ProposalVerifier, cases: Sequence[VerificationCase]
) -> list[Judgement]:
    """Store the statements of some cases for one user, verify and execute their proposals, and forget the user."""
    memory = GraphMemory(services).for_tenant(f"verification-{uuid.uuid4().hex[:8]}")
    owner = Owner(memory.tenant, cases[0].language)
    consolidation = ConsolidationComponents.build(services.components)
    executor, runs = consolidation.executor, consolidation.runs
    try:
        proposals = [await _propose(memory, owner, case) for case in cases]
        waiting = await executor.attach_versions(owner, proposals)
        verified, _ = await verifier.verify(owner, waiting)
        run_id = str(uuid.uuid4())
        await runs.create(
            run_id, owner.tenant, owner, RunTrigger.ON_DEMAND, NIGHT, proposals=verified, phase=RunPhase.ANALYSED
        )
        executed = (await executor.execute(owner, run_id, verified)).proposals
    finally:
        await memory.forget(owner.user_id)
    return [_to_judgement(case, proposal) for case, proposal in zip(cases, executed, strict=True)]


def _to_judgement(case: VerificationCase, reviewed: ReviewedProposal) -> Judgement:
    return Judgement(case, reviewed.verdict, reviewed.reason)


async def _propose(memory: GraphMemory, owner: Owner, case: VerificationCase) -> Proposal:
    """Store the statements of a case and return its proposal."""
    saved = await memory.add(owner.user_id, [_to_memory_input(case, source) for source in case.sources])
    memory_ids = [result.memory.id for result in saved if result.memory]
    if len(memory_ids) != len(case.sources):
        raise ConfigurationError(f"{case.id}: not every statement is saved.")
    if isinstance(case, MergeCase):
        return Merge(action="MERGE", memory_ids=memory_ids, content=case.content, relation=case.relation)
    page = await memory.entities(owner.user_id, limit=200)
    ids = {entity.name: entity.id for entity in page.items}
    keep_id, merge_id = (ids[name] for name in case.names)
    return LinkEntities(action="LINK_ENTITIES", keep_id=keep_id, merge_id=merge_id, evidence=memory_ids)


def _to_memory_input(case: VerificationCase, source: Statement) -> dict[str, object]:
    kind = case.type if isinstance(case, LinkCase) else None
    given = {
        "content": source.content,
        "subject": _to_entity_input(source.subject, kind),
        "predicate": source.predicate,
        "object": _to_entity_input(source.object, kind),
    }
    return {name: value for name, value in given.items() if value is not None}


def _to_entity_input(name: str | None, kind: str | None) -> dict[str, str] | None:
    if name is None:
        return None
    return {"name": name, "type": kind} if kind else {"name": name}


async def run(cases: Sequence[VerificationCase], settings: Settings, *, concurrency: int = 1) -> list[Judgement]:
    """Judge all cases, those of one language together, `BATCH_SIZE` of them in one call."""
    languages = dict.fromkeys(case.language for case in cases)
    by_language = [[case for case in cases if case.language == language] for language in languages]
    batches = [found[start : start + BATCH_SIZE] for found in by_language for start in range(0, len(found), BATCH_SIZE)]
    # The users have no other memories: nothing but the verification may refuse what ends most of them.
    settings = settings.model_copy(update={"consolidation_free_ended": BATCH_SIZE * MAX_SOURCES})
    slots = asyncio.Semaphore(concurrency)
    async with Services.open(settings, clock=CaseClock(NIGHT)) as services:
        components = services.components
        if components.model is None:
            raise ConfigurationError("The verification needs a model: set OPENAI_BASE_URL or OPENAI_API_KEY.")
        verifier = ProposalVerifier(components.graph, components.model, load_prompts())

        async def judge(batch: list[VerificationCase]) -> list[Judgement]:
            async with slots:
                return await judge_batch(services, verifier, batch)

        judged = await asyncio.gather(*map(judge, batches))
    return [judgement for batch in judged for judgement in batch]


# The report


def render(judgements: Sequence[Judgement], *, details: bool) -> str:
    """Return the report in Markdown."""
    wrong = [judgement for judgement in judgements if judgement.case.expected is Expected.WRONG]
    right = [judgement for judgement in judgements if judgement.case.expected is Expected.RIGHT]
    executed = sum(judgement.is_executed for judgement in right)
    share = f"{executed / len(right):.1%}" if right else "none"
    lines = [
        "| | result | goal |",
        "|---|---:|---:|",
        f"| wrong ones executed | {sum(judgement.is_executed for judgement in wrong)} of {len(wrong)} | 0 |",
        f"| right ones executed | {executed} of {len(right)} ({share}) | ≥ {RIGHT_GOAL:.0%} |",
        *_table("language", judgements, lambda judgement: judgement.case.language),
        *_table("kind of error", judgements, lambda judgement: judgement.case.error or f"none, {judgement.case.kind}"),
    ]
    if details:
        lines += ["", *(_describe(judgement) for judgement in judgements if not judgement.is_as_expected)]
    return "\n".join(lines)


def _table(title: str, judgements: Sequence[Judgement], key: Callable[[Judgement], str]) -> Iterable[str]:
    yield from ("", f"| {title} | wrong ones executed | right ones executed |", "|---|---:|---:|")
    for name in sorted({key(judgement) for judgement in judgements}):
        cells = [
            f"{sum(judgement.is_executed for judgement in found)} of {len(found)}" if found else ""
            for expected in (Expected.WRONG, Expected.RIGHT)
            for found in [[one for one in judgements if key(one) == name and one.case.expected is expected]]
        ]
        yield f"| {name} | {cells[0]} | {cells[1]} |"


def _describe(judgement: Judgement) -> str:
    case = judgement.case
    outcome = f"{judgement.verdict.value}: {judgement.reason}" if judgement.reason else judgement.verdict.value
    return f"- {case.id}, which is {case.expected.value} ({case.why}) {outcome}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation and return the exit status."""
    options = _parser().parse_args(arguments)
    cases = [case for case in load_verification_cases(options.cases) if not options.only or case.id in options.only]
    replay = None
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphmem-eval-")))
            settings = settings_for(folder, configured=options.configured_database)
            if not options.live:
                replay = stack.enter_context(ReplayServer(_existing(options.recordings)))
                answering = {"openai_base_url": replay.base_url, "openai_api_key": SecretStr("recorded")}
                settings = settings.model_copy(update=answering)
            judgements = process.run(run(cases, settings, concurrency=LIVE_CONCURRENCY if options.live else 1))
    except GraphmemError as error:
        print(error.detail, file=sys.stderr)
        return 1
    print(render(judgements, details=options.details))
    missing = sorted(set(replay.missing)) if replay else []
    if missing:
        print(f"{len(missing)} completions are not recorded: record them with --live.", file=sys.stderr)
    is_wrong = any(judgement.is_executed and not judgement.is_as_expected for judgement in judgements)
    return 1 if is_wrong or missing else 0


def _existing(recordings: Path) -> Path:
    if not recordings.exists():
        raise ConfigurationError(f"There are no recorded completions at {recordings}: call a model with --live.")
    return recordings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quality.verification", description="Score the verification.")
    parser.add_argument("--cases", type=Path, default=VERIFICATION_CASES, help="a YAML file of cases")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="a JSONL file or folder of completions")
    parser.add_argument("--live", action="store_true", help="call the configured model instead")
    parser.add_argument("--configured-database", action="store_true", help="use the database of the settings")
    parser.add_argument("--only", nargs="*", default=[], help="ids of the cases to run")
    parser.add_argument("--details", action="store_true", help="list the cases that are not as expected")
    return parser


if __name__ == "__main__":
    sys.exit(main())
