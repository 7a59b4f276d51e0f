"""Traces, log lines and the metrics of the dashboard; none of them holds user text."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.logs import configure_logs
from graphmem.runtime.settings import Settings
from graphmem.runtime.tracing import export_spans
from tests.api.conftest import FIRST_KEY

DASHBOARD = Path(__file__).parents[2] / "deploy/grafana/graphmem.json"
ALERTS = Path(__file__).parents[2] / "deploy/prometheus/alerts.yml"
MONITORING = Path(__file__).parents[2] / "docs/operations.md"
USER_WORD = "Xylophanes"
"""A word in every text that the tests send: it must not appear in traces or logs."""


async def exercise_routes(agent: httpx.AsyncClient) -> str:
    """Send the word in valid and invalid requests to many routes; return the id of the extraction job."""
    user = f"/v1/users/mara-{uuid.uuid4().hex}"
    statement = {
        "content": f"Mara keeps {USER_WORD}",
        "object": {"name": USER_WORD},
        "tags": [USER_WORD],
        "metadata": {"kind": USER_WORD},
    }
    assert (await agent.post(f"{user}/memories", json={"memories": [statement]})).status_code == 200
    assert (
        await agent.post(f"{user}/memories", json={"memories": [{"content": USER_WORD, USER_WORD: USER_WORD}]})
    ).status_code == 422
    assert (await agent.post(f"{user}/memories", content=USER_WORD)).status_code == 422
    assert (await agent.post(f"{user}/search", json={"query": f"who keeps {USER_WORD}?"})).json()["results"]
    assert (await agent.get(f"{user}/entities/lookup", params={"q": USER_WORD})).json()["entities"]
    assert (await agent.get(f"{user}/memories/{USER_WORD}")).status_code == 404
    assert (await agent.post(f"{user}/import", json=[{"role": USER_WORD, "content": USER_WORD}])).status_code == 422
    turns = {"messages": [{"role": "user", "content": f"I keep {USER_WORD}."}], "wait": True}
    job = (await agent.post(f"{user}/messages", json=turns)).json()
    assert (await agent.get(f"{user}/export")).status_code == 200
    return str(job["id"])


class TraceCollector(ThreadingHTTPServer):
    """Receives what is sent to an OpenTelemetry collector."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _CollectorHandler)
        self.bodies: list[bytes] = []

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _CollectorHandler(BaseHTTPRequestHandler):
    server: TraceCollector

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceCollector]:
    with TraceCollector() as collector:
        threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        yield collector
        collector.shutdown()


def span_attributes(span: Any) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in span.attributes
    }


async def test_trace_links_request_to_query_without_user_text(
    agent: httpx.AsyncClient, collector: TraceCollector
) -> None:
    with export_spans():
        trace_id = uuid.uuid4().hex
        agent.headers["traceparent"] = f"00-{trace_id}-00f067aa0ba902b7-01"
        job_id = await exercise_routes(agent)
    spans = {span.span_id: span for span in collector.spans()}
    named = {span.name: span for span in spans.values()}
    search = named["POST /v1/users/{user_id}/search"]
    assert search.trace_id.hex() == trace_id
    assert span_attributes(search)["http.response.status_code"] == 200
    assert span_attributes(named["POST /v1/users/{user_id}/memories"]).keys() >= {"http.route", "graphmem.request_id"}
    below = {span.name for span in spans.values() if span.parent_span_id == search.span_id}
    assert "embed" in below
    assert "neo4j users.get_states" in below
    [job] = [span for span in spans.values() if span_attributes(span).get("graphmem.job_id") == job_id]
    assert span_attributes(job)["graphmem.job_status"] == "skipped"
    assert USER_WORD.lower().encode() not in b"".join(collector.bodies).lower()


