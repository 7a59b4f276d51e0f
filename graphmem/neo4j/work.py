"""For which tenant, or on which graph as a whole, code works: by it an operation finds one of several graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Work:
    """For what this code works: a tenant, wherever it lives, or everything in one graph."""

    tenant: str | None = None
    graph: str | None = None


_work: ContextVar[_Work | None] = ContextVar("graphmem_work", default=None)


def begin_work_for(tenant: str) -> None:
    """Let the rest of this task, and the tasks that it starts, work for a tenant."""
    _work.set(_Work(tenant=tenant))


@contextmanager
def working_for(tenant: str) -> Iterator[None]:
    """Let the block, and the tasks it starts, work for a tenant."""
    with _working(_Work(tenant=tenant)):
        yield


@contextmanager
def working_in(graph: str) -> Iterator[None]:
    """Let the block work on everything in a graph, for reads that concern many tenants.

    What it changes of one of them belongs into a block of `working_for`, which takes part in moves.
    """
    with _working(_Work(graph=graph)):
        yield


@contextmanager
def _working(work: _Work) -> Iterator[None]:
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)


def tenant_of_work() -> str | None:
    """Return the tenant that this code works for; None for work on a whole graph."""
    work = _work.get()
    return work.tenant if work else None


def graph_of_work() -> str | None:
    """Return the graph that this code works on as a whole; None for work for a tenant."""
    work = _work.get()
    return work.graph if work else None
