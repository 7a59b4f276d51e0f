"""Everything of a user out, in again, and gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from graphmem.domain.export import Forgotten, Imported
from graphmem.domain.export_schema import schema_of_export
from graphmem.domain.formats.document import Format, lines_of
from graphmem_api import guard
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.bodies import parse
from graphmem_api.facade import Memory as Facade
from graphmem_api.openapi import Responses

reading = APIRouter(route_class=guard.Reading, tags=["transfer"])
writing = APIRouter(route_class=guard.Writing, tags=["transfer"])
formats = APIRouter(route_class=guard.Reading, tags=["transfer"])
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
        "content": {
            "application/json": {"schema": {"type": ["object", "array"]}},
            "application/jsonl": {"schema": {"type": "string"}},
            "application/yaml": {"schema": DOCUMENT},
        },
    }
}


@reading.get(USER + "/export", summary="Export a user", responses=EXPORTED, response_class=Response)
async def export(
    owner: OwnerInPath, memory: Facade, format: Annotated[Literal["json", "yaml"], Query()] = "json"
) -> Response:
    """Write everything of a user, losslessly, while it is read."""
    chunks = memory.transfer.stream(owner, format)
    first = await anext(chunks)
    return StreamingResponse(_joined(first, chunks), media_type=f"application/{format}")


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks of which the first has been read already: by then it is known that the rest can be."""
    yield first
    async for chunk in rest:
        yield chunk


@writing.post(USER + "/import", summary="Import a user", response_model=Imported, openapi_extra=IMPORTED)
async def import_(
    owner: OwnerInPath,
    caller: Caller,
    memory: Facade,
    request: Request,
    format: Annotated[Format, Query(description="Absent: told by the document's shape.")] = Format.AUTO,
) -> Imported:
    """Read an export back, or take what one of mem0, of Graphiti or a chat log (JSON or JSONL) holds.

    Ids stay when they are free; `ids` maps those of the document to those here. `refused` says what was not taken.
    """
    body = await request.body()
    if "json" in request.headers.get("content-type", ""):
        await asyncio.to_thread(_check_json, body)
    return await memory.transfer.import_(owner, body, form=format, actor=caller.id)


def _check_json(body: bytes) -> None:
    """Raise InvalidInput unless a body is JSON, or lines of JSON, that mean one thing."""
    for line in lines_of(body) or [body]:
        parse(line)


@formats.get("/v1/schema/export", summary="JSON Schema of an export")
async def export_schema() -> dict[str, Any]:
    """Tell the form of an export: what stands in it and of which kind each value is."""
    return schema_of_export()


@forgetting.delete(USER, summary="Forget a user", response_model=Forgotten)
async def forget(owner: OwnerInPath, memory: Facade) -> Forgotten:
    """Erase everything of a user everywhere, then search for residue."""
    return await memory.transfer.forget(owner)
