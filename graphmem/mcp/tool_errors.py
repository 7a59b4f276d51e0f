"""The errors of tools, whose text a model reads."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ToolError

from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.tracing import span

P = ParamSpec("P")
T = TypeVar("T")


def raise_tool_errors(tool: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Turn the errors of graphmem into tool errors, whose text the model reads."""

    @functools.wraps(tool)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with span(f"tool {tool.__name__}"):
                return await tool(*args, **kwargs)
        except GraphmemError as error:
            later = f" Try again in {error.retry_after} s." if error.retry_after else ""
            raise ToolError(f"{error.title}: {error.detail}{later}") from error

    return run
