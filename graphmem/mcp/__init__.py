"""The memory as tools for language models, over the Model Context Protocol.

`run_stdio` serves one user over standard input and output, `mount` serves every user of the HTTP API under `/mcp`, and
`make_app` returns an application of the tools alone. `open_tool_client` is for agents in the same process.
"""

from graphmem.mcp.connection import Connection
from graphmem.mcp.http import make_app, mount
from graphmem.mcp.inprocess import open_tool_client
from graphmem.mcp.server import make_server
from graphmem.mcp.stdio import run_stdio

__all__ = ["Connection", "make_app", "make_server", "mount", "open_tool_client", "run_stdio"]
