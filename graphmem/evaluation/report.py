"""The figures of a run, the report and the answers in Markdown, and plots, with the extra `evaluate`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, Field

from graphmem.evaluation.benchmark import AskedQuestion, Benchmark, BenchmarkData
from graphmem.evaluation.judging import (
    Cause,
    Figure,
    Interval,
    all_held,
    answer_share,
    difference,
    evidence_share,
    mean_of,
    values_of,
)
from graphmem.evaluation.plan import CONTEXT, GRAPHITI, MEM0, Prices
from graphmem.evaluation.run_folder import GRAPHMEM, AnswerContext, RunFolder, RunOptions
from graphmem.models.language_model import Receipt

MESSAGES_OF_A_COST = 1_000
"""Number of messages for which extraction costs are stated."""

_STORED = "kB stored are those of values and vectors (4 bytes a number), without indexes"

NOT_COMPARABLE: Mapping[str, Sequence[str]] = {
    GRAPHITI: (
        "graphiti reads every message by itself, as an episode, with those before it; graphmem reads several messages "
        "in one request. It has the default entity types and no communities.",
        "graphiti and graphmem share a database and its full-text indexes, so words are weighed over both.",
        "A context of graphiti has facts only, no messages and no summaries; a fact has the days that graphiti gave.",
        f"graphiti and graphmem store messages and former versions of facts, too; {_STORED}.",
    ),
    MEM0: (
        "mem0 gets two messages at a time, as in its own evaluation on LoCoMo, but one memory for all speakers, and no "
        "further instructions.",
        "The prompt of mem0 has the day of the messages where the package, which takes no time of one, has today.",
        "A mem0 memory has the day on which it was stated, not the period in which it is valid.",
        "mem0 searches by meaning alone unless `fastembed` and `spacy` are installed with their models.",
        f"mem0 stores memories and entities, no messages; {_STORED}.",
    ),
}
"""Caveats for comparing the figures of systems that have their own extraction with graphmem's."""


MANY_NEEDED = 3
"""Questions that need at least this many messages are counted together."""


class HeldFigures(BaseModel):
    """How often a system's contexts at a budget hold all messages, for questions that need `needed` of them.

    The highest `needed`, `MANY_NEEDED`, includes questions that need more.
    """

    system: str
    budget: int | None
    needed: int
    questions: int
    share: float


class SystemFigures(BaseModel):
    """The figures of a system at a budget: mean size, right answers with their interval, evidence, and times.

    `evidence` is the share of the answering messages whose text or facts are in the contexts; `words` is the share of
    the expected answer's words.
    """

    system: str
    budget: int | None
    questions: int
    tokens: float
    score: float | None = None
    low: float | None = None
    high: float | None = None
    evidence: float | None = None
    words: float | None = None
    median_ms: float
    p95_ms: float

    @property
    def label(self) -> str:
        """The system and the budget."""
        return f"{self.system}, {self.budget:,}" if self.budget else self.system


class CategoryFigures(BaseModel):
    """The right answers of a category by system label; if `counted`, they are part of the total."""

    category: str
    questions: int
    counted: bool
    scores: dict[str, float]


class ScoreDifference(BaseModel):
    """The gain of `context` over another system at a budget, over the questions of both, with its interval."""

    system: str
    budget: int
    mean: float
    low: float
    high: float
    questions: int


class StepCost(BaseModel):
    """The model usage of a step; `cost` is None without prices."""

    step: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None


class ExtractionFigures(BaseModel):
    """The model usage and stored data of a system's extraction per 1,000 messages.

    `seconds` sums the durations of the adds or session extractions; `size` is in bytes; `cost` is None without prices.
    """

    system: str
    messages: int
    calls: float
    prompt_tokens: float
    completion_tokens: float
    seconds: float
    cost: float | None
    facts: float
    entities: float
    size: float


class EvaluationReport(BaseModel):
    """The figures of a run so far."""

    options: RunOptions
    embedder: str
    messages: int
    systems: list[SystemFigures]
    categories: list[CategoryFigures]
    held: list[HeldFigures] = Field(default_factory=list)
    differences: list[ScoreDifference]
    costs: list[StepCost]
    thousand_messages: StepCost | None
    extractions: list[ExtractionFigures] = Field(default_factory=list)
    causes: dict[str, dict[str, int]] = Field(default_factory=dict)


def is_counted_apart(benchmark: Benchmark, question: AskedQuestion) -> bool:
    """Return whether a question is excluded from the total: LoCoMo's about things nobody said, as published."""
    return benchmark is Benchmark.LOCOMO and question.is_unanswerable


