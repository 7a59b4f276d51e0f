"""graphmem: a memory service for agents. The names below are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.client import AsyncClient, Client
    from graphmem.domain.memory import Memory, MemoryIn, MemoryPatch
    from graphmem.domain.recall import SearchAnswer, SearchQuery
    from graphmem.domain.session import MessageIn
    from graphmem.errors import Conflict, GraphmemError, InvalidInput, NotFound
    from graphmem.settings import Settings

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "GraphMemory",
    "GraphmemError",
    "InvalidInput",
    "Memory",
    "MemoryIn",
    "MemoryPatch",
    "MessageIn",
    "NotFound",
    "SearchAnswer",
    "SearchQuery",
    "Settings",
]

_HOMES = {
    "AsyncClient": "graphmem.client",
    "Client": "graphmem.client",
    "Conflict": "graphmem.errors",
    "GraphMemory": "graphmem.bootstrap",
    "GraphmemError": "graphmem.errors",
    "InvalidInput": "graphmem.errors",
    "Memory": "graphmem.domain.memory",
    "MemoryIn": "graphmem.domain.memory",
    "MemoryPatch": "graphmem.domain.memory",
    "MessageIn": "graphmem.domain.session",
    "NotFound": "graphmem.errors",
    "SearchAnswer": "graphmem.domain.recall",
    "SearchQuery": "graphmem.domain.recall",
    "Settings": "graphmem.settings",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
