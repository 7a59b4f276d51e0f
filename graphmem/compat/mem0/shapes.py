"""Memories, histories and messages in the forms of mem0. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from graphmem.compat.mem0.filters import ID_FIELDS
from graphmem.memories.memory import Memory, MemoryStatus, MemoryVersion

LABELS = (*ID_FIELDS[1:], "actor_id", "role")
"""Metadata that mem0 shows as fields of a memory."""

_ONE_DAY = timedelta(days=1)


def make_id(owner: str, memory_id: str) -> str:
    """Return the id of a memory for a caller who names no user with it: the user follows the id."""
    return f"{memory_id}@{owner}"


def parse_id(given: object) -> tuple[str, str]:
    """Return the user and the id of graphmem in an id; raise ValueError for one that does not name the user."""
    memory_id, _, owner = str(given).partition("@")
    if not memory_id or not owner:
        raise ValueError(f"Invalid memory_id {given!r}: use the `id` of a result, which names the user after an @.")
    return owner, memory_id


def make_item(owner: str, memory: Memory) -> dict[str, Any]:
    """Return a memory as mem0 lists it."""
    metadata = dict(memory.metadata)
    labels = {name: metadata.pop(name) for name in LABELS if name in metadata}
    is_user = owner not in {f"{kind}:{labels.get(f'{kind}_id')}" for kind in ("agent", "run", "app")}
    item: dict[str, Any] = {
        "id": make_id(owner, memory.id),
        "memory": memory.content,
        "hash": hash_text(memory.content),
        "metadata": metadata or None,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        **({"user_id": owner} if is_user else {}),
        **labels,
    }
    if memory.expires_at:
        item["expiration_date"] = (memory.expires_at - _ONE_DAY).date().isoformat()
    if memory.tags:
        item["categories"] = list(memory.tags)
    return item


def hash_text(text: str) -> str:
    """Return the hash by which mem0 compares texts."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def make_history(owner: str, versions: Sequence[MemoryVersion]) -> list[dict[str, Any]]:
    """Return the changes of a memory's text, the oldest first, and its end."""
    rows: list[dict[str, Any]] = []
    before: str | None = None
    for version in versions:
        if version.content != before:
            event = "ADD" if before is None else "UPDATE"
            rows.append(_history_row(owner, version, event, before, version.content))
            before = version.content
    if versions and versions[-1].status is not MemoryStatus.ACTIVE:
        rows.append(_history_row(owner, versions[-1], "DELETE", before, None))
    return [{**row, "created_at": rows[0]["updated_at"]} for row in rows]


def _history_row(owner: str, version: MemoryVersion, event: str, old: str | None, new: str | None) -> dict[str, Any]:
    metadata = version.metadata
    at = (version.expired_at if event == "DELETE" else None) or version.created_at
    return {
        "id": f"{make_id(owner, version.id)}#{version.version}{'-end' if event == 'DELETE' else ''}",
        "memory_id": make_id(owner, version.id),
        "old_memory": old,
        "new_memory": new,
        "event": event,
        "updated_at": at.isoformat(),
        "is_deleted": event == "DELETE",
        "actor_id": metadata.get("actor_id"),
        "role": metadata.get("role"),
    }


def parse_expiration(given: object) -> datetime | None:
    """Return the end of the last day on which a memory is recalled; raise ValueError for no date."""
    if given is None:
        return None
    try:
        day = given if isinstance(given, date) else date.fromisoformat(str(given))
    except ValueError as error:
        raise ValueError("expiration_date must be a valid date in YYYY-MM-DD format.") from error
    last = day.date() if isinstance(day, datetime) else day
    return datetime.combine(last + _ONE_DAY, time(), UTC)


def parse_messages(given: object) -> list[Mapping[str, Any]]:
    """Return messages as a list; raise ValueError for anything but a text, a message or a list of messages."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, Mapping):
        return [given]
    if isinstance(given, list) and all(isinstance(message, Mapping) for message in given):
        return given
    raise ValueError("messages must be str, dict, or list[dict]")


def spoken_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what users, assistants and tools said, as text; system prompts say nothing about anybody.

    A message without text, such as an image, is left out.
    """
    spoken = []
    for message in messages:
        text = _text_of(message.get("content"))
        role = message.get("role", "user")
        if text and role not in ("system", "developer"):
            name = {"name": message["name"]} if message.get("name") else {}
            spoken.append({"role": role, "content": text, **name})
    return spoken


def _text_of(content: object) -> str:
    if isinstance(content, list):
        texts = (part.get("text", "") for part in content if isinstance(part, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str) and text.strip())
    return content if isinstance(content, str) and content.strip() else ""
