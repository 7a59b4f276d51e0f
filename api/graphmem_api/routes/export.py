"""Exporting a user."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from graphmem.user_data.export_schema import export_json_schema
from graphmem.user_data.models import ExportQuery
from graphmem.user_data.records import records_json_schema
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep
from graphmem_api.openapi import Responses
from graphmem_api.streamed_response import StreamedResponse

router = APIRouter(route_class=route_classes.ExportRoute, tags=["user data"])

EXPORT_RESPONSES: Responses = {
    200: {
        "description": "All data of the user.",
        "content": {
            "application/json": {"schema": {"type": "object", "additionalProperties": True}},
            "application/yaml": {"schema": {}},
        },
    }
}
"""OpenAPI description of an export; its own schema is at `/v1/schema/export`."""


@router.get(
    USER_PATH + "/export",
    summary="Export a user",
    operation_id="export",
    responses=EXPORT_RESPONSES,
    response_class=Response,
)
async def export(
    owner: OwnerInPath, caller: Caller, services: ServicesDep, query: Annotated[ExportQuery, Query()]
) -> Response:
    """Stream all data of a user or a space, without loss, or current memories as records to read and edit."""
    place = await services.rights.find_place(owner, caller, query.space)
    chunks = services.exports.stream_view(place, query.format, query.view)
    first = await anext(chunks)
    return StreamedResponse(_prepend_chunk(first, chunks), chunks.aclose, media_type=f"application/{query.format}")


async def _prepend_chunk(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield chunks whose first was read before the status was sent, so that a failure of the database is a 503."""
    yield first
    async for chunk in rest:
        yield chunk


@router.get("/v1/schema/export", summary="JSON Schema of an export", operation_id="export_schema")
async def export_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export: its sections and the type of each value."""
    return export_json_schema()


@router.get("/v1/schema/records", summary="JSON Schema of records", operation_id="records_schema")
async def records_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document of records, which `view=records` of an export has."""
    return records_json_schema()
