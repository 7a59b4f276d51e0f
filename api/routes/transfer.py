"""Everything of a user out, in again, and gone."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from api import guard
from api.auth import Caller, OwnerInPath
from api.facade import Memory as Facade
from api.openapi import Responses
from graphmem.domain.export import Forgotten, Imported

reading = APIRouter(route_class=guard.Reading, tags=["transfer"])
writing = APIRouter(route_class=guard.Writing, tags=["transfer"])
forgetting = APIRouter(route_class=guard.Forgetting, tags=["transfer"])

USER = "/v1/users/{user_id:segment}"
DOCUMENT = {"type": "object", "additionalProperties": True}
EXPORTED: Responses = {
    200: {
        "description": "Everything of the user.",
        "content": {"application/json": {"schema": DOCUMENT}, "application/yaml": {"schema": {}}},
    }
}
IMPORTED = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": DOCUMENT}, "application/yaml": {"schema": DOCUMENT}},
    }
}


@reading.get(USER + "/export", summary="Export a user", responses=EXPORTED, response_class=Response)
async def export(
    owner: OwnerInPath, memory: Facade, format: Annotated[Literal["json", "yaml"], Query()] = "json"
) -> Response:
    """Write everything of a user, losslessly."""
    return Response(await memory.transfer.export(owner, format), media_type=f"application/{format}")


@writing.post(USER + "/import", summary="Import a user", response_model=Imported, openapi_extra=IMPORTED)
async def import_(owner: OwnerInPath, caller: Caller, memory: Facade, request: Request) -> Imported:
    """Read an export back; ids stay when they are free, else the answer maps old to new."""
    if "json" in request.headers.get("content-type", ""):
        await request.json()
    return await memory.transfer.import_(owner, await request.body(), actor=caller.id)


@forgetting.delete(USER, summary="Forget a user", response_model=Forgotten)
async def forget(owner: OwnerInPath, memory: Facade) -> Forgotten:
    """Erase everything of a user everywhere, then search for residue."""
    return await memory.transfer.forget(owner)