def build_report(
    data: BenchmarkData, folder: RunFolder, options: RunOptions, embedder: str, prices: Prices | None
) -> EvaluationReport:
    """Return the figures of a run so far."""
    figures = _Figures(data, folder)
    kinds = sorted(
        {(context.system, context.budget) for context in folder.contexts},
        key=lambda kind: (options.systems.index(kind[0]), kind[1] or 0),
    )
    sessions = [session for session in folder.sessions if session.system == GRAPHMEM]
    extraction = _sum_receipts(folder, GRAPHMEM)
    others = [system for system in options.systems if system in NOT_COMPARABLE]
    messages = sum(session.messages for session in sessions)
    reading = sum((answer.receipt for answer in folder.answers), Receipt())
    judging = sum((cost.receipt for cost in folder.costs), Receipt())
    steps = [
        _to_cost(name, receipt, prices)
        for name, receipt in (
            ("extraction", extraction),
            *((f"extraction, {system}", _sum_receipts(folder, system)) for system in others),
            ("reading", reading),
            ("judging", judging),
        )
        if receipt.llm_calls
    ]
    return EvaluationReport(
        options=options,
        embedder=embedder,
        messages=messages,
        systems=[figures.of_system(system, budget) for system, budget in kinds],
        categories=figures.of_categories(kinds),
        held=figures.of_needed(kinds),
        differences=figures.differences(kinds),
        costs=steps,
        thousand_messages=_for_thousand(steps[0], messages) if extraction.llm_calls and messages else None,
        extractions=[
            figures_of_system
            for system in (GRAPHMEM, *others)
            if (figures_of_system := _measure_extraction(folder, system, prices))
        ],
        causes=_count_causes(folder),
    )


