"""Adapters for agent frameworks and model clients; no other package imports them.

`wrap_openai` and `wrap_anthropic` add memory to a provider's client. Both are imported at first use.
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
