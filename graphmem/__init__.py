"""graphmem: a memory service for agents. The names below are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.client import AsyncClient, Client
    from graphmem.conversations.session import MessageIn
    from graphmem.graph_memory import GraphMemory
    from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
    from graphmem.runtime.errors import (
        Conflict,
        Forbidden,
        GraphmemError,
        InvalidInput,
        NotFound,
        RateLimited,
        Unauthenticated,
        Unavailable,
    )
    from graphmem.runtime.settings import Settings
    from graphmem.search.models import SearchQuery, SearchResponse

    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Forbidden",
    "GraphMemory",
    "GraphmemError",
    "InvalidInput",
    "Memory",
    "MemoryIn",
    "MemoryPatch",
    "MessageIn",
    "NotFound",
    "RateLimited",
    "SearchQuery",
    "SearchResponse",
    "Settings",
    "Unauthenticated",
    "Unavailable",
    "__version__",
]

_MODULE_BY_NAME = {
    "AsyncClient": "graphmem.client",
    "Client": "graphmem.client",
    "Conflict": "graphmem.runtime.errors",
    "Forbidden": "graphmem.runtime.errors",
    "GraphMemory": "graphmem.graph_memory",
    "GraphmemError": "graphmem.runtime.errors",
    "InvalidInput": "graphmem.runtime.errors",
    "Memory": "graphmem.memories.memory",
    "MemoryIn": "graphmem.memories.memory",
    "MemoryPatch": "graphmem.memories.memory",
    "MessageIn": "graphmem.conversations.session",
    "NotFound": "graphmem.runtime.errors",
    "RateLimited": "graphmem.runtime.errors",
    "SearchQuery": "graphmem.search.models",
    "SearchResponse": "graphmem.search.models",
    "Settings": "graphmem.runtime.settings",
    "Unauthenticated": "graphmem.runtime.errors",
    "Unavailable": "graphmem.runtime.errors",
}

_DISTRIBUTIONS = ("graphmem", "graphmem-client")
"""The distributions that contain this package; the second one holds only the client."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = _read_version()
    elif name in _MODULE_BY_NAME:
        value = getattr(import_module(_MODULE_BY_NAME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _read_version() -> str:
    """Return the version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    for distribution in _DISTRIBUTIONS:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    raise PackageNotFoundError(_DISTRIBUTIONS[0])
