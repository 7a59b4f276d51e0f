"""A user with data under every label and every relationship type of an export."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import (
    MessageIn,
    MessageRole,
    MessagesIn,
    RunMessage,
    SessionIn,
    SessionKind,
)
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.neo4j.driver import Transaction
from graphmem.search.models import Persona
from graphmem.tenants.owners import Owner

TRIP = "Please answer briefly in German. My goal is a trip to Lund on 12 May for $500."


async def fill_user(memory: Services, owner: Owner) -> None:
    """Write memories of several versions, messages, sessions, context, and what was learned and archived."""
    now = datetime.now(UTC)
    await _save_memories(memory, owner)
    talk = [
        MessageIn(
            id=f"m{index}",
            role="user" if index % 2 == 0 else "assistant",
            content=f"{TRIP} Number {index}.",
            name="Mara",
            timestamp=now - timedelta(minutes=10 - index),
            intent="trip_planning",
            entities={"goal": "trip"},
            metadata={"channel": "app"},
            rich_content={"text": "é"},
            query_results={"rows": [1.5, None]},
            confidence=0.5,
            sql_executed="SELECT 1",
            execution_time_ms=3,
        )
        for index in range(6)
    ]
    await memory.messages.add(
        owner, MessagesIn(session_id="talk", messages=talk, extract=False, timezone="Europe/Berlin", domain="travel")
    )
    await memory.retrieval.set_persona(owner, Persona(weights={"plan": 2.0}))
    episodes = memory.components.episodes
    await memory.learner.learn_from_messages(
        owner, await episodes.load_messages(owner, [turn.id for turn in talk if turn.id])
    )
    await memory.learner.learn_from_feedback(owner, "m1", 5, "great")
    built = await memory.contexts.build(owner, ContextRequest(question="Where does Mara live?", session_id="talk"))
    await memory.contexts.rate(owner, built.context_id, 5)
    await memory.retrieval.flush()
    extraction = SessionIn(session_id="extraction", domain="travel")
    await episodes.open_session(
        owner, extraction, kind=SessionKind.EXTRACTION, source_session_id="talk", job_id="job of extraction"
    )
    entry = RunMessage(role=MessageRole.TOOL, content="done").model_dump_json()
    await memory.components.graph.execute(
        "extraction.append_transcript", group_id=owner.group_id, session_id="extraction", entries=[entry], now=now
    )
    plan = {"content": "Mara plans a trip to Lund", "type": "plan", "object": {"name": "Lund"}}
    await memory.memories.save(owner, [MemoryIn(**plan, source={"session_id": "talk", "message_ids": ["m0", "m2"]})])
    old = [
        MessageIn(id=f"o{index}", role="user", content=f"Old {index}", timestamp=now - timedelta(days=400 - index))
        for index in range(3)
    ]
    await memory.messages.add(owner, MessagesIn(session_id="old", messages=old, extract=False))
    await episodes.save_summary(owner, "old", summary="Old talk.", title="Old", tags=["a"], sentiment=0.5, through=3)
    await memory.components.graph.write(lambda transaction: _archive_and_mark(transaction, owner, now))


async def _save_memories(memory: Services, owner: Owner) -> None:
    lives = {"predicate": "LIVES_IN", "single_valued": True}
    saved = await memory.memories.save(
        owner,
        [
            MemoryIn(content="Mara lives in Lund", object={"name": "Lund"}, valid_at="2020-01-01T00:00:00Z", **lives),
            MemoryIn(content="Mara lives in Malmö", valid_at="2024-01-01T00:00:00Z", metadata={"at": [1]}, **lives),
            MemoryIn(content="Mara likes tea", tags=["temporary"], entities=[{"name": "Bob", "type": "Person"}]),
            MemoryIn.model_validate({"content": {"tone": "formal"}, "type": "persona"}),
            MemoryIn(content="Mara planned a trip", type="plan", domain="travel", expires_at="2099-01-01T00:00:00Z"),
        ],
    )
    ids = [result.memory.id for result in saved if result.memory]
    entities, now = memory.components.entities, datetime.now(UTC)
    await memory.components.graph.write(
        lambda transaction: entities.add_aliases(transaction, owner, "bob", ["Bobby", "Uncle Bob"], now)
    )
    await memory.memories.patch(owner, ids[2], MemoryPatch(content="Mara loves tea", importance=0.9))
    await memory.memories.delete(owner, ids[4])


async def _archive_and_mark(transaction: Transaction, owner: Owner, now: datetime) -> None:
    """Do what extraction, maintenance and consolidation do to a user."""
    user = {"group_id": owner.group_id}
    await transaction.run("extraction.record_interest", key="chess", topic="Chess", message_ids=["m0"], now=now, **user)
    await transaction.run(
        "maintenance.archive_messages",
        session_id="old",
        through=3,
        before=now,
        archive_id=f"archive of {owner.group_id}",
        now=now,
        **user,
    )
    await transaction.run("maintenance.archive_idle_sessions", before=now + timedelta(days=1), now=now, **user)
    facts = await transaction.run(
        "maintenance.list_decaying_facts", now=now, before=now + timedelta(days=1), core_importance=1, **user
    )
    rows = [{"uuid": fact["uuid"], "importance": 0.25, "decayed_at": now} for fact in facts]
    await transaction.run("maintenance.set_importance", rows=rows, **user)
    memories = await transaction.run("import.list_memories", **user)
    marked = {"memory_ids": [row["memory_id"] for row in memories], "run_id": "run", "now": now}
    await transaction.run("consolidation.mark_consolidated", **marked, **user)
    await transaction.run("consolidation.mark_considered_for_compression", **marked, **user)
