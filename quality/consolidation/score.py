"""Scores of what a night did to the memories of a case. Pure.

- merge recall: expected merges that happened, with everything they must keep and the right validity, of all expected;
- merge precision: merges that are expected or allowed, of all that happened;
- link recall and precision: the same for entities that became one;
- names: expected aliases that an entity has after the night, of all expected;
- reports: contradictions that the run reported, of all expected;
- closings: plans that the run closed, of all expected;
- quiet nights: nights that changed nothing, of those that must not;
- rollbacks: rollbacks after which the export equals the one before the night, of all nights;
- violations: what was done although it must not be; losses: what was true before the night and no longer is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.runtime.field_types import name_key
from quality.consolidation.cases import ANY_TIME, ConsolidationCase, ExpectedMerge, ExpectedRead, matches
from quality.consolidation.groups import MergedGroup, find_entity, find_linked_groups, find_merged_groups
from quality.consolidation.outcome import NightOutcome
from quality.metrics import Ratio, add_fields, ratio


@dataclass(frozen=True, slots=True)
class ConsolidationMetrics:
    """The metrics of one case, or of several together."""

    merge_recall: Ratio = field(default_factory=Ratio)
    merge_precision: Ratio = field(default_factory=Ratio)
    link_recall: Ratio = field(default_factory=Ratio)
    link_precision: Ratio = field(default_factory=Ratio)
    names: Ratio = field(default_factory=Ratio)
    reports: Ratio = field(default_factory=Ratio)
    closings: Ratio = field(default_factory=Ratio)
    quiet_nights: Ratio = field(default_factory=Ratio)
    rollbacks: Ratio = field(default_factory=Ratio)
    violations: int = 0
    losses: int = 0

    def __add__(self, other: ConsolidationMetrics) -> ConsolidationMetrics:
        return add_fields(self, other)


METRIC_NAMES = tuple(ConsolidationMetrics.__dataclass_fields__)
"""Names of the metrics, in the order of a report."""


@dataclass(slots=True)
class Findings:
    """Descriptions of what differs from what is right."""

    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        """Every description with its kind."""
        kinds = {"missed": self.missed, "wrong": self.wrong, "violation": self.violations, "loss": self.losses}
        return [f"{kind}: {text}" for kind, texts in kinds.items() for text in texts]


@dataclass(frozen=True, slots=True)
class NightScore:
    """The metrics of one case and what differs."""

    case: ConsolidationCase
    outcome: NightOutcome
    metrics: ConsolidationMetrics
    findings: Findings


def score_case(case: ConsolidationCase, outcome: NightOutcome) -> NightScore:
    """Compare what a night did with what is right; a night that failed has done nothing."""
    findings = Findings()
    if outcome.error is not None:
        return NightScore(case, outcome, _metrics_of_failure(case), findings)
    groups = find_merged_groups(outcome)
    linked = find_linked_groups(outcome)
    merge_recall = ratio([_is_merged(case, expected, groups, findings) for expected in case.expected.merges])
    merge_precision = ratio([_is_right_merge(case, group, findings) for group in groups])
    link_recall = ratio([_is_linked(keys, linked, findings) for keys in case.expected.links])
    link_precision = ratio([_is_right_link(case, keys, findings) for keys in linked])
    names = ratio(_check_names(case, outcome, findings))
    reports = ratio(_check_reports(case, outcome, findings))
    closings = ratio(_check_closings(case, outcome, findings))
    quiet_nights = ratio(_check_quiet_nights(case, outcome, findings))
    rollbacks = ratio([not outcome.rollback_differences])
    findings.wrong += [f"not rolled back: {difference}" for difference in outcome.rollback_differences]
    findings.violations += _find_violations(case, outcome, groups, linked)
    findings.losses += _find_losses(case, outcome, groups)
    return NightScore(
        case,
        outcome,
        ConsolidationMetrics(
            merge_recall=merge_recall,
            merge_precision=merge_precision,
            link_recall=link_recall,
            link_precision=link_precision,
            names=names,
            reports=reports,
            closings=closings,
            quiet_nights=quiet_nights,
            rollbacks=rollbacks,
            violations=len(findings.violations),
            losses=len(findings.losses),
        ),
        findings,
    )


def sum_metrics(scores: Iterable[NightScore]) -> ConsolidationMetrics:
    """Return the metrics of all cases together."""
    return sum((score.metrics for score in scores), ConsolidationMetrics())


def metrics_by(
    scores: Sequence[NightScore], labels: Callable[[ConsolidationCase], Iterable[str]]
) -> dict[str, ConsolidationMetrics]:
    """Return the metrics of the cases of each label, such as the language or a theme."""
    names = sorted({label for score in scores for label in labels(score.case)})
    return {name: sum_metrics(score for score in scores if name in labels(score.case)) for name in names}


def failed_reads(reads: Sequence[ExpectedRead], results: Sequence[Sequence[str]]) -> list[str]:
    """Return what reads do not say although they must, or say although they must not."""
    failures = []
    for read, contents in zip(reads, results, strict=True):
        when = f"a read as of {read.at}" + (f", known on {read.known}," if read.known else "")
        failures += [
            f"{when} no longer says {alternatives[0]!r}"
            for alternatives in read.says
            if not any(matches(content, alternatives) for content in contents)
        ]
        failures += [
            f"{when} says {content!r}" for content in contents for pattern in read.never if matches(content, [pattern])
        ]
    return failures


# Merges and links


def _is_merged(
    case: ConsolidationCase, expected: ExpectedMerge, groups: Sequence[MergedGroup], findings: Findings
) -> bool:
    wanted = frozenset(expected.memories)
    group = next((group for group in groups if wanted <= group.keys), None)
    if group is None or not (group.keys == wanted or any(group.keys <= set(keys) for keys in case.expected.may_merge)):
        findings.missed.append(f"merge of {_list(wanted)}")
        return False
    return not any(_check_merged(case, expected, group))


def _check_merged(case: ConsolidationCase, expected: ExpectedMerge, group: MergedGroup) -> tuple[list[str], list[str]]:
    """Return the losses and the violations of an expected merge."""
    if group.result is None or not group.result.active:
        return [f"nothing is left of {_list(group.keys)}"], []
    text = group.result.content
    losses = [f"{text!r} does not keep {wanted[0]!r}" for wanted in expected.keeps if not matches(text, wanted)]
    violations = [f"{text!r} says {pattern!r}" for pattern in expected.lacks if matches(text, [pattern])]
    if group.keys == frozenset(expected.memories):
        for name, wanted, actual in (
            ("from", expected.valid_from, group.result.valid_at),
            ("until", expected.valid_until, group.result.invalid_at),
        ):
            if wanted != ANY_TIME and case.to_instant(wanted) != actual:
                violations.append(f"{text!r} holds {name} {_local(case, actual)}, not {wanted or 'an unknown time'}")
    return losses, violations


def _is_right_merge(case: ConsolidationCase, group: MergedGroup, findings: Findings) -> bool:
    expected = case.expected
    for merge in expected.merges:
        if group.keys == frozenset(merge.memories):
            return not any(_check_merged(case, merge, group))
    allowed = [*(merge.memories for merge in expected.merges), *expected.may_merge]
    if any(group.keys <= set(keys) for keys in allowed):
        return True
    findings.wrong.append(f"merge of {_list(group.keys)}" + (f": {group.result.content}" if group.result else ""))
    return False


def _is_linked(keys: Sequence[str], linked: Sequence[frozenset[str]], findings: Findings) -> bool:
    if any(set(keys) <= group for group in linked):
        return True
    findings.missed.append(f"link of {_list(keys)}")
    return False


def _is_right_link(case: ConsolidationCase, keys: frozenset[str], findings: Findings) -> bool:
    if any(keys <= set(allowed) for allowed in [*case.expected.links, *case.expected.may_link]):
        return True
    findings.wrong.append(f"link of {_list(keys)}")
    return False


# Names, reports, quiet nights


def _check_names(case: ConsolidationCase, outcome: NightOutcome, findings: Findings) -> Iterable[bool]:
    for key, names in case.expected.names.items():
        has_now = _names_after(key, outcome)
        for name in names:
            if name_key(name) not in has_now:
                findings.missed.append(f"{key} is not known as {name}")
            yield name_key(name) in has_now


def _names_after(key: str, outcome: NightOutcome) -> set[str]:
    entity_id = find_entity(key, outcome)
    return {name_key(name) for name in outcome.entities_after[entity_id].names} if entity_id else set()


def _check_reports(case: ConsolidationCase, outcome: NightOutcome, findings: Findings) -> Iterable[bool]:
    for keys in case.expected.contradictions:
        ids = {outcome.memory_ids[key] for key in keys}
        is_reported = any(ids <= reported for reported in outcome.reported)
        if not is_reported:
            findings.missed.append(f"report that {_list(keys)} contradict one another")
        yield is_reported


def _check_closings(case: ConsolidationCase, outcome: NightOutcome, findings: Findings) -> Iterable[bool]:
    for key in case.expected.closes:
        is_closed = outcome.memory_ids[key] in outcome.closed
        if not is_closed:
            findings.missed.append(f"closing of {key}")
        yield is_closed


def _check_quiet_nights(case: ConsolidationCase, outcome: NightOutcome, findings: Findings) -> Iterable[bool]:
    quiet = ([0] if case.expected.unchanged else []) + ([1] if case.nights > 1 else [])
    for index in quiet:
        changes = outcome.change_counts[index]
        if changes:
            findings.wrong.append(f"night {index + 1} made {changes} changes")
        yield not changes


# Violations and losses


def _find_violations(
    case: ConsolidationCase, outcome: NightOutcome, groups: Sequence[MergedGroup], linked: Sequence[frozenset[str]]
) -> Iterable[str]:
    expected = case.expected
    for forbidden in expected.must_not_merge:
        for group in groups:
            if len(together := group.keys & set(forbidden.memories)) > 1:
                yield f"{_list(together)} were merged ({forbidden.why})"
    for keys in expected.contradictions:
        for group in groups:
            if group.keys & set(keys):
                yield f"{_list(group.keys & set(keys))} is contradicted and was merged"
    for link in expected.must_not_link:
        for group_keys in linked:
            if len(both := group_keys & set(link.entities)) > 1:
                yield f"{_list(both)} were linked ({link.why})"
    for key, names in expected.must_not_name.items():
        yield from (f"{key} is known as {name}" for name in names if name_key(name) in _names_after(key, outcome))
    for key in expected.must_not_profile:
        if outcome.entity_ids.get(key) in outcome.profiled:
            yield f"{key} has a profile"
    for key, memory in case.memories.items():
        if memory.immutable and _has_changed(key, outcome):
            yield f"{key} is immutable and was changed"
    for merge in expected.merges:
        for group in groups:
            if frozenset(merge.memories) <= group.keys:
                yield from _check_merged(case, merge, group)[1]


def _find_losses(case: ConsolidationCase, outcome: NightOutcome, groups: Sequence[MergedGroup]) -> Iterable[str]:
    for merge in case.expected.merges:
        for group in groups:
            if frozenset(merge.memories) <= group.keys:
                yield from _check_merged(case, merge, group)[0]
    merged = {key for group in groups for key in group.keys}
    for key in case.memories:
        is_closed = key in case.expected.closes and outcome.memory_ids[key] in outcome.closed
        if key not in merged and not is_closed and _has_changed(key, outcome):
            yield f"{key} was not merged and is no longer what it was: {case.memories[key].text}"
    for key in outcome.entity_ids:
        if find_entity(key, outcome) is None:
            yield f"the entity {key} is gone"
    yield from failed_reads(case.expected.reads, outcome.reads_after)
    yield from (f"rewritten in history: {text}" for text in outcome.rewritten)


def _has_changed(key: str, outcome: NightOutcome) -> bool:
    """Return whether a memory has another content, another validity or another status after the night."""
    memory_id = outcome.memory_ids[key]
    return outcome.after.get(memory_id) != outcome.before[memory_id]


def _metrics_of_failure(case: ConsolidationCase) -> ConsolidationMetrics:
    expected = case.expected
    return ConsolidationMetrics(
        merge_recall=Ratio(0, len(expected.merges)),
        link_recall=Ratio(0, len(expected.links)),
        names=Ratio(0, sum(map(len, expected.names.values()))),
        reports=Ratio(0, len(expected.contradictions)),
        closings=Ratio(0, len(expected.closes)),
    )


def _list(keys: Iterable[str]) -> str:
    return ", ".join(sorted(keys))


def _local(case: ConsolidationCase, instant: datetime | None) -> str:
    return instant.astimezone(case.zone).strftime("%Y-%m-%dT%H:%M") if instant else "an unknown time"
