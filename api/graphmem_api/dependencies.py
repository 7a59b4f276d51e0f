"""The memory that the routes speak to."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from graphmem.bootstrap import GraphMemory


def _get_memory(request: Request) -> GraphMemory:
    memory: GraphMemory = request.app.state.memory
    return memory


GraphMemoryDep = Annotated[GraphMemory, Depends(_get_memory)]
"""The façade the app was made for."""
