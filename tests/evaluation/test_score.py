"""The scores of an evaluation, on results written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.cases import Case, read, says
from evaluation.dates import names_date
from evaluation.score import Batch, Kept, Result, Share, Verdict, by_tag, costs, judge, total

HOME = {
    "any": ["lives leipzig"],
    "subject": "user",
    "object": "leipzig",
    "type": ["fact"],
    "valid_at": "2025-04-05",
}
FORMER = {"any": ["lives hamburg"], "valid_at": "2019", "current": False}
LEFT = [{"old": ["lives hamburg"], "new": ["leipzig"]}]


def case(tags: tuple[str, ...] = ("move",), **expected: Any) -> Case:
    message = {"role": "user", "content": "Hello"}
    sessions = [{"session_id": "s1", "messages": [message]}]
    return Case.model_validate({"id": "case-01", "tags": tags, "sessions": sessions, "expected": expected})


def kept(content: str, **fields: Any) -> Kept:
    return Kept(**{"id": content, "content": content, "type": "fact", "subject": "user", **fields})


def ended(content: str, **fields: Any) -> Kept:
    return kept(content, current=False, replaced=True, **fields)


def judged(wanted: Case, *memories: Kept, batches: tuple[Batch, ...] = ()) -> Verdict:
    return judge(wanted, Result(memories, batches))


@pytest.mark.parametrize(
    ("text", "pattern", "met"),
    [
        ("Ida moved to Leipzig", "leipzig moved", True),
        ("Ida liest auf KRAKÓW", "krakow", True),
        ("Ida is a person", "son", False),
        ("Ida is a vegan", "vegan cook", False),
        ("Ida does not smoke", "not smok", True),
    ],
)
def test_a_pattern_is_met_by_the_beginnings_of_its_words_in_any_order(text: str, pattern: str, met: bool) -> None:
    assert says(text, [pattern]) is met


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
    ],
)
def test_a_date_is_found_as_people_write_it(sentence: str, date: str) -> None:
    assert names_date(sentence, date)


@pytest.mark.parametrize("sentence", ["due on 12 June 2025", "due on 2 May 2025", "due on 20 July 2025", "room 2"])
def test_another_date_is_not_taken_for_it(sentence: str) -> None:
    assert not names_date(sentence, "2025-06-02")


def test_a_case_as_expected_has_full_marks() -> None:
    wanted = case(keep=[HOME, FORMER], supersedes=LEFT)
    new = kept("Ida lives in Leipzig", object="Leipzig", valid_at="2025-04-05T00:00")
    verdict = judged(wanted, new, ended("Ida lives in Hamburg", valid_at="2019-01-01T00:00"))
    figures = verdict.figures
    assert (verdict.missed, verdict.wrong) == ([], [])
    assert figures.precision == figures.recall == Share(2, 2)
    assert (figures.entities, figures.dates, figures.types) == (Share(2, 2), Share(2, 2), Share(1, 1))
    assert (figures.wrong_supersessions, figures.missed_supersessions) == (Share(0, 1), Share(0, 1))


def test_what_is_missing_lowers_recall_only() -> None:
    figures = judged(case(keep=[HOME])).figures
    assert (figures.recall, figures.precision, figures.entities) == (Share(0, 1), Share(), Share())


def test_what_is_neither_expected_nor_allowed_lowers_precision() -> None:
    wanted = case(keep=[HOME], allowed=[{"any": ["harbour"]}])
    figures = judged(wanted, kept("Ida likes the harbour"), kept("Ida is a sailor")).figures
    assert figures.precision == Share(1, 2)


def test_what_must_not_be_kept_is_wrong_even_where_it_looks_expected() -> None:
    wanted = case(keep=[{"any": ["dog"]}], drop=[{"any": ["beagle"], "none": ["not"], "why": "corrected"}])
    verdict = judged(wanted, kept("The dog is a beagle"), kept("The dog is not a beagle"))
    assert verdict.figures.precision == Share(1, 2)
    assert verdict.wrong == ["must not be kept (corrected): The dog is a beagle"]


def test_a_wrong_name_and_a_wrong_date_are_counted_apart() -> None:
    memory = kept("Ida lives in Leipzig", subject="Tom", object="Leipzig", valid_at="2025-04-07T00:00")
    figures = judged(case(keep=[HOME]), memory).figures
    assert (figures.entities, figures.dates, figures.recall) == (Share(1, 2), Share(0, 1), Share(1, 1))


def test_of_several_memories_that_meet_an_entry_the_best_counts() -> None:
    vague = kept("Ida lives in Leipzig now")
    exact = kept("Ida lives in Leipzig", object="Leipzig", valid_at="2025-04-05T00:00")
    assert judged(case(keep=[HOME]), vague, exact).figures.dates == Share(1, 1)


def test_the_day_of_a_plan_may_stand_in_its_sentence() -> None:
    wanted = case(keep=[{"any": ["dentist"], "on": "2025-06-20"}])
    assert judged(wanted, kept("Ida sees the dentist on 20 June 2025")).figures.dates == Share(1, 1)
    assert judged(wanted, kept("Ida sees the dentist", valid_at="2025-06-20T09:00")).figures.dates == Share(1, 1)
    assert judged(wanted, kept("Ida sees the dentist on 21 June 2025")).figures.dates == Share(0, 1)


def test_what_still_holds_beside_its_successor_is_a_missed_supersession() -> None:
    wanted = case(keep=[HOME], supersedes=LEFT)
    figures = judged(wanted, kept("Ida lives in Leipzig"), kept("Ida lives in Hamburg")).figures
    assert figures.missed_supersessions == Share(1, 1)


def test_the_old_named_in_the_new_sentence_is_no_missed_supersession() -> None:
    wanted = case(supersedes=[{"old": ["lisbon"], "new": ["cancelled"]}])
    figures = judged(wanted, kept("The trip to Lisbon is cancelled"), ended("A trip to Lisbon is booked")).figures
    assert figures.missed_supersessions == Share(0, 1)


def test_what_was_never_kept_cannot_be_missed_as_a_supersession() -> None:
    assert judged(case(supersedes=LEFT), kept("Ida lives in Leipzig")).figures.missed_supersessions == Share()


def test_ending_what_holds_is_a_wrong_supersession_unless_something_current_says_it() -> None:
    wanted = case(keep=[{"any": ["coffee"]}], allowed=[{"any": ["tea"]}])
    lost = judged(wanted, ended("Ida loves coffee"), kept("Ida loves tea")).figures
    assert (lost.wrong_supersessions, lost.recall) == (Share(1, 1), Share(0, 1))
    restated = judged(wanted, ended("Ida loves coffee"), kept("Ida loves black coffee")).figures
    assert restated.wrong_supersessions == Share(0, 1)


def test_a_memory_whose_own_end_was_told_is_not_superseded() -> None:
    wanted = case(keep=[{"any": ["rome"], "current": None}])
    figures = judged(wanted, kept("Ida lived in Rome from 2015 to 2019", current=False)).figures
    assert (figures.wrong_supersessions, figures.recall) == (Share(), Share(1, 1))


def test_what_was_taken_back_is_neither_dropped_nor_met() -> None:
    wanted = case(keep=[{"any": ["vinyl"], "current": None}], drop=[{"any": ["records"], "why": "taken back"}])
    verdict = judged(wanted, ended("Ida collects vinyl records", taken_back=True))
    assert (verdict.figures.recall, verdict.figures.precision) == (Share(0, 1), Share(1, 1))


def test_a_skip_must_be_that_of_every_batch() -> None:
    wanted = case(skip=True)
    skipped, read_ = Batch("skipped", 1), Batch("succeeded", 2)
    assert judged(wanted, batches=(skipped, skipped)).figures.skips == Share(1, 1)
    assert judged(wanted, batches=(skipped, read_)).figures.skips == Share(0, 1)


def test_figures_add_up_in_all_and_by_tag() -> None:
    good = judged(case(("move", "dates"), keep=[HOME]), kept("Ida lives in Leipzig"))
    bad = judged(case(("move",), keep=[HOME]))
    assert total([good, bad]).recall == Share(1, 2)
    assert {tag: figures.recall for tag, figures in by_tag([good, bad]).items()} == {
        "dates": Share(1, 1),
        "move": Share(1, 2),
    }


def test_costs_tell_the_most_calls_the_failures_and_the_middle_overhead() -> None:
    batches = [Batch("skipped", 1, 10), Batch("succeeded", 2, 30), Batch("failed", 0, None, "no answer")]
    told = costs(batches)
    assert (told.most_calls, told.most_calls_on_skip, told.failed, told.overhead_p50_ms) == (2, 1, 1, 20)


def test_the_conversations_are_many_distinct_and_of_every_kind() -> None:
    cases = read()
    assert len(cases) >= 60
    assert len({each.id for each in cases}) == len(cases)
    tags = {tag for each in cases for tag in each.tags}
    assert tags >= {
        *("move", "job", "negation", "irony", "hypothetical", "correction", "plan-cancelled", "relative", "nickname"),
        *("third-party", "question", "secret", "chit-chat", "injection", "german", "swedish", "spanish", "french"),
    }


def test_no_conversation_forbids_what_it_expects() -> None:
    for each in read():
        wanted = each.expected
        for keep in wanted.keep:
            assert any(keep.is_in(text) and not any(drop.is_in(text) for drop in wanted.drop) for text in keep.any)
        if wanted.skip:
            assert not wanted.keep
            assert not wanted.supersedes
