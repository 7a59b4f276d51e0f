"""Contexts in the wired service: learned in the background, used in the next context, deleted with the user."""

from __future__ import annotations

import asyncio

import pytest

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextItem, ContextRequest
from graphmem.conversations.session import MessageIn, MessagesIn
from graphmem.memories.memory import MemoryIn
from graphmem.tenants.owners import Owner


async def wait_for_context_items(memory: Services, owner: Owner, count: int) -> list[ContextItem]:
    """Return the context items as soon as there are `count`, or those there are after a minute."""
    items: list[ContextItem] = []
    for _ in range(600):
        items = await memory.contexts.list_items(owner)
        if len(items) >= count:
            break
        await asyncio.sleep(0.1)
    return items


@pytest.mark.req("TRUE-01", "TRUE-07", "QUINN-36")
async def test_a_message_is_observed_in_the_background_and_used_in_the_next_context(
    memory: Services, owner: Owner
) -> None:
    said = MessageIn(role="user", content="My budget is $400", entities={"city": "Porto"})
    await memory.messages.add(owner, MessagesIn(session_id="s", messages=[said], extract=False))
    items = await wait_for_context_items(memory, owner, 2)
    assert {item.context_type for item in items} == {"amount_reference", "entity_city"}
    context = await memory.contexts.build(owner, ContextRequest(question="And now?", session_id="s"))
    assert {item.id for item in context.active_contexts} == {item.id for item in items}
    assert "[USER]: My budget is $400" in context.preamble


async def test_a_forgotten_user_starts_with_an_empty_context(memory: Services, owner: Owner) -> None:
    asked = ContextRequest(question="Who am I?", session_id="s")
    await memory.memories.save(owner, [MemoryIn(content="Mara is vegetarian")])
    assert "vegetarian" in (await memory.contexts.build(owner, asked)).preamble
    await memory.forgetting.forget(owner)
    assert (await memory.contexts.build(owner, asked)).preamble == ""
    await memory.memories.save(owner, [MemoryIn(content="Mara is a sailor")])
    context = await memory.contexts.build(owner, asked)
    assert [remembered.content for remembered in context.memories] == ["Mara is a sailor"]
