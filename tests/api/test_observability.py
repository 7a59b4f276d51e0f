"""What the service tells of itself: traces, log lines and the dashboard over its measures; never what people say."""

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
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from graphmem.errors import SetupError
from graphmem.logs import configure_logs
from graphmem.tracing import traced

DASHBOARD = Path(__file__).parents[2] / "deploy/grafana/graphmem.json"
SAID = "Xylophanes"
"""A word that everything sent holds, so that it is found wherever it should not be."""


async def use(agent: httpx.AsyncClient) -> str:
    """Say the word wherever something can be said, well and badly, and return the id of the job that reads it."""
    user = f"/v1/users/mara-{uuid.uuid4().hex}"
    statement = {"content": f"Mara keeps {SAID}", "object": {"name": SAID}, "tags": [SAID], "metadata": {"kind": SAID}}
    assert (await agent.post(f"{user}/memories", json={"memories": [statement]})).status_code == 200
    assert (await agent.post(f"{user}/memories", json={"memories": [{"content": SAID, SAID: SAID}]})).status_code == 422
    assert (await agent.post(f"{user}/memories", content=SAID)).status_code == 422
    assert (await agent.post(f"{user}/search", json={"query": f"who keeps {SAID}?"})).json()["results"]
    assert (await agent.get(f"{user}/entities/lookup", params={"q": SAID})).json()["entities"]
    assert (await agent.get(f"{user}/memories/{SAID}")).status_code == 404
    assert (await agent.post(f"{user}/import", json=[{"role": SAID, "content": SAID}])).status_code == 422
    turns = {"messages": [{"role": "user", "content": f"I keep {SAID}."}], "wait": True}
    job = (await agent.post(f"{user}/messages", json=turns)).json()
    assert (await agent.get(f"{user}/export")).status_code == 200
    return str(job["id"])


class Collector(ThreadingHTTPServer):
    """Takes what an OpenTelemetry collector would."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
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


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        yield collector
        collector.shutdown()


def told(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


async def test_a_trace_leads_from_the_request_to_the_query_and_says_nothing_of_what_was_said(
    agent: httpx.AsyncClient, collector: Collector
) -> None:
    with traced():
        trace_id = uuid.uuid4().hex
        agent.headers["traceparent"] = f"00-{trace_id}-00f067aa0ba902b7-01"
        job_id = await use(agent)
    spans = {span.span_id: span for span in collector.spans()}
    named = {span.name: span for span in spans.values()}
    search = named["POST /v1/users/{user_id}/search"]
    assert search.trace_id.hex() == trace_id
    assert told(search)["http.response.status_code"] == 200
    assert told(named["POST /v1/users/{user_id}/memories"]).keys() >= {"http.route", "graphmem.request_id"}
    below = {span.name for span in spans.values() if span.parent_span_id == search.span_id}
    assert "embed" in below
    assert any(name.startswith("neo4j search.") for name in below)
    [job] = [span for span in spans.values() if told(span).get("graphmem.job_id") == job_id]
    assert told(job)["graphmem.job_status"] == "skipped"
    assert SAID.lower().encode() not in b"".join(collector.bodies).lower()


async def test_without_an_endpoint_or_switched_off_nothing_is_traced(
    agent: httpx.AsyncClient, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with traced():
        await agent.get("/v1/users/mara/memories")
    assert collector.bodies == []


def test_traces_without_the_extra_say_what_to_install(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SetupError, match=r"graphmem\[otel\]"), traced():
        pass


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a serving process writes to standard error."""
    root = logging.getLogger()
    before, level, written = root.handlers, root.level, io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logs(logging.INFO)
    yield written
    root.handlers = before
    root.setLevel(level)


async def test_log_lines_carry_the_request_and_the_job_and_nothing_of_what_was_said(
    agent: httpx.AsyncClient, lines: io.StringIO
) -> None:
    agent.headers["X-Request-ID"] = "request-7"
    job_id = await use(agent)
    written = [json.loads(line) for line in lines.getvalue().splitlines()]
    requests = [line for line in written if line["event"] == "request"]
    assert len(requests) >= 9
    assert {line["request_id"] for line in requests} == {"request-7"}
    [queued] = [line for line in written if line["event"] == "job queued" and line["job_id"] == job_id]
    assert queued["request_id"] == "request-7"
    [done] = [line for line in written if line["event"] == "job" and line["job_id"] == job_id]
    assert (done["kind"], done["status"]) == ("extraction", "skipped")
    assert SAID.lower() not in lines.getvalue().lower()


def _expressions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("expr"), str):
            yield value["expr"]
        for each in value.values():
            yield from _expressions(each)
    elif isinstance(value, list):
        for each in value:
            yield from _expressions(each)


async def test_every_measure_the_dashboard_draws_is_one_the_service_exposes(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await use(agent)
    scraped = (await admin.get("/metrics")).text
    families = set(re.findall(r"^# TYPE (graphmem_\w+) ", scraped, re.MULTILINE))
    exposed = families | set(re.findall(r"^(graphmem_\w+)[{ ]", scraped, re.MULTILINE))
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    drawn = {name for each in _expressions(dashboard) for name in re.findall(r"graphmem_\w+", each)}
    assert drawn - exposed == set()
    measured = {name for name in families if not name.endswith("_created")}
    assert {name for name in measured if not any(each.startswith(name) for each in drawn)} == set()
