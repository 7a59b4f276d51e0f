"""Messages and transcript lines for tests without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from graphmem.conversations.session import Message, MessageRole, origin_of
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.tenants.trust import StatedKind

BERLIN = ZoneInfo("Europe/Berlin")


def message(number: int, content: str, role: MessageRole = MessageRole.USER, **fields: Any) -> Message:
    defaults = {name: None for name, field in Message.model_fields.items() if field.is_required()}
    values: dict[str, Any] = {
        **defaults,
        "id": f"m{number}",
        "session_id": "s1",
        "user_id": "mara",
        "role": role,
        "content": content,
        "timestamp": datetime(2026, 5, 3, 12, tzinfo=UTC),
        "created_at": datetime(2026, 5, 3, 12, tzinfo=UTC),
        "entities": {},
        "metadata": {},
        "position": number,
        "utc_offset_minutes": 0,
        **fields,
    }
    return Message.model_validate(values)


def line(
    number: int,
    role: MessageRole = MessageRole.USER,
    text: str = "I do",
    sent_at: datetime | None = None,
    *,
    speaker: str | None = None,
    author: str | None = None,
    origin: StatedKind | None = None,
) -> TranscriptLine:
    at = sent_at or datetime(2026, 5, 3, 23, 30, tzinfo=BERLIN)
    return TranscriptLine(number, f"m{number}", role, speaker, at, text, author, origin or origin_of(role, {}))
