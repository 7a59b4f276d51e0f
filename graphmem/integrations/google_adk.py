"""Memory for Google's Agent Development Kit: a memory service, which its tools `load_memory` and `preload_memory` ask.

memory_service = GraphmemMemoryService(client)
runner = Runner(app_name="shop", agent=agent, session_service=sessions, memory_service=memory_service)
await memory_service.add_session_to_memory(session)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from graphmem.chats.answer_reader import ChatFailure, ChatFailures
from graphmem.conversations.session import read_timestamp, split_into_batches
from graphmem.integrations.agent_memory import AWAY, add_each, require_stored, split_long_messages
from graphmem.text.added_texts import fence_line

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from graphmem.client import AsyncClient
    from graphmem.memories.memory import Memory
    from graphmem.search.models import MessageHit

MAX_RESULTS = 10
"""Most memories returned by a search; messages fill the remaining places."""

USER = "user"
"""The author of a user's text, in events and in entries."""

AUTHOR_KEY, TIMESTAMP_KEY = "adk_author", "adk_timestamp"
"""Metadata of a memory with the fields of its entry for which memories have no place."""


class GraphmemMemoryService(BaseMemoryService):
    """A memory service over graphmem; `client` uses HTTP or is a `GraphMemory` in the same process.

    Each app has its own memory of a user; with `shared_by_apps`, all apps share one, and user ids equal graphmem's. If
    the service is unavailable, searches find nothing; `failures` counts them and logs the first in a row.
    """

    def __init__(self, client: AsyncClient, *, shared_by_apps: bool = False, limit: int = MAX_RESULTS) -> None:
        self._client = client
        self._shared = shared_by_apps
        self._limit = limit
        self.failures = ChatFailures()

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the turns of a session, each event once; memories are extracted in the background."""
        await self._add(session.app_name, session.user_id, session.events, session.id, None)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the turns of events with metadata, each event once."""
        await self._add(app_name, user_id, events, session_id, custom_metadata)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Save statements without a language model.

        A memory is valid from the timestamp of its entry. Raises InvalidInput if a statement is not stored, such as a
        secret or one without a text; the others are stored.
        """
        statements = [_statement_of(entry, custom_metadata or {}) for entry in memories]
        require_stored(await add_each(self._client, self._user(app_name, user_id), statements))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories that match a query, best first, and messages with possible details."""
        if not query.strip():
            return SearchMemoryResponse()
        with self.failures.noted(ChatFailure.CONTEXT, AWAY):
            found = await self._client.search(
                self._user(app_name, user_id), query, limit=self._limit, cut="auto", include_messages=True
            )
            memories = [_entry_of_memory(hit.memory) for hit in found.results]
            told = {message_id for hit in found.results for message_id in hit.memory.source.message_ids}
            others = [hit for hit in found.messages if hit.message.id not in told]
            return SearchMemoryResponse(memories=[*memories, *map(_entry_of_message, others)][: self._limit])
        return SearchMemoryResponse()

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """End a memory and keep its history; raise ValueError for an entry without a memory id, such as a message."""
        if not memory_id:
            raise ValueError("Give the id of a memory: messages have none, and are erased with their user.")
        await self._client.delete(self._user(app_name, user_id), memory_id)

    def _user(self, app_name: str, user_id: str) -> str:
        return user_id if self._shared else f"{app_name}:{user_id}"

    async def _add(
        self,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None,
        metadata: Mapping[str, object] | None,
    ) -> None:
        messages = [
            {
                "id": event.id,
                "role": "user" if event.author == USER else "assistant",
                "content": text,
                "timestamp": datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
                **({} if event.author == USER else {"name": event.author}),
                **({"metadata": dict(metadata)} if metadata else {}),
            }
            for event in events
            if (text := _text_of(event.content)) and not event.partial
        ]
        for batch in split_into_batches(split_long_messages(messages)):
            await self._client.add_messages(self._user(app_name, user_id), batch, session_id=session_id)


def _statement_of(entry: MemoryEntry, metadata: Mapping[str, object]) -> dict[str, Any]:
    """Return the statement of an entry; its metadata keep the author, and a timestamp that is no time."""
    time = _time_of(entry.timestamp)
    kept = {AUTHOR_KEY: entry.author, TIMESTAMP_KEY: None if time else entry.timestamp}
    given = {name: value for name, value in kept.items() if value}
    return {
        "content": _text_of(entry.content),
        "valid_at": time,
        "metadata": {**metadata, **entry.custom_metadata, **given},
    }


def _time_of(timestamp: str | None) -> datetime | None:
    """Return the time of an entry, in UTC where it names no offset; None for a text that is no time."""
    try:
        time = read_timestamp(timestamp or "")
        time = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)) if isinstance(time, datetime) else None


def _entry_of_memory(memory: Memory) -> MemoryEntry:
    metadata = dict(memory.metadata)
    author, timestamp = metadata.pop(AUTHOR_KEY, None), metadata.pop(TIMESTAMP_KEY, None)
    return MemoryEntry(
        id=memory.id,
        content=_content_of(memory.content),
        custom_metadata=metadata,
        author=author or memory.source.said_by or USER,
        timestamp=timestamp or (memory.valid_at or memory.created_at).isoformat(),
    )


def _entry_of_message(hit: MessageHit) -> MemoryEntry:
    message = hit.message
    is_users = message.role.value == "user"
    author = message.said_by if message.is_of_others else USER if is_users else message.name or message.role.value
    return MemoryEntry(content=_content_of(message.content), author=author, timestamp=message.timestamp.isoformat())


def _content_of(text: str) -> Content:
    return Content(role=USER, parts=[Part(text=fence_line(text))])


def _text_of(content: Any) -> str:
    """Return the text of a content, without thoughts and tool calls."""
    parts = content.parts if content and content.parts else ()
    texts: list[str] = [part.text for part in parts if part.text and not part.thought]
    return "\n".join(texts).strip()
