"""graphmem: a memory service for agents. The names below are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.client import AsyncClient, Client
    from graphmem.domain.memory import Memory, MemoryIn, MemoryPatch
    from graphmem.domain.search_models import SearchQuery, SearchResponse
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
    "SearchQuery",
    "SearchResponse",
    "Settings",
]

_MODULE_BY_NAME = {
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
    "SearchResponse": "graphmem.domain.search_models",
    "SearchQuery": "graphmem.domain.search_models",
    "Settings": "graphmem.settings",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_BY_NAME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
