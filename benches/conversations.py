"""Conversations with questions: read from a file and loaded into new users of a graph.

The file is JSON: `{conversations: [{id, messages: [{id, session, role, name, content, timestamp}],
facts: [{id, fact, subject, predicate, object, type, valid_at, invalid_at, confidence, importance, tags, evidence}],
qa: [{question, category, evidence}]}], categories: {number: name}}`; `evidence` holds message ids. Messages may have no
`name`, and conversations no `facts`. Questions may have the name of an `ability` in place of the number of a category.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessageIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.entity import EntityIn
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn, MemorySourceIn
from graphmem.memories.new_memory import NewMemory
from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import embedding_text
from graphmem.runtime.field_types import name_key
from graphmem.tenants.owners import Owner

ANSWERABLE_CATEGORIES = (1, 2, 3, 4)
"""Categories of questions that the conversation answers; category 5 asks about things that nobody said."""


@dataclass(frozen=True, slots=True)
class BenchmarkQuestion:
    """A question with the messages that answer it."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of the file."""

    id: str
    messages: list[dict[str, Any]]
    facts: list[dict[str, Any]]
    questions: list[BenchmarkQuestion]


def read(path: Path) -> tuple[list[Conversation], dict[int, str]]:
    """Return the conversations of a file and the names of the question categories."""
    data = json.loads(path.read_text("utf-8"))
    names = {int(key): value for key, value in data.get("categories", {}).items()} or _number_abilities(data)
    numbers = {name: number for number, name in names.items()}
    conversations = [
        Conversation(
            entry["id"], entry["messages"], entry.get("facts") or [], list(_answerable_questions(entry["qa"], numbers))
        )
        for entry in data["conversations"]
    ]
    return conversations, names


def _number_abilities(data: dict[str, Any]) -> dict[int, str]:
    """Return the names of the abilities by their place in alphabetical order, from 1."""
    abilities = {qa["ability"] for entry in data["conversations"] for qa in entry["qa"] if "ability" in qa}
    return {number: ability.replace("_", " ") for number, ability in enumerate(sorted(abilities), start=1)}


def _answerable_questions(entries: Sequence[dict[str, Any]], numbers: dict[str, int]) -> Iterator[BenchmarkQuestion]:
    """Yield the questions that messages answer; `numbers` are those of the categories by name."""
    for entry in entries:
        if not entry["evidence"] or entry.get("category", 1) not in ANSWERABLE_CATEGORIES:
            continue
        category = entry["category"] if "category" in entry else numbers[entry["ability"].replace("_", " ")]
        yield BenchmarkQuestion(entry["question"], category, frozenset(entry["evidence"]))


async def load(
    conversation: Conversation, tenant: str, episodes: EpisodeStore, facts: FactStore, embedder: Embedder
) -> Owner:
    """Store the messages and facts of a conversation for a new user; return the user."""
    owner = Owner(tenant, f"{conversation.id}-{uuid.uuid4().hex[:6]}")
    turns = [_turn(message) for message in conversation.messages]
    vectors = await embedder.embed([embedding_text(turn.name, turn.content) for turn in turns])
    for session, members in _by_session(conversation.messages, turns, vectors).items():
        await episodes.append_messages(owner, session, members)
    memories = [_memory(fact) for fact in conversation.facts]
    names = sorted({named.name for memory in memories for named in (memory.subject, memory.object) if named})
    texts = await embedder.embed([memory.content for memory in memories] + names)
    statements = [NewMemory(memory, vector) for memory, vector in zip(memories, texts, strict=False)]
    by_key = {name_key(name): vector for name, vector in zip(names, texts[len(memories) :], strict=True)}
    for start in range(0, len(statements), 100):
        await facts.save(owner, statements[start : start + 100], by_key, None)
    return owner


def _by_session(
    messages: Sequence[dict[str, Any]], turns: Sequence[MessageIn], vectors: Sequence[list[float]]
) -> dict[str, list[PreparedMessage]]:
    sessions: dict[str, list[PreparedMessage]] = {}
    for message, turn, vector in zip(messages, turns, vectors, strict=True):
        sessions.setdefault(f"session-{message['session']}", []).append(PreparedMessage(turn, vector))
    return sessions


def _turn(message: dict[str, Any]) -> MessageIn:
    return MessageIn.model_validate({key: message.get(key) for key in ("id", "role", "name", "content", "timestamp")})


def _memory(fact: dict[str, Any]) -> MemoryIn:
    return MemoryIn(
        content=fact["fact"],
        type=fact["type"],
        subject=EntityIn.model_validate(fact["subject"]) if fact.get("subject") else None,
        predicate=fact.get("predicate"),
        object=EntityIn.model_validate(fact["object"]) if fact.get("object") else None,
        valid_at=_midnight(fact.get("valid_at")),
        invalid_at=_midnight(fact.get("invalid_at")),
        confidence=fact.get("confidence", 0.9),
        importance=fact.get("importance", 0.5),
        tags=fact.get("tags") or [],
        source=MemorySourceIn(message_ids=fact["evidence"]),
    )


def _midnight(day: str | None) -> str | None:
    return f"{day}T00:00:00Z" if day and len(day) == 10 else day
