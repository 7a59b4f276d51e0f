"""API models of the graphs and of each tenant's graph."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from graphmem.runtime.field_types import Id
from graphmem.runtime.validation import RequestBody


class PlacementIn(RequestBody):
    """The graph to move the caller's tenant to."""

    graph: Id = Field(description="Name of the graph to move the tenant to; `home` is that of `GRAPHMEM_NEO4J_URI`.")


class DrainIn(RequestBody):
    """The graph to move all tenants to."""

    to: Id = Field(description="Name of the graph to move them to.")


class GraphStatus(BaseModel):
    """One of the graphs that tenants can be stored in."""

    name: str = Field(description="Its name in `GRAPHMEM_PLACEMENTS`; `home` for that of `GRAPHMEM_NEO4J_URI`.")
    status: Literal["ok", "unavailable"]
    reason: str | None = Field(None, description="Why it is unavailable.")


class TenantPlacement(BaseModel):
    """The graph that stores a tenant."""

    tenant: str = Field(description="The name of the tenant.")
    graph: str = Field(description="The graph in which it is read and written.")
    state: Literal["settled", "copying", "switching"] = Field(description="State of the move; settled: no move.")
    target: str | None = Field(None, description="The graph that it moves to; null: none.")
    job_id: str | None = Field(None, description="The job of the latest move.")


class PlacementList(BaseModel):
    """The graphs and the graph of the caller's tenant; for commands on the machine, also those of all moved tenants."""

    graphs: list[GraphStatus] = Field(description="The graphs that tenants can be stored in, home first.")
    tenants: list[TenantPlacement] = Field(description="Which graph stores which tenant.")
