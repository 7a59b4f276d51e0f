"""The guards refuse bad proposals, whoever makes them, and let sound ones pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.consolidation.guards import GuardContext, LossLimits, check_loss, refusal_reason
from graphmem.consolidation.models import parse_proposals
from graphmem.memories.entity import Entity
from graphmem.memories.fact import DECAY_RATES, Fact
from graphmem.memories.memory import MemoryStatus, MemoryType, Scope
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import content_hash, name_key

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 9, 1, tzinfo=UTC)


def fact(memory_id: str, content: str, subject: str = "user", **fields: Any) -> Fact:
    kind = fields.pop("type", MemoryType.FACT)
    return Fact(
        uuid=f"{memory_id}-1",
        memory_id=memory_id,
        version=1,
        group_id="default:mara",
        subject_id=subject,
        predicate=fields.pop("predicate", "STATES"),
        content=content,
        content_hash=content_hash(content),
        type=kind,
        scope=fields.pop("scope", Scope.PROFILE),
        created_at=NOW,
        first_created_at=NOW,
        updated_at=NOW,
        decay_rate=DECAY_RATES[kind],
        entity_ids=fields.pop("entity_ids", (subject,)),
        **fields,
    )


def entity(name: str, type: str = "Person", **fields: Any) -> Entity:
    return Entity(id=name.lower(), name=name, type=type, created_at=NOW, updated_at=NOW, **fields)


def make_context(*facts: Fact, entities: tuple[Entity, ...] = (), **fields: Any) -> GuardContext:
    entities_by_id = {known.id: known for known in (entity("user", is_user=True), *entities)}
    ids_by_name = {
        name_key(name): known.id for known in entities_by_id.values() for name in (known.name, *known.aliases)
    }
    return GuardContext(
        NOW, {fact.memory_id: fact for fact in facts}, entities_by_id, entity_ids_by_name=ids_by_name, **fields
    )


def check(action: str, context: GuardContext, **fields: Any) -> str | None:
    return refusal_reason(parse_proposals([{"action": action, **fields}])[0], context)


def check_merge(content: str, *facts: Fact, entities: tuple[Entity, ...] = (), verified: bool = True) -> str | None:
    context = replace(make_context(*facts, entities=entities), curated=True)
    ids = [source.memory_id for source in facts]
    return check("MERGE", context, memory_ids=ids, content=content, verified=verified)


ADVERSARIAL = {
    "Bob's coffee and Alice's tea": (
        "Bob prefers coffee and Alice prefers tea",
        fact("a", "Bob prefers coffee"),
        fact("b", "Alice prefers tea"),
    ),
    "the same with their own entities": (
        "Bob and Alice like hot drinks: coffee and tea",
        fact("a", "Bob prefers coffee", "bob"),
        fact("b", "Alice prefers tea", "alice"),
    ),
    "one person named, the other implied": (
        "Bob likes coffee and tea",
        fact("a", "Bob likes coffee"),
        fact("b", "Likes tea"),
    ),
    "two Johns by surname": (
        "John Smith works at Acme and John Doe lives in Berlin",
        fact("a", "John Smith works at Acme"),
        fact("b", "John Doe lives in Berlin"),
    ),
    "a dropped date": (
        "The trip to Rome is on July 15",
        fact("a", "The trip to Rome is planned for June 30"),
        fact("b", "The trip to Rome was moved to July 15"),
    ),
    "contradictory dates, both kept": (
        "The deadline is June 30 or July 15",
        fact("a", "The deadline is June 30"),
        fact("b", "The deadline is July 15"),
    ),
    "contradictory numbers": (
        "The rent is 900 or 950 euros",
        fact("a", "The rent is 900 euros"),
        fact("b", "The rent is 950 euros"),
    ),
    "a lost number": (
        "User has dogs named Rex and Max",
        fact("a", "User has 2 dogs"),
        fact("b", "User has dogs named Rex and Max"),
    ),
    "across scopes": (
        "User likes tea and jazz",
        fact("a", "User likes tea"),
        fact("b", "User likes jazz", scope=Scope.EPISODIC),
    ),
    "across domains": (
        "User likes Python and rye bread",
        fact("a", "User likes Python", scope=Scope.DOMAIN, domain="coding"),
        fact("b", "User likes rye bread", scope=Scope.DOMAIN, domain="cooking"),
    ),
    "an immutable memory": (
        "User likes tea and jazz",
        fact("a", "User likes tea", immutable=True),
        fact("b", "User likes jazz"),
    ),
    "two starts": (
        "User plays chess and the piano",
        fact("a", "User plays chess", valid_at=NOW),
        fact("b", "User plays the piano", valid_at=LATER),
    ),
    "contradictory validity": (
        "User lives in Berlin and rents a flat",
        fact("a", "User lives in Berlin", invalid_at=LATER),
        fact("b", "User rents a flat"),
    ),
    "an expiring memory and a lasting one": (
        "User feels tired and likes tea",
        fact("a", "User feels tired", expires_at=LATER),
        fact("b", "User likes tea"),
    ),
    "an ended memory": (
        "User likes tea and jazz",
        fact("a", "User likes tea", status=MemoryStatus.SUPERSEDED, invalid_at=NOW),
        fact("b", "User likes jazz"),
    ),
    "single-valued relations that change independently": (
        "User works at Acme and lives in Berlin",
        fact("a", "User works at Acme", predicate="WORKS_AT", single_valued=True),
        fact("b", "User lives in Berlin", predicate="LIVES_IN", single_valued=True),
    ),
}


def test_a_refusal_for_two_people_names_them() -> None:
    reason = check_merge("Bob and Alice like it", fact("a", "Bob prefers coffee"), fact("b", "Alice prefers tea"))
    assert reason is not None
    assert {"Bob", "Alice"} <= set(reason.replace(",", "").split())


@pytest.mark.req("UMB-16", "UMB-15")
def test_a_bad_merge_is_refused_though_a_person_has_verified_it() -> None:
    assert [name for name, (content, *facts) in ADVERSARIAL.items() if not check_merge(content, *facts)] == []


def test_a_model_cannot_verify_its_own_merge() -> None:
    context = make_context(fact("a", "User rows"), fact("b", "User sings"))
    assert check("MERGE", context, memory_ids=["a", "b"], content="User rows and sings", verified=True)


def refuses_link(keep: str, merge: str, *, curated: bool = False) -> bool:
    context = make_context(entities=(entity(keep), entity(merge)), curated=curated)
    return check("LINK_ENTITIES", context, keep_id=keep.lower(), merge_id=merge.lower()) is not None


@pytest.mark.req("UMB-14")
def test_two_names_of_one_person_may_be_linked() -> None:
    pairs = [("Frederick", "Fred"), ("Robert Miller", "Bob Miller"), ("Zoë", "Zoe"), ("John Smith", "J. Smith")]
    assert [pair for pair in pairs if refuses_link(*pair)] == []


@pytest.mark.req("UMB-16")
def test_two_people_are_never_linked() -> None:
    pairs = [
        ("John Smith", "John Doe"),
        ("Bob", "Alice"),
        ("Alexander", "Alexandra"),
        ("Fred", "Freda"),
        ("Agent 12", "Agent 13"),
    ]
    for curated in (False, True):
        assert [pair for pair in pairs if not refuses_link(*pair, curated=curated)] == []


def link_john(*touching: Fact, **fields: Any) -> str | None:
    people = (entity("John Smith"), entity("John"))
    facts = {"john": touching, "john smith": touching}
    context = make_context(entities=people, facts_by_entity=facts, **fields)
    return check("LINK_ENTITIES", context, keep_id="john smith", merge_id="john")


def test_conflicting_facts_prevent_linking() -> None:
    shared = (
        fact("a", "John works at Acme", "john", predicate="WORKS_AT", object_id="acme"),
        fact("b", "John Smith works at Acme", "john smith", predicate="WORKS_AT", object_id="acme"),
    )
    assert link_john(*shared) is None
    assert link_john(), "a part of a name alone is no evidence"
    assert link_john(*shared, fact("c", "John is not John Smith", "john", entity_ids=("john", "john smith")))
    assert link_john(fact("a", "John met John Smith", "john", object_id="john smith"))
    assert link_john(fact("a", "Lunch with John and John Smith", entity_ids=("user", "john", "john smith")))
    assert link_john(fact("a", "John is tall", "john", immutable=True))
    assert link_john(other_relationships={"john": ["OWNS"]})
    assert link_john(
        fact("a", "John lives in Rome", "john", predicate="LIVES_IN", single_valued=True, object_id="rome"),
        fact("b", "John Smith lives in Oslo", "john smith", predicate="LIVES_IN", single_valued=True, object_id="oslo"),
    )
    assert link_john(
        fact("a", "John lived in Rome", "john", predicate="LIVES_IN", single_valued=True, object_id="rome",
             invalid_at=NOW),
        fact("b", "John Smith lived in Oslo", "john smith", predicate="LIVES_IN", single_valued=True,
             object_id="oslo", invalid_at=NOW),
    ), "they lived in two places at the same time"  # fmt: skip
    assert link_john(*shared, similarly_named={"john": [entity("John Doe")]}), "John may be either of two"


@pytest.mark.parametrize("predicate", ["ALSO_KNOWN_AS", "SAME_AS"])
def test_a_stated_identity_is_evidence_enough(predicate: str) -> None:
    stated = fact("a", "Mum is called Carol", "mum", predicate=predicate, object_id="carol")
    stated = replace(stated, entity_ids=("mum", "carol"))
    facts = {"mum": [stated], "carol": [stated]}
    context = make_context(entities=(entity("Mum"), entity("Carol")), facts_by_entity=facts)
    assert check("LINK_ENTITIES", context, keep_id="carol", merge_id="mum") is None


def test_entities_of_different_types_and_the_user_are_not_linked_away() -> None:
    country = Entity(id="j", name="Jordan", type="Country", created_at=NOW, updated_at=NOW)
    context = make_context(entities=(entity("Jordan"), country))
    assert check("LINK_ENTITIES", context, keep_id="j", merge_id="jordan")
    assert check("LINK_ENTITIES", context, keep_id="jordan", merge_id="user")


def test_a_curator_may_link_things_by_unlike_names_once_verified() -> None:
    places = (entity("New York", "City"), entity("Big Apple", "City"))
    given = {"keep_id": "new york", "merge_id": "big apple"}
    curated = make_context(entities=places, curated=True)
    assert check("LINK_ENTITIES", curated, **given)
    assert check("LINK_ENTITIES", curated, **given, verified=True) is None


@pytest.mark.req("UMB-16")
def test_associations_stay_within_one_person_and_scope() -> None:
    bob, alice = entity("Bob"), entity("Alice")
    context = make_context(
        fact("a", "Bob likes coffee", "bob"),
        fact("b", "Alice likes tea", "alice"),
        fact("c", "Bob roasts beans", "bob"),
        fact("d", "Bob likes oat milk", "bob", scope=Scope.EPISODIC),
        entities=(bob, alice),
    )
    assert check("ASSOCIATE", context, memory_ids=["a", "c"]) is None
    assert check("ASSOCIATE", context, memory_ids=["a", "b"])
    assert check("ASSOCIATE", context, memory_ids=["a", "d"])
    assert check("ASSOCIATE", context, memory_ids=["a", "unknown"])


def test_a_new_entity_must_be_mentioned_by_its_memories() -> None:
    context = make_context(fact("a", "User walks with Rex"), entities=(entity("Bob"),))
    assert check("CREATE_ENTITY", context, name="Rex", type="Animal", memory_ids=["a"]) is None
    assert check("CREATE_ENTITY", context, name="Max", type="Animal", memory_ids=["a"])
    assert check("CREATE_ENTITY", context, name="bob", type="Person", memory_ids=["a"])


def test_identifying_properties_of_an_entity_cannot_be_updated() -> None:
    context = make_context(entities=(entity("Bob", aliases=["Bobby"]), entity("Rob")))
    assert check("UPDATE_ENTITY", context, entity_id="bob", set={"job": "baker"}, add_aliases=["Robert"]) is None
    assert check("UPDATE_ENTITY", context, entity_id="bob", set={"group_id": "other:user"})
    assert check("UPDATE_ENTITY", context, entity_id="bob", add_aliases=["Rob"])
    assert check("UPDATE_ENTITY", context, entity_id="bob", set={"type": "City"})
    assert check("UPDATE_ENTITY", context, entity_id="nobody", set={"job": "baker"})


@pytest.mark.req("UMB-14")
@pytest.mark.parametrize("action", ["DELETE", "SPLIT", "", None])
def test_any_other_action_is_bad_input(action: str | None) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_proposals([{"action": action, "memory_ids": ["a", "b"]}])
    assert caught.value.errors


@pytest.mark.parametrize(
    ("current", "ended", "text_before", "text_after", "aborts"),
    [
        (100, 30, 1000, 700, False),
        (100, 31, 1000, 700, True),
        (931, 745, 90_000, 60_000, True),
        (100, 20, 1000, 200, True),
        (2, 2, 40, 30, False),
    ],
)
def test_the_loss_guard_aborts_runs_above_its_limits(
    current: int, ended: int, text_before: int, text_after: int, aborts: bool
) -> None:
    limits = LossLimits(max_ended_share=0.3, min_text_share=0.25, free_ended_count=4)
    assert bool(check_loss(limits, current, ended, text_before, text_after)) is aborts
