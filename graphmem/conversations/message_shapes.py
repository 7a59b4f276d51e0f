"""Messages in the shapes of OpenAI's and Anthropic's APIs and libraries, read as graphmem's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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

_LARGEST_SECONDS = 1e11
"""A number from which on a time is not in seconds since 1970, but in milliseconds, microseconds or nanoseconds."""

_NUMBER = re.compile(r"-?\d{9,}(\.\d+)?")
"""A time that is written as the text of a number; one with fewer digits may be a year or a date."""


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
    """Return a number of seconds, or of a fraction of them, since 1970 as a time; any other value as it is.

    It may count seconds, milliseconds, microseconds or nanoseconds, and be written as text, from nine digits on.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number or (isinstance(value, str) and _NUMBER.fullmatch(value.strip()))):
        return value
    try:
        number = float(value)  # type: ignore[arg-type]  # a number, or the text of one
        for _ in range(3):
            if abs(number) >= _LARGEST_SECONDS:
                number /= 1000
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    except (ValueError, OverflowError):
        raise ValueError("must be a time, or seconds or milliseconds since 1970") from None


def _text_of_part(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    text = text.get("value") if isinstance(text, Mapping) else text  # as parts of assistants have it
    return text if isinstance(text, str) else None
