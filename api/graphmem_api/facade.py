"""The memory that the routes speak to."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from graphmem.bootstrap import GraphMemory


def _memory(request: Request) -> GraphMemory:
    memory: GraphMemory = request.app.state.memory
    return memory


Memory = Annotated[GraphMemory, Depends(_memory)]
"""The façade the app was made for."""
