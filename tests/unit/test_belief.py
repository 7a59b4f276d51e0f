"""The rule table of graphmem/README.md, rule by rule, without a database."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from graphmem.domain.belief import Ledger
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryType, Scope, Status
from graphmem.domain.times import BEGINNING
from graphmem.errors import Conflict, ImmutableMemory, InvalidInput, NotFound, VersionConflict

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def lives_in(place: str, valid_at: datetime | None = None, **given: object) -> Fact:
    fact = Fact(
        uuid=str(uuid.uuid4()),
        memory_id=place,
        version=1,
        group_id="default:mara",
        subject_id="mara",
        predicate="LIVES_IN",
        content=f"Mara lives in {place}",
        content_hash=place,
        type=MemoryType.FACT,
        scope=Scope.PROFILE,
        created_at=NOW,
        first_created_at=NOW,
        updated_at=NOW,
        decay_rate=0.01,
        valid_at=valid_at,
        single_valued=True,
    )
    return replace(fact, **given)


class Story:
    """A ledger whose latest facts can be asked for by place."""

    def __init__(self) -> None:
        self.ledger = Ledger([], NOW)

    def tell(self, *facts: Fact) -> Story:
        for fact in facts:
            self.ledger.save(fact)
        return self

    def __getitem__(self, place: str) -> Fact:
        return self.ledger._latest[place]

    def where(self, moment: datetime) -> list[str]:
        return [fact.memory_id for fact in self.ledger._latest.values() if fact.holds_at(moment)]


@pytest.mark.req("UMB-18", "GO-07")
def test_a_newer_value_closes_the_older_at_its_own_valid_time():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    assert story["Lund"].invalid_at == year(2024)
    assert story["Lund"].superseded_by == "Malmö"
    assert story["Malmö"].supersedes == ("Lund",)
    assert story.where(year(2021)) == ["Lund"]
    assert story.where(NOW) == ["Malmö"]


@pytest.mark.req("QUINN-23")
def test_the_old_belief_stays_as_it_was_and_a_new_version_says_when_it_ended():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    versions = [fact for fact in story.ledger.created.values() if fact.memory_id == "Lund"]
    old, new = sorted(versions, key=lambda fact: fact.version)
    assert (old.invalid_at, old.expired_at, old.ended_reason) == (None, new.created_at, "superseded")
    assert (new.invalid_at, new.expired_at) == (year(2024), None)


def test_a_late_arrival_takes_its_place_in_history_and_the_current_stays_current():
    story = Story().tell(lives_in("Malmö", year(2024)), lives_in("Lund", year(2020)), lives_in("Ystad", year(2022)))
    assert story.where(year(2021)) == ["Lund"]
    assert story.where(year(2023)) == ["Ystad"]
    assert story.where(NOW) == ["Malmö"]
    assert story["Ystad"].status is Status.SUPERSEDED


def test_of_equal_valid_times_the_later_arrival_wins():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Malmö", year(2020)))
    assert story["Lund"].never_valid
    assert story.where(year(2020)) == ["Malmö"]


def test_values_without_a_time_follow_one_another_as_they_are_told():
    story = Story().tell(lives_in("Lund"), lives_in("Malmö"))
    assert story["Lund"].valid_from == BEGINNING
    assert story["Malmö"].valid_at == story["Lund"].invalid_at == story["Malmö"].created_at
    assert story.where(NOW + timedelta(days=1)) == ["Malmö"]


def test_a_value_without_a_time_counts_from_when_it_was_told_against_an_earlier_one():
    story = Story().tell(lives_in("Malmö"), lives_in("Lund", year(2020)))
    assert story.where(year(2021)) == ["Lund"]
    assert story.where(NOW + timedelta(days=1)) == ["Malmö"]
    assert story["Malmö"].valid_at == story["Lund"].invalid_at


def test_a_future_value_waits_for_its_time():
    story = Story().tell(lives_in("Malmö", year(2024)), lives_in("Oslo", year(2030)))
    assert story.where(NOW + timedelta(days=1)) == ["Malmö"]
    assert story["Malmö"].status_at(NOW + timedelta(days=1)) is Status.ACTIVE
    assert story["Malmö"].status_at(year(2031)) is Status.SUPERSEDED
    assert story.where(year(2031)) == ["Oslo"]


@pytest.mark.req("CASH-15")
def test_the_same_statement_again_is_no_second_fact_but_makes_the_first_surer():
    story = Story().tell(lives_in("Lund", confidence=0.7, message_ids=("a",)))
    outcome = story.ledger.save(replace(lives_in("Lund", confidence=0.8, message_ids=("b",)), memory_id="again"))
    assert outcome.action == "reinforce"
    assert outcome.fact.memory_id == "Lund"
    assert outcome.fact.confidence > 0.8
    assert outcome.fact.message_ids == ("a", "b")
    assert len(story.ledger.created) == 1


def test_a_statement_that_held_before_may_hold_again():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Malmö", year(2022)))
    outcome = story.ledger.save(replace(lives_in("Lund", year(2024)), memory_id="back in Lund"))
    assert outcome.action == "supersede"
    assert story.where(NOW) == ["back in Lund"]
    assert story.where(year(2021)) == ["Lund"]


def test_a_statement_told_for_a_future_and_for_now_holds_only_once_then():
    story = Story().tell(lives_in("Oslo", year(2030), single_valued=False))
    story.ledger.save(replace(lives_in("Oslo", single_valued=False), memory_id="now"))
    assert story.where(year(2031)) == ["Oslo"]
    assert story.where(NOW + timedelta(days=1)) == ["now"]


def test_superseding_by_id_ends_the_named_memory_and_refuses_one_that_ended_before():
    story = Story().tell(lives_in("Lund", single_valued=False))
    outcome = story.ledger.save(lives_in("Malmö", year(2024), single_valued=False), ["Lund"])
    assert outcome.superseded == ("Lund",)
    with pytest.raises(Conflict, match="already superseded"):
        story.ledger.save(lives_in("Oslo", single_valued=False), ["Lund"])
    with pytest.raises(NotFound):
        story.ledger.save(lives_in("Oslo", single_valued=False), ["unknown"])


@pytest.mark.req("QUINN-21")
def test_nothing_but_erasure_reaches_an_immutable_memory():
    story = Story().tell(lives_in("Lund", year(2020), immutable=True))
    for change in (
        lambda ledger: ledger.save(lives_in("Malmö", year(2024))),
        lambda ledger: ledger.save(lives_in("Malmö", single_valued=False), ["Lund"]),
        lambda ledger: ledger.amend("Lund", {"importance": 1.0}),
        lambda ledger: ledger.delete("Lund"),
        lambda ledger: ledger.retire("Lund", "merged", "x", Status.SUPERSEDED),
    ):
        with pytest.raises(ImmutableMemory):
            change(story.ledger)
    assert story.where(NOW) == ["Lund"]


def test_a_revert_reopens_the_memory_and_retires_what_replaced_it():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    story.ledger.revert("Lund")
    assert story.where(NOW) == ["Lund"]
    assert story["Malmö"].retired
    assert story["Malmö"].superseded_by == "Lund"
    with pytest.raises(Conflict, match="not superseded"):
        story.ledger.revert("Lund")


def test_a_revert_is_refused_while_the_replacement_was_replaced_itself():
    story = Story().tell(lives_in("Lund", year(2020)), lives_in("Ystad", year(2022)), lives_in("Malmö", year(2024)))
    with pytest.raises(Conflict, match="revert Ystad first"):
        story.ledger.revert("Lund")
    story.ledger.revert("Ystad")
    story.ledger.revert("Lund")
    assert story.where(NOW) == ["Lund"]


def test_a_revert_keeps_the_end_its_writer_gave():
    story = Story().tell(lives_in("Lund", year(2020), invalid_at=year(2027), claimed_invalid_at=year(2027)))
    story.tell(lives_in("Malmö", year(2024)))
    assert story.ledger.revert("Lund").invalid_at == year(2027)


def test_a_correction_is_refused_for_a_stale_version_and_for_times_that_disagree():
    story = Story().tell(lives_in("Lund", year(2020)))
    story.ledger.amend("Lund", {"importance": 0.9}, if_version=1)
    with pytest.raises(VersionConflict, match="latest is 2"):
        story.ledger.amend("Lund", {"importance": 0.1}, if_version=1)
    with pytest.raises(InvalidInput):
        story.ledger.amend("Lund", {"invalid_at": year(2019)})


@pytest.mark.req("QUINN-25")
def test_a_deleted_memory_is_ended_not_dropped():
    story = Story().tell(lives_in("Lund", year(2020)))
    ended = story.ledger.delete("Lund")
    assert ended.status_at(NOW) is Status.DELETED
    assert ended.expired_at is not None
    assert ended.active_hash is None


def test_a_lapsed_fact_gives_its_key_to_the_next_of_the_same_words():
    lapsed = replace(lives_in("Lund", year(2020), invalid_at=year(2025)), active_hash="Lund:mara")
    ledger = Ledger([lapsed], NOW)
    outcome = ledger.save(replace(lives_in("Lund", year(2026)), memory_id="again"))
    assert outcome.fact.active_hash == "Lund:mara"
    assert ledger.changed[lapsed.uuid].active_hash is None
