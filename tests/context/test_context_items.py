"""Context items: what recent messages mention, stored until it expires."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphmem.context.models import ContextItemIn
from graphmem.conversations.session import MessageIn
from graphmem.memories.memory import MemoryIn
from tests.context.conftest import ContextHarness


@pytest.mark.req("TRUE-04", "TRUE-07", "TRUE-08")
async def test_a_mention_is_stored_with_all_its_fields(finance_harness: ContextHarness) -> None:
    harness = finance_harness
    await harness.add_messages(
        "s", MessageIn(role="user", content="My budget was $400", entities={"city": "Porto"}), learn=True
    )
    items = {item.context_type: item for item in await harness.contexts.list_items(harness.owner)}
    assert items.keys() == {"amount_reference", "entity_city"}
    amount = items["amount_reference"]
    assert (amount.session_id, amount.user_id, amount.context_key) == ("s", "mara", "amount_budget")
    assert amount.context_value == {"amount": 400.0, "currency": "$", "text": "$400", "context": "budget"}
    assert (amount.relevance_score, amount.created_at) == (0.8, harness.clock())
    assert amount.expires_at == harness.clock() + timedelta(minutes=30)


@pytest.mark.req("TRUE-08")
async def test_context_items_expire_by_their_kind(harness: ContextHarness) -> None:
    said = MessageIn(role="user", content="I paid $40 yesterday", entities={"city": "Porto"})
    await harness.add_messages("s", said, learn=True)
    begun = harness.clock()
    expected: tuple[tuple[int, set[str]], ...] = (
        (29, {"time_reference", "amount_reference", "entity_city"}),
        (31, {"time_reference", "entity_city"}),
        (59, {"time_reference", "entity_city"}),
        (61, {"entity_city"}),
        (119, {"entity_city"}),
        (121, set()),
    )
    for minutes, live in expected:
        harness.clock.now = begun + timedelta(minutes=minutes)
        assert {item.context_type for item in await harness.contexts.list_items(harness.owner)} == live, minutes
        context = await harness.build_context("And now?", session_id="s")
        assert {item.context_type for item in context.active_contexts} == live, minutes


@pytest.mark.req("TRUE-08")
async def test_an_item_expires_in_a_cached_context(harness: ContextHarness) -> None:
    await harness.add_messages("s", "I paid $40", learn=True)
    assert (await harness.build_context("And now?", session_id="s")).active_contexts
    harness.clock.advance(timedelta(minutes=30))
    assert (await harness.build_context("And now?", session_id="s")).active_contexts == []


@pytest.mark.req("TRUE-08")
async def test_repeating_a_mention_extends_its_life_without_a_duplicate(harness: ContextHarness) -> None:
    await harness.add_messages("s", "I paid $40", learn=True)
    harness.clock.advance(timedelta(minutes=20))
    await harness.add_messages("s", "I paid $40", learn=True)
    (item,) = await harness.contexts.list_items(harness.owner)
    assert item.expires_at == harness.clock() + timedelta(minutes=30)


async def test_learning_from_the_same_messages_twice_changes_nothing(harness: ContextHarness) -> None:
    messages = await harness.add_messages("s", "I paid $40. Please keep it short.", learn=True)
    before = await harness.contexts.list_items(harness.owner), await harness.contexts.list_preferences(harness.owner)
    await harness.learner.learn_from_messages(harness.owner, messages)
    assert (
        await harness.contexts.list_items(harness.owner),
        await harness.contexts.list_preferences(harness.owner),
    ) == before


async def test_items_of_another_session_or_user_are_excluded(harness: ContextHarness) -> None:
    await harness.add_messages("s", "I paid $40", learn=True)
    assert await harness.contexts.list_items(harness.owner, "other") == []
    assert (await harness.build_context("And now?", session_id="other")).active_contexts == []
    assert await harness.contexts.list_items(harness.owner.tenant_global) == []


@pytest.mark.req("TRUE-07")
async def test_a_known_entity_is_found_in_the_text(harness: ContextHarness) -> None:
    await harness.save_memories(
        MemoryIn(content="Mara has a dog, Rex", predicate="HAS_PET", object={"name": "Rex", "type": "Dog"})
    )
    await harness.add_messages("s", "Rex is hungry", learn=True)
    assert [(item.context_type, item.context_value) for item in await harness.contexts.list_items(harness.owner)] == [
        ("entity_dog", "Rex")
    ]


@pytest.mark.req("CASH-11")
async def test_a_secret_never_becomes_a_context_item(harness: ContextHarness) -> None:
    entities = {"card": "4111 1111 1111 1111", "email": "mara@example.org", "city": "Porto"}
    await harness.add_messages("s", MessageIn(role="user", content="Here you are", entities=entities), learn=True)
    assert [item.context_value for item in await harness.contexts.list_items(harness.owner)] == ["Porto"]


@pytest.mark.req("TRUE-23")
async def test_pruning_deletes_expired_items_only(harness: ContextHarness) -> None:
    await harness.add_messages(
        "s", MessageIn(role="user", content="I paid $40", entities={"city": "Porto"}), learn=True
    )
    harness.clock.advance(timedelta(minutes=31))
    assert await harness.learner.prune(harness.owner) == {"context_items": 1, "preferences": 0}
    assert len(await harness.contexts.list_items(harness.owner)) == 1


async def test_an_item_is_linked_to_its_session_and_message(harness: ContextHarness) -> None:
    (message,) = await harness.add_messages("s", "I paid $40", learn=True)
    rows = await harness.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (s:Session)-[:HAS_CONTEXT]->(c:ContextItem {group_id: $group})-[:MENTIONED_IN]->(m:Episodic) "
            "RETURN s.session_id AS session, c.name AS name, m.message_id AS message",
            {"group": harness.owner.group_id},
        )
    )
    assert [(row["session"], row["message"]) for row in rows] == [("s", message.id)]
    assert rows[0]["name"].startswith("amount_general: ")


async def test_a_stated_object_reads_as_words(harness: ContextHarness) -> None:
    item = ContextItemIn(type="preference", key="style", value={"tone": "warm", "use_emoji": False})
    await harness.contexts.add_item(harness.owner, item)
    preamble = (await harness.build_context("Hello")).preamble
    assert "style: tone warm, use emoji no" in preamble
