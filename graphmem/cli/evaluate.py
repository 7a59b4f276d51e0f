"""`graphmem evaluate`: measures how well memories answer a benchmark's questions, with your models and data."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import EXIT_FAILED, Output, command, read_settings
from graphmem.cli.startup import open_services, progress_bar, start_progress
from graphmem.runtime.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from graphmem.evaluation.benchmark import Benchmark, BenchmarkData
    from graphmem.evaluation.compared_system import SystemResources
    from graphmem.evaluation.evaluation import Models
    from graphmem.evaluation.plan import Prices, RunPlan
    from graphmem.evaluation.report import EvaluationReport
    from graphmem.evaluation.run_folder import RunFolder, RunOptions
    from graphmem.runtime.settings import Settings

app = typer.Typer()

DEFAULT_BUDGETS = (250, 500, 1_000, 2_000)
"""Default token budgets of the contexts."""

OUT = Path("reports/evaluate")
"""Folder of the runs."""


@dataclass(frozen=True, slots=True)
class EvaluateChoices:
    """The parts of a run, besides its data; `reader` and `judge` are None if no model is called."""

    systems: Sequence[str]
    budgets: Sequence[int]
    given_facts: bool
    reader: str | None
    judge: str | None
    in_flight: int


@command(app, "evaluate")
async def evaluate(
    output: Output,
    benchmark: Annotated[
        str, typer.Argument(help="locomo, longmemeval or beam with --data, or a FILE of your own conversations.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="The benchmark's file, which you download: locomo10.json of github.com/snap-research/locomo, "
            "longmemeval_s_cleaned.json of huggingface.co/datasets/xiaowu0162/longmemeval-cleaned, or the folder "
            "chats/100K of github.com/mohammadtavakoli78/BEAM."
        ),
    ] = None,
    reader: Annotated[str | None, typer.Option(help="Model that answers; defaults to GRAPHMEM_LLM_MODEL.")] = None,
    judge: Annotated[str | None, typer.Option(help="Model that judges; defaults to GRAPHMEM_LLM_MODEL.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of questions, spread evenly over categories.")
    ] = None,
    conversations: Annotated[int | None, typer.Option(min=1, help="Use only the first N conversations.")] = None,
    conversation: Annotated[list[str] | None, typer.Option(help="Id of a conversation; repeatable.")] = None,
    budget: Annotated[list[int] | None, typer.Option(min=1, help="Context size in tokens; repeatable.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="ask, search, full-context, graphiti-search, graphiti or mem0; repeatable."),
    ] = None,
    given_facts: Annotated[
        bool, typer.Option("--given-facts", help="Save the facts in the file instead of extracting.")
    ] = False,
    contexts_only: Annotated[
        bool, typer.Option("--contexts-only", help="Do not answer; report what the contexts contain.")
    ] = False,
    replay: Annotated[Path | None, typer.Option(help="Recorded completions to use instead of a model.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million prompt tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million completion tokens.")] = None,
    in_flight: Annotated[int, typer.Option(min=1, max=2000, help="Number of concurrent model requests.")] = 8,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; defaults to one in reports/evaluate.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only estimate the model calls.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without confirmation.")] = False,
) -> None:
    """Measure how well memories answer the questions of a benchmark; run again to resume.

    Stores the conversations as users do, extracts from them, answers the questions from contexts of several sizes, has
    the answers judged, and writes a report. `context` is compared with the systems of --against.
    """
    from graphmem.evaluation.plan import make_plan
    from graphmem.evaluation.run_folder import RunFolder
    from graphmem.evaluation.systems import ensure_usable

    chosen, path = _find_source(benchmark, data)
    settings = read_settings()
    choices = _check_choices(
        settings, against or [], budget or DEFAULT_BUDGETS, given_facts, contexts_only, reader, judge, in_flight
    )
    asked = await asyncio.to_thread(_read_data, chosen, path, conversation or conversations, limit)
    prices = _read_prices(price_in, price_out)
    planned = make_plan(
        asked,
        choices.systems,
        choices.budgets,
        in_flight=in_flight,
        extracts=not given_facts and (choices.reader is not None or settings.has_model or replay is not None),
        answers=choices.reader is not None,
        prices=prices,
    )
    if plan:
        output.show(planned, _render_plan(planned))
        return
    if not (settings.has_model or replay or contexts_only):
        raise ConfigurationError(
            "A model is needed to extract, read and judge: set OPENAI_API_KEY or OPENAI_BASE_URL, give --replay with "
            "the recordings of a run, or --contexts-only."
        )
    ensure_usable(choices.systems, has_model=settings.has_model or replay is not None)
    output.note(_render_plan(planned))
    if sys.stdin.isatty() and not yes:
        typer.confirm("Start?", abort=True, err=True)
    folder = RunFolder(out or OUT / f"{chosen.value}-{path.stem}")
    options = folder.begin(_describe_options(asked, path, settings, choices))
    with answering_model(settings, folder, replay) as answering:
        report, failures = await _run(output, asked, folder, options, answering, choices, prices)
    _write_report(output, asked, folder, report)
    if failures:
        output.note(f"graphmem: {failures} Run the same command again to continue.")
        raise typer.Exit(EXIT_FAILED)


def _find_source(benchmark: str, data: Path | None) -> tuple[Benchmark, Path]:
    """Return the benchmark and its file; raise InvalidInput, with the download address, if the file is missing."""
    from graphmem.evaluation.benchmark import ADDRESSES, Benchmark

    if benchmark not in [known.value for known in ADDRESSES]:
        if data is not None:
            known = ", ".join(benchmark.value for benchmark in ADDRESSES)
            raise InvalidInput(f"--data goes with {known}: give a file of your own alone.")
        return Benchmark.OTHER, Path(benchmark)
    chosen = Benchmark(benchmark)
    if data is None:
        raise InvalidInput(f"The file of {benchmark} is missing: download {ADDRESSES[chosen]} and give it as --data.")
    return chosen, data


def _check_choices(
    settings: Settings,
    against: Sequence[str],
    budgets: Sequence[int],
    given_facts: bool,
    contexts_only: bool,
    reader: str | None,
    judge: str | None,
    in_flight: int,
) -> EvaluateChoices:
    from graphmem.evaluation.plan import CONTEXT
    from graphmem.evaluation.systems import EXTRACTING_SYSTEMS, SYSTEMS
    from graphmem.models.language_model import DEFAULT_MODEL

    if unknown := [name for name in against if name not in SYSTEMS]:
        raise InvalidInput(f"--against {unknown[0]} is not known: choose from {', '.join(SYSTEMS)}.")
    if given_facts and (extracting := [name for name in against if name in EXTRACTING_SYSTEMS]):
        raise InvalidInput(f"--against {extracting[0]} extracts, which --given-facts does not: leave one of them out.")
    default = settings.llm_model or DEFAULT_MODEL
    return EvaluateChoices(
        systems=list(dict.fromkeys([CONTEXT, *against])),
        budgets=sorted(set(budgets)),
        given_facts=given_facts,
        reader=None if contexts_only else reader or default,
        judge=None if contexts_only else judge or default,
        in_flight=in_flight,
    )


def _read_data(
    benchmark: Benchmark, path: Path, conversations: Sequence[str] | int | None, limit: int | None
) -> BenchmarkData:
    from graphmem.evaluation.benchmark import read_benchmark

    read = read_benchmark(benchmark, path)
    asked = read.limit(conversations, limit)
    if not asked.questions:
        known = ", ".join(conversation.id for conversation in read.conversations[:20])
        raise InvalidInput(f"{path} has no question about these conversations: it has {known or 'none'}.")
    return asked


def _read_prices(price_in: float | None, price_out: float | None) -> Prices | None:
    from graphmem.evaluation.plan import Prices

    if (price_in is None) != (price_out is None):
        raise InvalidInput("Give --price-in and --price-out together.")
    return None if price_in is None or price_out is None else Prices(price_in, price_out)


def _describe_options(data: BenchmarkData, path: Path, settings: Settings, choices: EvaluateChoices) -> RunOptions:
    from graphmem.evaluation.run_folder import RunOptions
    from graphmem.models.language_model import DEFAULT_MODEL

    return RunOptions(
        benchmark=data.benchmark.value,
        name=data.name,
        data=hashlib.sha256(data.model_dump_json(include={"conversations"}).encode()).hexdigest()[:24],
        conversations=[conversation.id for conversation in data.conversations],
        questions=[question.id for question in data.questions],
        systems=list(choices.systems),
        budgets=list(choices.budgets),
        given_facts=choices.given_facts,
        extraction_model=None if choices.given_facts else settings.llm_model or DEFAULT_MODEL,
        reader=choices.reader,
        judge=choices.judge,
        tenant=f"evaluate-{uuid.uuid4().hex[:8]}",
    )


@contextmanager
def answering_model(settings: Settings, folder: RunFolder, replay: Path | None) -> Iterator[Settings]:
    """Yield the settings with a server that replays recordings or records the model's completions in the run folder.

    Models of a provider with its own protocol are not recorded.
    """
    from pydantic import SecretStr

    from graphmem.models.openai_api import DEFAULT_BASE_URL, api_key_of
    from graphmem.models.replay import CompletionServer, RecordingServer, ReplayServer
    from graphmem.runtime.settings import OPENAI_COMPATIBLE, split_model_name

    server: CompletionServer
    if replay is not None:
        if settings.embedder == "openai":
            raise ConfigurationError("--replay has no vectors: set GRAPHMEM_EMBEDDER=local, as in the recorded run.")
        server = ReplayServer(replay)
    elif settings.has_model and split_model_name(settings.llm_model or "")[0] is OPENAI_COMPATIBLE:
        upstream = settings.openai_base_url or DEFAULT_BASE_URL
        server = RecordingServer(folder.recordings, upstream, api_key_of(settings), settings.llm_timeout)
    else:
        yield settings
        return
    with server:
        changes = {"openai_base_url": server.base_url, "openai_api_key": SecretStr("recorded")}
        yield settings.model_copy(update=changes)


async def _run(
    output: Output,
    data: BenchmarkData,
    folder: RunFolder,
    options: RunOptions,
    settings: Settings,
    choices: EvaluateChoices,
    prices: Prices | None,
) -> tuple[EvaluationReport, str]:
    """Complete a run; return its report, and a sentence about failed requests."""
    from graphmem.evaluation.evaluation import EvaluationRun
    from graphmem.evaluation.report import build_report

    show = partial(progress_bar, output)
    async with _open_resources(output, folder, options.tenant, settings) as resources:
        run = EvaluationRun(data, folder, resources, choices.systems, choices.budgets)
        await run.store(show, given_facts=choices.given_facts)
        await run.build_contexts(show)
        failures = ""
        if choices.reader and choices.judge:
            async with _open_models(settings, choices.reader, choices.judge, choices.in_flight) as models:
                failed = await run.answer_all(models, show)
            if failed:
                failures = f"{len(failed)} questions are not answered or judged ({failed[0].detail})"
        embedder = resources.embedder.model
    return build_report(data, folder, options, embedder, prices), failures


@asynccontextmanager
async def _open_resources(
    output: Output, folder: RunFolder, tenant: str, settings: Settings
) -> AsyncIterator[SystemResources]:
    """Open the services of a run, on the database of the settings or on a new one in the run folder."""
    from graphmem.app.components import running_database
    from graphmem.evaluation.compared_system import SystemResources
    from graphmem.graph_memory import GraphMemory
    from graphmem.tenants.access import COMMAND_LINE

    changes = {"data_dir": folder.data, "jobs_url": None, "nightly": False, "webhook_delivery": False}
    own = settings.model_copy(update=changes)
    async with AsyncExitStack() as stack:
        progress = stack.enter_context(start_progress(output))
        found = await stack.enter_async_context(running_database(own, progress))
        is_shared = settings.neo4j_uri is not None
        services = await stack.enter_async_context(open_services(output, worker=True, settings=found, demo=is_shared))
        yield SystemResources(
            memory=GraphMemory(services, tenant, actor=COMMAND_LINE),
            tenant=tenant,
            settings=found,
            graph=services.components.graph,
            embedder=services.components.embedder,
            folder=folder.path,
        )


@asynccontextmanager
async def _open_models(settings: Settings, reader: str, judge: str, in_flight: int) -> AsyncIterator[Models]:
    """Open the reader and the judge on the server of the settings."""
    from graphmem.evaluation.evaluation import Models
    from graphmem.models.provider_model import ProviderModel

    async with AsyncExitStack() as stack:

        async def open_model(name: str) -> ProviderModel:
            model = ProviderModel.from_settings(settings.model_copy(update={"llm_model": name, "llm_gate_model": None}))
            assert model is not None
            return await stack.enter_async_context(model)

        yield Models(await open_model(reader), await open_model(judge), in_flight)


def _write_report(output: Output, data: BenchmarkData, folder: RunFolder, report: EvaluationReport) -> None:
    """Write the report, its plots and the answers into the run folder, and show the report."""
    from graphmem.evaluation.report import render_answers, render_report
    from graphmem.runtime.settings import missing_modules

    plots: list[str] = []
    if missing_modules("evaluate"):
        output.note("graphmem: no pictures are drawn; they need `pip install 'graphmem[evaluate]'`.")
    else:
        from graphmem.evaluation.report import draw_plots

        plots = draw_plots(report, folder.path)
    (folder.path / "report.md").write_text(render_report(report, plots), "utf-8")
    (folder.path / "report.json").write_text(report.model_dump_json(indent=1), "utf-8")
    (folder.path / "answers.md").write_text(render_answers(data, folder), "utf-8")
    output.show(report, render_report(report))
    output.note(f"graphmem: written to {folder.path}: report.md, report.json, answers.md.")


def _render_plan(plan: RunPlan) -> str:
    """Return a plan as lines of text."""
    from graphmem.evaluation.plan import SECONDS_PER_CALL

    heading = (
        f"{plan.benchmark}: {plan.name}. {plan.questions} questions about {plan.conversations} conversations of "
        f"{plan.messages:,} messages in {plan.sessions} sessions; {', '.join(plan.systems)} with "
        f"{', '.join(f'{budget:,}' for budget in plan.budgets)} tokens."
    )
    lines = [
        f"  {step.step}: up to {step.calls:,} calls, {step.prompt_tokens:,} prompt and {step.completion_tokens:,} "
        f"completion tokens, {step.minutes:.0f} min" + ("" if step.cost is None else f", cost {step.cost:.2f}")
        for step in plan.steps
    ]
    total = f"Together about {plan.minutes:.0f} min at {SECONDS_PER_CALL:g} s a call"
    unknown = "; the cost is unknown without --price-in and --price-out."
    cost = unknown if plan.cost is None else f", cost {plan.cost:.2f}."
    return "\n".join([heading, *lines, total + cost])
