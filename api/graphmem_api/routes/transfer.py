"""Everything of a user out, in again, and gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from graphmem.domain.export import ErasureResult, ImportResult
from graphmem.domain.export_schema import export_json_schema
from graphmem.domain.formats.document import ImportFormat, split_jsonl
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import GraphMemoryDep
from graphmem_api.openapi import Responses
from graphmem_api.request_body import parse_json

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["transfer"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["transfer"])
schema_router = APIRouter(route_class=route_classes.ReadRoute, tags=["transfer"])
forget_router = APIRouter(route_class=route_classes.ForgetRoute, tags=["transfer"])

USER_PATH = "/v1/users/{user_id:segment}"
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


@read_router.get(USER_PATH + "/export", summary="Export a user", responses=EXPORTED, response_class=Response)
async def export(
    owner: OwnerInPath, memory: GraphMemoryDep, format: Annotated[Literal["json", "yaml"], Query()] = "json"
) -> Response:
    """Write everything of a user, losslessly, while it is read."""
    chunks = memory.transfer.stream_export(owner, format)
    first = await anext(chunks)
    return StreamingResponse(_prepend_chunk(first, chunks), media_type=f"application/{format}")


async def _prepend_chunk(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks of which the first has been read already: by then it is known that the rest can be."""
    yield first
    async for chunk in rest:
        yield chunk


@write_router.post(USER_PATH + "/import", summary="Import a user", response_model=ImportResult, openapi_extra=IMPORTED)
async def import_(
    owner: OwnerInPath,
    caller: Caller,
    memory: GraphMemoryDep,
    request: Request,
    format: Annotated[ImportFormat, Query(description="Absent: told by the document's shape.")] = ImportFormat.AUTO,
) -> ImportResult:
    """Read an export back, or take what one of mem0, of Graphiti or a chat log (JSON or JSONL) holds.

    Ids stay when they are free; `ids` maps those of the document to those here. `refused` says what was not taken.
    """
    body = await request.body()
    if "json" in request.headers.get("content-type", ""):
        await asyncio.to_thread(_check_json, body)
    return await memory.transfer.import_(owner, body, source_format=format, actor=caller.id)


def _check_json(body: bytes) -> None:
    """Raise InvalidInput unless a body is JSON, or lines of JSON, that mean one thing."""
    for line in split_jsonl(body) or [body]:
        parse_json(line)


@schema_router.get("/v1/schema/export", summary="JSON Schema of an export")
async def export_schema() -> dict[str, Any]:
    """Tell the form of an export: what stands in it and of which kind each value is."""
    return export_json_schema()


@forget_router.delete(USER_PATH, summary="Forget a user", response_model=ErasureResult)
async def forget(owner: OwnerInPath, memory: GraphMemoryDep) -> ErasureResult:
    """Erase everything of a user everywhere, then search for residue."""
    return await memory.transfer.forget(owner)
