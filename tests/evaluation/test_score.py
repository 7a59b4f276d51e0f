"""The scores of an evaluation, for results written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from quality.cases import EvaluationCase, load_cases, matches_any
from quality.date_mentions import falls_on, mentions_date
from quality.metrics import Ratio
from quality.results import BatchOutcome, CaseResult, ScoredMemory, summarize_costs
from quality.score import CaseScore, metrics_by_tag, score_case, sum_metrics

HOME = {
    "any": ["lives leipzig"],
    "subject": "user",
    "object": "leipzig",
    "type": ["fact"],
    "valid_at": "2025-04-05",
}
FORMER = {"any": ["lives hamburg"], "valid_at": "2019", "current": False}
LEFT = [{"old": ["lives hamburg"], "new": ["leipzig"]}]


def case(
    tags: tuple[str, ...] = ("move",), *, stored: Any = (), user_names: Any = (), **expected: Any
) -> EvaluationCase:
    message = {"role": "user", "content": "Hello"}
    sessions = [{"session_id": "s1", "messages": [message]}]
    given = {"stored": stored, "user_names": user_names, "sessions": sessions, "expected": expected}
    return EvaluationCase.model_validate({"id": "case-01", "tags": tags, **given})


def saved(content: str, **fields: Any) -> ScoredMemory:
    given: dict[str, Any] = {"id": content, "content": content, "type": "fact", "subject": "user", **fields}
    return ScoredMemory(**given)


def ended(content: str, **fields: Any) -> ScoredMemory:
    return saved(content, current=False, replaced=True, **fields)


def score_memories(case: EvaluationCase, *memories: ScoredMemory, batches: tuple[BatchOutcome, ...] = ()) -> CaseScore:
    return score_case(case, CaseResult(memories, batches))


@pytest.mark.parametrize(
    ("text", "pattern", "met"),
    [
        ("Ida moved to Leipzig", "leipzig moved", True),
        ("Ida liest auf KRAKÓW", "krakow", True),
        ("Ida is a person", "son", False),
        ("Ida is a vegan", "vegan cook", False),
        ("Ida does not smoke", "not smok", True),
        ("健太は京都に住んでいる。", "京都 住", True),
        ("志远住在Leipzig附近", "leipzig 住", True),
        ("健太は大阪に住んでいる。", "京都", False),
    ],
)
def test_a_pattern_matches_word_prefixes_in_any_order(text: str, pattern: str, met: bool) -> None:
    assert matches_any(text, [pattern]) is met


@pytest.mark.parametrize(
    ("sentence", "date"),
    [
        ("due on 20 June 2025", "2025-06-20"),
        ("due on June 20th, 2025", "2025-06-20"),
        ("am 5. März 2025", "2025-03-05"),
        ("el 21 de marzo de 2025", "2025-03-21"),
        ("am 05.03.2025", "2025-03-05"),
        ("on 2025-06-20 at noon", "2025-06-20"),
        ("in juillet 2025", "2025-07"),
        ("since 2019", "2019"),
        ("from 14 to 20 June 2025", "2025-06-14"),
        ("vom 14. bis 20. Juni 2025", "2025-06-14"),
        ("June 14–20, 2025", "2025-06-20"),
        ("em 4 de agosto de 2025", "2025-08-04"),
        ("2025年6月20日に", "2025-06-20"),
        ("12月20号", "2025-12-20"),
        ("2025年7月から", "2025-07"),
        ("in calendar week 48 of 2025", "2025-W48"),
        ("in KW 48", "2025-W48"),
        ("第48周", "2025-W48"),
        ("on 26 November 2025", "2025-W48"),
        ("on 1 July 2025", "2025-06-30|2025-07-01"),
    ],
)
def test_a_date_is_found_as_people_write_it(sentence: str, date: str) -> None:
    assert mentions_date(sentence, date)


def test_a_week_has_seven_days() -> None:
    days = [f"2025-11-{day}T09:00" for day in range(23, 31)]
    assert [falls_on(day, "2025-W48") for day in days] == [False] + 7 * [True]
    assert not falls_on(None, "2025-W48")
    assert not mentions_date("on 1 December 2025, in week 4", "2025-W48")


@pytest.mark.parametrize("sentence", ["due on 12 June 2025", "due on 2 May 2025", "due on 20 July 2025", "room 2"])
def test_another_date_is_not_taken_for_it(sentence: str) -> None:
    assert not mentions_date(sentence, "2025-06-02")


def test_a_perfect_case_has_full_scores() -> None:
    example = case(keep=[HOME, FORMER], supersedes=LEFT)
    new = saved("Ida lives in Leipzig", object="Leipzig", valid_at="2025-04-05T00:00")
    score = score_memories(example, new, ended("Ida lives in Hamburg", valid_at="2019-01-01T00:00"))
    metrics = score.metrics
    assert (score.missed, score.wrong) == ([], [])
    assert metrics.precision == metrics.recall == Ratio(2, 2)
    assert (metrics.entities, metrics.dates, metrics.types) == (Ratio(2, 2), Ratio(2, 2), Ratio(1, 1))
    assert (metrics.wrong_supersessions, metrics.missed_supersessions) == (Ratio(0, 1), Ratio(0, 1))


def test_a_missing_memory_lowers_recall_only() -> None:
    metrics = score_memories(case(keep=[HOME])).metrics
    assert (metrics.recall, metrics.precision, metrics.entities) == (Ratio(0, 1), Ratio(), Ratio())


def test_an_unexpected_memory_lowers_precision() -> None:
    example = case(keep=[HOME], allowed=[{"any": ["harbour"]}])
    metrics = score_memories(example, saved("Ida likes the harbour"), saved("Ida is a sailor")).metrics
    assert metrics.precision == Ratio(1, 2)


def test_a_forbidden_memory_counts_as_wrong_even_if_it_matches_an_expected_one() -> None:
    example = case(keep=[{"any": ["dog"]}], drop=[{"any": ["beagle"], "none": ["not"], "why": "corrected"}])
    score = score_memories(example, saved("The dog is a beagle"), saved("The dog is not a beagle"))
    assert score.metrics.precision == Ratio(1, 2)
    assert score.wrong == ["must not be kept (corrected): The dog is a beagle"]


def test_a_wrong_name_and_a_wrong_date_are_counted_apart() -> None:
    memory = saved("Ida lives in Leipzig", subject="Tom", object="Leipzig", valid_at="2025-04-07T00:00")
    metrics = score_memories(case(keep=[HOME]), memory).metrics
    assert (metrics.entities, metrics.dates, metrics.recall) == (Ratio(1, 2), Ratio(0, 1), Ratio(1, 1))


def test_the_best_matching_memory_counts_for_an_expected_one() -> None:
    vague = saved("Ida lives in Leipzig now")
    exact = saved("Ida lives in Leipzig", object="Leipzig", valid_at="2025-04-05T00:00")
    assert score_memories(case(keep=[HOME]), vague, exact).metrics.dates == Ratio(1, 1)


def test_the_day_of_a_plan_may_be_in_its_sentence() -> None:
    example = case(keep=[{"any": ["dentist"], "on": "2025-06-20"}])
    assert score_memories(example, saved("Ida sees the dentist on 20 June 2025")).metrics.dates == Ratio(1, 1)
    assert score_memories(example, saved("Ida sees the dentist", valid_at="2025-06-20T09:00")).metrics.dates == Ratio(
        1, 1
    )
    assert score_memories(example, saved("Ida sees the dentist on 21 June 2025")).metrics.dates == Ratio(0, 1)


def test_an_old_memory_still_current_is_a_missed_supersession() -> None:
    example = case(keep=[HOME], supersedes=LEFT)
    metrics = score_memories(example, saved("Ida lives in Leipzig"), saved("Ida lives in Hamburg")).metrics
    assert metrics.missed_supersessions == Ratio(1, 1)


def test_a_new_sentence_that_names_the_old_is_no_missed_supersession() -> None:
    example = case(supersedes=[{"old": ["lisbon"], "new": ["cancelled"]}])
    metrics = score_memories(
        example, saved("The trip to Lisbon is cancelled"), ended("A trip to Lisbon is booked")
    ).metrics
    assert metrics.missed_supersessions == Ratio(0, 1)


def test_a_memory_never_saved_is_no_missed_supersession() -> None:
    assert score_memories(case(supersedes=LEFT), saved("Ida lives in Leipzig")).metrics.missed_supersessions == Ratio()


def test_ending_a_true_memory_is_wrong_unless_a_current_one_repeats_it() -> None:
    example = case(keep=[{"any": ["coffee"]}], allowed=[{"any": ["tea"]}])
    lost = score_memories(example, ended("Ida loves coffee"), saved("Ida loves tea")).metrics
    assert (lost.wrong_supersessions, lost.recall) == (Ratio(1, 1), Ratio(0, 1))
    restated = score_memories(example, ended("Ida loves coffee"), saved("Ida loves black coffee")).metrics
    assert restated.wrong_supersessions == Ratio(0, 1)


def test_a_memory_with_a_stated_end_is_not_superseded() -> None:
    example = case(keep=[{"any": ["rome"], "current": None}])
    metrics = score_memories(example, saved("Ida lived in Rome from 2015 to 2019", current=False)).metrics
    assert (metrics.wrong_supersessions, metrics.recall) == (Ratio(), Ratio(1, 1))


def test_a_retracted_memory_is_neither_forbidden_nor_required() -> None:
    example = case(keep=[{"any": ["vinyl"], "current": None}], drop=[{"any": ["records"], "why": "taken back"}])
    score = score_memories(example, ended("Ida collects vinyl records", taken_back=True))
    assert (score.metrics.recall, score.metrics.precision) == (Ratio(0, 1), Ratio(1, 1))


STAY = {"memory": {"content": "Ida plays chess"}, "then": "stays", "restated": ["chess"]}
AGAIN = {**STAY, "then": "reinforced"}
OVER = {"memory": {"content": "Ida lives in Rome"}, "then": "ends", "until": "2025-05-01"}


def test_stored_memories_are_scored_by_what_must_become_of_them() -> None:
    example = case(stored=[OVER, STAY])
    rome, chess = saved("Ida lives in Rome", stored=0), saved("Ida plays chess", stored=1)
    idle = score_memories(example, rome, chess).metrics
    assert (idle.missed_supersessions, idle.wrong_supersessions) == (Ratio(1, 1), Ratio())
    left = ended("Ida lives in Rome", stored=0, invalid_at="2025-05-01T00:00")
    done = score_memories(example, left, chess).metrics
    assert (done.missed_supersessions, done.wrong_supersessions, done.dates) == (Ratio(0, 1), Ratio(0, 1), Ratio(1, 1))
    lost = score_memories(example, left, ended("Ida plays chess", stored=1)).metrics
    assert lost.wrong_supersessions == Ratio(1, 2)
    assert done.precision == done.recall == Ratio(), "what was there before was not saved from the conversation"


def test_a_stored_memory_may_be_replaced_by_one_that_says_more() -> None:
    example = case(stored=[STAY])
    better = score_memories(example, ended("Ida plays chess", stored=0), saved("Ida plays chess at a club"))
    assert (better.metrics.wrong_supersessions, better.metrics.precision) == (Ratio(0, 1), Ratio(1, 1))


@pytest.mark.parametrize(
    ("memories", "reinforced"),
    [
        ([saved("Ida plays chess", stored=0, reinforced=True)], 1),
        ([saved("Ida plays chess", stored=0)], 0),
        ([saved("Ida plays chess", stored=0, reinforced=True), saved("Ida is a chess player")], 0),
        ([ended("Ida plays chess", stored=0), saved("Ida plays chess at a club")], 1),
    ],
)
def test_what_is_said_again_is_strengthened_and_not_doubled(memories: list[ScoredMemory], reinforced: int) -> None:
    metrics = score_memories(case(stored=[AGAIN]), *memories).metrics
    assert metrics.reinforcements == Ratio(reinforced, 1)


def test_people_of_one_name_are_told_apart() -> None:
    sister = {"any": ["sister"], "referent": "sister"}
    colleague = {"any": ["colleague"], "referent": "colleague"}
    example = case(keep=[sister, colleague])
    texts = ("Ida's sister Anna sings", "Ida's colleague Anna cooks")
    apart = [saved(text, subject="Anna", subject_id=text) for text in texts]
    merged = [saved(text, subject="Anna", subject_id="anna") for text in texts]
    assert score_memories(example, *apart).metrics.entities == Ratio(3, 3)
    assert score_memories(example, *merged).wrong == ["not sister apart from colleague"]


def test_a_condition_is_no_entity_and_the_user_is_one() -> None:
    example = case(no_entities=["rain"], user_names=["Ida"])
    result = CaseResult([saved("Ida takes the bus if it rains", entities=("if it rains",))], user_entities=2)
    assert score_case(example, result).metrics.entities == Ratio(0, 2)


def test_language_and_domain_are_counted_apart() -> None:
    example = case(keep=[{"any": ["roux"], "language": "en", "domain": "cook|food"}])
    good = score_memories(example, saved("Ida starts every sauce with a roux", domain="cooking")).metrics
    assert (good.languages, good.domains) == (Ratio(1, 1), Ratio(1, 1))
    bad = score_memories(example, saved("Ida beginnt jede Sauce mit einer Roux", domain="software")).metrics
    assert (bad.recall, bad.languages, bad.domains) == (Ratio(1, 1), Ratio(0, 1), Ratio(0, 1))


def test_forbidden_statements_are_counted_by_entry() -> None:
    example = case(drop=[{"any": ["pin"], "why": "a secret"}, {"any": ["card"], "why": "a secret"}])
    metrics = score_memories(example, saved("Ida's card is blue"), saved("Ida's card is new")).metrics
    assert (metrics.forbidden, metrics.precision) == (Ratio(1, 2), Ratio(0, 2))


def test_a_case_is_skipped_when_all_its_batches_are() -> None:
    example = case(skip=True)
    skipped, read_ = BatchOutcome("skipped", 1), BatchOutcome("succeeded", 2)
    assert score_memories(example, batches=(skipped, skipped)).metrics.skips == Ratio(1, 1)
    assert score_memories(example, batches=(skipped, read_)).metrics.skips == Ratio(0, 1)


def test_metrics_add_up_in_total_and_by_tag() -> None:
    good = score_memories(case(("move", "dates"), keep=[HOME]), saved("Ida lives in Leipzig"))
    bad = score_memories(case(("move",), keep=[HOME]))
    assert sum_metrics([good, bad]).recall == Ratio(1, 2)
    assert {tag: metrics.recall for tag, metrics in metrics_by_tag([good, bad]).items()} == {
        "dates": Ratio(1, 1),
        "move": Ratio(1, 2),
    }


def test_cost_summary_has_most_calls_failures_and_median_overhead() -> None:
    batches = [
        BatchOutcome("skipped", 1, 10),
        BatchOutcome("succeeded", 2, 30),
        BatchOutcome("failed", 0, None, "no answer"),
    ]
    costs = summarize_costs(batches)
    assert (costs.most_calls, costs.most_calls_on_skip, costs.failed, costs.overhead_p50_ms) == (2, 1, 1, 20)


def test_the_conversations_are_many_distinct_and_of_every_kind() -> None:
    cases = load_cases()
    assert len(cases) >= 60
    assert len({case.id for case in cases}) == len(cases)
    tags = {tag for case in cases for tag in case.tags}
    assert tags >= {
        *("move", "job", "negation", "irony", "hypothetical", "correction", "plan-cancelled", "relative", "nickname"),
        *("third-party", "question", "secret", "chit-chat", "injection", "german", "swedish", "spanish", "french"),
    }


def test_no_conversation_forbids_what_it_expects() -> None:
    for case in load_cases():
        expected = case.expected
        for keep in expected.keep:
            assert any(
                keep.matches(text) and not any(drop.matches(text) for drop in expected.drop) for text in keep.any
            ), case.id
        assert not (expected.skip and (expected.keep or expected.supersedes)), case.id
