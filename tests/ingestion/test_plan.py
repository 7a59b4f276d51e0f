"""The guard: whatever a model decides, only this is done."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.domain.actions import ActionKind, Decision, Reconciliation, SameEntity
from graphmem.domain.entity import EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryIn, MemoryType, Scope, SourceIn, Status
from graphmem.domain.text import content_hash
from graphmem.ingestion.claims import SINCE, Claim
from graphmem.ingestion.link import Doubt, KnownEntity, Linked
from graphmem.ingestion.plan import MAX_CLOSINGS, MAX_DELETIONS, Plan, Planner
from graphmem.ingestion.reconcile import is_settled
from tests.ingestion.conftest import moment

NAMES = {
    "me": EntityRef(id="me", name="user-7", type="Person"),
    "bob": EntityRef(id="bob", name="Bob", type="Person"),
    "trip": EntityRef(id="trip", name="trip to Rome", type="Event"),
    "rome": EntityRef(id="rome", name="Rome", type="Place"),
}


def fact(memory_id: str, content: str = "Mara loves coffee", **fields: Any) -> Fact:
    told = moment("2026-01-01")
    known: dict[str, Any] = {
        "uuid": f"u-{memory_id}",
        "memory_id": memory_id,
        "version": 1,
        "group_id": "default:mara",
        "subject_id": "me",
        "predicate": "LIKES",
        "content": content,
        "content_hash": content_hash(content),
        "type": MemoryType.FACT,
        "scope": Scope.PROFILE,
        "created_at": told,
        "first_created_at": told,
        "updated_at": told,
        "decay_rate": 0.01,
        "entity_ids": ("me",),
        **fields,
    }
    return Fact(**known)


def claim(content: str = "Mara hates coffee", told: str = "2026-05-01", **fields: Any) -> Claim:
    dated = "valid_at" in fields
    extra = {name: fields.pop(name) for name in ("told_in", "retracts") if name in fields}
    source = SourceIn(session_id="s1", message_ids=["m1"])
    memory = MemoryIn(**{"content": content, "predicate": "LIKES", "source": source, **fields})
    return Claim(
        **{"memory": memory, "told_at": moment(told), "told_in": ("m1",), "retracts": False, "dated": dated} | extra
    )


def decide(new: int, action: str, *known: int, **fields: Any) -> Decision:
    told: dict[str, Any] = {"ended_at": None, "reason": "so", **fields}
    return Decision(new=new, action=ActionKind(action), known=list(known), **told)


def plan(
    claims: list[Claim], facts: list[Fact], *decisions: Decision, near: list[list[int]] | None = None, **linked: Any
) -> Plan:
    entities = {"": "me", "bob": "bob", "trip to rome": "trip", "rome": "rome", **linked.pop("entities", {})}
    found = Linked(
        entities=entities,
        related=[each.memory_id for each in facts],
        near=near if near is not None else [list(range(len(facts))) for _ in claims],
        **linked,
    )
    same = linked.pop("same", [])
    answer = Reconciliation(decisions=list(decisions), same_entities=same) if decisions or same else None
    return Planner(claims, found, {each.memory_id: each for each in facts}, NAMES).plan(answer)


def closed(made: Plan) -> list[str]:
    return [each for save in made.saves for each in save.memory.supersedes]


def test_a_supersession_closes_from_when_it_was_told() -> None:
    made = plan([claim()], [fact("f1")], decide(1, "supersede", 1))
    (save,) = made.saves
    assert (save.memory.supersedes, save.reason) == (["f1"], "superseded: so")
    assert save.memory.valid_at == moment("2026-05-01")


def test_a_supersession_closes_from_the_start_the_statement_tells_or_the_end_the_model_read() -> None:
    dated = plan([claim(valid_at=moment("2026-03-01"))], [fact("f1")], decide(1, "supersede", 1, ended_at="2026-02"))
    assert dated.saves[0].memory.valid_at == moment("2026-03-01")
    ended = plan([claim()], [fact("f1")], decide(1, "supersede", 1, ended_at="2026-02"))
    assert ended.saves[0].memory.valid_at == moment("2026-02-01")
    assert ended.saves[0].memory.metadata[SINCE] == "2026-02"


@pytest.mark.parametrize(
    ("statement", "known", "reason"),
    [
        ({"subject": EntityIn(name="Bob")}, {}, "it is about another subject"),
        ({"subject": EntityIn(name="Somebody new")}, {}, "it is about another subject"),
        ({}, {"immutable": True}, "it is immutable"),
        ({"told_in": ()}, {}, "the assistant alone said so"),
        ({"type": "feeling"}, {}, "a feeling does not end a fact"),
        ({"type": "recommendation"}, {"type": MemoryType.PREFERENCE}, "a recommendation does not end a preference"),
        ({}, {"status": Status.SUPERSEDED, "superseded_by": "x"}, "it had ended already"),
        ({"valid_at": moment("2019-01-01")}, {"valid_at": moment("2020-01-01")}, "it began later"),
        (
            {"valid_at": moment("2015-01-01"), "invalid_at": moment("2019-01-01")},
            {"valid_at": moment("2014-01-01"), "first_created_at": moment("2014-01-01")},
            None,
        ),
        ({"invalid_at": moment("2019-01-01")}, {"valid_at": moment("2020-01-01")}, "the new statement ended before it"),
    ],
)
def test_what_may_not_be_closed_is_vetoed_and_the_statement_kept_beside_it(
    statement: dict[str, Any], known: dict[str, Any], reason: str | None
) -> None:
    made = plan([claim(**statement)], [fact("f1", **known)], decide(1, "supersede", 1))
    assert [veto.reason for veto in made.vetoes] == ([reason] if reason else [])
    assert closed(made) == ([] if reason else ["f1"])
    assert len(made.saves) == 1


def test_bobs_coffee_is_not_ended_by_alices_tea() -> None:
    bobs = fact("f1", "Bob likes coffee", subject_id="bob", entity_ids=("bob",))
    made = plan([claim("Mara likes tea")], [bobs], decide(1, "supersede", 1))
    assert closed(made) == []


def test_a_thing_both_speak_of_may_end_what_was_said_of_it() -> None:
    trip = fact("f1", "The trip to Rome is in June", subject_id="trip", entity_ids=("trip",))
    made = plan(
        [claim("Mara cancelled the trip", object=EntityIn(name="trip to Rome"))], [trip], decide(1, "supersede", 1)
    )
    assert closed(made) == ["f1"]


def test_a_start_taken_from_a_message_is_no_date_that_could_contradict() -> None:
    known = fact("f1", valid_at=moment("2026-01-06"), source_kind="extraction", metadata={"said_by": "user"})
    made = plan([claim(valid_at=moment("2023-01-01"))], [known], decide(1, "supersede", 1))
    assert closed(made) == ["f1"]
    told = fact("f1", valid_at=moment("2026-01-06"), source_kind="extraction", metadata={SINCE: "2026-01-06"})
    assert closed(plan([claim(valid_at=moment("2023-01-01"))], [told], decide(1, "supersede", 1))) == []


def test_one_memory_is_ended_once_and_no_more_than_the_cap() -> None:
    made = plan([claim("a"), claim("b")], [fact("f1")], decide(1, "supersede", 1), decide(2, "supersede", 1))
    assert closed(made) == ["f1"]
    facts = [fact(f"f{n}", f"content {n}") for n in range(20)]
    made = plan([claim()], facts, decide(1, "supersede", *range(1, 21)))
    assert len(closed(made)) == MAX_CLOSINGS


def test_a_deletion_needs_the_user_to_take_something_back_that_is_related() -> None:
    facts = [fact(f"f{n}", f"content {n}") for n in range(6)]
    back = claim("Mara loves Marco", retracts=True)
    made = plan([back], facts, decide(1, "delete", *range(1, 7)), near=[[0, 1, 2, 3, 4]])
    assert [deletion.memory_id for deletion in made.deletions] == ["f0", "f1", "f2"][:MAX_DELETIONS]
    assert made.saves == []
    assert {veto.reason for veto in made.vetoes} == {
        "more than 3 memories at once",
        "it is not related to what was taken back",
    }
    assert plan([claim()], facts, decide(1, "delete", 1)).deletions == []
    assert plan([claim(retracts=True, told_in=())], facts, decide(1, "delete", 1)).deletions == []
    assert plan([back], [fact("f1", immutable=True)], decide(1, "delete", 1)).deletions == []
    assert plan([back], facts).vetoes[0].reason == "nothing known says what was taken back"


def test_a_reinforcement_repeats_what_is_known_in_its_own_words() -> None:
    made = plan(
        [claim("Mara is fond of coffee")], [fact("f1", valid_at=moment("2020-01-01"))], decide(1, "reinforce", 1)
    )
    (save,) = made.saves
    assert save.again
    assert (save.memory.content, save.memory.valid_at) == ("Mara loves coffee", moment("2020-01-01"))
    assert save.memory.source
    assert save.memory.source.message_ids == ["m1"]


def test_what_is_reinforced_must_be_about_the_same_and_hold() -> None:
    for known in (fact("f1", subject_id="bob"), fact("f1", status=Status.SUPERSEDED), fact("f1", immutable=True)):
        (save,) = plan([claim()], [known], decide(1, "reinforce", 1)).saves
        assert save.memory.content == "Mara hates coffee"


def test_what_is_about_to_end_is_not_reinforced() -> None:
    made = plan([claim("again"), claim()], [fact("f1")], decide(1, "reinforce", 1), decide(2, "supersede", 1))
    assert [save.memory.content for save in made.saves] == ["Mara hates coffee"]
    assert made.vetoes[0].reason == "another statement ends it"


def test_a_single_value_stands_beside_an_immutable_one_and_beside_what_the_model_keeps() -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True}
    known = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", object_id="rome")
    assert plan([claim("Mara lives in Oslo", **home)], [known]).saves[0].memory.single_valued
    assert not plan([claim("Mara lives in Oslo", **home)], [known], decide(1, "insert")).saves[0].memory.single_valued
    lasting = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", immutable=True)
    assert not plan([claim("Mara lives in Oslo", **home)], [lasting]).saves[0].memory.single_valued
    before = {**home, "valid_at": moment("2010-01-01"), "invalid_at": moment("2012-01-01")}
    assert plan([claim("Mara lived in Oslo", **before)], [known], decide(1, "insert")).saves[0].memory.single_valued


def test_an_unclear_name_means_only_one_of_its_options() -> None:
    jonas = [Doubt(name="Jonas", type="Person", options=["bob"])]
    known = [KnownEntity(id="bob", name="Bob", type="Person"), KnownEntity(id="trip", name="trip", type="Event")]
    statement = claim("Jonas has twins", subject=EntityIn(name="Jonas"))

    def meant(*told: SameEntity) -> dict[str, str]:
        found = Linked(entities={"": "me"}, doubts=jonas, known=known, related=[], near=[[]])
        answer = Reconciliation(decisions=[], same_entities=list(told))
        return Planner([statement], found, {}, NAMES).plan(answer).same

    assert meant(SameEntity(name=1, known=1)) == {"jonas": "bob"}
    assert meant(SameEntity(name=1, known=2)) == {}
    assert meant(SameEntity(name=1, known=None), SameEntity(name=3, known=1), SameEntity(name=1, known=9)) == {}


def test_rules_settle_only_what_is_word_for_word_or_plainly_later() -> None:
    entities = {"": "me", "oslo": "oslo", "rome": "rome"}
    home = {"predicate": "LIVES_IN", "single_valued": True, "object": EntityIn(name="Oslo")}
    rome = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", object_id="rome", valid_at=moment("2020-01-01"))
    assert is_settled(claim(), [], {"": "me"})
    assert is_settled(claim("Mara loves COFFEE."), [fact("f1")], entities)
    assert is_settled(claim("Mara lives in Oslo", **home), [rome], entities)
    assert not is_settled(claim("Mara lives in Oslo", **home, valid_at=moment("2019-01-01")), [rome], entities)
    assert not is_settled(claim("Mara lives in Oslo", **home), [rome, fact("f2")], entities)
    assert not is_settled(
        claim("Mara has a flat in Rome", **{**home, "object": EntityIn(name="Rome")}), [rome], entities
    )
    assert not is_settled(claim(), [fact("f1")], entities)
    assert not is_settled(claim(retracts=True), [fact("f1")], entities)


@given(
    st.lists(
        st.builds(
            Decision,
            new=st.integers(-1, 4),
            action=st.sampled_from(ActionKind),
            known=st.lists(st.integers(-2, 8), max_size=6),
            ended_at=st.none() | st.just("2026-02") | st.text(max_size=8),
            reason=st.text(max_size=300),
        ),
        max_size=8,
    ),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_no_decisions_ever_touch_what_is_immutable_unrelated_or_somebody_elses(
    decisions: list[Decision], retracts: list[bool]
) -> None:
    facts = [
        fact("mine", "a"),
        fact("fixed", "b", immutable=True),
        fact("bobs", "c", subject_id="bob", entity_ids=("bob",)),
        fact("ended", "d", status=Status.SUPERSEDED),
        fact("far", "e"),
    ]
    claims = [claim(f"claim {n}", retracts=taken) for n, taken in enumerate(retracts)]
    made = plan(claims, facts, *decisions, near=[[0, 1, 2, 3]] * 3)
    ended = [*closed(made), *(deletion.memory_id for deletion in made.deletions)]
    assert len(ended) == len(set(ended))
    assert "fixed" not in ended
    assert "bobs" not in closed(made)
    assert "far" not in [deletion.memory_id for deletion in made.deletions]
    done = [save.claim for save in made.saves] + [each.claim for each in (*made.deletions, *made.vetoes)]
    assert set(done) == {0, 1, 2}
    assert all(len(save.reason) <= 220 for save in made.saves)


def test_reasons_are_cut_and_on_one_line() -> None:
    made = plan([claim()], [fact("f1")], decide(1, "supersede", 1, reason="x\n" * 900))
    assert "\n" not in made.saves[0].reason
    assert len(made.saves[0].reason) <= 220


def test_times_go_to_the_store_in_utc() -> None:
    made = plan([claim()], [fact("f1")], decide(1, "supersede", 1))
    starts: datetime | None = made.saves[0].memory.valid_at
    assert starts
    assert str(starts.tzinfo) == "UTC"
