"""The scores of an evaluation of consolidation, for outcomes written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.consolidation.models import ConsolidationRun, ReportedContradiction
from quality.consolidation.cases import ConsolidationCase
from quality.consolidation.outcome import ExecutedMerge, NightOutcome, StoredEntity, StoredMemory
from quality.consolidation.report import render_markdown
from quality.consolidation.run_record import (
    describe_refusals,
    executed_merges,
    find_differences,
    reported_contradictions,
)
from quality.consolidation.score import NightScore, metrics_by, score_case, sum_metrics
from quality.metrics import Ratio

START = datetime(2020, 1, 1, tzinfo=UTC)
TEXTS = {"rows": "Ida rows.", "club": "Ida rows in the club Elbe 1890.", "bakes": "Ida bakes rye bread."}
ROWING = {"memories": ["rows", "club"], "keeps": ["row", "elbe 1890"], "lacks": ["bread"], "from": "2020-01-01"}


def case(entities: Mapping[str, str] | None = None, **expected: Any) -> ConsolidationCase:
    names = entities or {}
    memories: dict[str, Any] = {key: {"text": text, "from": "2020-01-01"} for key, text in TEXTS.items()}
    memories["bakes"]["mentions"] = list(names)
    return ConsolidationCase.model_validate(
        {
            "id": "en-example",
            "themes": ["completing", "link"],
            "why": "an example",
            "user": "ida",
            "entities": {key: {"name": name} for key, name in names.items()},
            "memories": memories,
            "expected": expected,
        }
    )


def quiet(example: ConsolidationCase) -> NightOutcome:
    """Return the outcome of a night that did nothing."""
    memories = {
        f"m-{key}": StoredMemory(f"m-{key}", memory.text, True, START) for key, memory in example.memories.items()
    }
    names = {"user": example.user, **{key: entity.name for key, entity in example.entities.items()}}
    entities = {f"e-{key}": StoredEntity(f"e-{key}", (name,)) for key, name in names.items()}
    reads = [[memory.content for memory in memories.values()]] * len(example.expected.reads)
    return NightOutcome(
        memory_ids={key: f"m-{key}" for key in example.memories},
        entity_ids={key: f"e-{key}" for key in names},
        before=memories,
        after=memories,
        entities_before=entities,
        entities_after=entities,
        reads_before=reads,
        reads_after=reads,
        change_counts=[0] * example.nights,
    )


def merged(outcome: NightOutcome, keys: Sequence[str], text: str, **fields: Any) -> NightOutcome:
    """Return an outcome in which memories also became one."""
    given: dict[str, Any] = {"id": f"r-{'-'.join(keys)}", "content": text, "valid_at": START, **fields}
    result = StoredMemory(**given)
    ids = tuple(outcome.memory_ids[key] for key in keys)
    ended = {key: replace(outcome.after[key], active=False, superseded_by=result.id) for key in ids}
    return replace(
        outcome,
        after={**outcome.after, **ended, result.id: result},
        merges=[*outcome.merges, ExecutedMerge(ids, result.id)],
        change_counts=[len(ids) + 1],
    )


def linked(outcome: NightOutcome, keep: str, merge: str) -> NightOutcome:
    """Return an outcome in which one entity also became part of another."""
    entities = dict(outcome.entities_after)
    gone = entities.pop(outcome.entity_ids[merge])
    kept = entities[outcome.entity_ids[keep]]
    entities[kept.id] = StoredEntity(kept.id, (*kept.names, *gone.names))
    return replace(outcome, entities_after=entities)


def run_with(*reviewed: dict[str, Any], status: str = "succeeded", reason: str | None = None) -> ConsolidationRun:
    return ConsolidationRun.model_validate(
        {
            "id": "run",
            "user_id": "ida",
            "status": status,
            "trigger": "on_demand",
            "reason": reason,
            "created_at": START,
            "proposals": reviewed,
        }
    )


def review(verdict: str, reason: str | None = None, result_id: str | None = None) -> dict[str, Any]:
    proposal = {"action": "MERGE", "memory_ids": ["m-rows", "m-club"], "content": "Ida rows."}
    return {"proposal": proposal, "verdict": verdict, "reason": reason, "result_id": result_id}


def test_a_right_merge_has_full_scores() -> None:
    example = case(merges=[ROWING])
    score = score_case(example, merged(quiet(example), ["rows", "club"], "Ida rows in the club Elbe 1890."))
    assert score.findings.all == []
    assert (score.metrics.merge_recall, score.metrics.merge_precision) == (Ratio(1, 1), Ratio(1, 1))
    assert (score.metrics.violations, score.metrics.losses, score.metrics.rollbacks) == (0, 0, Ratio(1, 1))


def test_a_merge_that_did_not_happen_lowers_recall_only() -> None:
    example = case(merges=[ROWING])
    metrics = score_case(example, quiet(example)).metrics
    assert (metrics.merge_recall, metrics.merge_precision) == (Ratio(0, 1), Ratio())
    assert (metrics.violations, metrics.losses) == (0, 0)


@pytest.mark.parametrize(
    ("text", "fields", "violations", "losses"),
    [
        ("Ida rows in a club.", {}, 0, 1),
        ("Ida rows in the club Elbe 1890 and bakes bread.", {}, 1, 0),
        ("Ida rows in the club Elbe 1890.", {"valid_at": None}, 1, 0),
        ("Ida rows in the club Elbe 1890.", {"invalid_at": datetime(2025, 1, 1, tzinfo=UTC)}, 1, 0),
        ("Ida rows in the club Elbe 1890.", {"active": False}, 0, 1),
    ],
)
def test_a_merge_with_a_wrong_text_or_validity_is_neither_found_nor_right(
    text: str, fields: dict[str, Any], violations: int, losses: int
) -> None:
    example = case(merges=[ROWING])
    metrics = score_case(example, merged(quiet(example), ["rows", "club"], text, **fields)).metrics
    assert (metrics.merge_recall, metrics.merge_precision) == (Ratio(0, 1), Ratio(0, 1))
    assert (metrics.violations, metrics.losses) == (violations, losses)


def test_a_time_that_is_not_judged_may_be_any() -> None:
    example = case(merges=[{**ROWING, "from": "any"}])
    outcome = merged(quiet(example), ["rows", "club"], "Ida rows in the club Elbe 1890.", valid_at=None)
    assert score_case(example, outcome).metrics.merge_recall == Ratio(1, 1)


def test_a_memory_that_another_one_replaced_counts_as_merged_into_it() -> None:
    example = case(merges=[ROWING])
    outcome = quiet(example)
    replaced = replace(outcome.after["m-rows"], active=False, superseded_by="m-club")
    score = score_case(example, replace(outcome, after={**outcome.after, "m-rows": replaced}))
    assert (score.metrics.merge_recall, score.findings.all) == (Ratio(1, 1), [])


def test_a_merge_that_nothing_allows_lowers_precision() -> None:
    example = case(merges=[ROWING])
    everything = merged(quiet(example), ["rows", "club", "bakes"], "Ida rows in the club Elbe 1890.")
    metrics = score_case(example, everything).metrics
    assert (metrics.merge_recall, metrics.merge_precision) == (Ratio(0, 1), Ratio(0, 1))


def test_an_allowed_merge_is_right_and_not_required() -> None:
    example = case(may_merge=[["rows", "club"]])
    assert score_case(example, quiet(example)).metrics.merge_recall == Ratio()
    done = score_case(example, merged(quiet(example), ["rows", "club"], "Ida rows in Elbe 1890."))
    assert (done.metrics.merge_precision, done.findings.all) == (Ratio(1, 1), [])


def test_a_part_of_an_expected_merge_is_right_but_does_not_complete_it() -> None:
    example = case(merges=[{"memories": ["rows", "club", "bakes"], "keeps": ["row", "bread"], "from": "2020-01-01"}])
    metrics = score_case(example, merged(quiet(example), ["rows", "club"], "Ida rows in Elbe 1890.")).metrics
    assert (metrics.merge_recall, metrics.merge_precision) == (Ratio(0, 1), Ratio(1, 1))


def test_a_forbidden_merge_is_a_violation() -> None:
    example = case(must_not_merge=[{"memories": ["rows", "bakes"], "why": "two hobbies"}])
    score = score_case(example, merged(quiet(example), ["rows", "bakes"], "Ida rows and bakes rye bread."))
    assert score.findings.violations == ["bakes, rows were merged (two hobbies)"]
    assert score.metrics.merge_precision == Ratio(0, 1)


def test_a_contradiction_must_be_reported_and_left_alone() -> None:
    example = case(contradictions=[["rows", "bakes"]])
    assert score_case(example, quiet(example)).metrics.reports == Ratio(0, 1)
    reported = replace(quiet(example), reported=[frozenset({"m-rows", "m-bakes"})])
    assert score_case(example, reported).metrics.reports == Ratio(1, 1)
    decided = merged(reported, ["rows", "bakes"], "Ida rows.")
    assert score_case(example, decided).metrics.violations == 1


def test_links_have_recall_precision_and_violations() -> None:
    names = {"liz": "Liz", "elizabeth": "Elizabeth Crane", "lisa": "Lisa"}
    example = case(
        names, links=[["elizabeth", "liz"]], must_not_link=[{"entities": ["liz", "lisa"], "why": "somebody else"}]
    )
    assert score_case(example, quiet(example)).metrics.link_recall == Ratio(0, 1)
    right = score_case(example, linked(quiet(example), "elizabeth", "liz"))
    assert (right.metrics.link_recall, right.metrics.link_precision) == (Ratio(1, 1), Ratio(1, 1))
    assert right.findings.all == []
    wrong = score_case(example, linked(quiet(example), "lisa", "liz"))
    assert (wrong.metrics.link_recall, wrong.metrics.link_precision) == (Ratio(0, 1), Ratio(0, 1))
    assert wrong.findings.violations == ["lisa, liz were linked (somebody else)"]


def test_names_are_found_on_the_entity_that_stands_for_another() -> None:
    example = case({"liz": "Liz"}, names={"user": ["LIZ"]}, must_not_name={"user": ["Boss"]})
    assert score_case(example, quiet(example)).metrics.names == Ratio(0, 1)
    outcome = linked(quiet(example), "user", "liz")
    assert score_case(example, outcome).metrics.names == Ratio(1, 1)
    bossy = {"e-user": StoredEntity("e-user", ("ida", "Liz", "boss"))}
    assert score_case(example, replace(outcome, entities_after=bossy)).findings.violations == ["user is known as Boss"]


def test_what_was_true_before_the_night_and_is_no_longer_is_a_loss() -> None:
    example = case({"oar": "Oar"}, reads=[{"at": "2021-01-01", "says": ["rye bread"], "never": ["wheat"]}])
    outcome = quiet(example)
    ended = replace(outcome.after["m-bakes"], active=False)
    score = score_case(
        example,
        replace(
            outcome,
            after={**outcome.after, "m-bakes": ended},
            entities_after={"e-user": outcome.entities_after["e-user"]},
            reads_after=[["Ida bakes wheat bread."]],
            rewritten=["m-rows"],
        ),
    )
    assert score.findings.losses == [
        "bakes was not merged and is no longer what it was: Ida bakes rye bread.",
        "the entity oar is gone",
        "a read as of 2021-01-01 no longer says 'rye bread'",
        "a read as of 2021-01-01 says 'Ida bakes wheat bread.'",
        "rewritten in history: m-rows",
    ]


def test_an_immutable_memory_may_not_change() -> None:
    example = case()
    fixed = {**example.memories, "rows": example.memories["rows"].model_copy(update={"immutable": True})}
    example = example.model_copy(update={"memories": fixed})
    score = score_case(example, merged(quiet(example), ["rows", "club"], "Ida rows in Elbe 1890."))
    assert score.findings.violations == ["rows is immutable and was changed"]


def test_a_night_that_must_change_nothing_is_quiet_only_without_changes() -> None:
    example = case(unchanged=True).model_copy(update={"nights": 2})
    assert score_case(example, quiet(example)).metrics.quiet_nights == Ratio(2, 2)
    busy = replace(quiet(example), change_counts=[0, 3])
    assert score_case(example, busy).metrics.quiet_nights == Ratio(1, 2)


def test_a_rollback_that_leaves_a_difference_is_not_exact() -> None:
    example = case()
    score = score_case(example, replace(quiet(example), rollback_differences=["/memories/0/vector"]))
    assert (score.metrics.rollbacks, score.findings.wrong) == (Ratio(0, 1), ["not rolled back: /memories/0/vector"])


def test_a_failed_night_has_found_nothing_and_is_reported() -> None:
    example = case(merges=[ROWING], contradictions=[["rows", "bakes"]])
    score = score_case(example, NightOutcome(error="no completion is recorded"))
    assert (score.metrics.merge_recall, score.metrics.reports) == (Ratio(0, 1), Ratio(0, 1))
    assert (score.metrics.merge_precision, score.metrics.rollbacks) == (Ratio(), Ratio())
    assert "failed: no completion is recorded" in render_markdown([score])


def test_metrics_add_up_in_total_and_by_label() -> None:
    example = case(merges=[ROWING])
    scores: list[NightScore] = [
        score_case(example, quiet(example)),
        score_case(example, merged(quiet(example), ["rows", "club"], "Ida rows in the club Elbe 1890.")),
    ]
    assert sum_metrics(scores).merge_recall == Ratio(1, 2)
    assert metrics_by(scores, lambda case: case.themes)["completing"].merge_recall == Ratio(1, 2)
    assert "| en | 1/2 | 1/1 |" in render_markdown(scores, details=False)


def test_the_record_of_a_run_names_its_merges_contradictions_and_refusals() -> None:
    run = run_with(
        review("executed", result_id="m-new"),
        review("refused", "the memories contradict one another: not"),
        review("refused", "the memories are of different scopes"),
    ).model_copy(update={"contradictions": [ReportedContradiction(memory_ids=["m-rows", "m-club"])]})
    assert executed_merges(run) == [ExecutedMerge(("m-rows", "m-club"), "m-new")]
    assert reported_contradictions(run) == [frozenset({"m-rows", "m-club"})]
    assert len(describe_refusals(run)) == 2
    assert describe_refusals(run_with(status="aborted", reason="too much")) == ["aborted: too much"]


def test_differences_between_exports_are_named_by_their_paths() -> None:
    before = {"memories": [{"fact": "a", "consolidated_at": None}], "links": []}
    after = {"memories": [{"fact": "b", "consolidated_at": "now"}], "links": [1]}
    assert find_differences(before, after) == ["/links", "/memories/0/consolidated_at", "/memories/0/fact"]
    assert find_differences(before, after, frozenset({"consolidated_at"})) == ["/links", "/memories/0/fact"]
    assert find_differences(before, before) == []
