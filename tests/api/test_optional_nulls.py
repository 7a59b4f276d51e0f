"""Null stands for an absent argument in every request body, as strict function calling and many serializers send it."""

from __future__ import annotations

from collections.abc import Iterator

import graphmem_api.app  # noqa: F401 - imports every module with a request body
import httpx
import pytest
from pydantic import ValidationError

from graphmem.memories.memory import MemoryPatch
from graphmem.runtime.validation import RequestBody


def request_models(parent: type[RequestBody] = RequestBody) -> Iterator[type[RequestBody]]:
    for model in parent.__subclasses__():
        yield model
        yield from request_models(model)


def test_no_optional_field_of_a_request_body_refuses_null() -> None:
    """A null is the default; where it has a meaning of its own, as in a change of a memory, it keeps it."""
    refused = []
    for model in set(request_models()) - {MemoryPatch}:
        optional = [name for name, field in model.model_fields.items() if not field.is_required()]
        try:
            model.model_validate({field.alias or name: None for name, field in model.model_fields.items()})
        except ValidationError as error:
            wrong = {detail["loc"][0] for detail in error.errors() if detail["loc"]}
            refused += [(model.__name__, name) for name in optional if name in wrong]
    assert refused == []


@pytest.mark.req("UMB-08")
async def test_null_is_absent_over_http(agent: httpx.AsyncClient) -> None:
    statement = {"content": "Mara likes tea", "confidence": None, "type": None, "tags": None, "entities": None}
    saved = await agent.post("/v1/users/mara/memories", json={"memories": [statement], "infer": None})
    assert saved.json()["results"][0]["memory"]["confidence"] == 0.9
    found = await agent.post("/v1/users/mara/search", json={"query": "tea", "limit": None, "cut": None, "spaces": None})
    assert len(found.json()["results"]) == 1
    context = await agent.post("/v1/users/mara/context", json={"question": "tea", "token_budget": None, "top": None})
    assert "tea" in context.json()["preamble"]
    unknown = await agent.post("/v1/users/mara/search", json={"query": "tea", "limmit": None})
    assert unknown.status_code == 422
