"""The tenant, or the whole graph, that the running code works for: operations find their graph by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _WorkContext:
    """A tenant, wherever it lives, or everything in one graph."""

    tenant: str | None = None
    graph: str | None = None


_scope: ContextVar[_WorkContext | None] = ContextVar("graphmem_tenant_scope", default=None)


def set_tenant(tenant: str) -> None:
    """Use a tenant for the rest of this task and for the tasks that it starts."""
    _scope.set(_WorkContext(tenant=tenant))


@contextmanager
def use_tenant(tenant: str) -> Iterator[None]:
    """Use a tenant in the block and in the tasks that it starts."""
    with _resetting(_scope.set(_WorkContext(tenant=tenant))):
        yield


@contextmanager
def use_graph(graph: str) -> Iterator[None]:
    """Use a whole graph in the block, for reads that concern many tenants.

    Writes for one of these tenants belong in a block of `use_tenant`, so that they take part in moves.
    """
    with _resetting(_scope.set(_WorkContext(graph=graph))):
        yield


@contextmanager
def _resetting(token: Token[_WorkContext | None]) -> Iterator[None]:
    try:
        yield
    finally:
        _scope.reset(token)


def current_tenant() -> str | None:
    """Return the tenant in use; None outside of one and while a whole graph is used."""
    scope = _scope.get()
    return scope.tenant if scope else None


def current_graph() -> str | None:
    """Return the name of the graph that is used as a whole; None while a tenant is used."""
    scope = _scope.get()
    return scope.graph if scope else None
