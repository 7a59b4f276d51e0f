"""Graphs in which tenants live, and where a tenant is, as callers see them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from graphmem.runtime.field_types import Id
from graphmem.runtime.validation import RequestBody


class PlacementIn(RequestBody):
    """Where the caller's tenant is to live."""

    graph: Id = Field(description="Name of the graph to move the tenant to; `home` is that of `GRAPHMEM_NEO4J_URI`.")


class DrainIn(RequestBody):
    """Where all tenants of a graph are to live."""

    to: Id = Field(description="Name of the graph to move them to.")


class GraphStatus(BaseModel):
    """One of the graphs in which tenants may live."""

    name: str = Field(description="Its name in `GRAPHMEM_PLACEMENTS`; `home` for that of `GRAPHMEM_NEO4J_URI`.")
    status: Literal["ok", "unavailable"]
    reason: str | None = Field(None, description="Why it is unavailable.")


class TenantPlacement(BaseModel):
    """Where a tenant lives."""

    tenant: str = Field(description="The name of the tenant.")
    graph: str = Field(description="The graph in which it is read and written.")
    state: Literal["settled", "copying", "switching"] = Field(description="How far a move is; settled: none is.")
    target: str | None = Field(None, description="The graph that it moves to, or is about to; null: none.")
    job_id: str | None = Field(None, description="The job of the latest move.")


class PlacementList(BaseModel):
    """The graphs, and where the caller's tenant lives; for commands on the machine also all others that moved."""

    graphs: list[GraphStatus] = Field(description="The graphs in which tenants may live, the home first.")
    tenants: list[TenantPlacement] = Field(description="Where tenants live.")
