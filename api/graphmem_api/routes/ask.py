"""Questions that memory answers."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.ask.models import AskRequest, AskResponse
from graphmem_api import route_classes
from graphmem_api.auth import Caller, OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep
from graphmem_api.openapi import openapi_problem

router = APIRouter(route_class=route_classes.ReadRoute, tags=["search"])


@router.post(
    USER_PATH + "/ask",
    summary="Ask memory a question",
    operation_id="ask",
    responses={501: openapi_problem(501, "No language model is configured.")},
)
async def ask(owner: OwnerInPath, caller: Caller, services: ServicesDep, body: AskRequest) -> AskResponse:
    """Answer a question from memory with citations, by one or two calls of a language model."""
    request = body if caller.can_write else body.model_copy(update={"reinforce": False})
    scope = await services.rights.read_scope(owner, caller, body.spaces)
    return await services.answers.ask(scope, request)
