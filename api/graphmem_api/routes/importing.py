"""Importing a document for a user."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request

from graphmem.domain.export import ImportResult
from graphmem.domain.formats.document import split_jsonl
from graphmem.domain.requests import ImportQuery
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep
from graphmem_api.request_body import parse_json

router = APIRouter(route_class=route_classes.ImportRoute, tags=["transfer"])

IMPORT_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": ["object", "array"]}},
            "application/jsonl": {"schema": {"type": "string"}},
            "application/yaml": {"schema": {"type": "object", "additionalProperties": True}},
        },
    }
}
"""OpenAPI description of the body, which the route reads itself."""


@router.post(USER_PATH + "/import", summary="Import a user", openapi_extra=IMPORT_BODY)
async def import_(
    owner: OwnerInPath,
    caller: Caller,
    services: ServicesDep,
    request: Request,
    query: Annotated[ImportQuery, Query()],
) -> ImportResult:
    """Import an export of graphmem, mem0 or Graphiti, or a chat log (JSON or JSONL).

    Ids that are free are kept; `ids` maps those of the document to those here. `refused` lists what was not imported.
    """
    body = await request.body()
    if "json" in request.headers.get("content-type", ""):
        await asyncio.to_thread(_check_json, body)
    return await services.transfer.import_(owner, body, source_format=query.format, actor=caller.id)


def _check_json(body: bytes) -> None:
    """Raise InvalidInput unless a body is strict JSON, or lines of it."""
    for line in split_jsonl(body) or [body]:
        parse_json(line)
