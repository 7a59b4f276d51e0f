"""Scores of the memories of a case against its expectations. Pure.

- precision: saved memories that match `keep` or `allowed` and no `drop`, of all saved ones;
- recall: `keep` entries that a saved memory matches, of all entries;
- entities: correct subjects, objects and other names, of those that the matched `keep` entries name;
- dates: the same for `valid_at`, `invalid_at` and `on`; types likewise;
- missed supersessions: expected changes whose old memory was saved and did not end, of those whose old one was saved;
- wrong supersessions: memories that ended although they are true and no current one says the same, of all that ended.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evaluation.cases import EvaluationCase, ExpectedStatement, ExpectedSupersession, RequiredMemory, matches_any
from evaluation.date_mentions import mentions_date

USER = "user"
"""The name of the user's own entity in expectations."""


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A memory at the end of a case, with the names of its entities and local dates.

    `replaced` marks a memory that another one superseded or the user took back, `taken_back` the latter alone.
    """

    id: str
    content: str
    type: str
    subject: str
    object: str | None = None
    entities: tuple[str, ...] = ()
    valid_at: str | None = None
    invalid_at: str | None = None
    current: bool = True
    replaced: bool = False
    taken_back: bool = False

    @property
    def text(self) -> str:
        """Content and names."""
        return " · ".join([self.content, self.subject, self.object or "", *self.entities])


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The cost of one batch; `overhead_ms` is the job's time outside model and embedder, where it was measured."""

    status: str
    calls: int
    overhead_ms: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The memories of a case at its end, and its batches."""

    kept: Sequence[ScoredMemory]
    batches: Sequence[BatchOutcome] = ()


@dataclass(frozen=True, slots=True)
class Ratio:
    """A share; the sum of two is the share of both together."""

    part: int = 0
    whole: int = 0

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.part + other.part, self.whole + other.whole)

    @property
    def value(self) -> float | None:
        """The quotient; None where `whole` is 0."""
        return self.part / self.whole if self.whole else None


def ratio(checks: Iterable[bool]) -> Ratio:
    """Return the share of the checks that are true."""
    results = list(checks)
    return Ratio(sum(results), len(results))


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one case, or of several together."""

    precision: Ratio = field(default_factory=Ratio)
    recall: Ratio = field(default_factory=Ratio)
    entities: Ratio = field(default_factory=Ratio)
    dates: Ratio = field(default_factory=Ratio)
    types: Ratio = field(default_factory=Ratio)
    wrong_supersessions: Ratio = field(default_factory=Ratio)
    missed_supersessions: Ratio = field(default_factory=Ratio)
    skips: Ratio = field(default_factory=Ratio)

    def __add__(self, other: Metrics) -> Metrics:
        return Metrics(**{name: getattr(self, name) + getattr(other, name) for name in METRIC_NAMES})


METRIC_NAMES = tuple(Metrics.__dataclass_fields__)
"""Names of the metrics, in the order of a report."""


@dataclass(frozen=True, slots=True)
class CaseScore:
    """The metrics of one case, and the descriptions of what was missed or wrong."""

    case: EvaluationCase
    result: CaseResult
    metrics: Metrics
    missed: list[str]
    wrong: list[str]


def score_case(case: EvaluationCase, result: CaseResult) -> CaseScore:
    """Compare the memories of a case with what is expected."""
    expected = case.expected
    missed: list[str] = []
    wrong: list[str] = []
    good = [_is_expected(case, memory, wrong) for memory in result.kept]
    entities, dates, types, met = Ratio(), Ratio(), Ratio(), []
    for keep in expected.keep:
        found = _best_match(keep, result.kept)
        met.append(found is not None)
        if found is None:
            missed.append(f"not kept: {keep.any[0]}")
            continue
        entities += _record_failures(_entity_checks(keep, found), found, wrong)
        dates += _record_failures(_date_checks(keep, found), found, wrong)
        types += _record_failures({"type": found.type in keep.type} if keep.type else {}, found, wrong)
    ended = [memory for memory in result.kept if memory.replaced]
    lost = [memory for memory in ended if _is_wrongly_ended(case, memory, result.kept)]
    wrong += [f"ended although it holds: {memory.content}" for memory in lost]
    changes = [change for change in expected.supersedes if _matching(change.old, result.kept)]
    open_changes = [change for change in changes if not _is_superseded(change, result.kept)]
    missed += [f"not ended: {change.old[0]}" for change in open_changes]
    skipped = all(batch.status == "skipped" for batch in result.batches)
    figures = Metrics(
        precision=ratio(good),
        recall=ratio(met),
        entities=entities,
        dates=dates,
        types=types,
        wrong_supersessions=Ratio(len(lost), len(ended)),
        missed_supersessions=Ratio(len(open_changes), len(changes)),
        skips=ratio([skipped] if expected.skip else []),
    )
    return CaseScore(case, result, figures, missed, wrong)


def sum_metrics(scores: Iterable[CaseScore]) -> Metrics:
    """Return the metrics of all cases together."""
    return sum((score.metrics for score in scores), Metrics())


def metrics_by_tag(scores: Sequence[CaseScore]) -> dict[str, Metrics]:
    """Return the metrics of the cases of each tag."""
    tags = sorted({tag for score in scores for tag in score.case.tags})
    return {tag: sum_metrics(score for score in scores if tag in score.case.tags) for tag in tags}


