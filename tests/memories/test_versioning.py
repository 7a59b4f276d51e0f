"""The rules of versioning in graphmem/README.md, one by one, without a database."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.memories.fact import Fact
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryPatch, MemoryStatus, MemoryType, Scope
from graphmem.runtime.errors import (
    Conflict,
    ImmutableMemory,
    InvalidInput,
    NotFound,
    VersionConflict,
)
from graphmem.runtime.times import MIN_TIME

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def lives_in(place: str, valid_at: datetime | None = None, **changes: Any) -> Fact:
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
    return replace(fact, **changes)


LUND = lives_in("Lund").dedup_key


class LedgerScenario:
    """A ledger whose latest facts are read by place."""

    def __init__(self) -> None:
        self.ledger = Ledger([], NOW)

    def save_all(self, *facts: Fact) -> LedgerScenario:
        for fact in facts:
            self.ledger.save(fact)
        return self

    def __getitem__(self, place: str) -> Fact:
        return self.ledger.latest[place]

    def valid_ids_at(self, instant: datetime) -> list[str]:
        return [fact.memory_id for fact in self.ledger.latest.values() if fact.is_valid_at(instant)]


@pytest.mark.req("UMB-18", "GO-07")
def test_newer_value_closes_older_at_its_valid_time() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    assert scenario["Lund"].invalid_at == year(2024)
    assert scenario["Lund"].superseded_by == "Malmö"
    assert scenario["Malmö"].supersedes == ("Lund",)
    assert scenario.valid_ids_at(year(2021)) == ["Lund"]
    assert scenario.valid_ids_at(NOW) == ["Malmö"]


@pytest.mark.req("QUINN-23")
def test_supersession_keeps_the_old_version_and_adds_one_with_the_end() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    versions = [fact for fact in scenario.ledger.created.values() if fact.memory_id == "Lund"]
    old, new = sorted(versions, key=lambda fact: fact.version)
    assert (old.invalid_at, old.expired_at, old.ended_reason) == (None, new.created_at, "superseded")
    assert (new.invalid_at, new.expired_at) == (year(2024), None)


def test_late_arrival_is_inserted_into_history_without_changing_current() -> None:
    scenario = LedgerScenario().save_all(
        lives_in("Malmö", year(2024)), lives_in("Lund", year(2020)), lives_in("Ystad", year(2022))
    )
    assert scenario.valid_ids_at(year(2021)) == ["Lund"]
    assert scenario.valid_ids_at(year(2023)) == ["Ystad"]
    assert scenario.valid_ids_at(NOW) == ["Malmö"]
    assert scenario["Ystad"].status is MemoryStatus.SUPERSEDED


def test_equal_valid_times_let_the_later_arrival_win() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2020)))
    assert scenario["Lund"].is_never_valid
    assert scenario.valid_ids_at(year(2020)) == ["Malmö"]


def test_undated_values_supersede_in_arrival_order() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund"), lives_in("Malmö"))
    assert scenario["Lund"].valid_from == MIN_TIME
    assert scenario["Malmö"].valid_at == scenario["Lund"].invalid_at == scenario["Malmö"].created_at
    assert scenario.valid_ids_at(NOW + timedelta(days=1)) == ["Malmö"]


def test_undated_value_starts_at_its_known_time_when_an_earlier_one_arrives() -> None:
    scenario = LedgerScenario().save_all(lives_in("Malmö"), lives_in("Lund", year(2020)))
    assert scenario.valid_ids_at(year(2021)) == ["Lund"]
    assert scenario.valid_ids_at(NOW + timedelta(days=1)) == ["Malmö"]
    assert scenario["Malmö"].valid_at == scenario["Lund"].invalid_at


def test_future_value_is_not_current_before_its_valid_time() -> None:
    scenario = LedgerScenario().save_all(lives_in("Malmö", year(2024)), lives_in("Oslo", year(2030)))
    assert scenario.valid_ids_at(NOW + timedelta(days=1)) == ["Malmö"]
    assert scenario["Malmö"].status_at(NOW + timedelta(days=1)) is MemoryStatus.ACTIVE
    assert scenario["Malmö"].status_at(year(2031)) is MemoryStatus.SUPERSEDED
    assert scenario.valid_ids_at(year(2031)) == ["Oslo"]


@pytest.mark.req("CASH-15")
def test_repeated_statement_reinforces_the_existing_fact() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", confidence=0.7, message_ids=("a",)))
    outcome = scenario.ledger.save(replace(lives_in("Lund", confidence=0.8, message_ids=("b",)), memory_id="again"))
    assert outcome.action == "reinforce"
    assert outcome.fact.memory_id == "Lund"
    assert outcome.fact.confidence > 0.8
    assert outcome.fact.message_ids == ("a", "b")
    assert len(scenario.ledger.created) == 1


def test_a_past_statement_can_become_valid_again() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2022)))
    outcome = scenario.ledger.save(replace(lives_in("Lund", year(2024)), memory_id="back in Lund"))
    assert outcome.action == "supersede"
    assert scenario.valid_ids_at(NOW) == ["back in Lund"]
    assert scenario.valid_ids_at(year(2021)) == ["Lund"]


def test_same_statement_for_now_and_future_never_holds_twice() -> None:
    scenario = LedgerScenario().save_all(lives_in("Oslo", year(2030), single_valued=False))
    scenario.ledger.save(replace(lives_in("Oslo", single_valued=False), memory_id="now"))
    assert scenario.valid_ids_at(year(2031)) == ["Oslo"]
    assert scenario.valid_ids_at(NOW + timedelta(days=1)) == ["now"]


def test_supersedes_closes_the_named_memory_and_rejects_a_superseded_one() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", single_valued=False))
    outcome = scenario.ledger.save(lives_in("Malmö", year(2024), single_valued=False), ["Lund"])
    assert outcome.superseded == ("Lund",)
    with pytest.raises(Conflict, match="already superseded"):
        scenario.ledger.save(lives_in("Oslo", single_valued=False), ["Lund"])
    with pytest.raises(NotFound):
        scenario.ledger.save(lives_in("Oslo", single_valued=False), ["unknown"])


def test_a_superseded_memory_ends_at_its_own_time_where_one_is_given() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020), single_valued=False))
    scenario.ledger.save(lives_in("Malmö", year(2028)), ["Lund"], ends={"Lund": year(2027)})
    assert (scenario["Lund"].valid_at, scenario["Lund"].invalid_at) == (year(2020), year(2027))
    assert scenario["Malmö"].valid_at == year(2028)
    assert scenario["Lund"].status_at(NOW) is MemoryStatus.ACTIVE


def test_a_value_that_ended_before_the_next_one_starts_keeps_its_unknown_start() -> None:
    told_late = lives_in("Lund", invalid_at=year(2021))
    scenario = LedgerScenario().save_all(told_late, lives_in("Malmö", year(2022)))
    assert (scenario["Lund"].valid_at, scenario["Lund"].invalid_at) == (None, year(2021))
    assert (scenario["Malmö"].valid_at, scenario["Malmö"].invalid_at) == (year(2022), None)


@pytest.mark.req("QUINN-21")
def test_immutable_memory_rejects_every_change() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020), immutable=True))
    changes: list[Callable[[Ledger], object]] = [
        lambda ledger: ledger.save(lives_in("Malmö", year(2024))),
        lambda ledger: ledger.save(lives_in("Malmö", single_valued=False), ["Lund"]),
        lambda ledger: ledger.amend("Lund", MemoryPatch(importance=1.0)),
        lambda ledger: ledger.delete("Lund"),
        lambda ledger: ledger.retire("Lund", "merged", "x", MemoryStatus.SUPERSEDED),
    ]
    for change in changes:
        with pytest.raises(ImmutableMemory):
            change(scenario.ledger)
    assert scenario.valid_ids_at(NOW) == ["Lund"]


def test_revert_reopens_the_memory_and_retires_its_replacement() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    scenario.ledger.revert("Lund")
    assert scenario.valid_ids_at(NOW) == ["Lund"]
    assert scenario["Malmö"].retired
    assert scenario["Malmö"].superseded_by == "Lund"
    with pytest.raises(Conflict, match="not superseded"):
        scenario.ledger.revert("Lund")


def test_revert_is_rejected_while_the_replacement_is_superseded() -> None:
    scenario = LedgerScenario().save_all(
        lives_in("Lund", year(2020)), lives_in("Ystad", year(2022)), lives_in("Malmö", year(2024))
    )
    with pytest.raises(Conflict, match="revert Ystad first"):
        scenario.ledger.revert("Lund")
    scenario.ledger.revert("Ystad")
    scenario.ledger.revert("Lund")
    assert scenario.valid_ids_at(NOW) == ["Lund"]


def test_revert_keeps_the_claimed_end() -> None:
    scenario = LedgerScenario().save_all(
        lives_in("Lund", year(2020), invalid_at=year(2027), claimed_invalid_at=year(2027))
    )
    scenario.save_all(lives_in("Malmö", year(2024)))
    assert scenario.ledger.revert("Lund").invalid_at == year(2027)


def test_amend_rejects_a_stale_version_and_an_end_before_the_start() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)))
    scenario.ledger.amend("Lund", MemoryPatch(importance=0.9), if_version=1)
    with pytest.raises(VersionConflict, match="latest is 2"):
        scenario.ledger.amend("Lund", MemoryPatch(importance=0.1), if_version=1)
    with pytest.raises(InvalidInput):
        scenario.ledger.amend("Lund", MemoryPatch(invalid_at=year(2019)))


def test_a_correction_that_would_make_two_values_valid_at_once_is_refused() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    for memory_id, changes in [
        ("Lund", MemoryPatch(invalid_at=None)),
        ("Lund", MemoryPatch(invalid_at=year(2025))),
        ("Malmö", MemoryPatch(valid_at=year(2022))),
        ("Malmö", MemoryPatch(valid_at=None)),
    ]:
        with pytest.raises(Conflict, match=r"one value at a time: change the times of (Lund|Malmö) or delete it first"):
            scenario.ledger.amend(memory_id, changes)
    scenario.ledger.amend("Malmö", MemoryPatch(valid_at=year(2025)))
    scenario.ledger.amend("Lund", MemoryPatch(invalid_at=year(2025)))
    assert scenario.valid_ids_at(year(2024)) == ["Lund"]
    assert scenario.valid_ids_at(NOW) == ["Malmö"]


def test_values_that_contradict_each_other_already_can_be_corrected() -> None:
    ledger = Ledger([lives_in("Lund", year(2020)), lives_in("Malmö", year(2024))], NOW)
    ledger.amend("Malmö", MemoryPatch(importance=0.9))
    with pytest.raises(Conflict):
        ledger.amend("Malmö", MemoryPatch(valid_at=year(2023)))
    ledger.amend("Lund", MemoryPatch(invalid_at=year(2025)))
    ledger.amend("Lund", MemoryPatch(invalid_at=year(2024)))
    assert [fact.memory_id for fact in ledger.latest.values() if fact.is_valid_at(NOW)] == ["Malmö"]


def test_a_superseded_memory_is_reopened_once_its_successor_is_gone() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2024)))
    scenario.ledger.delete("Malmö")
    reopened = scenario.ledger.amend("Lund", MemoryPatch(invalid_at=None))
    assert (reopened.status, reopened.superseded_by) == (MemoryStatus.ACTIVE, None)
    assert scenario.valid_ids_at(NOW) == ["Lund"]


def test_a_revert_is_refused_while_an_earlier_value_has_not_ended() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)), lives_in("Malmö", year(2020)))
    scenario.ledger.delete("Malmö")
    scenario.save_all(lives_in("Oslo", year(2018)))
    with pytest.raises(Conflict, match="valid at the same time as Oslo"):
        scenario.ledger.revert("Lund")
    assert scenario.valid_ids_at(NOW) == ["Oslo"]


def test_a_value_of_unknown_start_that_has_ended_ends_no_later_one() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", invalid_at=year(2020)), lives_in("Malmö", year(2021)))
    assert scenario.valid_ids_at(NOW) == ["Malmö"]
    assert scenario["Malmö"].invalid_at is None
    assert scenario.valid_ids_at(year(2019)) == ["Lund"]


def test_a_value_of_unknown_start_ends_when_one_of_known_start_begins() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", invalid_at=year(2020)), lives_in("Malmö", year(2018)))
    assert scenario.valid_ids_at(year(2017)) == ["Lund"]
    assert scenario.valid_ids_at(year(2019)) == ["Malmö"]
    scenario.save_all(lives_in("Oslo", invalid_at=year(2019)))
    assert scenario.valid_ids_at(year(2018)) == ["Malmö"]
    assert scenario.valid_ids_at(NOW) == ["Malmö"]


@pytest.mark.req("QUINN-25")
def test_delete_ends_the_version_and_keeps_it() -> None:
    scenario = LedgerScenario().save_all(lives_in("Lund", year(2020)))
    ended = scenario.ledger.delete("Lund")
    assert ended.status_at(NOW) is MemoryStatus.DELETED
    assert ended.expired_at is not None
    assert ended.active_hash is None


def test_lapsed_fact_releases_its_active_hash() -> None:
    lapsed = replace(lives_in("Lund", year(2020), invalid_at=year(2025)), active_hash=LUND)
    ledger = Ledger([lapsed], NOW)
    outcome = ledger.save(replace(lives_in("Lund", year(2026)), memory_id="again"))
    assert outcome.fact.active_hash == LUND
    assert ledger.changed[lapsed.uuid].active_hash is None
