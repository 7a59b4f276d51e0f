"""Split of domain/formats/document."""

from __future__ import annotations

from enum import StrEnum


class ImportFormat(StrEnum):
    """Format of an imported document; `auto` detects it."""

    AUTO = "auto"
    GRAPHMEM = "graphmem"
    MEM0 = "mem0"
    GRAPHITI = "graphiti"
    CHAT = "chat"
    RECORDS = "records"
