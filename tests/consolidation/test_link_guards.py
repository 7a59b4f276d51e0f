"""Entities are linked on evidence: a memory that says so, or names that only one thing has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from tests.consolidation.test_guards import check, entity, fact, make_context

PROVEN = [
    ("Katharina Boll", "Kitty", "Katharina Boll, whom friends call Kitty, lives in Prüm.", "STATES"),
    ("Ulrich Sand", "Uli", "Ulrich Sand wird von allen Uli genannt.", "STATES"),
    ("Marguerite Pons", "Margot", "Tout le monde appelle Marguerite Pons Margot.", "STATES"),
    ("Francisco Rey", "Paco", "A Francisco Rey lo llaman Paco.", "STATES"),
    ("Giuseppina Riva", "Pina", "Giuseppina Riva è detta Pina.", "STATES"),
    ("Евгений Котов", "Женя", "Евгения Котова все зовут Женя.", "STATES"),
    ("山口由美", "ゆみりん", "山口由美は友達にゆみりんと呼ばれている。", "STATES"),
    ("王小梅", "梅子", "王小梅的小名叫做梅子。", "STATES"),
    ("Ольга Белова", "Olga Belova", "Ольга Белова живёт в Перми.", "STATES"),
    ("Katharina Boll", "K.", "K. is Katharina Boll.", "ALSO_KNOWN_AS"),
]

APART = [
    ("Anna Boll", "Anna Sand", "Anna Boll and Anna Sand share an office.", "STATES"),
    ("Anna Boll", "Anne Boll", "Anna Boll is not Anne Boll.", "STATES"),
    ("Anna Boll", "Anne Boll", "Anna Boll ist nicht mit Anne Boll zu verwechseln.", "STATES"),
    ("Ana Rey", "Eva Rey", "Ana Rey es otra persona que Eva Rey.", "STATES"),
    ("Анна Котова", "Анна Белова", "Анна Котова и Анна Белова работают вместе.", "STATES"),
    ("山口由美", "山田由美", "山口由美と山田由美は別人だ。", "STATES"),
    ("Anna Boll", "Boll", "Anna Boll paints.", "STATES"),
    ("Anna Boll", "Ann", "Anna Boll paints.", "STATES"),
    ("Mr Boll", "Mrs Boll", "Mr Boll paints.", "STATES"),
]


def refusal(keep: str, merge: str, content: str, predicate: str, *, cited: bool) -> str | None:
    one, other = (entity(name) for name in (keep, merge))
    stated = fact("m", content, one.id, predicate=predicate, entity_ids=(one.id,))
    return _check(one, other, stated, cited=cited)


def _check(one: Entity, other: Entity, stated: Fact, *, cited: bool) -> str | None:
    context = make_context(stated, entities=(one, other), facts_by_entity={one.id: [stated]})
    evidence = [stated.memory_id] if cited else []
    return check("LINK_ENTITIES", context, keep_id=one.id, merge_id=other.id, evidence=evidence)


@pytest.mark.req("UMB-14")
@pytest.mark.parametrize(("keep", "merge", "content", "predicate"), PROVEN, ids=[merge for _, merge, *_ in PROVEN])
def test_a_sentence_that_gives_one_thing_two_names_is_evidence(
    keep: str, merge: str, content: str, predicate: str
) -> None:
    assert refusal(keep, merge, content, predicate, cited=True) is None


@pytest.mark.req("UMB-16")
@pytest.mark.parametrize("cited", [False, True])
@pytest.mark.parametrize(("keep", "merge", "content", "predicate"), APART, ids=[content for _, _, content, _ in APART])
def test_namesakes_and_those_that_a_sentence_tells_apart_are_not_linked(
    keep: str, merge: str, content: str, predicate: str, cited: bool
) -> None:
    assert refusal(keep, merge, content, predicate, cited=cited)


def test_relatives_of_the_user_are_not_the_user() -> None:
    user, aunt = entity("user", is_user=True, aliases=["Mara"]), entity("Ines")
    stated = fact("m", "Mara's aunt Ines is called the boss", aunt.id, entity_ids=(aunt.id, user.id))
    context = replace(
        make_context(stated, facts_by_entity={aunt.id: [stated]}), entities={user.id: user, aunt.id: aunt}
    )
    assert check("LINK_ENTITIES", context, keep_id=user.id, merge_id=aunt.id, evidence=["m"])


def test_an_alias_needs_a_memory_that_gives_it() -> None:
    bertram = entity("Bertram Hale")
    called = fact("m", "Bertram Hale is known as Bertie", bertram.id)
    wished = fact("w", "Bertram Hale wants to be an administrator", bertram.id)
    for stated, alias, is_given in ((called, "Bertie", True), (wished, "administrator", False)):
        context = make_context(stated, entities=(bertram,), facts_by_entity={bertram.id: [stated]})
        reason = check("UPDATE_ENTITY", context, entity_id=bertram.id, add_aliases=[alias], evidence=[stated.memory_id])
        assert (reason is None) is is_given
