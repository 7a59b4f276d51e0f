"""Adapters to agent frameworks and to clients of models; no other package imports them.

`wrap_openai` and `wrap_anthropic` give the client of a provider a memory. They are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmem.integrations.wrapped_clients import memory_of, wrap_anthropic, wrap_openai

__all__ = ["memory_of", "wrap_anthropic", "wrap_openai"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from graphmem.integrations import wrapped_clients

        return getattr(wrapped_clients, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
