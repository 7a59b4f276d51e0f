"""Whose word the details of entities are once two of them are one."""

from __future__ import annotations

from typing import Any

import pytest

from graphmem.memories.entity_details import join_detail_sources


def node(name: str, *, sources: list[str], **given: Any) -> dict[str, Any]:
    """An entity node with what sources that are not the user's gave it."""
    return {"name_key": name, "type": "Thing", "alias_keys": [], "attributes": "{}", "detail_sources": sources, **given}


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
    assert join_detail_sources(bob, robert) == {
        "alias robert": "tool",
        "type": "tool",
        "alias carol": "web",
        "attribute age": "tool",
    }


def test_the_kept_entity_decides_whose_word_a_detail_is_that_both_have() -> None:
    bob = node("bob", sources=["web alias carol", "web summary"], alias_keys=["carol"], type="Person")
    other = node("robert", sources=["tool alias carol", "tool summary", "tool type"], alias_keys=["carol"])
    assert join_detail_sources(bob, other) == {"alias carol": "web", "summary": "web"}
