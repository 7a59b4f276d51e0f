"""From what was kept of each case to precision, recall, accuracy of entities and dates, and supersessions. Pure.

- precision: kept memories that match `keep` or `allowed` and no `drop`, of all kept;
- recall: `keep` entries that some kept memory meets, of all;
- entities: checks of subject, object and other names that hold, over the `keep` entries that were met;
- dates: the same for `valid_at`, `invalid_at` and `on`; types likewise;
- missed supersessions: expected changes whose old statement was kept and has not ended, of all whose old one was kept;
- wrong supersessions: memories that were ended though they hold and no current one says the same, of all ended ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evaluation.cases import Case, Change, Keep, Statement, says
from evaluation.dates import names_date

USER = "user"


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory at the end of a case: names of its entities (`user` for the user), dates local or None.

    `replaced` marks one that another memory or a wish of the user ended, `taken_back` the latter alone.
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
        """All its words."""
        return " · ".join([self.content, self.subject, self.object or "", *self.entities])


@dataclass(frozen=True, slots=True)
class Batch:
    """What reading one batch cost; `overhead_ms` is the job's time outside model and embedding, where measured."""

    status: str
    calls: int
    overhead_ms: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case."""

    kept: Sequence[Kept]
    batches: Sequence[Batch] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """`part` of `whole`; two shares add up."""

    part: int = 0
    whole: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.part + other.part, self.whole + other.whole)

    @property
    def value(self) -> float | None:
        """The quotient; None of nothing."""
        return self.part / self.whole if self.whole else None


def share(checks: Iterable[bool]) -> Share:
    """Return how many of some checks hold."""
    told = list(checks)
    return Share(sum(told), len(told))


@dataclass(frozen=True, slots=True)
class Figures:
    """The shares of one case, or of many together."""

    precision: Share = field(default_factory=Share)
    recall: Share = field(default_factory=Share)
    entities: Share = field(default_factory=Share)
    dates: Share = field(default_factory=Share)
    types: Share = field(default_factory=Share)
    wrong_supersessions: Share = field(default_factory=Share)
    missed_supersessions: Share = field(default_factory=Share)
    skips: Share = field(default_factory=Share)

    def __add__(self, other: Figures) -> Figures:
        return Figures(**{name: getattr(self, name) + getattr(other, name) for name in NAMES})


NAMES = tuple(Figures.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures of one case, and in words what was missed or wrong."""

    case: Case
    result: Result
    figures: Figures
    missed: list[str]
    wrong: list[str]


def judge(case: Case, result: Result) -> Verdict:
    """Compare what was kept of a case with what is expected."""
    wanted = case.expected
    missed: list[str] = []
    wrong: list[str] = []
    good = [_is_expected(case, memory, wrong) for memory in result.kept]
    entities, dates, types, met = Share(), Share(), Share(), []
    for keep in wanted.keep:
        found = _best(keep, result.kept)
        met.append(found is not None)
        if found is None:
            missed.append(f"not kept: {keep.any[0]}")
            continue
        entities += _noted(_entity_checks(keep, found), found, wrong)
        dates += _noted(_date_checks(keep, found), found, wrong)
        types += _noted({"type": found.type in keep.type} if keep.type else {}, found, wrong)
    ended = [memory for memory in result.kept if memory.replaced]
    lost = [memory for memory in ended if _is_lost(case, memory, result.kept)]
    wrong += [f"ended although it holds: {memory.content}" for memory in lost]
    changes = [change for change in wanted.supersedes if _of(change.old, result.kept)]
    open_changes = [change for change in changes if not _is_made(change, result.kept)]
    missed += [f"not ended: {change.old[0]}" for change in open_changes]
    skipped = all(batch.status == "skipped" for batch in result.batches)
    figures = Figures(
        precision=share(good),
        recall=share(met),
        entities=entities,
        dates=dates,
        types=types,
        wrong_supersessions=Share(len(lost), len(ended)),
        missed_supersessions=Share(len(open_changes), len(changes)),
        skips=share([skipped] if wanted.skip else []),
    )
    return Verdict(case, result, figures, missed, wrong)


def total(verdicts: Iterable[Verdict]) -> Figures:
    """Return the figures of all together."""
    return sum((verdict.figures for verdict in verdicts), Figures())


def by_tag(verdicts: Sequence[Verdict]) -> dict[str, Figures]:
    """Return the figures of the cases with each tag."""
    tags = sorted({tag for verdict in verdicts for tag in verdict.case.tags})
    return {tag: total(each for each in verdicts if tag in each.case.tags) for tag in tags}


@dataclass(frozen=True, slots=True)
class Costs:
    """Calls and overhead over all batches; times in milliseconds."""

    batches: int
    skipped: int
    failed: int
    most_calls: int
    most_calls_on_skip: int
    mean_calls: float
    overhead_p50_ms: float | None


