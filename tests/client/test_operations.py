"""One method an operation: the clients, `GraphMemory` and the HTTP API have the same methods and parameters."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import graphmem
from docs.blocking_client import make_blocking
from graphmem import AsyncClient, Client, GraphMemory
from graphmem.ask.models import AskRequest
from graphmem.client.inputs import (
    AskOptions,
    ContextOptions,
    ListMemoriesOptions,
    MemoryChanges,
    SearchOptions,
)
from graphmem.client.transport import ApiCall
from graphmem.context.models import ContextRequest
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryPatch
from graphmem.search.models import SearchQuery
from tests.api.conftest import describe_api

ROOT = Path(__file__).parents[2]

LIFECYCLE = {Client: {"close"}, AsyncClient: {"aclose"}, GraphMemory: {"aclose", "open", "of_key", "for_tenant"}}
"""Public methods that are no operations."""

METHODS = sorted(name for name in dir(AsyncClient) if not name.startswith("_") and name != "aclose")

COMPOSED = {"get_all"}
"""Methods that call others."""

SAMPLE_ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "update": (("x", "x"), {"content": "x"}),
    "add_messages": (("x", [{"role": "user", "content": "x"}]), {}),
    "feedback": (("x", "x"), {"score": 5}),
    "resolve": (("x", "x"), {"holds": True}),
    "set_trust": ((["user"],), {}),
    "rate_context": (("x", "x", 5), {}),
    "create_key": (("x",), {"role": "agent"}),
    "create_webhook": (("https://example.com",), {}),
    "enhance": (("x", "x"), {"reply": "x"}),
    "add_context": (("x",), {"type": "goal", "key": "x", "value": "x"}),
    "import_": (("x", b"{}"), {}),
    "put_space": (("x",), {"title": "x"}),
    "set_space_member": (("x", "x"), {"role": "reader"}),
}
"""Arguments of operations for which a text in each required place is not valid."""

PARAMETER_ALIASES = {"q": "text", "hard": "erase_memory"}
ROUTE_EXISTS = "a method at all"

SERVER_ROUTES = {"/healthz", "/readyz", "/metrics", "/v1/memories"}
"""Routes for operators, and a second form of another route."""

PASSED_ON = ("/openai/", "/anthropic/")
"""Routes for the clients of providers."""


class RecordingClient(AsyncClient):
    """A client that records what it would send."""

    def __init__(self) -> None:
        self.calls: list[ApiCall[Any]] = []

    async def _send(self, call: ApiCall[Any]) -> Any:
        self.calls.append(call)


def test_the_blocking_client_is_made_from_the_other() -> None:
    client = ROOT / "graphmem" / "client"
    made = make_blocking((client / "async_client.py").read_text("utf-8"))
    assert (client / "client.py").read_text("utf-8") == made, "run `python docs/blocking_client.py`"


@pytest.mark.parametrize("kind", LIFECYCLE)
def test_every_operation_is_a_method(kind: type) -> None:
    assert {name for name in dir(kind) if not name.startswith("_")} - LIFECYCLE[kind] == {*METHODS}


def test_methods_of_both_clients_have_the_same_parameters_and_documentation() -> None:
    for name in METHODS:
        method, blocking = getattr(AsyncClient, name), getattr(Client, name)
        assert method.__doc__, name
        assert blocking.__doc__ == method.__doc__, name
        assert inspect.signature(blocking).parameters == inspect.signature(method).parameters, name


@pytest.mark.parametrize(
    ("options", "model", "positional"),
    [
        (SearchOptions, SearchQuery, "query"),
        (ContextOptions, ContextRequest, "question"),
        (AskOptions, AskRequest, "question"),
        (ListMemoriesOptions, ListFilters, None),
        (MemoryChanges, MemoryPatch, None),
    ],
)
def test_typed_options_match_the_model_fields(options: Any, model: Any, positional: str | None) -> None:
    assert set(options.__annotations__) == set(model.model_fields) - {positional}


async def test_every_route_and_parameter_has_an_operation() -> None:
    document = describe_api()
    missing = {
        (method.upper(), path): _route_parameters(document, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
        if path not in SERVER_ROUTES and not path.startswith(PASSED_ON)
    }
    client = RecordingClient()
    for name in METHODS:
        if name in COMPOSED:
            continue
        parameters = inspect.signature(getattr(client, name), eval_str=True).parameters.values()
        required = [
            item for item in parameters if item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD
        ]
        args, kwargs = SAMPLE_ARGUMENTS.get(name, (("x",) * len(required), {}))
        await getattr(client, name)(*args, **kwargs)
        call = client.calls[-1]
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


def test_importing_is_light() -> None:
    code = """
import sys
before = set(sys.modules)
for statement in sys.argv[1:]:
    exec(statement)
    loaded = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
    print(*(name for name in loaded if not name.startswith('_')))
"""
    light = ("import graphmem", "from graphmem import __version__", "import graphmem.client")
    client = "from graphmem.client import AsyncClient, Client"
    done = subprocess.run([sys.executable, "-c", code, *light, client], capture_output=True, text=True, check=True)
    *loaded_by_light, loaded_by_client = (set(line.split()) - {"graphmem"} for line in done.stdout.splitlines())
    assert [(name, loaded) for name, loaded in zip(light, loaded_by_light, strict=True) if loaded] == []
    assert loaded_by_client <= PYDANTIC | HTTPX
