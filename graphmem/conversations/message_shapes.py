"""Messages in the shapes of OpenAI's and Anthropic's APIs and libraries, read as graphmem's own. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from graphmem.text.normalising import is_blank

ROLE_ALIASES = {"model": "assistant", "developer": "system", "function": "tool"}
"""Roles of other APIs by the name that graphmem gives them."""

ATTACHMENTS = {
    "image": "image", "image_url": "image", "image_file": "image", "input_image": "image", "audio": "audio",
    "input_audio": "audio", "file": "file", "input_file": "file", "document": "file", "container_upload": "file",
}  # fmt: skip
"""What a content part is that is not text, by its type."""

FOREIGN_FIELDS = frozenset(
    {
        # OpenAI: chat completions, responses, assistants
        "annotations", "assistant_id", "attachments", "audio", "completed_at", "created", "created_at", "file_ids",
        "function_call", "incomplete_at", "incomplete_details", "object", "parsed", "phase", "reasoning",
        "reasoning_content", "reasoning_details", "refusal", "run_id", "status", "thread_id", "tool_call_id",
        "tool_calls", "type",
        # Anthropic
        "cache_control", "container", "context_management", "model", "stop_details", "stop_reason", "stop_sequence",
        "usage",
    }
)  # fmt: skip
"""Fields of messages of those APIs that say nothing about what was said."""

_MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are milliseconds since 1970: as seconds, they are after the year 5000."""


def read_message(value: object) -> object:
    """Return the fields of a message that graphmem stores; any value that is no message as it is.

    `content` is null in a message that only calls tools, `created_at` is read where there is no `timestamp`, and fields
    that are null are absent.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if not isinstance(value, Mapping):
        return value
    fields = {key: item for key, item in value.items() if item is not None and key not in FOREIGN_FIELDS}
    if "timestamp" not in fields and value.get("created_at") is not None:
        fields["timestamp"] = value["created_at"]
    calls_tools = bool(value.get("tool_calls") or value.get("function_call"))
    if calls_tools and fields.get("content") in (None, ""):
        fields["content"] = None
    elif "content" in value:
        fields.setdefault("content", None)
    return fields


def text_of(content: object) -> str:
    """Return the text of a message's content: a text, or the texts of its parts; empty for any other value."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _text_of_part(part)) is not None)


def attachments_of(content: object) -> list[str]:
    """Return what the parts of a message's content are that are not text, such as `image`."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return [ATTACHMENTS[kind] for part in parts if (kind := str(part.get("type"))) in ATTACHMENTS]


def mark_attachments(text: str, attachments: list[str] | tuple[str, ...]) -> str:
    """Return a text with a mark for each attachment below it, as messages are stored."""
    return "\n".join(part for part in (text, *(f"[{attachment}]" for attachment in attachments)) if not is_blank(part))


def read_content(content: object) -> object:
    """Return the content of a message as text: empty for null and for parts of which none is text or attached."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    if not all(isinstance(part, str | Mapping) for part in content):
        raise ValueError("must be text, a list of content parts, or null")
    return mark_attachments(text_of(content), attachments_of(content))


def read_timestamp(value: object) -> object:
    """Return a number of seconds or milliseconds since 1970 as a time; any other value as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError("must be a time, or seconds or milliseconds since 1970") from None


def _text_of_part(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    text = text.get("value") if isinstance(text, Mapping) else text  # as parts of assistants have it
    return text if isinstance(text, str) else None
