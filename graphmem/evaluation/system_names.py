"""The names of compared systems, as options and reports give them. Pure."""

from __future__ import annotations

CONTEXT, SEARCH, FULL_CONTEXT, GRAPHITI_SEARCH = "context", "search", "full-context", "graphiti-search"
ASK = "ask"
GRAPHITI, MEM0 = "graphiti", "mem0"
