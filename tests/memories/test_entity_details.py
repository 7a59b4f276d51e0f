"""Whose word the details of entities are once two of them are one."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.memories.entity import SourcedDetails
from graphmem.tenants.trust import DEFAULT_ORDER


def node(name: str, *, sources: list[str], **given: Any) -> dict[str, Any]:
    """An entity node with what sources that are not the user's gave it."""
    keys = given.pop("alias_keys", [])
    known = {"name": name, "name_key": name, "type": "Thing", "summary": "", "attributes": "{}", **given}
    return {**known, "aliases": keys, "alias_keys": keys, "detail_sources": sources}


def joined_sources(keep: dict[str, Any], merge: dict[str, Any]) -> set[str]:
    details = SourcedDetails(keep, DEFAULT_ORDER)
    details.absorb(merge)
    return set(details.node["detail_sources"])


@pytest.mark.req("UMB-14")
def test_what_a_tool_gave_an_entity_stays_the_tools_when_it_becomes_part_of_another() -> None:
    bob = node("bob", sources=[], alias_keys=["bobby"], attributes='{"height": 1}')
    robert = node(
        "robert",
        sources=["tool name", "tool type", "web alias carol", "web alias bobby", "tool attribute age"],
        type="Person",
        alias_keys=["carol", "bobby", "rob"],
        attributes='{"age": 4, "height": 2}',
    )
    assert joined_sources(bob, robert) == {"tool alias robert", "tool type", "web alias carol", "tool attribute age"}


def test_the_kept_entity_decides_whose_word_a_detail_is_that_both_have() -> None:
    bob = node("bob", sources=["web alias carol", "web summary"], alias_keys=["carol"], type="Person")
    other = node("robert", sources=["tool alias carol", "tool summary", "tool type"], alias_keys=["carol"])
    assert joined_sources(bob, other) == {"web alias carol", "web summary"}
