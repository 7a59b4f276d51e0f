"""Scores of the memories of a case against its expectations. Pure.

- precision: saved memories that match `keep` or `allowed` and no `drop`, of all saved ones;
- recall: `keep` entries that a saved memory matches, of all entries;
- entities: correct subjects, objects and other names, of those that the matched `keep` entries name; no entity with a
  name of `no_entities`; people of one name kept apart; one entity for the user;
- dates: the same for `valid_at`, `invalid_at` and `on`; types likewise;
- missed supersessions: expected changes whose old memory was saved and did not end, of those whose old one was saved;
- wrong supersessions: memories that ended although they are true and no current one says the same, of all that ended;
- forbidden: `drop` entries that a saved memory matches, of all entries;
- reinforcements: stored memories that were strengthened when said again, of those that were;
- languages and domains: correct ones, of those that the matched `keep` entries name.

Memories that were stored before the first message count for none of precision, recall and forbidden; `stored_fate`
compares them with what must become of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quality.cases import EvaluationCase, ExpectedStatement, ExpectedSupersession, RequiredMemory, matches_any
from quality.date_mentions import falls_on, mentions_date
from quality.identity import check_names, check_referents
from quality.languages import is_written_in
from quality.metrics import Metrics, Ratio, ratio
from quality.results import USER, CaseResult, ScoredMemory
from quality.stored_fate import has_ended, is_lost, is_reinforced


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
    notes = _Notes()
    saved = [memory for memory in result.kept if memory.stored is None]
    matches = [_best_match(keep, saved) for keep in case.expected.keep]
    identity_checks = {**check_names(case, result), **check_referents(case, result.kept, matches)}
    metrics = (
        _score_saved(case, saved, matches, notes)
        + _score_endings(case, result.kept, notes)
        + _score_stored(case, result.kept, notes)
        + Metrics(entities=_record(identity_checks, "", notes))
    )
    if case.expected.skip:
        skipped = all(batch.status == "skipped" for batch in result.batches)
        metrics += Metrics(skips=ratio([skipped]))
    return CaseScore(case, result, metrics, notes.missed, notes.wrong)


@dataclass(frozen=True, slots=True)
class _Notes:
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def sum_metrics(scores: Iterable[CaseScore]) -> Metrics:
    """Return the metrics of all cases together."""
    return sum((score.metrics for score in scores), Metrics())


def metrics_by_tag(scores: Sequence[CaseScore]) -> dict[str, Metrics]:
    """Return the metrics of the cases of each tag."""
    tags = sorted({tag for score in scores for tag in score.case.tags})
    return {tag: sum_metrics(score for score in scores if tag in score.case.tags) for tag in tags}


# What was saved


def _score_saved(
    case: EvaluationCase, saved: Sequence[ScoredMemory], matches: Sequence[ScoredMemory | None], notes: _Notes
) -> Metrics:
    drops = case.expected.drop
    violated = [any(not memory.taken_back and drop.matches(memory.text) for memory in saved) for drop in drops]
    metrics = Metrics(
        precision=ratio([_is_expected(case, memory, notes) for memory in saved]), forbidden=ratio(violated)
    )
    for keep, found in zip(case.expected.keep, matches, strict=True):
        metrics += Metrics(recall=ratio([found is not None]))
        if found is None:
            notes.missed.append(f"not kept: {keep.any[0]}")
            continue
        described = f": {_describe(found)}"
        metrics += Metrics(
            entities=_record(_entity_checks(keep, found), described, notes),
            dates=_record(_date_checks(keep, found), described, notes),
            types=_record({"type": found.type in keep.type} if keep.type else {}, described, notes),
            languages=_record(_language_check(keep, found), described, notes),
            domains=_record(_domain_check(keep, found), described, notes),
        )
    return metrics


def _is_expected(case: EvaluationCase, memory: ScoredMemory, notes: _Notes) -> bool:
    expected = case.expected
    for drop in expected.drop:
        if not memory.taken_back and drop.matches(memory.text):
            notes.wrong.append(f"must not be kept ({drop.why}): {memory.content}")
            return False
    statements: list[ExpectedStatement] = [*expected.keep, *expected.allowed]
    restated = [pattern for stored in case.stored for pattern in stored.restated]
    if any(statement.matches(memory.text) for statement in statements) or any(
        matches_any(memory.text, patterns)
        for patterns in (restated, *([*change.old, *change.new] for change in expected.supersedes))
    ):
        return True
    notes.wrong.append(f"not expected: {memory.content}")
    return False


def _best_match(keep: RequiredMemory, kept: Sequence[ScoredMemory]) -> ScoredMemory | None:
    """Return the memory that matches an entry and passes most of its checks."""
    matching = [
        memory
        for memory in kept
        if not memory.taken_back and keep.matches(memory.text) and keep.current in (None, memory.current)
    ]

    def passed(memory: ScoredMemory) -> int:
        checks = {
            **_entity_checks(keep, memory),
            **_date_checks(keep, memory),
            **_language_check(keep, memory),
            **_domain_check(keep, memory),
        }
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
    alternatives = pattern.split("|")
    if name == USER:
        return USER in alternatives
    return matches_any(name, [alternative for alternative in alternatives if alternative != USER])


def _date_checks(keep: RequiredMemory, memory: ScoredMemory) -> dict[str, bool]:
    checks: dict[str, bool] = {}
    if keep.valid_at:
        checks[f"since {keep.valid_at}"] = falls_on(memory.valid_at, keep.valid_at)
    if keep.invalid_at:
        checks[f"until {keep.invalid_at}"] = falls_on(memory.invalid_at, keep.invalid_at)
    if keep.on:
        checks[f"on {keep.on}"] = falls_on(memory.valid_at, keep.on) or mentions_date(memory.content, keep.on)
    return checks


def _language_check(keep: RequiredMemory, memory: ScoredMemory) -> dict[str, bool]:
    return {f"in {keep.language}": is_written_in(memory.content, keep.language)} if keep.language else {}


def _domain_check(keep: RequiredMemory, memory: ScoredMemory) -> dict[str, bool]:
    return {f"domain {keep.domain}": _is_called(memory.domain or "", keep.domain)} if keep.domain else {}


def _record(checks: dict[str, bool], described: str, notes: _Notes) -> Ratio:
    notes.wrong.extend(f"not {check}{described}" for check, passed in checks.items() if not passed)
    return ratio(checks.values())


def _describe(memory: ScoredMemory) -> str:
    times = f"{memory.valid_at or '…'} to {memory.invalid_at or '…'}"
    return f"{memory.content} ({memory.type}; {memory.subject} → {memory.object}; {times})"


# What ended


def _score_endings(case: EvaluationCase, kept: Sequence[ScoredMemory], notes: _Notes) -> Metrics:
    """Score the supersessions that are expected by their words."""
    ended = [memory for memory in kept if memory.replaced and memory.stored is None]
    lost = [memory for memory in ended if _is_wrongly_ended(case, memory, kept)]
    notes.wrong.extend(f"ended although it holds: {memory.content}" for memory in lost)
    changes = [change for change in case.expected.supersedes if _matching(change.old, kept)]
    open_changes = [change for change in changes if not _is_superseded(change, kept)]
    notes.missed.extend(f"not ended: {change.old[0]}" for change in open_changes)
    return Metrics(
        wrong_supersessions=Ratio(len(lost), len(ended)), missed_supersessions=Ratio(len(open_changes), len(changes))
    )


def _score_stored(case: EvaluationCase, kept: Sequence[ScoredMemory], notes: _Notes) -> Metrics:
    """Score what became of the memories that were stored before the first message."""
    metrics = Metrics()
    for memory in kept:
        if memory.stored is None:
            continue
        stored = case.stored[memory.stored]
        ended = has_ended(stored, memory)
        dates = {
            f"{word} {date}": falls_on(moment, date)
            for word, date, moment in (
                ("since", stored.since, memory.valid_at),
                ("until", stored.until, memory.invalid_at),
            )
            if date
        }
        metrics += Metrics(dates=_record(dates, f": {_describe(memory)}", notes))
        if stored.then == "ends":
            metrics += Metrics(missed_supersessions=ratio([not ended]), wrong_supersessions=Ratio(0, int(ended)))
            notes.missed.extend([] if ended else [f"not ended: {memory.content}"])
            continue
        lost = is_lost(stored, memory, kept)
        metrics += Metrics(wrong_supersessions=Ratio(int(lost), int(ended)))
        notes.wrong.extend([f"ended although it holds: {memory.content}"] if lost else [])
        if stored.then == "reinforced":
            reinforced = is_reinforced(stored, memory, kept)
            metrics += Metrics(reinforcements=ratio([reinforced]))
            notes.missed.extend([] if reinforced else [f"not reinforced: {memory.content}"])
    return metrics


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