async def test_nothing_is_exported_when_tracing_is_disabled(
    agent: httpx.AsyncClient, collector: TraceCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with export_spans():
        await agent.get("/v1/users/mara/memories")
    assert collector.bodies == []


def test_tracing_without_the_extra_names_the_package_to_install(
    collector: TraceCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigurationError, match=r"graphmem\[otel\]"), export_spans():
        pass


@pytest.fixture
def log_stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Standard error, with the logging of a serving process."""
    root = logging.getLogger()
    before, level, written = root.handlers, root.level, io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs(logging.INFO)
    yield written
    root.handlers = before
    root.setLevel(level)


async def test_log_lines_have_request_and_job_ids_but_no_user_text(
    agent: httpx.AsyncClient, log_stream: io.StringIO
) -> None:
    agent.headers["X-Request-ID"] = "request-7"
    job_id = await exercise_routes(agent)
    written = [json.loads(line) for line in log_stream.getvalue().splitlines()]
    requests = [line for line in written if line["event"] == "request"]
    assert len(requests) >= 9
    assert {line["request_id"] for line in requests} == {"request-7"}
    [queued] = [line for line in written if line["event"] == "job queued" and line["job_id"] == job_id]
    assert queued["request_id"] == "request-7"
    [done] = [line for line in written if line["event"] == "job" and line["job_id"] == job_id]
    assert (done["kind"], done["status"]) == ("extraction", "skipped")
    assert USER_WORD.lower() not in log_stream.getvalue().lower()


async def test_no_secret_is_in_logs_errors_metrics_or_traces(
    settings: Settings,
    agent: httpx.AsyncClient,
    admin: httpx.AsyncClient,
    collector: TraceCollector,
    log_stream: io.StringIO,
) -> None:
    assert settings.neo4j_password
    wrong = f"gm_{uuid.uuid4().hex}"
    created = (await admin.post("/v1/admin/keys", json={"name": "one more", "role": "agent"})).json()["key"]
    keys = [client.headers["Authorization"].removeprefix("Bearer ") for client in (agent, admin)]
    secrets = [FIRST_KEY, settings.neo4j_password.get_secret_value(), *keys, created, wrong]
    shown = [repr(settings)]
    with export_spans():
        await exercise_routes(agent)
        for key in (created, wrong, f"{keys[0]}x"):
            for path in ("/v1/users/mara/memories", f"/v1/users/{key}/memories?cursor={key}", f"/v1/{key}"):
                answer = await agent.get(path, headers={"Authorization": f"Bearer {key}"})
                shown.append(answer.text if path.endswith("mara/memories") else "")
    shown += [(await admin.get(path)).text for path in ("/metrics", "/readyz", "/healthz", "/v1/admin/keys")]
    shown += [b"".join(collector.bodies).decode("utf-8", "replace"), log_stream.getvalue()]
    found = [(at, key[:6]) for at, text in enumerate(shown) for key in secrets if key in text]
    assert found == []
    assert len(shown[-1]) > 1000, "there were lines to look through"


def _dashboard_expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("expr"), str):
            yield value["expr"]
        for child in value.values():
            yield from _dashboard_expressions(child)
    elif isinstance(value, list):
        for child in value:
            yield from _dashboard_expressions(child)


async def test_dashboard_uses_exactly_the_exposed_metrics(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    await exercise_routes(agent)
    scraped = (await admin.get("/metrics")).text
    families = set(re.findall(r"^# TYPE (graphmem_\w+) ", scraped, re.MULTILINE))
    exposed = families | set(re.findall(r"^(graphmem_\w+)[{ ]", scraped, re.MULTILINE))
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    drawn = {
        name for expression in _dashboard_expressions(dashboard) for name in re.findall(r"graphmem_\w+", expression)
    }
    assert drawn - exposed == set()
    rules = [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]]
    assert all(rule["annotations"].keys() == {"summary", "action"} for rule in rules)
    watched = {name for rule in rules for name in re.findall(r"graphmem_\w+", rule["expr"])}
    assert watched - exposed == set()
    documented = re.findall(r"^\|.*$", MONITORING.read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"`(graphmem_\w+)`", "".join(documented))) == families - {
        name for name in families if name.endswith("_created")
    }
    assert set(re.findall(r"`(Graphmem\w+)`", "".join(documented))) == {rule["alert"] for rule in rules}
    measured = {name for name in families if not name.endswith("_created")}
    assert {name for name in measured if not any(metric.startswith(name) for metric in drawn)} == set()