@dataclass(frozen=True, slots=True)
class CostSummary:
    """Calls and overhead over all batches; times in milliseconds."""

    batches: int
    skipped: int
    failed: int
    most_calls: int
    most_calls_on_skip: int
    mean_calls: float
    overhead_p50_ms: float | None


def summarize_costs(batches: Sequence[BatchOutcome]) -> CostSummary:
    """Return the costs of all batches together."""
    overheads = [batch.overhead_ms for batch in batches if batch.overhead_ms is not None]
    skipped = [batch for batch in batches if batch.status == "skipped"]
    return CostSummary(
        batches=len(batches),
        skipped=len(skipped),
        failed=sum(batch.error is not None for batch in batches),
        most_calls=max((batch.calls for batch in batches), default=0),
        most_calls_on_skip=max((batch.calls for batch in skipped), default=0),
        mean_calls=statistics.fmean([batch.calls for batch in batches]) if batches else 0.0,
        overhead_p50_ms=statistics.median(overheads) if overheads else None,
    )


# One memory


def _is_expected(case: EvaluationCase, memory: ScoredMemory, wrong: list[str]) -> bool:
    expected = case.expected
    for drop in expected.drop:
        if not memory.taken_back and drop.matches(memory.text):
            wrong.append(f"must not be kept ({drop.why}): {memory.content}")
            return False
    statements: list[ExpectedStatement] = [*expected.keep, *expected.allowed]
    if any(statement.matches(memory.text) for statement in statements) or any(
        matches_any(memory.text, [*change.old, *change.new]) for change in expected.supersedes
    ):
        return True
    wrong.append(f"not expected: {memory.content}")
    return False


def _best_match(keep: RequiredMemory, kept: Sequence[ScoredMemory]) -> ScoredMemory | None:
    """Return the memory that matches an entry and passes most of its checks."""
    matching = [
        memory
        for memory in kept
        if not memory.taken_back and keep.matches(memory.text) and keep.current in (None, memory.current)
    ]

    def passed(memory: ScoredMemory) -> int:
        checks = {**_entity_checks(keep, memory), **_date_checks(keep, memory)}
        return sum(checks.values()) + (not keep.type or memory.type in keep.type)

    return max(matching, key=passed, default=None)


def _entity_checks(keep: RequiredMemory, memory: ScoredMemory) -> dict[str, bool]:
    named = [name for name in (memory.subject, memory.object, *memory.entities) if name]
    checks: dict[str, bool] = {}
    if keep.subject:
        checks[f"subject {keep.subject}"] = _is_called(memory.subject, keep.subject)
    if keep.object:
        checks[f"object {keep.object}"] = any(_is_called(name, keep.object) for name in named)
    for pattern in keep.entities:
        checks[f"entity {pattern}"] = any(_is_called(name, pattern) for name in named)
    return checks


def _is_called(name: str, pattern: str) -> bool:
    if USER in (name, pattern):
        return name == pattern
    return matches_any(name, pattern.split("|"))


def _date_checks(keep: RequiredMemory, memory: ScoredMemory) -> dict[str, bool]:
    checks: dict[str, bool] = {}
    if keep.valid_at:
        checks[f"since {keep.valid_at}"] = (memory.valid_at or "").startswith(keep.valid_at)
    if keep.invalid_at:
        checks[f"until {keep.invalid_at}"] = (memory.invalid_at or "").startswith(keep.invalid_at)
    if keep.on:
        starts = (memory.valid_at or "").startswith(keep.on)
        checks[f"on {keep.on}"] = starts or mentions_date(memory.content, keep.on)
    return checks


def _record_failures(checks: dict[str, bool], memory: ScoredMemory, wrong: list[str]) -> Ratio:
    wrong += [f"not {check}: {_describe(memory)}" for check, passed in checks.items() if not passed]
    return ratio(checks.values())


def _describe(memory: ScoredMemory) -> str:
    times = f"{memory.valid_at or '…'} to {memory.invalid_at or '…'}"
    return f"{memory.content} ({memory.type}; {memory.subject} → {memory.object}; {times})"


# What ended


def _matching(patterns: list[str], kept: Sequence[ScoredMemory]) -> list[ScoredMemory]:
    return [memory for memory in kept if matches_any(memory.content, patterns)]


def _is_superseded(change: ExpectedSupersession, kept: Sequence[ScoredMemory]) -> bool:
    """Return whether no current memory states the old without the new."""
    return not [
        memory
        for memory in _matching(change.old, kept)
        if memory.current and not (change.new and matches_any(memory.content, change.new))
    ]


def _is_wrongly_ended(case: EvaluationCase, memory: ScoredMemory, kept: Sequence[ScoredMemory]) -> bool:
    """Return whether a memory ended that is true and that no current one repeats.

    Where changes are expected, memories that are merely allowed may end with them.
    """
    expected = case.expected
    if any(matches_any(memory.content, change.old) for change in expected.supersedes):
        return False
    keeps = [keep for keep in expected.keep if keep.matches(memory.text)]
    if any(keep.current is not True for keep in keeps):
        return False
    entries: list[ExpectedStatement] = [*keeps]
    if not expected.supersedes:
        entries += [statement for statement in expected.allowed if statement.matches(memory.text)]
    current = [other for other in kept if other.current]
    return bool(entries) and not any(entry.matches(other.text) for entry in entries for other in current)
