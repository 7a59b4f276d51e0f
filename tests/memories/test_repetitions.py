"""What repeats a memory, and what a repetition adds to it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.entity import EntityIn
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, MemorySourceIn, SaveResult
from graphmem.tenants.owners import Owner


def at(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)


async def save(memory: Services, owner: Owner, *statements: MemoryIn) -> list[SaveResult]:
    """Save each statement on its own."""
    return [(await memory.memories.save(owner, [statement]))[0] for statement in statements]


async def contents(memory: Services, owner: Owner) -> set[str]:
    return {found.content for found in (await memory.memories.page(owner, ListFilters(limit=100))).items}


CORRECTIONS = [
    ("The gate code is aB3x", "The gate code is Ab3X"),
    ("The floor has 5 m2", "The floor has 5 m²"),
    ("The offset is −4 °C", "The offset is -4 °C"),
    ("The user greets with Hello", "The user greets with Hello!"),
    ("The key is a b", "The key is a  b"),
    ("Das Maß ist voll", "Das Mass ist voll"),
]


@pytest.mark.req("QUINN-23")
async def test_a_correction_in_any_character_is_another_statement(memory: Services, owner: Owner) -> None:
    for before, after in CORRECTIONS:
        first, second = await save(memory, owner, MemoryIn(content=before), MemoryIn(content=after))
        assert (first.action, second.action) == ("insert", "insert"), after
    assert await contents(memory, owner) == {text for pair in CORRECTIONS for text in pair}


async def test_unicode_form_and_outer_white_space_make_no_other_statement(memory: Services, owner: Owner) -> None:
    composed, decomposed = MemoryIn(content="Mara lives in Köln"), MemoryIn(content="  Mara lives in Ko\u0308ln\n")
    first, second = await save(memory, owner, composed, decomposed)
    assert first.memory
    assert second.memory
    assert (second.action, second.memory.id) == ("reinforce", first.memory.id)


async def test_a_supersession_counts_whatever_the_difference_is(memory: Services, owner: Owner) -> None:
    wifi = {"predicate": "WIFI", "single_valued": True}
    [old] = await save(memory, owner, MemoryIn(content="The wifi is called alpha7", **wifi))
    assert old.memory
    renamed = MemoryIn(content="The wifi is called ALPHA7", supersedes=[old.memory.id], **wifi)
    [new] = await save(memory, owner, renamed)
    assert (new.action, new.superseded) == ("supersede", [old.memory.id])
    [again] = await save(memory, owner, MemoryIn(content="The wifi is called alpha7", **wifi))
    assert again.action == "supersede"
    assert await contents(memory, owner) == {"The wifi is called alpha7"}


async def test_the_same_words_about_another_object_are_another_statement(memory: Services, owner: Owner) -> None:
    met = [MemoryIn(content="Mara met Bob", predicate="MET", object={"name": name}) for name in ("Bob", "Bob Berg")]
    knows = MemoryIn(content="Mara met Bob", predicate="KNOWS", object={"name": "Bob"})
    unnamed = MemoryIn(content="Mara met Bob")
    results = await save(memory, owner, *met, knows, met[0], unnamed)
    assert [result.action for result in results] == ["insert", "insert", "insert", "reinforce", "reinforce"]
    first, repeated = results[0].memory, results[3].memory
    assert first
    assert repeated
    assert repeated.id == first.id


async def test_a_repetition_adds_what_is_new_as_a_version(memory: Services, owner: Owner) -> None:
    lot = "Kim parks in lot 4"
    first = MemoryIn(content=lot, metadata={"source": "form", "floor": 2}, tags=["car"])
    again = MemoryIn(
        content=lot,
        type="preference",
        metadata={"source": "mail", "permit": 17},
        tags=["permit"],
        expires_at=at(2090),
        valid_at=at(2020),
        entities=[EntityIn(name="Lot 4", type="Place")],
        source=MemorySourceIn(session_id="parking"),
    )
    _, result = await save(memory, owner, first, again)
    saved = result.memory
    assert saved
    assert (result.action, result.ignored, saved.version) == ("reinforce", [], 2)
    assert saved.metadata == {"source": "mail", "floor": 2, "permit": 17}
    assert (saved.tags, saved.type) == (["car", "permit"], "preference")
    assert (saved.expires_at, saved.valid_at) == (at(2090), at(2020))
    assert saved.source.session_id == "parking"
    assert "Lot 4" in [entity.name for entity in saved.entities]
    listed = await memory.memories.page(owner, ListFilters(entity="Lot 4"))
    assert [found.id for found in listed.items] == [saved.id]
    versions = await memory.memories.history(owner, saved.id)
    assert [version.ended_reason for version in versions] == ["stated again", None]
    assert versions[0].metadata == {"source": "form", "floor": 2}

    [unchanged] = await save(memory, owner, again)
    assert unchanged.memory
    assert (unchanged.ignored, unchanged.memory.version) == ([], 2), "nothing in it is new"
    [elsewhere] = await save(memory, owner, MemoryIn(content=lot, source=MemorySourceIn(session_id="another")))
    assert elsewhere.memory
    assert (elsewhere.ignored, elsewhere.memory.source.session_id) == (["source"], "parking")


async def test_a_repetition_says_what_it_does_not_take_over(memory: Services, owner: Owner) -> None:
    parks = MemoryIn(content="Kim parks in lot 4", valid_at=at(2020))
    [first] = await save(memory, owner, parks)
    assert first.memory
    later = parks.model_copy(update={"valid_at": at(2024), "supersedes": [first.memory.id], "immutable": True})
    [moved] = await save(memory, owner, later)
    assert moved.memory
    assert sorted(moved.ignored) == ["immutable", "supersedes", "valid_at"]
    assert moved.reason
    assert all(name in moved.reason for name in moved.ignored)
    assert (moved.memory.version, moved.memory.valid_at) == (1, at(2020))

    fixed = MemoryIn(content="Kim is allergic to nuts", immutable=True)
    _, tagged = await save(memory, owner, fixed, MemoryIn(content="Kim is allergic to nuts", tags=["health"]))
    assert tagged.memory
    assert (tagged.ignored, tagged.memory.tags) == (["tags"], [])

    sure = MemoryIn(content="Kim speaks Dutch", confidence=0.95, importance=0.8)
    _, unsure = await save(memory, owner, sure, MemoryIn(content="Kim speaks Dutch", confidence=0.6, importance=0.2))
    assert unsure.memory
    assert sorted(unsure.ignored) == ["confidence", "importance"]
    assert (unsure.memory.confidence >= 0.95, unsure.memory.importance) == (True, 0.8)


async def test_a_repetition_adds_entities_and_a_first_session(memory: Services, owner: Owner) -> None:
    lot = "Kim parks in the second row"
    named = MemoryIn(content=lot, entities=[EntityIn(name="Lot 4")], source=MemorySourceIn(session_id="monday"))
    _, result = await save(memory, owner, MemoryIn(content=lot), named)
    assert result.memory
    assert "Lot 4" in {entity.name for entity in result.memory.entities}
    assert (result.ignored, result.memory.source.session_id) == ([], "monday")
    [later] = await save(memory, owner, MemoryIn(content=lot, source=MemorySourceIn(session_id="friday")))
    assert later.ignored == ["source"]


async def test_a_less_trusted_repetition_adds_nothing(memory: Services, owner: Owner) -> None:
    await save(memory, owner, MemoryIn(content="Kim parks in lot 4"))
    [result] = await memory.memories.save(
        owner, [MemoryIn(content="Kim parks in lot 4", metadata={"lot": 5}, expires_at=at(2090))], kind="tool"
    )
    assert result.memory
    assert sorted(result.ignored) == ["expires_at", "metadata"]
    assert (result.memory.version, result.memory.metadata) == (1, {})
