"""What sources that are trusted differently may do to one another's statements, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.memories.fact import Fact
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryPatch, MemoryStatus, SaveAction
from graphmem.runtime.errors import Conflict, Forbidden
from graphmem.tenants.trust import DEFAULT_ORDER, STATED_KINDS, Effect, SourceKind, StatedKind, TrustOrder, Verdict
from tests.memories.test_versioning import NOW, lives_in, year


def said(kind: SourceKind, place: str, valid_at: datetime | None = None, **changes: Any) -> Fact:
    return lives_in(place, valid_at, source_kind=kind, **changes)


class Home(Ledger):
    """A ledger of where Mara lives, read by place."""

    def __init__(self, *facts: Fact, order: TrustOrder = DEFAULT_ORDER) -> None:
        super().__init__([], NOW, order=order)
        for fact in facts:
            self.save(fact)

    def by(self, kind: SourceKind) -> Home:
        """Let a source make the next changes."""
        self.kind = kind
        return self

    def __getitem__(self, place: str) -> Fact:
        return self.latest[place]

    def places_at(self, instant: datetime) -> list[str]:
        return [fact.memory_id for fact in self.latest.values() if fact.is_valid_at(instant)]


def test_a_less_trusted_statement_is_contested_and_ends_nothing() -> None:
    home = Home(said("user", "Lund", year(2020)))
    outcome = home.save(said("web", "Malmö", year(2024)))
    assert (outcome.action, outcome.superseded) == (SaveAction.CONTEST, ())
    assert "Lund" in (outcome.reason or "")
    assert outcome.fact.status is MemoryStatus.CONTESTED
    assert outcome.fact.contests == ("Lund",)
    assert home["Lund"].version == 1
    assert home.places_at(NOW) == ["Lund"]


def test_a_contested_statement_is_neither_valid_nor_believed() -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    contested = home["Malmö"]
    assert contested.is_never_valid
    assert contested.known_to == contested.created_at
    assert contested.active_hash is None
    assert (contested.valid_at, contested.shown_invalid_at) == (year(2024), None)


@pytest.mark.parametrize("kind", ["user", "operator", "import"])
def test_sources_that_are_trusted_alike_or_more_follow_the_rules_of_time(kind: SourceKind) -> None:
    home = Home(said("operator", "Lund", year(2020)))
    assert home.save(said(kind, "Malmö", year(2024))).action is SaveAction.SUPERSEDE
    assert home["Lund"].invalid_at == year(2024)


def test_an_explicit_supersession_by_a_less_trusted_source_is_contested() -> None:
    home = Home(said("user", "Lund", single_valued=False))
    outcome = home.save(said("tool", "Malmö", single_valued=False), ["Lund"])
    assert outcome.fact.contests == ("Lund",)
    assert home.places_at(NOW) == ["Lund"]


def test_a_less_trusted_statement_beside_which_nothing_would_end_is_saved() -> None:
    home = Home(said("user", "Lund", year(2020)))
    outcome = home.save(said("web", "Malmö", year(2010)))
    assert outcome.action is SaveAction.INSERT
    assert home["Malmö"].invalid_at == year(2020)


def test_an_earlier_value_of_a_less_trusted_source_gives_a_known_one_no_start() -> None:
    home = Home(said("user", "Lund"))
    assert home.save(said("web", "Malmö", year(2010))).action is SaveAction.CONTEST
    assert home["Lund"].valid_at is None


def test_a_late_arrival_of_a_more_trusted_source_is_not_closed_by_a_less_trusted_value() -> None:
    home = Home(said("web", "Malmö", year(2024)))
    home.save(said("user", "Lund", year(2020)))
    assert home["Malmö"].status is MemoryStatus.CONTESTED
    assert home["Malmö"].contests == ("Lund",)
    assert home.places_at(NOW) == ["Lund"]


def test_a_repetition_by_a_more_trusted_source_makes_the_statement_its_own() -> None:
    home = Home(said("web", "Lund", year(2020)))
    assert home.save(said("user", "Lund")).action is SaveAction.REINFORCE
    assert home["Lund"].source_kind == "user"
    assert home.save(said("web", "Malmö", year(2024))).action is SaveAction.CONTEST


def test_a_repetition_by_a_less_trusted_source_changes_no_trust() -> None:
    home = Home(said("user", "Lund", year(2020)))
    home.save(said("web", "Lund"))
    assert home["Lund"].source_kind == "user"


def test_a_contested_statement_that_is_said_again_is_reinforced() -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    again = home.save(said("tool", "Malmö", year(2024), memory_id="again"))
    assert (again.action, again.fact.memory_id) == (SaveAction.CONTEST, "Malmö")
    assert home["Malmö"].source_kind == "tool"


def test_a_contested_statement_that_the_user_makes_too_becomes_the_users() -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    outcome = home.save(said("user", "Malmö", year(2024), memory_id="own"))
    assert (outcome.action, outcome.superseded) == (SaveAction.SUPERSEDE, ("Lund",))
    assert home["Malmö"].superseded_by == "own"
    assert home.places_at(NOW) == ["own"]


def test_what_holds_takes_the_place_of_what_it_contests_and_its_trust() -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    upheld = home.resolve("Malmö", holds=True)
    assert (upheld.status, upheld.source_kind, upheld.trust_kind) == (MemoryStatus.ACTIVE, "web", "user")
    assert upheld.supersedes == ("Lund",)
    assert home["Lund"].invalid_at == year(2024)
    assert home.places_at(NOW) == ["Malmö"]
    assert home.save(said("document", "Ystad", year(2025))).action is SaveAction.CONTEST


def test_what_holds_without_a_start_starts_when_it_was_said() -> None:
    home = Home(said("user", "Lund"), said("web", "Malmö"))
    first_said = home["Malmö"].created_at
    upheld = home.resolve("Malmö", holds=True)
    assert upheld.valid_at == home["Lund"].invalid_at == first_said


def test_what_holds_and_only_states_a_past_end_ends_what_it_contests_then() -> None:
    home = Home(said("user", "Lund", year(2020), single_valued=False))
    left = said("web", "Lund until 2023", single_valued=False, invalid_at=year(2023), claimed_invalid_at=year(2023))
    home.save(left, ["Lund"])
    upheld = home.resolve("Lund until 2023", holds=True)
    assert (upheld.valid_at, upheld.invalid_at) == (None, year(2023))
    assert home["Lund"].invalid_at == year(2023)


def test_what_does_not_hold_is_retired() -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    refuted = home.resolve("Malmö", holds=False)
    assert refuted.retired
    assert home["Lund"].version == 1
    assert home.places_at(NOW) == ["Lund"]


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("reverted", ["Malmö", "Lund"])
def test_a_resolution_is_undone_by_a_revert(holds: bool, reverted: str) -> None:
    home = Home(said("user", "Lund", year(2020)), said("web", "Malmö", year(2024)))
    home.resolve("Malmö", holds=holds)
    if not holds and reverted == "Lund":
        with pytest.raises(Conflict, match="nothing to revert"):
            home.revert("Lund")
        return
    assert home.revert(reverted).memory_id == reverted
    assert home["Malmö"].is_contested
    assert home["Malmö"].trust_kind == "web"
    assert home["Lund"].invalid_at is None
    assert home.places_at(NOW) == ["Lund"]
    assert home.resolve("Malmö", holds=True).supersedes == ("Lund",)


def test_what_is_not_contested_cannot_be_resolved() -> None:
    home = Home(said("user", "Lund"))
    with pytest.raises(Conflict, match="not contested"):
        home.resolve("Lund", holds=True)


def test_a_correction_by_a_less_trusted_key_is_contested_beside_the_memory() -> None:
    home = Home(said("user", "Lund", year(2020)))
    contested = home.by("assistant").amend("Lund", MemoryPatch(content="Mara lives in Malmö"))
    assert contested.memory_id != "Lund"
    assert (contested.status, contested.contests) == (MemoryStatus.CONTESTED, ("Lund",))
    assert home["Lund"].content == "Mara lives in Lund"


def test_a_less_trusted_key_labels_no_memory() -> None:
    home = Home(said("user", "Lund", year(2020)))
    with pytest.raises(Forbidden):
        home.by("assistant").amend("Lund", MemoryPatch(tags=["home"], importance=0.9))
    assert home["Lund"].version == 1


@pytest.mark.parametrize("by", STATED_KINDS)
@pytest.mark.parametrize("on", STATED_KINDS)
def test_one_decision_says_what_a_source_does_to_another(by: StatedKind, on: StatedKind) -> None:
    is_less = DEFAULT_ORDER.level(by) > DEFAULT_ORDER.level(on)
    for effect in Effect:
        decision = DEFAULT_ORDER.decide(effect, by, on)
        if not is_less:
            assert decision is Verdict.APPLY
        else:
            assert decision is (Verdict.CONTEST if effect in (Effect.END, Effect.NARROW) else Verdict.REFUSE)
        assert DEFAULT_ORDER.decide(effect, None, on) is Verdict.APPLY


def test_a_correction_by_a_more_trusted_key_is_its_word() -> None:
    home = Home(said("web", "Lund", year(2020)))
    assert home.by("user").amend("Lund", MemoryPatch(content="Mara lives in Malmö")).source_kind == "user"


def test_a_less_trusted_key_neither_deletes_nor_reverts_nor_resolves() -> None:
    home = Home(said("user", "Lund", year(2020)), said("user", "Malmö", year(2024)), said("document", "Ystad"))
    with pytest.raises(Forbidden, match="more trusted"):
        home.by("assistant").delete("Malmö")
    with pytest.raises(Forbidden, match="more trusted"):
        home.by("assistant").revert("Lund")
    with pytest.raises(Forbidden, match="more trusted"):
        home.by("document").resolve("Ystad", holds=True)
    with pytest.raises(Forbidden, match="more trusted"):
        home.by("web").resolve("Ystad", holds=False)
    assert home.by("document").resolve("Ystad", holds=False).retired


def test_another_order_decides_otherwise() -> None:
    order = TrustOrder((("operator",), ("user",), ("import", "document"), ("assistant", "tool", "web")))
    home = Home(said("operator", "Lund", year(2020)), order=order)
    assert home.save(said("user", "Malmö", year(2024))).action is SaveAction.CONTEST
    assert Home(said("web", "Lund"), order=order).save(said("tool", "Malmö")).action is SaveAction.SUPERSEDE


class Said(NamedTuple):
    """One statement: who makes it, the place, when it starts and ends, and what it says to replace."""

    kind: StatedKind
    place: str
    start: int | None
    length: int | None
    single_valued: bool
    replaces: str | None


LATER = NOW + timedelta(days=1)
"""After every write: a value without a start may be given one, which a revert leaves to it."""

PLACES = ("Lund", "Malmö", "Ystad", "Kiruna")
STATEMENTS = st.lists(
    st.builds(
        Said,
        st.sampled_from(STATED_KINDS),
        st.sampled_from(PLACES),
        st.none() | st.integers(2000, 2040),
        st.none() | st.integers(1, 9),
        st.sampled_from([True, True, True, False]),
        st.none() | st.none() | st.sampled_from(PLACES),
    ),
    min_size=2,
    max_size=9,
)


def save_all(home: Home, statements: Sequence[Said], kind: StatedKind | None = None) -> list[Any]:
    """Save statements; return what was done with each, and check that no more trusted memory has lost anything."""
    done: list[Any] = []
    for number, given_ in enumerate(statements):
        start = None if given_.start is None else year(given_.start)
        end = start + timedelta(days=365 * given_.length) if start and given_.length else None
        draft = said(
            kind or given_.kind,
            given_.place,
            start,
            invalid_at=end,
            claimed_invalid_at=end,
            memory_id=f"m{number}",
            single_valued=given_.single_valued,
        )
        before = {fact.memory_id: fact for fact in home.latest.values()}
        replaces = [key for key, fact in before.items() if fact.content_hash == given_.replaces]
        try:
            outcome = home.save(draft, replaces)
        except Conflict:
            done.append("conflict")
            continue
        done.append((outcome.action, outcome.fact.memory_id, outcome.superseded, outcome.fact.valid_at))
        for fact in before.values():
            if home.order.level(draft.trust_kind) > home.order.level(fact.trust_kind):
                ensure_kept(fact, home[fact.memory_id])
    return done


def ensure_kept(before: Fact, after: Fact) -> None:
    assert (after.valid_from, after.valid_to) == (before.valid_from, before.valid_to)
    assert (after.status, after.retired) == (before.status, before.retired)
    assert after.trust_kind == before.trust_kind


@given(STATEMENTS)
def test_no_statement_ends_or_narrows_one_of_a_more_trusted_source(statements: list[Said]) -> None:
    save_all(Home(), statements)


@given(STATEMENTS)
def test_two_sources_never_give_a_relation_two_values_at_once(statements: list[Said]) -> None:
    home = Home()
    save_all(home, [statement._replace(replaces=None) for statement in statements])
    current = [fact for fact in home.latest.values() if fact.single_valued and not fact.is_never_valid]
    for one in current:
        for other in current:
            if one is not other and one.content_hash != other.content_hash:
                assert not (one.is_valid_at(LATER) and other.is_valid_at(LATER))


@given(STATEMENTS, st.sampled_from(STATED_KINDS))
def test_sources_that_are_trusted_alike_change_nothing(statements: list[Said], kind: StatedKind) -> None:
    alike = TrustOrder((STATED_KINDS,))
    of_one, of_all = Home(), Home(order=alike)
    assert save_all(of_one, statements, kind) == save_all(of_all, statements)
    assert [_shape(fact) for fact in of_one.latest.values()] == [_shape(fact) for fact in of_all.latest.values()]
    assert not any(fact.is_contested for fact in of_one.latest.values())


def _shape(fact: Fact) -> Fact:
    return replace(fact, uuid="", source_kind="user")


@given(STATEMENTS, st.booleans())
def test_a_revert_undoes_every_resolution(statements: list[Said], holds: bool) -> None:
    home = Home()
    save_all(home, [statement._replace(replaces=None, single_valued=True) for statement in statements])
    for fact in [fact for fact in home.latest.values() if fact.is_contested]:
        before = home.places_at(LATER)
        try:
            home.resolve(fact.memory_id, holds=holds)
        except Conflict:
            continue
        if home[fact.memory_id].status is MemoryStatus.SUPERSEDED and holds:
            continue  # it holds up to what follows it, as a late arrival does
        home.revert(fact.memory_id)
        assert home[fact.memory_id].is_contested
        assert home.places_at(LATER) == before