class _Figures:
    def __init__(self, data: BenchmarkData, folder: RunFolder) -> None:
        self._data = data
        self._questions = {question.id: question for question in data.questions}
        self._contexts = [context for context in folder.contexts if context.question_id in self._questions]
        self._scores = list(self._measure(lambda _, context: _score_of(folder, context)))
        self._evidence = list(self._measure(evidence_share))
        self._held = list(self._measure(all_held))
        self._words = list(self._measure(answer_share))

    def of_system(self, system: str, budget: int | None) -> SystemFigures:
        """Return the figures of a system at a budget."""
        contexts = [context for context in self._contexts if (context.system, context.budget) == (system, budget)]
        score = mean_of(self._counted(system, budget))
        evidence, words = (mean_of(values_of(given, system, budget)) for given in (self._evidence, self._words))
        times = sorted(context.seconds * 1000 for context in contexts)
        return SystemFigures(
            system=system,
            budget=budget,
            questions=score.count if score else len(contexts),
            tokens=fmean(context.tokens for context in contexts),
            score=score.mean if score else None,
            low=score.low if score else None,
            high=score.high if score else None,
            evidence=evidence.mean if evidence else None,
            words=words.mean if words else None,
            median_ms=times[len(times) // 2],
            p95_ms=times[min(len(times) - 1, int(len(times) * 0.95))],
        )

    def of_needed(self, kinds: Sequence[tuple[str, int | None]]) -> list[HeldFigures]:
        """Return how often contexts hold all needed messages, by their number, without unanswerable questions."""
        needed = {
            question.id: min(MANY_NEEDED, len(set(question.evidence)))
            for question in self._data.questions
            if not question.is_unanswerable
        }
        found = []
        for system, budget in kinds:
            held = values_of(self._held, system, budget)
            for count in range(1, MANY_NEEDED + 1):
                values = [value for key, value in held.items() if needed.get(key) == count]
                if values:
                    found.append(
                        HeldFigures(
                            system=system, budget=budget, needed=count, questions=len(values), share=fmean(values)
                        )
                    )
        return found

    def of_categories(self, kinds: Sequence[tuple[str, int | None]]) -> list[CategoryFigures]:
        """Return the figures of each category."""
        found = []
        for category in sorted({question.category for question in self._data.questions}):
            asked = [question for question in self._data.questions if question.category == category]
            ids = {question.id for question in asked}
            scores = {}
            for system, budget in kinds:
                values = values_of((figure for figure in self._scores if figure.question_id in ids), system, budget)
                if values:
                    scores[_label(system, budget)] = fmean(values.values())
            counted = not is_counted_apart(self._data.benchmark, asked[0])
            found.append(CategoryFigures(category=category, questions=len(asked), counted=counted, scores=scores))
        return found

    def differences(self, kinds: Sequence[tuple[str, int | None]]) -> list[ScoreDifference]:
        """Return the gain of `context` over each other system, at each budget of `context`."""
        found = []
        for _, budget in (kind for kind in kinds if kind[0] == CONTEXT and kind[1] is not None):
            assert budget is not None
            for system, other_budget in kinds:
                if system == CONTEXT or other_budget not in (None, budget):
                    continue
                gain = difference(self._counted(CONTEXT, budget), self._counted(system, other_budget))
                if gain is not None:
                    found.append(_to_difference(system, budget, gain))
        return found

    def _counted(self, system: str, budget: int | None) -> dict[str, float]:
        values = values_of(self._scores, system, budget)
        return {
            question_id: value
            for question_id, value in values.items()
            if not is_counted_apart(self._data.benchmark, self._questions[question_id])
        }

    def _measure(self, measured: Callable[[AskedQuestion, AnswerContext], float | None]) -> Iterable[Figure]:
        for context in self._contexts:
            question = self._questions[context.question_id]
            value = measured(question, context)
            if value is not None:
                yield Figure(question.id, question.category, context.system, context.budget, value)


def _score_of(folder: RunFolder, context: AnswerContext) -> float | None:
    judged = folder.find_judgement(context)
    return None if judged is None else judged.score


def _to_difference(system: str, budget: int, gain: Interval) -> ScoreDifference:
    return ScoreDifference(
        system=system, budget=budget, mean=gain.mean, low=gain.low, high=gain.high, questions=gain.count
    )


def _to_cost(step: str, receipt: Receipt, prices: Prices | None) -> StepCost:
    return StepCost(
        step=step,
        calls=receipt.llm_calls,
        prompt_tokens=receipt.prompt_tokens,
        completion_tokens=receipt.completion_tokens,
        seconds=receipt.seconds,
        cost=prices.cost_of(receipt.prompt_tokens, receipt.completion_tokens) if prices else None,
    )


def _for_thousand(extraction: StepCost, messages: int) -> StepCost:
    share = MESSAGES_OF_A_COST / messages
    return StepCost(
        step="extraction of 1,000 messages",
        calls=round(extraction.calls * share),
        prompt_tokens=round(extraction.prompt_tokens * share),
        completion_tokens=round(extraction.completion_tokens * share),
        seconds=extraction.seconds * share,
        cost=None if extraction.cost is None else extraction.cost * share,
    )


def _sum_receipts(folder: RunFolder, system: str) -> Receipt:
    receipts = (session.receipt for session in folder.sessions if session.system == system)
    return sum(filter(None, receipts), Receipt())


def _measure_extraction(folder: RunFolder, system: str, prices: Prices | None) -> ExtractionFigures | None:
    """Return the model usage and stored data of a system's extraction; None if it called no model."""
    sessions = [session for session in folder.sessions if session.system == system]
    messages, receipt = sum(session.messages for session in sessions), _sum_receipts(folder, system)
    if not (messages and receipt.llm_calls):
        return None
    sizes = [size for size in folder.sizes if size.system == system]
    share = MESSAGES_OF_A_COST / messages
    cost = prices.cost_of(receipt.prompt_tokens, receipt.completion_tokens) if prices else None
    return ExtractionFigures(
        system=system,
        messages=messages,
        calls=receipt.llm_calls * share,
        prompt_tokens=receipt.prompt_tokens * share,
        completion_tokens=receipt.completion_tokens * share,
        seconds=sum(session.seconds for session in sessions) * share,
        cost=None if cost is None else cost * share,
        facts=sum(size.facts for size in sizes) * share,
        entities=sum(size.entities for size in sizes) * share,
        size=sum(size.size for size in sizes) * share,
    )


def _count_causes(folder: RunFolder) -> dict[str, dict[str, int]]:
    counts = Counter((cause.cause, _label(cause.system, cause.budget)) for cause in folder.causes)
    found: dict[str, dict[str, int]] = {}
    for cause in Cause:
        if by_label := {label: count for (name, label), count in sorted(counts.items()) if name == cause.value}:
            found[cause.value] = by_label
    return found


def _label(system: str, budget: int | None) -> str:
    return f"{system}, {budget:,}" if budget else system


def render_report(report: EvaluationReport, plots: Sequence[str] = ()) -> str:
    """Return the report in Markdown; `plots` are the file names of the plots next to it."""
    options = report.options
    parts = [
        f"# {options.benchmark}: {options.name}",
        _describe_run(report),
        *(f"![{name.removesuffix('.png').replace('_', ' ')}]({name})" for name in plots),
        "## Right answers and size",
        _render_systems(report),
    ]
    if report.differences:
        parts += ["## Difference to the others", _render_differences(report)]
    if any(category.scores for category in report.categories):
        parts += ["## By category", _render_categories(report)]
    if report.held:
        parts += ["## All needed messages held", _render_held(report)]
    if report.causes:
        parts += ["## Where wrong answers went wrong", _render_causes(report)]
    if report.extractions:
        parts += ["## Extraction and storage", _render_extractions(report)]
    if notes := [note for system in options.systems for note in NOT_COMPARABLE.get(system, ())]:
        parts += ["## What does not compare", "\n".join(f"- {note}" for note in notes)]
    if report.costs:
        parts += ["## Cost", _render_costs(report)]
    return "\n\n".join(parts) + "\n"


def _describe_run(report: EvaluationReport) -> str:
    options = report.options
    source = "facts given by the file" if options.given_facts else f"extracted by {options.extraction_model}"
    lines = [
        f"- {len(options.questions)} questions about {len(options.conversations)} conversations "
        f"of {report.messages:,} messages",
        f"- memories: {source}; vectors: {report.embedder}",
        f"- reader: {options.reader or 'none'}; judge: {options.judge or 'none'}",
        "- an interval is that of 95 % (bootstrap over the questions)",
    ]
    if any(not category.counted for category in report.categories):
        lines.append("- questions about what nobody said are not in the totals, as is usual for this benchmark")
    return "\n".join(lines)


def _render_systems(report: EvaluationReport) -> str:
    rows = [
        [
            row.label,
            f"{row.tokens:,.0f}",
            _number(row.score) if row.low is None else f"{_number(row.score)} ({row.low:.3f} to {row.high:.3f})",
            _number(row.evidence),
            _number(row.words),
            f"{row.median_ms:.0f}",
            f"{row.p95_ms:.0f}",
        ]
        for row in report.systems
    ]
    head = [
        "system, budget",
        "tokens",
        "right answers",
        "evidence in it",
        "words of the answer",
        "ms, median",
        "ms, p95",
    ]
    return _table(head, rows)


def _render_held(report: EvaluationReport) -> str:
    """Return a row for each number of needed messages, with how often contexts hold all of them."""
    shares = {(row.system, row.budget, row.needed): row.share for row in report.held}
    counts = {row.needed: row.questions for row in report.held}
    rows = [
        [f"{count} or more" if count == MANY_NEEDED else str(count), str(counts[count])]
        + [_number(shares.get((system.system, system.budget, count))) for system in report.systems]
        for count in sorted(counts)
    ]
    return _table(["needed", "questions", *(system.label for system in report.systems)], rows)


def _render_differences(report: EvaluationReport) -> str:
    rows = [
        [f"{CONTEXT} − {row.system}", f"{row.budget:,}", f"{row.mean:+.3f} ({row.low:+.3f} to {row.high:+.3f})"]
        for row in report.differences
    ]
    return _table(["", "budget", "right answers"], rows)


def _render_categories(report: EvaluationReport) -> str:
    labels = [row.label for row in report.systems]
    rows = [
        [
            row.category + ("" if row.counted else " (apart)"),
            str(row.questions),
            *(_number(row.scores.get(label)) for label in labels),
        ]
        for row in report.categories
    ]
    return _table(["category", "questions", *labels], rows)


def _render_causes(report: EvaluationReport) -> str:
    labels = [row.label for row in report.systems if row.system == CONTEXT]
    rows = [[cause, *(str(counts.get(label, 0)) for label in labels)] for cause, counts in report.causes.items()]
    return _table(["wrong answers", *labels], rows)


def _render_costs(report: EvaluationReport) -> str:
    rows = [
        [
            row.step,
            f"{row.calls:,}",
            f"{row.prompt_tokens:,}",
            f"{row.completion_tokens:,}",
            f"{row.seconds:,.0f}",
            "" if row.cost is None else f"{row.cost:.2f}",
        ]
        for row in [*report.costs, *([report.thousand_messages] if report.thousand_messages else [])]
    ]
    return _table(["step", "calls", "prompt tokens", "completion tokens", "seconds", "cost"], rows)


def _render_extractions(report: EvaluationReport) -> str:
    rows = [
        [
            row.system,
            f"{row.calls:,.0f}",
            f"{row.prompt_tokens:,.0f}",
            f"{row.completion_tokens:,.0f}",
            f"{row.seconds:,.0f}",
            "" if row.cost is None else f"{row.cost:.2f}",
            f"{row.facts:,.0f}",
            f"{row.entities:,.0f}",
            f"{row.size / 1000:,.0f}",
        ]
        for row in report.extractions
    ]
    head = ["1,000 messages with", "calls", "prompt tokens", "completion tokens", "seconds", "cost"]
    return _table([*head, "facts", "entities", "kB stored"], rows)


def render_answers(data: BenchmarkData, folder: RunFolder) -> str:
    """Return every answer with its judgement, by question, and the cause of wrong ones."""
    parts = [f"# Answers: {data.benchmark.value}, {data.name}"]
    contexts: dict[str, list[AnswerContext]] = {}
    for context in folder.contexts:
        contexts.setdefault(context.question_id, []).append(context)
    messages = {
        (conversation.id, message.id): message
        for conversation in data.conversations
        for message in conversation.messages
    }
    for question in data.questions:
        evidence = (messages.get((question.conversation, message_id)) for message_id in question.evidence)
        said = [f"> {message.speaker}: {message.content}" for message in evidence if message]
        criteria = [f"- {criterion}" for criterion in question.criteria]
        shown = sorted(contexts.get(question.id, []), key=lambda context: (context.system, context.budget or 0))
        rows = [_answer_row(folder, context) for context in shown]
        parts += [
            f"## {question.text}",
            "\n".join([f"{question.id}, {question.category}. Expected: {question.expected}", *criteria]),
            *(["\n>\n".join(said)] if said else []),
            _table(["system, budget", "score", "answer", "why", "went wrong at"], rows),
        ]
    return "\n\n".join(parts) + "\n"


def _answer_row(folder: RunFolder, context: AnswerContext) -> list[str]:
    given, judged = folder.answers.find(*context.key), folder.find_judgement(context)
    cause = folder.causes.find(*context.key)
    return [
        _label(context.system, context.budget),
        _number(judged.score if judged else None),
        given.answer if given else "",
        judged.reason if judged else "",
        cause.cause if cause else "",
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


SIZE_INCHES = (7.0, 4.2)
"""Width and height of a plot."""


def draw_plots(report: EvaluationReport, folder: Path) -> list[str]:
    """Draw the plots that have figures into a folder; return their file names."""
    import matplotlib as mpl

    mpl.use("agg")
    has_scores = any(row.score is not None for row in report.systems)
    plots: dict[str, Callable[[EvaluationReport, Any], None]] = {"time.png": _draw_times}
    if has_scores:
        plots = {"score_and_tokens.png": _draw_scores, "categories.png": _draw_categories, **plots}
    for name, draw in plots.items():
        _draw(report, folder / name, draw)
    return list(plots)


def _draw(report: EvaluationReport, path: Path, draw: Callable[[EvaluationReport, Any], None]) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
    draw(report, axes)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_scores(report: EvaluationReport, axes: Any) -> None:
    by_system: dict[str, list[SystemFigures]] = {}
    for row in report.systems:
        if row.score is not None:
            by_system.setdefault(row.system, []).append(row)
    for system, rows in by_system.items():
        rows.sort(key=lambda row: row.tokens)
        axes.plot([row.tokens for row in rows], [row.score for row in rows], marker="o", label=system)
    axes.set(xscale="log", xlabel="tokens of the context", ylabel="right answers", title=_title(report))
    axes.legend()


def _draw_categories(report: EvaluationReport, axes: Any) -> None:
    labels = [row.label for row in report.systems if row.score is not None]
    width = 0.8 / max(len(labels), 1)
    for number, label in enumerate(labels):
        places = [place + number * width for place in range(len(report.categories))]
        axes.bar(places, [row.scores.get(label, 0.0) for row in report.categories], width, label=label)
    middles = [place + 0.4 - width / 2 for place in range(len(report.categories))]
    axes.set_xticks(middles, [row.category for row in report.categories], rotation=20)
    axes.set(ylabel="right answers", title=_title(report))
    axes.legend(fontsize="small")


def _draw_times(report: EvaluationReport, axes: Any) -> None:
    rows = [row for row in report.systems if row.p95_ms > 0]
    places = range(len(rows))
    axes.barh(places, [row.p95_ms for row in rows], color="0.8", label="95 % of the questions")
    axes.barh(places, [row.median_ms for row in rows], label="median")
    axes.set_yticks(list(places), [row.label for row in rows])
    axes.set(xlabel="milliseconds for a context", title=_title(report))
    axes.legend()


def _title(report: EvaluationReport) -> str:
    return f"{report.options.benchmark}: {report.options.name}, {len(report.options.questions)} questions"
