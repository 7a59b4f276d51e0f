"""Importing a document for a user."""

from __future__ import annotations

import codecs
from typing import Annotated

from fastapi import APIRouter, Query, Request

from graphmem.runtime.errors import InvalidInput
from graphmem.tenants.spaces import SpaceRole
from graphmem.user_data.models import ImportQuery, ImportResult
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ImportRoute, tags=["user data"])

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


@router.post(USER_PATH + "/import", summary="Import a user", operation_id="import", openapi_extra=IMPORT_BODY)
async def import_(
    owner: OwnerInPath,
    caller: Caller,
    services: ServicesDep,
    request: Request,
    query: Annotated[ImportQuery, Query()],
) -> ImportResult:
    """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log (JSON, JSONL or YAML).

    Ids that are free are kept; `ids` maps those of the document to those here. `refused` lists what was not imported.
    """
    body = (await request.body()).removeprefix(codecs.BOM_UTF8)
    if "json" in request.headers.get("content-type", "") and not body.lstrip().startswith((b"{", b"[")):
        raise InvalidInput(
            "The body is not JSON.", errors=[{"loc": ["body"], "msg": "must be a JSON object, a JSON array or JSONL"}]
        )
    place = await services.rights.find_place(owner, caller, query.space, SpaceRole.WRITER)
    return await services.imports.import_(
        place,
        body,
        source_format=query.format,
        actor=caller.id,
        kind=caller.changes_as,
        member=owner.author_in(place),
    )
