"""The OpenAPI document describes what the API does."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import describe_api
from tests.conftest import examples

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PASSED_ON = ("/openai/", "/anthropic/")
METHODS = {"get", "post", "patch", "delete"}


def operations() -> list[tuple[str, str]]:
    """The path and the method of each operation."""
    paths = describe_api()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods if method in METHODS]


def test_every_operation_documents_responses_and_errors() -> None:
    for path, method in operations():
        operation = describe_api()["paths"][path][method]
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)
        good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        assert good, (method, path)
        if path in ("/healthz", "/readyz"):
            continue
        assert operation["security"] == [{"key": []}]
        assert operation["responses"].keys() >= {"401", "403", "413", "422", "429", "503"}, (method, path)
        for status, answer in operation["responses"].items():
            if not status.startswith("2"):
                kind = "application/json" if path.startswith(PASSED_ON) else "application/problem+json"
                assert list(answer["content"]) == [kind], (method, path, status)


def test_every_write_takes_an_idempotency_key() -> None:
    user = "/v1/users/{user_id}"
    tails = ("/search", "/messages/search", "/ask", "/context", "/sessions/{session_id}/enhance")
    # Calls that are passed on to a provider are no writes: it would answer each of them again.
    reads = {user + tail for tail in tails} | {path for path in describe_api()["paths"] if path.startswith(PASSED_ON)}
    for path, method in operations():
        names = {parameter["name"] for parameter in describe_api()["paths"][path][method].get("parameters", [])}
        assert ("Idempotency-Key" in names) == (method != "get" and path not in reads), (method, path)


def test_every_route_of_the_contract_is_there() -> None:
    user = "/v1/users/{user_id}"
    promised = {
        *(
            ("post", user + tail)
            for tail in ("/memories", "/search", "/messages", "/messages/search", "/ask", "/context")
        ),
        *(("get", user + tail) for tail in ("/memories", "/entities", "/entities/lookup", "/sessions", "/export")),
        *(
            ("get", user + tail)
            for tail in ("/preferences", "/patterns", "/contexts", "/intents", "/profile", "/persona")
        ),
        ("post", user + "/sessions/{session_id}/enhance"),
        ("post", user + "/contexts"),
        ("delete", user + "/contexts/{item_id}"),
        *((method, user + "/memories/{memory_id}") for method in ("get", "patch", "delete")),
        ("get", user + "/memories/{memory_id}/history"),
        ("post", user + "/memories/{memory_id}/revert"),
        *(("get", user + "/entities/{entity_id}" + tail) for tail in ("", "/memories", "/graph")),
        ("post", "/v1/memories"),
        ("get", "/v1/jobs"),
        ("get", "/v1/jobs/{job_id}"),
        ("post", "/v1/jobs/{job_id}/retry"),
        ("post", user + "/sessions"),
        *(("get", user + "/sessions/{session_id}" + tail) for tail in ("", "/messages")),
        *(("post", user + "/sessions/{session_id}" + tail) for tail in ("/close", "/summarize")),
        ("post", user + "/messages/{message_id}/feedback"),
        ("post", user + "/import"),
        ("delete", user),
        ("post", "/_admin/trigger-memory-extraction-v2"),
        *((method, "/v1/admin/consolidations") for method in ("get", "post")),
        ("get", "/v1/admin/consolidations/{run_id}"),
        ("post", "/v1/admin/consolidations/{run_id}/rollback"),
        ("post", "/v1/admin/maintenance"),
        *((method, "/v1/admin/keys") for method in ("get", "post")),
        ("delete", "/v1/admin/keys/{key_id}"),
        *((method, "/v1/admin/instructions") for method in ("get", "post")),
        *(("get", path) for path in ("/healthz", "/readyz", "/metrics")),
        *(("post", path) for path in ("/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages")),
    }
    assert promised <= {(method, path) for path, method in operations()}


async def test_openapi_and_docs_need_no_key_and_no_other_host(anonymous: httpx.AsyncClient, app: FastAPI) -> None:
    assert (await anonymous.get("/openapi.json")).json() == app.openapi()
    page = await anonymous.get("/docs")
    assert page.status_code == 200
    assert "//" not in page.text
    for source in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert (await anonymous.get(f"/{source}")).status_code == 200, source
    assert (await anonymous.get("/docs/none.js")).status_code == 404


def test_operation_ids_are_unique_names_and_tags_are_described() -> None:
    described = [describe_api()["paths"][path][method] for path, method in operations()]
    ids = [operation["operationId"] for operation in described]
    assert len({*ids}) == len(ids)
    assert {"memories_save", "memories_list", "search", "context_build", "sessions_list", "users_forget"} <= {*ids}
    for name in ids:
        assert re.fullmatch("[a-z]+(_[a-z]+)*", name), f"give the route of {name} an operation_id such as memories_save"
    used = {tag for operation in described for tag in operation["tags"]}
    tags = {tag["name"] for tag in describe_api()["tags"]}
    assert used == tags, "TAGS in graphmem_api/openapi.py describes each tag"


def test_every_field_and_parameter_is_described() -> None:
    fields = [
        f"{schema}.{name}"
        for schema, model in describe_api()["components"]["schemas"].items()
        for name, field in model.get("properties", {}).items()
        if not field.get("description")
    ]
    parameters = [
        f"{describe_api()['paths'][path][method]['operationId']}: {parameter['name']}"
        for path, method in operations()
        for parameter in describe_api()["paths"][path][method].get("parameters", [])
        if not parameter.get("description") and not parameter["schema"].get("description")
    ]
    assert fields + parameters == [], "describe them in api/graphmem_api/documentation/fields.toml"


def test_every_operation_has_examples_that_fit_its_schemas() -> None:
    missing, wrong = [], []
    for path, method in operations():
        operation = describe_api()["paths"][path][method]
        bodies = [operation["requestBody"]] if "requestBody" in operation else []
        answers = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
        shown = [
            content
            for body in [*bodies, *answers]
            for content in body.get("content", {}).values()
            if "example" in content
        ]
        if len(shown) < len(bodies) + any("content" in answer for answer in answers):
            missing.append(operation["operationId"])
        for content in shown:
            complete = {**content["schema"], "components": describe_api()["components"]}
            errors = jsonschema.Draft202012Validator(complete).iter_errors(content["example"])
            wrong += [(operation["operationId"], error.message) for error in errors if error.validator != "required"]
    assert missing + wrong == [], "write a request and a response in api/graphmem_api/documentation/examples.json"


def test_problem_types_are_listed() -> None:
    for name in ("invalid-input", "version-conflict", "too-many-requests", "unavailable"):
        assert f"`urn:graphmem:problem:{name}`" in describe_api()["info"]["description"]
    assert describe_api()["servers"][0]["url"] == "/"


def test_problems_are_told_apart_by_their_type() -> None:
    schemas = describe_api()["components"]["schemas"]
    mapping = schemas["Problem"]["discriminator"]["mapping"]
    assert mapping["urn:graphmem:problem:version-conflict"] == "#/components/schemas/VersionConflictProblem"
    for urn, reference in mapping.items():
        assert schemas[reference.rpartition("/")[2]]["properties"]["type"]["const"] == urn
    shown = describe_api()["paths"]["/v1/users/{user_id}/memories/{memory_id}"]["patch"]["responses"]["409"]
    conflicts = shown["content"]["application/problem+json"]["schema"]["oneOf"]
    assert {reference["$ref"].rpartition("/")[2] for reference in conflicts} >= {
        "VersionConflictProblem", "ImmutableMemoryProblem", "IdempotencyConflictProblem",
    }  # fmt: skip


def test_generators_see_every_path_parameter_and_every_field_that_is_sent() -> None:
    for path, method in operations():
        parameters = describe_api()["paths"][path][method].get("parameters", [])
        named = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
        assert named == {*re.findall(r"{(\w+)}", path)}, (method, path)
    schemas = describe_api()["components"]["schemas"]
    assert schemas["SearchHit"]["required"] == ["memory", "score"]
    assert {"actions", "receipt", "finished_at"} <= {*schemas["Job"]["required"]}
    assert schemas["SearchQuery"]["required"] == ["query"]


@pytest.mark.property
async def test_generated_requests_get_documented_responses(address: str, admin: httpx.AsyncClient) -> None:
    schema = schemathesis.openapi.from_dict(describe_api())
    headers = {"Authorization": admin.headers["authorization"]}
    wrong = []
    for path, method in operations():
        try:
            await asyncio.to_thread(ask, schema[path][method], address, headers)
        except Exception as error:
            wrong.append((method, path, error))
    assert wrong == []


def ask(operation: Any, address: str, headers: dict[str, str]) -> None:
    """Send generated requests of one operation, and check the responses."""

    @given(case=operation.as_strategy())
    @settings(
        max_examples=examples(0.05),
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: schemathesis.Case[Any]) -> None:
        answer = case.call(base_url=address, headers=headers, timeout=60)
        # 501 is what a server without a language model documents and answers.
        checks = [check for check in CHECKS if answer.status_code != 501 or check is not not_a_server_error]
        case.validate_response(answer, checks=checks)

    send()
