"""What was mentioned lately: kept as nodes, bound to its message, gone in time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graphmem.domain.memory import MemoryIn
from graphmem.domain.session import MessageIn
from tests.context.conftest import Ground


@pytest.mark.req("TRUE-04", "TRUE-07", "TRUE-08")
async def test_what_a_user_mentions_is_kept_with_all_its_fields(ground: Ground) -> None:
    await ground.say("s", MessageIn(role="user", content="My budget was $400", entities={"city": "Porto"}), learn=True)
    items = {each.context_type: each for each in await ground.contexts.contexts(ground.owner)}
    assert items.keys() == {"amount_reference", "entity_city"}
    amount = items["amount_reference"]
    assert (amount.session_id, amount.user_id, amount.context_key) == ("s", "mara", "amount_budget")
    assert amount.context_value == {"amount": 400.0, "currency": "$", "text": "$400", "context": "budget"}
    assert (amount.relevance_score, amount.created_at) == (0.8, ground.clock())
    assert amount.expires_at == ground.clock() + timedelta(minutes=30)


@pytest.mark.req("TRUE-08")
@pytest.mark.parametrize(
    ("minutes", "live"),
    [
        (29, {"time_reference", "amount_reference", "entity_city"}),
        (31, {"time_reference", "entity_city"}),
        (59, {"time_reference", "entity_city"}),
        (61, {"entity_city"}),
        (119, {"entity_city"}),
        (121, set()),
    ],
)
async def test_items_live_as_long_as_their_kind(ground: Ground, minutes: int, live: set[str]) -> None:
    told = MessageIn(role="user", content="I paid $40 yesterday", entities={"city": "Porto"})
    await ground.say("s", told, learn=True)
    ground.clock.advance(timedelta(minutes=minutes))
    assert {each.context_type for each in await ground.contexts.contexts(ground.owner)} == live
    context = await ground.ask("And now?", session_id="s")
    assert {each.context_type for each in context.active_contexts} == live


@pytest.mark.req("TRUE-08")
async def test_an_item_expires_in_a_context_that_nothing_was_written_to_since(ground: Ground) -> None:
    await ground.say("s", "I paid $40", learn=True)
    assert (await ground.ask("And now?", session_id="s")).active_contexts
    ground.clock.advance(timedelta(minutes=30))
    assert (await ground.ask("And now?", session_id="s")).active_contexts == []


@pytest.mark.req("TRUE-08")
async def test_the_same_mentioned_again_lives_longer_and_stays_one(ground: Ground) -> None:
    await ground.say("s", "I paid $40", learn=True)
    ground.clock.advance(timedelta(minutes=20))
    await ground.say("s", "I paid $40", learn=True)
    (item,) = await ground.contexts.contexts(ground.owner)
    assert item.expires_at == ground.clock() + timedelta(minutes=30)


async def test_learning_from_the_same_messages_twice_changes_nothing(ground: Ground) -> None:
    messages = await ground.say("s", "I paid $40. Please keep it short.", learn=True)
    before = await ground.contexts.contexts(ground.owner), await ground.contexts.preferences(ground.owner)
    await ground.contexts.on_messages(ground.owner, messages)
    assert (await ground.contexts.contexts(ground.owner), await ground.contexts.preferences(ground.owner)) == before


async def test_items_of_another_session_or_user_are_not_seen(ground: Ground) -> None:
    await ground.say("s", "I paid $40", learn=True)
    assert await ground.contexts.contexts(ground.owner, "other") == []
    assert (await ground.ask("And now?", session_id="other")).active_contexts == []
    assert await ground.contexts.contexts(ground.owner.everyone) == []


@pytest.mark.req("TRUE-07")
async def test_a_known_entity_is_found_without_the_sender_naming_it(ground: Ground) -> None:
    await ground.save(
        MemoryIn(content="Mara has a dog, Rex", predicate="HAS_PET", object={"name": "Rex", "type": "Dog"})
    )
    await ground.say("s", "Rex is hungry", learn=True)
    assert [(each.context_type, each.context_value) for each in await ground.contexts.contexts(ground.owner)] == [
        ("entity_dog", "Rex")
    ]


@pytest.mark.req("CASH-11")
async def test_a_secret_is_never_an_item(ground: Ground) -> None:
    told = {"card": "4111 1111 1111 1111", "email": "mara@example.org", "city": "Porto"}
    await ground.say("s", MessageIn(role="user", content="Here you are", entities=told), learn=True)
    assert [each.context_value for each in await ground.contexts.contexts(ground.owner)] == ["Porto"]


@pytest.mark.req("TRUE-23")
async def test_pruning_drops_what_has_expired_and_keeps_the_rest(ground: Ground) -> None:
    await ground.say("s", MessageIn(role="user", content="I paid $40", entities={"city": "Porto"}), learn=True)
    ground.clock.advance(timedelta(minutes=31))
    assert await ground.contexts.prune(ground.owner) == {"context_items": 1, "preferences": 0}
    assert len(await ground.contexts.contexts(ground.owner)) == 1


async def test_an_item_is_bound_to_its_session_and_its_message(ground: Ground) -> None:
    (message,) = await ground.say("s", "I paid $40", learn=True)
    rows = await ground.graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (s:Session)-[:HAS_CONTEXT]->(c:ContextItem {group_id: $group})-[:MENTIONED_IN]->(m:Episodic) "
            "RETURN s.session_id AS session, c.name AS name, m.message_id AS message",
            {"group": ground.owner.group_id},
        )
    )
    assert [(row["session"], row["message"]) for row in rows] == [("s", message.id)]
    assert rows[0]["name"].startswith("amount_spending: ")