def costs(batches: Sequence[Batch]) -> Costs:
    """Return what reading cost."""
    overheads = [batch.overhead_ms for batch in batches if batch.overhead_ms is not None]
    skipped = [batch for batch in batches if batch.status == "skipped"]
    return Costs(
        batches=len(batches),
        skipped=len(skipped),
        failed=sum(batch.error is not None for batch in batches),
        most_calls=max((batch.calls for batch in batches), default=0),
        most_calls_on_skip=max((batch.calls for batch in skipped), default=0),
        mean_calls=statistics.fmean([batch.calls for batch in batches]) if batches else 0.0,
        overhead_p50_ms=statistics.median(overheads) if overheads else None,
    )


# One memory


def _is_expected(case: Case, memory: Kept, wrong: list[str]) -> bool:
    wanted = case.expected
    for drop in wanted.drop:
        if not memory.taken_back and drop.is_in(memory.text):
            wrong.append(f"must not be kept ({drop.why}): {memory.content}")
            return False
    patterns: list[Statement] = [*wanted.keep, *wanted.allowed]
    if any(each.is_in(memory.text) for each in patterns) or any(
        says(memory.text, [*change.old, *change.new]) for change in wanted.supersedes
    ):
        return True
    wrong.append(f"not expected: {memory.content}")
    return False


def _best(keep: Keep, kept: Sequence[Kept]) -> Kept | None:
    """Return the memory that meets an entry with most of its checks."""
    meeting = [
        memory
        for memory in kept
        if not memory.taken_back and keep.is_in(memory.text) and keep.current in (None, memory.current)
    ]

    def held(memory: Kept) -> int:
        checks = {**_entity_checks(keep, memory), **_date_checks(keep, memory)}
        return sum(checks.values()) + (not keep.type or memory.type in keep.type)

    return max(meeting, key=held, default=None)


def _entity_checks(keep: Keep, memory: Kept) -> dict[str, bool]:
    named = [name for name in (memory.subject, memory.object, *memory.entities) if name]
    checks: dict[str, bool] = {}
    if keep.subject:
        checks[f"subject {keep.subject}"] = _is_called(memory.subject, keep.subject)
    if keep.object:
        checks[f"object {keep.object}"] = any(_is_called(name, keep.object) for name in named)
    for wanted in keep.entities:
        checks[f"entity {wanted}"] = any(_is_called(name, wanted) for name in named)
    return checks


def _is_called(name: str, wanted: str) -> bool:
    if USER in (name, wanted):
        return name == wanted
    return says(name, wanted.split("|"))


def _date_checks(keep: Keep, memory: Kept) -> dict[str, bool]:
    checks: dict[str, bool] = {}
    if keep.valid_at:
        checks[f"since {keep.valid_at}"] = (memory.valid_at or "").startswith(keep.valid_at)
    if keep.invalid_at:
        checks[f"until {keep.invalid_at}"] = (memory.invalid_at or "").startswith(keep.invalid_at)
    if keep.on:
        starts = (memory.valid_at or "").startswith(keep.on)
        checks[f"on {keep.on}"] = starts or names_date(memory.content, keep.on)
    return checks


def _noted(checks: dict[str, bool], memory: Kept, wrong: list[str]) -> Share:
    wrong += [f"not {what}: {_shown(memory)}" for what, holds in checks.items() if not holds]
    return share(checks.values())


def _shown(memory: Kept) -> str:
    times = f"{memory.valid_at or '…'} to {memory.invalid_at or '…'}"
    return f"{memory.content} ({memory.type}; {memory.subject} → {memory.object}; {times})"


# What ended


def _of(patterns: list[str], kept: Sequence[Kept]) -> list[Kept]:
    return [memory for memory in kept if says(memory.content, patterns)]


def _is_made(change: Change, kept: Sequence[Kept]) -> bool:
    """Whether nothing current says the old without also saying the new."""
    return not [
        memory
        for memory in _of(change.old, kept)
        if memory.current and not (change.new and says(memory.content, change.new))
    ]


def _is_lost(case: Case, memory: Kept, kept: Sequence[Kept]) -> bool:
    """Whether ending a memory lost something; where changes are expected, what is merely allowed may end with them."""
    wanted = case.expected
    if any(says(memory.content, change.old) for change in wanted.supersedes):
        return False
    keeps = [keep for keep in wanted.keep if keep.is_in(memory.text)]
    if any(keep.current is not True for keep in keeps):
        return False
    entries: list[Statement] = [*keeps]
    if not wanted.supersedes:
        entries += [each for each in wanted.allowed if each.is_in(memory.text)]
    return bool(entries) and not any(each.current and entry.is_in(each.text) for entry in entries for each in kept)
