"""Matching of names, and the entities that the names of a batch mean."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.ingestion.candidates import AliasGroup
from graphmem.ingestion.link import choose_user_name, resolve_names
from graphmem.memories.entity import EntityRef
from graphmem.memories.names import (
    NameReason,
    are_different_people,
    compare_names,
    is_named_in,
    is_short_form,
    may_mean_same_person,
)


def test_two_names_are_the_same_possibly_the_same_or_different() -> None:
    for name, type, known, known_type, similarity, alike in (
        ("José", "Person", "Jose", "Person", 0.0, True),
        ("Acme Inc.", "Organization", "Acme", "Organization", 0.0, True),
        ("Ana Sá", "Person", "Ana", "Person", 0.0, False),
        ("Jonas", "Person", "Jonas Brandt", "Person", 0.9, False),
        ("Jonas Okafor", "Person", "Jonas Brandt", "Person", 0.95, None),
        ("Kopenhagen", "Place", "Copenhagen", "Place", 0.5, False),
        ("Köln", "Place", "Cologne", "Place", 0.9, False),
        ("Paris", "Person", "Paris", "Place", 1.0, None),
        ("Paris", "Thing", "Paris", "Place", 1.0, True),
        ("Lund", "Place", "Malmö", "Place", 0.5, None),
        ("Jonas (colleague)", "Person", "Jonas", "Person", 0.0, False),
        ("Jonas (colleague)", "Person", "Jonas (Kollege)", "Person", 0.0, False),
        ("健太(会社)", "Person", "健太", "Person", 0.0, False),
        ("!!", None, "??", None, 0.0, None),
        ("Calvin", "Person", "Calvin's dad", "Person", 0.9, None),
        ("Calvin’s agent", "Person", "Calvin", "Person", 0.9, None),
        ("Calvin", "Person", "Tom (Calvin's agent)", "Person", 0.9, None),
        ("James", "Person", "James' uncle", "Person", 0.0, None),
        ("Calvin", "Person", "madre de Calvin", "Person", 0.0, None),
        ("Elin", "Person", "Mara's sister Elin", "Person", 0.0, False),
        ("Rosa", "Person", "Tía Rosa", "Person", 0.0, False),
        ("Paul", "Person", "Paul (Calvin's agent)", "Person", 0.0, False),
        ("Sotheby's", "Organization", "Sotheby's London", "Organization", 0.0, False),
    ):
        reason = compare_names(name, type, known, known_type, similarity)
        assert (None if reason is None else reason is NameReason.SAME_WORDS) is alike, (name, known)


def test_two_people_share_a_first_name_and_a_short_form_is_part_of_a_name() -> None:
    assert are_different_people("Jonas Okafor", "Jonas Brandt")
    assert not are_different_people("Jonas", "Jonas Brandt")
    assert not are_different_people("Anna Maria Li", "Anna Li")
    assert is_short_form("Jonas", "Jonas Brandt")
    assert not is_short_form("Freddie", "Frederike Holm")
    assert not is_short_form("Mara", "Mara's sister")
    assert not are_different_people("Jonas (colleague)", "Jonas Brandt")


def test_a_thing_is_named_in_a_sentence_without_its_owner() -> None:
    assert is_named_in("Mara's boat", "Mara sells the boat", but="Mara")
    assert is_named_in("Maras Boot", "Mara verkauft das Boot", but="Mara")
    assert not is_named_in("Mara's boat", "Mara sells the car", but="Mara")
    assert not is_named_in("Mara's", "Mara sells the car", but="Mara")
    assert is_named_in("帆船", "美咲卖掉了帆船", but="美咲")


def test_somebody_else_at_the_keyboard_is_not_taken_for_the_user() -> None:
    assert may_mean_same_person("Mara", "Mara Lindqvist")
    assert not may_mean_same_person("Tom", "Mara Lindqvist")
    assert not may_mean_same_person("Mara Holm", "Mara Lindqvist")


@pytest.mark.req("QUINN-27")
def test_the_user_id_gives_way_to_a_name_and_a_name_to_a_fuller_one() -> None:
    spoken, told = AliasGroup("", ("Mara",)), AliasGroup("", ("Mara Lindqvist", "Mimi"))
    assert choose_user_name("u-17", "u-17", [spoken]) == "Mara"
    assert choose_user_name("u-17", "u-17", [spoken, told]) == "Mara Lindqvist"
    assert choose_user_name("Mara", "u-17", [spoken, told]) == "Mara Lindqvist"
    assert choose_user_name("Mara Lindqvist", "u-17", [spoken]) is None
    known = AliasGroup("", ("Alice Smith", "Alice Johnson"))
    assert (
        choose_user_name("Alice Johnson", "u-17", [known, AliasGroup("", ("Alice Berg", "Alice Johnson"))])
        == "Alice Berg"
    )
    assert choose_user_name("Alice Johnson", "u-17", [known, AliasGroup("", ("Alice Smith",))]) is None
    assert choose_user_name("u-17", "u-17", [AliasGroup("", ("U-17",)), AliasGroup("", ())]) is None


PEOPLE = {
    "e1": EntityRef(id="e1", name="Freddie", type="Person"),
    "e2": EntityRef(id="e2", name="Mara's sister", type="Person"),
    "e3": EntityRef(id="e3", name="Jonas", type="Person"),
    "e4": EntityRef(id="e4", name="Herr Pixel", type="Animal"),
}


def resolve(alias_groups: list[AliasGroup], entities: dict[str, str], decided: dict[str, str] | None = None) -> Any:
    return resolve_names(entities, decided or {}, {"jonas brandt": "Jonas Brandt"}, PEOPLE, alias_groups, "me")


def test_a_nickname_is_replaced_by_the_full_name() -> None:
    resolution = resolve([AliasGroup("Frederike Holm", ("Freddie",))], {"freddie": "e1"})
    assert resolution.renames == {"e1": "Frederike Holm"}
    assert resolution.canonical_names == {"freddie": "Frederike Holm", "frederike holm": "Frederike Holm"}
    assert resolution.aliases == {"e1": ["Freddie"]}


def test_a_relation_description_is_replaced_by_the_name() -> None:
    resolution = resolve([AliasGroup("Elin", ("Mara's sister",))], {"mara's sister": "e2"})
    assert resolution.renames == {"e2": "Elin"}
    assert resolution.aliases == {"e2": ["Mara's sister"]}
    assert resolution.canonical_names == {"mara's sister": "Elin", "elin": "Elin"}


def test_a_first_name_is_replaced_by_the_full_name_and_not_kept_as_an_alias() -> None:
    resolution = resolve([], {}, {"jonas brandt": "e3"})
    assert (resolution.renames, resolution.aliases) == ({"e3": "Jonas Brandt"}, {"e3": []})


def test_two_known_entities_are_not_merged_by_an_alias_group() -> None:
    resolution = resolve([AliasGroup("Freddie", ("Herr Pixel",))], {"freddie": "e1", "herr pixel": "e4"})
    assert resolution.rejected_pairs == ["two entities are known by these names"]
    assert (resolution.aliases, resolution.renames) == ({}, {})


def test_alias_groups_of_new_entities_share_one_canonical_name() -> None:
    resolution = resolve([AliasGroup("Frederike Holm", ("Freddie", "Frederike"))], {})
    assert resolution.canonical_names == {"freddie": "Frederike Holm", "frederike": "Frederike Holm"}
    assert resolution.aliases == {"frederike holm": ["Freddie"]}
