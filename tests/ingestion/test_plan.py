"""The plan of a batch: what a model's decisions may change, and what is vetoed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.ingestion.answers import ActionKind, Decision, PassedPlan, Reconciliation, Remainder, SameEntity
from graphmem.ingestion.candidates import STATED_END_KEY, STATED_START_KEY, Statement
from graphmem.ingestion.link import (
    AmbiguousName,
    EntityIds,
    LinkingResult,
    PossibleEntity,
)
from graphmem.ingestion.plan import (
    MAX_DELETIONS_PER_BATCH,
    MAX_SUPERSESSIONS_PER_BATCH,
    ActionPlan,
    ActionPlanner,
)
from graphmem.ingestion.reconcile import is_settled_by_rules
from graphmem.memories.entity import EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import (
    MemoryIn,
    MemorySourceIn,
    MemoryStatus,
    MemoryType,
    Scope,
)
from graphmem.runtime.field_types import content_hash
from graphmem.tenants.trust import DEFAULT_ORDER
from tests.ingestion.conftest import midnight

NAMES = {
    "me": EntityRef(id="me", name="user-7", type="Person"),
    "bob": EntityRef(id="bob", name="Bob", type="Person"),
    "trip": EntityRef(id="trip", name="trip to Rome", type="Event"),
    "rome": EntityRef(id="rome", name="Rome", type="Place"),
}


def fact(memory_id: str, content: str = "Mara loves coffee", **fields: Any) -> Fact:
    created = midnight("2026-01-01")
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
        "created_at": created,
        "first_created_at": created,
        "updated_at": created,
        "decay_rate": 0.01,
        "entity_ids": ("me",),
        **fields,
    }
    return Fact(**known)


def candidate(content: str = "Mara hates coffee", sent: str = "2026-05-01", **fields: Any) -> Statement:
    is_dated = "valid_at" in fields
    extra: dict[str, Any] = {name: fields.pop(name) for name in ("user_message_ids", "retracts") if name in fields}
    source = MemorySourceIn(session_id="s1", message_ids=["m1"])
    given: dict[str, Any] = {"content": content, "predicate": "LIKES", "source": source, **fields}
    memory = MemoryIn(**given)
    known: dict[str, Any] = {
        "memory": memory,
        "sent_at": midnight(sent),
        "user_message_ids": ("m1",),
        "retracts": False,
        "is_dated": is_dated,
        **extra,
    }
    return Statement(**known)


def decide(new: int, action: str, *known: int, **fields: Any) -> Decision:
    values: dict[str, Any] = {"ended_at": None, "remaining": [], "reason": "so", **fields}
    return Decision(new=new, action=ActionKind(action), known=list(known), **values)


def plan(
    candidates: list[Statement],
    facts: list[Fact],
    *decisions: Decision,
    related_by_statement: list[list[int]] | None = None,
    **linking: Any,
) -> ActionPlan:
    found = LinkingResult(
        entities=EntityIds(user="me", by_name_key={"bob": "bob", "trip to rome": "trip", "rome": "rome"}),
        related=[known.memory_id for known in facts],
        related_by_statement=related_by_statement
        if related_by_statement is not None
        else [list(range(len(facts))) for _ in candidates],
        **linking,
    )
    same = linking.pop("same", [])
    answer = Reconciliation(decisions=list(decisions), same_entities=same) if decisions or same else None
    return ActionPlanner(candidates, found, {known.memory_id: known for known in facts}, NAMES, DEFAULT_ORDER).plan(
        answer
    )


def plan_with(answer: Reconciliation, candidates: list[Statement], facts: list[Fact]) -> ActionPlan:
    linking = LinkingResult(
        entities=EntityIds(user="me"),
        related=[known.memory_id for known in facts],
        related_by_statement=[list(range(len(facts))) for _ in candidates],
    )
    known = {known.memory_id: known for known in facts}
    return ActionPlanner(candidates, linking, known, NAMES, DEFAULT_ORDER).plan(answer)


def closed(made: ActionPlan) -> list[str]:
    return [memory_id for save in made.saves for memory_id in save.memory.supersedes]


def test_a_supersession_ends_the_fact_at_the_message_time() -> None:
    made = plan([candidate()], [fact("f1")], decide(1, "supersede", 1))
    (save,) = made.saves
    assert (save.memory.supersedes, save.reason) == (["f1"], "superseded: so")
    assert save.memory.valid_at == midnight("2026-05-01")


def test_a_supersession_starts_at_the_stated_start_or_at_the_models_ended_at() -> None:
    is_dated = plan(
        [candidate(valid_at=midnight("2026-03-01"))], [fact("f1")], decide(1, "supersede", 1, ended_at="2026-02")
    )
    assert is_dated.saves[0].memory.valid_at == midnight("2026-03-01")
    ended = plan([candidate()], [fact("f1")], decide(1, "supersede", 1, ended_at="2026-02"))
    assert ended.saves[0].memory.valid_at == midnight("2026-02-01")
    assert ended.saves[0].memory.metadata[STATED_START_KEY] == "2026-02"


@pytest.mark.parametrize(
    ("statement", "known", "reason"),
    [
        ({"subject": EntityIn(name="Bob")}, {}, "it is about another subject"),
        ({"subject": EntityIn(name="Somebody new")}, {}, "it is about another subject"),
        ({}, {"immutable": True}, "it is immutable"),
        ({"user_message_ids": ()}, {}, "the assistant alone said so"),
        ({"type": "feeling"}, {}, "a feeling does not end a fact"),
        ({"type": "recommendation"}, {"type": MemoryType.PREFERENCE}, "a recommendation does not end a preference"),
        ({}, {"status": MemoryStatus.SUPERSEDED, "superseded_by": "x"}, "it had ended already"),
        ({"valid_at": midnight("2019-01-01")}, {"valid_at": midnight("2020-01-01")}, "it began later"),
        (
            {"valid_at": midnight("2015-01-01"), "invalid_at": midnight("2019-01-01")},
            {"valid_at": midnight("2014-01-01"), "first_created_at": midnight("2014-01-01")},
            None,
        ),
        (
            {"invalid_at": midnight("2019-01-01")},
            {"valid_at": midnight("2020-01-01")},
            "the new statement ended before it",
        ),
    ],
)
def test_a_vetoed_supersession_saves_the_new_memory_beside_the_old_one(
    statement: dict[str, Any], known: dict[str, Any], reason: str | None
) -> None:
    made = plan([candidate(**statement)], [fact("f1", **known)], decide(1, "supersede", 1))
    assert [veto.reason for veto in made.vetoes] == ([reason] if reason else [])
    assert closed(made) == ([] if reason else ["f1"])
    assert len(made.saves) == 1


def test_a_fact_about_another_person_is_not_superseded() -> None:
    bobs = fact("f1", "Bob likes coffee", subject_id="bob", entity_ids=("bob",))
    made = plan([candidate("Mara likes tea")], [bobs], decide(1, "supersede", 1))
    assert closed(made) == []


def test_a_fact_about_a_shared_thing_may_be_superseded() -> None:
    trip = fact("f1", "The trip to Rome is in June", subject_id="trip", entity_ids=("trip",))
    made = plan(
        [candidate("Mara cancelled the trip", object=EntityIn(name="trip to Rome"))], [trip], decide(1, "supersede", 1)
    )
    assert closed(made) == ["f1"]


def test_a_start_inferred_from_the_message_time_does_not_block_supersession() -> None:
    known = fact("f1", valid_at=midnight("2026-01-06"), metadata={"said_by": "user"})
    made = plan([candidate(valid_at=midnight("2023-01-01"))], [known], decide(1, "supersede", 1))
    assert closed(made) == ["f1"]
    stated = fact("f1", valid_at=midnight("2026-01-06"), metadata={STATED_START_KEY: "2026-01-06"})
    assert closed(plan([candidate(valid_at=midnight("2023-01-01"))], [stated], decide(1, "supersede", 1))) == []


def test_a_memory_is_superseded_once_and_at_most_the_limit_per_batch() -> None:
    made = plan([candidate("a"), candidate("b")], [fact("f1")], decide(1, "supersede", 1), decide(2, "supersede", 1))
    assert closed(made) == ["f1"]
    facts = [fact(f"f{n}", f"content {n}") for n in range(20)]
    made = plan([candidate()], facts, decide(1, "supersede", *range(1, 21)))
    assert len(closed(made)) == MAX_SUPERSESSIONS_PER_BATCH


def test_a_deletion_needs_a_retraction_by_the_user_of_a_related_fact() -> None:
    facts = [fact(f"f{n}", f"content {n}") for n in range(6)]
    back = candidate("Mara loves Marco", retracts=True)
    made = plan([back], facts, decide(1, "delete", *range(1, 7)), related_by_statement=[[0, 1, 2, 3, 4]])
    assert [deletion.memory_id for deletion in made.deletions] == ["f0", "f1", "f2"][:MAX_DELETIONS_PER_BATCH]
    assert made.saves == []
    assert {veto.reason for veto in made.vetoes} == {
        "more than 3 memories at once",
        "it is not related to what was taken back",
    }
    assert plan([candidate()], facts, decide(1, "delete", 1)).deletions == []
    assert plan([candidate(retracts=True, user_message_ids=())], facts, decide(1, "delete", 1)).deletions == []
    assert plan([back], [fact("f1", immutable=True)], decide(1, "delete", 1)).deletions == []
    assert plan([back], facts).vetoes[0].reason == "nothing known says what was taken back"


def test_a_reinforcement_saves_the_known_content_again() -> None:
    made = plan(
        [candidate("Mara is fond of coffee")], [fact("f1", valid_at=midnight("2020-01-01"))], decide(1, "reinforce", 1)
    )
    (save,) = made.saves
    assert (save.memory.content, save.memory.valid_at) == ("Mara loves coffee", midnight("2020-01-01"))
    assert save.memory.source
    assert save.memory.source.message_ids == ["m1"]


@pytest.mark.parametrize(
    ("known", "reason", "is_saved"),
    [
        ({"subject_id": "bob", "entity_ids": ("bob",)}, "it is about another subject", True),
        ({"status": MemoryStatus.SUPERSEDED}, "it had ended already", True),
        ({"immutable": True}, "it is immutable and says the same", False),
    ],
)
def test_a_vetoed_reinforcement_says_whether_the_statement_is_saved_instead(
    known: dict[str, Any], reason: str, is_saved: bool
) -> None:
    made = plan([candidate()], [fact("f1", **known)], decide(1, "reinforce", 1))
    assert [(veto.action, veto.reason, veto.is_saved) for veto in made.vetoes] == [("reinforce", reason, is_saved)]
    assert [save.memory.content for save in made.saves] == (["Mara hates coffee"] if is_saved else [])


def test_a_relation_told_from_the_other_end_is_reinforced() -> None:
    known = fact("f1", "Bob is Mara's brother", subject_id="bob", object_id="me", entity_ids=("bob", "me"))
    made = plan([candidate("Mara's brother is Bob", object=EntityIn(name="Bob"))], [known], decide(1, "reinforce", 1))
    assert [save.memory.content for save in made.saves] == ["Bob is Mara's brother"]


@pytest.mark.parametrize("kind", [MemoryType.PLAN, MemoryType.OPEN_LOOP])
def test_what_the_user_still_has_to_do_is_settled_by_a_fact_about_somebody_else(kind: MemoryType) -> None:
    to_do = fact("f1", "Mara has to fix the fence", type=kind)
    done = candidate("Bob fixed the fence", subject=EntityIn(name="Bob", type="Person"))
    (save,) = plan([done], [to_do], decide(1, "supersede", 1)).saves
    assert save.memory.supersedes == ["f1"]


def test_a_plan_ends_with_the_message_that_changes_it_and_not_when_the_new_one_begins() -> None:
    trip = fact("f1", "Mara goes to Rome in June", type=MemoryType.PLAN)
    later = candidate("Mara starts in Oslo on 1 July", sent="2026-05-01", valid_at=midnight("2026-07-01"))
    (save,) = plan([later], [trip], decide(1, "supersede", 1)).saves
    assert (save.ends["f1"], save.memory.valid_at) == (midnight("2026-05-01"), midnight("2026-07-01"))


def test_a_statement_about_a_thing_is_replaced_by_one_of_the_users_plans_for_it() -> None:
    boat = EntityRef(id="boat", name="Mara's boat", type="Thing")
    known = fact("f1", "The boat is painted in June", subject_id="boat", entity_ids=("boat",))
    found = LinkingResult(entities=EntityIds(user="me"), related=["f1"], related_by_statement=[[0]])
    answer = Reconciliation(decisions=[decide(1, "supersede", 1)], same_entities=[])

    def supersedes(content: str) -> list[str]:
        planner = ActionPlanner([candidate(content)], found, {"f1": known}, {**NAMES, "boat": boat}, DEFAULT_ORDER)
        return closed(planner.plan(answer))

    assert supersedes("Mara will paint Mara's boat in July") == ["f1"]
    assert supersedes("Mara will paint the fence in July") == []


def test_what_stands_in_a_relation_to_the_user_may_be_told_from_either_end() -> None:
    known = fact("f1", "Mara reports to Bob", predicate="REPORTS_TO", object_id="bob", entity_ids=("me", "bob"))
    found = LinkingResult(
        entities=EntityIds(user="me", by_name_key={"user-7": "me"}), related=["f1"], related_by_statement=[[0]]
    )
    answer = Reconciliation(decisions=[decide(1, "supersede", 1)], same_entities=[])
    boss: dict[str, Any] = {"subject": EntityIn(name="Carol", type="Person"), "predicate": "BOSS_OF"}
    told = candidate("Carol is Mara's boss", **boss, object=EntityIn(name="user-7", type="Person"))
    assert closed(ActionPlanner([told], found, {"f1": known}, NAMES, DEFAULT_ORDER).plan(answer)) == ["f1"]
    other = candidate("Carol is Bob's boss", **boss, object=EntityIn(name="Bob", type="Person"))
    assert closed(ActionPlanner([other], found, {"f1": known}, NAMES, DEFAULT_ORDER).plan(answer)) == []


JOB: dict[str, Any] = {"predicate": "WORKS_AT", "single_valued": True}
UNTIL_JULY: dict[str, Any] = {
    **JOB,
    "object": EntityIn(name="Rome"),
    "invalid_at": midnight("2026-07-01"),
    "metadata": {STATED_END_KEY: "2026-07-01"},
}


@pytest.mark.parametrize("action", ["supersede", "reinforce"])
def test_a_state_of_which_only_the_end_is_told_keeps_its_start_and_gets_the_end(action: str) -> None:
    known = fact("f1", "Mara works at Rome", **JOB, object_id="rome", valid_at=midnight("2020-01-01"))
    following = candidate("Mara works at Oslo", **JOB, object=EntityIn(name="Oslo"), valid_at=midnight("2026-08-01"))
    ending = candidate("Mara works at Rome until the end of June", **UNTIL_JULY)
    made = plan([following, ending], [known], decide(1, "supersede", 1), decide(2, action, 1))
    assert [(end.memory_id, end.at, end.stated) for end in made.ends] == [
        ("f1", midnight("2026-07-01"), "2026-07-01"),
    ]
    (save,) = made.saves
    assert (save.memory.content, save.memory.supersedes, save.memory.single_valued) == ("Mara works at Oslo", [], True)


def test_a_superseded_state_ends_when_that_was_told_and_never_later_than_known() -> None:
    known = fact("f1", "Mara works at Rome", **JOB, object_id="rome", valid_at=midnight("2020-01-01"))
    following = candidate("Mara works at Oslo", **JOB, object=EntityIn(name="Oslo"), valid_at=midnight("2026-08-01"))
    told = decide(1, "supersede", 1, ended_at="2026-07-01")
    assert plan([following], [known], told).saves[0].ends == {"f1": midnight("2026-07-01")}
    ending = fact("f1", "Mara works at Rome", **JOB, object_id="rome", invalid_at=midnight("2026-06-01"))
    assert plan([following], [ending], told).saves[0].ends == {"f1": midnight("2026-06-01")}


def test_an_announced_end_does_not_delay_the_announcement() -> None:
    known = fact("f1", "Bob works here", predicate="WORKS_AT", subject_id="bob", entity_ids=("bob",))
    retires = candidate("Bob retires in June", predicate="RETIRES", subject=EntityIn(name="Bob"), sent="2026-05-01")
    (save,) = plan([retires], [known], decide(1, "supersede", 1, ended_at="2026-07-01")).saves
    assert (save.memory.valid_at, save.ends) == (midnight("2026-05-01"), {"f1": midnight("2026-07-01")})


def test_what_was_still_to_come_can_be_put_forward() -> None:
    known = fact("f1", "Mara works at Rome", **JOB, object_id="rome", valid_at=midnight("2026-10-01"))
    earlier = candidate("Mara works at Rome", **JOB, object=EntityIn(name="Rome"), valid_at=midnight("2026-09-01"))
    assert closed(plan([earlier], [known], decide(1, "supersede", 1))) == ["f1"]


def test_a_vetoed_supersession_does_not_end_the_memory_as_a_competing_value() -> None:
    known = fact("f1", "Mara works at Rome", **JOB, object_id="rome", valid_at=midnight("2026-04-01"))
    late = candidate("Mara works at Oslo", **JOB, object=EntityIn(name="Oslo"), user_message_ids=(), sent="2026-05-01")
    made = plan([late], [known], decide(1, "supersede", 1))
    assert [(veto.reason, veto.is_saved) for veto in made.vetoes] == [("the assistant alone said so", True)]
    assert not made.saves[0].memory.single_valued


def test_the_part_of_a_memory_that_still_holds_is_saved_with_its_start() -> None:
    known = fact(
        "f1",
        "Mara plays chess and go with Bob",
        valid_at=midnight("2020-01-01"),
        entity_ids=("me", "bob"),
        domain="games",
    )
    partial = decide(1, "supersede", 1, remaining=[Remainder(known=1, content="Mara plays go with Bob")])
    made = plan([candidate("Mara no longer plays chess")], [known], partial)
    change, rest = made.saves
    assert change.memory.supersedes == ["f1"]
    assert (rest.memory.content, rest.memory.valid_at) == ("Mara plays go with Bob", midnight("2020-01-01"))
    assert (rest.memory.supersedes, rest.memory.single_valued, rest.memory.domain) == ([], False, "games")
    assert [entity.name for entity in rest.memory.entities] == ["Bob"]
    said = plan([candidate("Mara no longer plays chess"), candidate("Mara plays go with Bob")], [known], partial)
    assert [save.memory.content for save in said.saves] == ["Mara no longer plays chess", "Mara plays go with Bob"]
    vetoed = plan([candidate("Mara no longer plays chess", user_message_ids=())], [known], partial)
    assert [save.memory.content for save in vetoed.saves] == ["Mara no longer plays chess"]


def test_each_of_several_superseded_memories_leaves_what_still_holds_of_it() -> None:
    known = [
        fact("f1", "Mara plans to buy paint and a ladder"),
        fact("f2", "Mara wants to borrow Bob's ladder and saw"),
    ]
    rests = [
        Remainder(known=1, content="Mara plans to buy paint"),
        Remainder(known=2, content="Mara wants to borrow Bob's saw"),
        Remainder(known=3, content="Mara plans to buy a house"),
    ]
    made = plan([candidate("Bob gave Mara his ladder")], known, decide(1, "supersede", 1, 2, remaining=rests))
    assert closed(made) == ["f1", "f2"]
    assert [save.memory.content for save in made.saves[1:]] == [rest.content for rest in rests[:2]]


def test_a_statement_that_contradicts_without_a_sign_who_is_right_is_contested_and_ends_nothing() -> None:
    made = plan([candidate("Mara says the hut is from 1971")], [fact("f1")], decide(1, "contest", 1))
    assert [(save.contests, save.memory.supersedes) for save in made.saves] == [(["f1"], [])]
    gone = plan([candidate()], [fact("f1", status=MemoryStatus.SUPERSEDED)], decide(1, "contest", 1))
    assert ([save.contests for save in gone.saves], gone.vetoes[0].reason) == ([()], "it had ended already")
    nothing = plan([candidate()], [fact("f1")], decide(1, "contest", 7))
    assert ([save.contests for save in nothing.saves], nothing.vetoes[0].action) == ([()], "contest")


@pytest.mark.parametrize(
    ("fields", "day", "end"),
    [
        ({"type": MemoryType.PLAN}, "2026-04-20", "2026-04-21"),
        ({"type": MemoryType.OPEN_LOOP}, "2026-04-20", "2026-04-21"),
        ({"type": MemoryType.FACT}, "2026-04-20", None),
        ({"type": MemoryType.PLAN, "immutable": True}, "2026-04-20", None),
        ({"type": MemoryType.PLAN}, "2026-05-01", None),
        ({"type": MemoryType.PLAN}, "2026-04", None),
        ({"type": MemoryType.PLAN, "valid_at": midnight("2026-04-25")}, "2026-04-20", None),
    ],
)
def test_a_plan_whose_day_has_passed_ends_after_that_day(fields: dict[str, Any], day: str, end: str | None) -> None:
    answer = Reconciliation(decisions=[decide(1, "insert")], passed=[PassedPlan(known=1, day=day)])
    made = plan_with(answer, [candidate("Bob sings")], [fact("f1", "Mara plans to see Bob", **fields)])
    assert [(ended.memory_id, ended.at) for ended in made.ends] == ([("f1", midnight(end))] if end else [])


def test_a_plan_that_a_statement_settles_has_not_merely_passed() -> None:
    settled = Reconciliation(decisions=[decide(1, "supersede", 1)], passed=[PassedPlan(known=1, day="2026-04-20")])
    made = plan_with(settled, [candidate("Mara saw Bob")], [fact("f1", "Mara plans to see Bob", type=MemoryType.PLAN)])
    assert (closed(made), made.ends) == (["f1"], [])


def test_a_superseded_fact_is_not_reinforced() -> None:
    made = plan([candidate("again"), candidate()], [fact("f1")], decide(1, "reinforce", 1), decide(2, "supersede", 1))
    assert [save.memory.content for save in made.saves] == ["Mara hates coffee"]
    assert made.vetoes[0].reason == "another statement ends it"


def test_single_valued_is_dropped_beside_immutable_facts_and_model_inserts() -> None:
    home: dict[str, Any] = {"predicate": "LIVES_IN", "single_valued": True}
    known = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", object_id="rome")
    assert plan([candidate("Mara lives in Oslo", **home)], [known]).saves[0].memory.single_valued
    assert (
        not plan([candidate("Mara lives in Oslo", **home)], [known], decide(1, "insert")).saves[0].memory.single_valued
    )
    lasting = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", immutable=True)
    assert not plan([candidate("Mara lives in Oslo", **home)], [lasting]).saves[0].memory.single_valued
    before: dict[str, Any] = {**home, "valid_at": midnight("2010-01-01"), "invalid_at": midnight("2012-01-01")}
    assert plan([candidate("Mara lived in Oslo", **before)], [known], decide(1, "insert")).saves[0].memory.single_valued


def test_an_unclear_name_means_only_one_of_its_options() -> None:
    jonas = [AmbiguousName(name="Jonas", type="Person", options=["bob"])]
    known = [PossibleEntity(id="bob", name="Bob", type="Person"), PossibleEntity(id="trip", name="trip", type="Event")]
    statement = candidate("Jonas has twins", subject=EntityIn(name="Jonas"))

    def meant(*same: SameEntity) -> dict[str, str]:
        found = LinkingResult(
            entities=EntityIds(user="me"), ambiguous_names=jonas, known=known, related=[], related_by_statement=[[]]
        )
        answer = Reconciliation(decisions=[], same_entities=list(same))
        return ActionPlanner([statement], found, {}, NAMES, DEFAULT_ORDER).plan(answer).resolved_names

    assert meant(SameEntity(name=1, known=1)) == {"jonas": "bob"}
    assert meant(SameEntity(name=1, known=2)) == {}
    assert meant(SameEntity(name=1, known=None), SameEntity(name=3, known=1), SameEntity(name=1, known=9)) == {}


def test_rules_alone_settle_only_verbatim_repeats_and_later_single_values() -> None:
    entities = EntityIds(user="me", by_name_key={"oslo": "oslo", "rome": "rome"})
    home: dict[str, Any] = {"predicate": "LIVES_IN", "single_valued": True, "object": EntityIn(name="Oslo")}
    rome = fact("f1", "Mara lives in Rome", predicate="LIVES_IN", object_id="rome", valid_at=midnight("2020-01-01"))
    assert is_settled_by_rules(candidate(), [], entities)
    assert is_settled_by_rules(candidate("Mara loves coffee"), [fact("f1")], entities)
    assert not is_settled_by_rules(candidate("Mara loves COFFEE."), [fact("f1")], entities)
    assert is_settled_by_rules(candidate("Mara lives in Oslo", **home), [rome], entities)
    assert not is_settled_by_rules(
        candidate("Mara lives in Oslo", **home, valid_at=midnight("2019-01-01")), [rome], entities
    )
    assert not is_settled_by_rules(candidate("Mara lives in Oslo", **home), [rome, fact("f2")], entities)
    assert not is_settled_by_rules(
        candidate("Mara has a flat in Rome", **(home | {"object": EntityIn(name="Rome")})), [rome], entities
    )
    assert not is_settled_by_rules(candidate(), [fact("f1")], entities)
    assert not is_settled_by_rules(candidate(retracts=True), [fact("f1")], entities)


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
def test_no_decision_changes_immutable_unrelated_or_foreign_facts(
    decisions: list[Decision], retracts: list[bool]
) -> None:
    facts = [
        fact("mine", "a"),
        fact("fixed", "b", immutable=True),
        fact("bobs", "c", subject_id="bob", entity_ids=("bob",)),
        fact("ended", "d", status=MemoryStatus.SUPERSEDED),
        fact("far", "e"),
    ]
    candidates = [candidate(f"candidate {n}", retracts=taken) for n, taken in enumerate(retracts)]
    made = plan(candidates, facts, *decisions, related_by_statement=[[0, 1, 2, 3]] * 3)
    ended = [*closed(made), *(deletion.memory_id for deletion in made.deletions)]
    assert len(ended) == len(set(ended))
    assert "fixed" not in ended
    assert "bobs" not in closed(made)
    assert "far" not in [deletion.memory_id for deletion in made.deletions]
    done = [save.index for save in made.saves]
    done += [deletion.index for deletion in made.deletions if deletion.index is not None]
    done += [veto.index for veto in made.vetoes]
    assert set(done) == {0, 1, 2}
    assert all(len(save.reason) <= 220 for save in made.saves)


def test_reasons_are_cut_and_on_one_line() -> None:
    made = plan([candidate()], [fact("f1")], decide(1, "supersede", 1, reason="x\n" * 900))
    assert "\n" not in made.saves[0].reason
    assert len(made.saves[0].reason) <= 220


def test_times_go_to_the_store_in_utc() -> None:
    made = plan([candidate()], [fact("f1")], decide(1, "supersede", 1))
    starts: datetime | None = made.saves[0].memory.valid_at
    assert starts
    assert str(starts.tzinfo) == "UTC"
