"""All data of a user: the list of users, export, import, erasure."""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import Page
from graphmem.tenants.owners import UserListQuery, UserSummary
from graphmem.tenants.spaces import SpaceRole
from graphmem.user_data.export_schema import export_json_schema
from graphmem.user_data.models import ErasureResult, ExportQuery, ImportQuery, ImportResult
from graphmem.user_data.records import records_json_schema
from graphmem_api import route_classes
from graphmem_api.dependencies import USER_PATH, Caller, OwnerInPath, ServicesDep
from graphmem_api.forwarding import StreamedResponse
from graphmem_api.openapi import Responses

users_router = APIRouter(route_class=route_classes.ReadRoute, tags=["user data"])


@users_router.get("/v1/users", summary="List users", operation_id="users_list")
async def list_users(
    caller: Caller, services: ServicesDep, query: Annotated[UserListQuery, Query()]
) -> Page[UserSummary]:
    """List the users that the key has access to, by id; `query` matches part of an id."""
    return await services.users.page(caller.tenant, query, caller)


export_router = APIRouter(route_class=route_classes.ExportRoute, tags=["user data"])

EXPORT_RESPONSES: Responses = {
    200: {
        "description": "All data of the user.",
        "content": {
            "application/json": {"schema": {"type": "object", "additionalProperties": True}},
            "application/yaml": {"schema": {}},
        },
    }
}
"""OpenAPI description of an export, whose own schema is at `/v1/schema/export`."""


@export_router.get(
    USER_PATH + "/export",
    summary="Export a user",
    operation_id="export",
    responses=EXPORT_RESPONSES,
    response_class=Response,
)
async def export(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[ExportQuery, Query()]
) -> Response:
    """Stream all data of a user or a space without loss, or the current memories as editable records."""
    group = await services.rights.find_group(owner, caller, query.space)
    chunks = services.exports.stream_view(group, query.format, query.view)
    first = await anext(chunks)
    return StreamedResponse(_prepend_chunk(first, chunks), chunks.aclose, media_type=f"application/{query.format}")


async def _prepend_chunk(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield chunks, the first of which was read before sending the status, so that a database failure is a 503."""
    yield first
    async for chunk in rest:
        yield chunk


@export_router.get("/v1/schema/export", summary="JSON Schema of an export", operation_id="export_schema")
async def export_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export: its sections and the type of each value."""
    return export_json_schema()


@export_router.get("/v1/schema/records", summary="JSON Schema of records", operation_id="records_schema")
async def records_schema() -> dict[str, Any]:
    """Return the JSON Schema of records, as exported with `view=records`."""
    return records_json_schema()


import_router = APIRouter(route_class=route_classes.ImportRoute, tags=["user data"])

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
"""OpenAPI description of the body, which the route reads by itself."""


@import_router.post(USER_PATH + "/import", summary="Import a user", operation_id="import", openapi_extra=IMPORT_BODY)
async def import_(
    owner: OwnerInPath,
    caller: Caller,
    services: ServicesDep,
    request: Request,
    query: Annotated[ImportQuery, Query()],
) -> ImportResult:
    """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log (JSON, JSONL or YAML).

    Free ids are kept; `ids` maps the others. `refused` lists what was not imported.
    """
    body = (await request.body()).removeprefix(codecs.BOM_UTF8)
    if "json" in request.headers.get("content-type", "") and not body.lstrip().startswith((b"{", b"[")):
        raise InvalidInput(
            "The body is not JSON.", errors=[{"loc": ["body"], "msg": "must be a JSON object, a JSON array or JSONL"}]
        )
    group = await services.rights.find_group(owner, caller, query.space, SpaceRole.WRITER)
    return await services.imports.import_(
        group,
        body,
        source_format=query.format,
        actor=caller.id,
        kind=caller.changes_as,
        member=owner.author_in(group),
    )


forget_router = APIRouter(route_class=route_classes.ForgetRoute, tags=["user data"])


@forget_router.delete(USER_PATH, summary="Erase a user", operation_id="users_forget")
async def forget(owner: OwnerInPath, services: ServicesDep) -> ErasureResult:
    """Erase all data of a user everywhere, then count what is left."""
    return await services.forgetting.forget(owner)
