"""One table of operations: the clients, `GraphMemory` and the HTTP API have the same methods and parameters."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any, cast, get_args

import pytest
from fastapi import FastAPI
from graphmem_api.app import create_app

import graphmem
from graphmem import AsyncClient, Client, GraphMemory
from graphmem.app.bootstrap import Services
from graphmem.client import operations
from graphmem.client.endpoints import Endpoint, Endpoints
from graphmem.client.inputs import (
    ContextOptions,
    ListMemoriesOptions,
    MemoryChanges,
    SearchOptions,
)
from graphmem.client.operations import composed
from graphmem.context.models import ContextRequest
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import MemoryPatch
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery

OPERATIONS = sorted({*operations.__all__} - {"OperationMethod", "Request", "accept_user_by_name", "is_about_user"})

COMPOSED = {"add": composed.add, "get_all": composed.get_all}
"""Methods of several operations."""

LIFECYCLE = {
    Client: {"bind", "bind_composed", "close"},
    AsyncClient: {"bind", "bind_composed", "aclose"},
    GraphMemory: {"open", "for_tenant"},
}
"""Public methods that are no operations."""

SAMPLE_ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "update": (("x", "x"), {"content": "x"}),
    "add_messages": (("x", [{"role": "user", "content": "x"}]), {}),
    "feedback": (("x", "x"), {"score": 5}),
    "rate_context": (("x", "x", 5), {}),
    "create_key": (("x",), {"role": "agent"}),
    "create_webhook": (("https://example.com",), {}),
    "enhance": (("x", "x"), {"reply": "x"}),
    "add_context": (("x",), {"type": "goal", "key": "x", "value": "x"}),
    "import_": (("x", b"{}"), {}),
}
"""Arguments of operations for which a text in each required place is not valid."""

PARAMETER_ALIASES = {"q": "text", "hard": "erase_memory"}
ROUTE_EXISTS = "a method at all"

SERVER_ROUTES = {"/healthz", "/readyz", "/metrics", "/v1/memories"}
"""Routes for operators, and a second form of another route."""


@pytest.fixture(scope="module")
def api() -> FastAPI:
    """The HTTP API without services: it is only described, not called."""
    return create_app(cast(Services, None), Settings())


@pytest.mark.parametrize("kind", LIFECYCLE)
def test_every_operation_is_a_method(kind: type) -> None:
    assert {name for name in dir(kind) if not name.startswith("_")} - LIFECYCLE[kind] == {*OPERATIONS, *COMPOSED}


@pytest.mark.parametrize("name", sorted({*OPERATIONS, *COMPOSED}))
def test_methods_have_the_parameters_and_documentation_of_their_operation(name: str) -> None:
    operation: Any = COMPOSED.get(name) or getattr(operations, name)
    parameters = inspect.signature(operation, eval_str=True).parameters
    assert operation.__doc__
    for owner in (Client("key"), AsyncClient("key"), GraphMemory(cast(Services, None))):
        method = getattr(owner, name)
        assert inspect.signature(method, eval_str=True).parameters == parameters
        assert method.__doc__ == operation.__doc__


@pytest.mark.parametrize(
    ("options", "model", "positional"),
    [
        (SearchOptions, SearchQuery, "query"),
        (ContextOptions, ContextRequest, "question"),
        (ListMemoriesOptions, ListFilters, None),
        (MemoryChanges, MemoryPatch, None),
    ],
)
def test_typed_options_match_the_model_fields(options: Any, model: Any, positional: str | None) -> None:
    assert set(options.__annotations__) == set(model.model_fields) - {positional}


def test_every_route_and_parameter_has_an_operation(api: FastAPI) -> None:
    document = api.openapi()
    missing = {
        (method.upper(), path): _route_parameters(document, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
        if path not in SERVER_ROUTES
    }
    for name in OPERATIONS:
        endpoint: Endpoint[Any, Any] = getattr(Endpoints, name)
        parameters = inspect.signature(endpoint.operation, eval_str=True).parameters.values()
        required = [
            item for item in parameters if item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD
        ]
        args, kwargs = SAMPLE_ARGUMENTS.get(name, (("x",) * len(required), {}))
        call = endpoint.make_call(*args, **kwargs)
        routes = [route for route in missing if route[0] == call.method and _matches_route(route[1], call.path)]
        route = min(routes, key=lambda route: route[1].count("{"))
        missing[route] -= {item.name for item in parameters} | {name, ROUTE_EXISTS}
        for item in parameters:
            if item.kind is item.VAR_KEYWORD:
                missing[route] -= set(get_args(item.annotation)[0].__annotations__)
    assert {route: names for route, names in missing.items() if names} == {}


def _route_parameters(document: dict[str, Any], route: dict[str, Any]) -> set[str]:
    """Return the names of a route's query parameters and body fields, and a mark that the route exists."""
    names = {item["name"] for item in route.get("parameters", ()) if item["in"] == "query"}
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for schema in (content, *content.get("anyOf", ())):
        if "$ref" in schema:
            names |= set(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])
    return {PARAMETER_ALIASES.get(name, name) for name in names} | {ROUTE_EXISTS}


def _matches_route(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^/]+\}", "[^/]+", template), path) is not None


def test_the_package_exports_the_public_names() -> None:
    assert graphmem.__all__ == [
        "AsyncClient",
        "Client",
        "Conflict",
        "Forbidden",
        "GraphMemory",
        "GraphmemError",
        "InvalidInput",
        "Memory",
        "MemoryIn",
        "MemoryPatch",
        "MessageIn",
        "NotFound",
        "RateLimited",
        "SearchQuery",
        "SearchResponse",
        "Settings",
        "Unauthenticated",
        "Unavailable",
        "__version__",
    ]
    assert all(getattr(graphmem, name).__name__ == name for name in graphmem.__all__ if name != "__version__")
    with pytest.raises(AttributeError):
        _ = graphmem.Nothing


PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
HTTPX = {
    "httpx", "httpcore", "h11", "anyio", "sniffio", "certifi", "idna", "click", "rich", "pygments", "brotli",
    "zstandard",
}  # fmt: skip
"""httpx and what it imports, where it is installed: its own command line needs some of them."""


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import graphmem", set()),
        ("from graphmem.client import AsyncClient, Client", set()),
        ("from graphmem import __version__", set()),
        ("import graphmem.client.endpoints, graphmem.client.transport", PYDANTIC | HTTPX),
    ],
)
def test_importing_is_light(statement: str, allowed: set[str]) -> None:
    code = (
        f"import sys\nbefore = set(sys.modules)\n{statement}\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)\n"
        "print(*(name for name in loaded if not name.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - {"graphmem"} <= allowed
