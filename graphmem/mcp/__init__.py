"""The memory as tools for language models, over the Model Context Protocol.

`run_stdio` serves one user over standard input and output, `mount` serves every user of the HTTP API under `/mcp`, and
`make_app` returns an application of only the tools. `open_tool_client` is for agents in the same process. The names
below are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.mcp.http import make_app, mount
    from graphmem.mcp.server import MemoryServer, open_tool_client, run_stdio

__all__ = ["MemoryServer", "make_app", "mount", "open_tool_client", "run_stdio"]

_MODULE_BY_NAME = {
    "MemoryServer": "graphmem.mcp.server",
    "make_app": "graphmem.mcp.http",
    "mount": "graphmem.mcp.http",
    "open_tool_client": "graphmem.mcp.server",
    "run_stdio": "graphmem.mcp.server",
}


def __getattr__(name: str) -> object:
    if name in _MODULE_BY_NAME:
        return getattr(import_module(_MODULE_BY_NAME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
