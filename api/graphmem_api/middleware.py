"""What surrounds each request: its id, log line, metrics and span, and the response to an unexpected error."""

from __future__ import annotations

import logging
import re
import time
import uuid

from opentelemetry.trace import Span, SpanKind
from prometheus_client import Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from graphmem.runtime.tracing import mark_failed, span
from graphmem_api import headers
from graphmem_api.forwarding import BrokenAnswer
from graphmem_api.path_encoding import keep_path_encoded
from graphmem_api.problems import make_problem_response

log = logging.getLogger(__name__)

REQUESTS = Counter("graphmem_http_requests", "HTTP requests by route and status.", ["method", "route", "status"])
SECONDS = Histogram("graphmem_http_request_seconds", "Seconds from a request to its response.", ["method", "route"])

_REQUEST_ID_PATTERN = re.compile(headers.REQUEST_ID_PATTERN)
_KNOWN_METHODS = frozenset({"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"})
"""Methods that metrics name; a caller could make up any number of others."""


class RequestMiddleware:
    """The outermost ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        keep_path_encoded(scope)
        received = Headers(scope=scope)
        given_id = received.get(headers.REQUEST_ID, "")
        request_id = given_id if _REQUEST_ID_PATTERN.match(given_id) else uuid.uuid4().hex
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent[headers.REQUEST_ID] = request_id
                sent.setdefault("Cache-Control", "no-store")
                sent["X-Content-Type-Options"] = "nosniff"
            await send(message)

        started = time.perf_counter()
        with (
            bound_contextvars(request_id=request_id),
            span("request", kind=SpanKind.SERVER, caller=received, graphmem__request_id=request_id) as current,
        ):
            try:
                await self._app(scope, receive, send_with_id)
            except ClientDisconnect:
                log.info("the client disconnected")
            except BrokenAnswer as error:
                log.warning("a provider broke off its answer: %s", error)  # the connection is closed for the caller too
            except Exception:
                log.exception("a request failed")
                if status:
                    raise
                await _internal_error(scope)(scope, receive, send_with_id)
            finally:
                _record_request(scope, status, time.perf_counter() - started, current)


def _internal_error(scope: Scope) -> ASGIApp:
    detail = f"An unexpected error occurred: the log has it under this response's {headers.REQUEST_ID}."
    return make_problem_response(scope["path"], 500, "Internal error", detail)


def _record_request(scope: Scope, status: int, seconds: float, current: Span) -> None:
    route = getattr(scope.get("route"), "path_format", "unknown")
    method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
    REQUESTS.labels(method, route, str(status)).inc()
    SECONDS.labels(method, route).observe(seconds)
    current.update_name(f"{method} {route}")
    current.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
    if status >= 500:
        mark_failed(current, str(status))
    caller = scope.get("state", {}).get("caller")
    log.info(
        "request",
        extra={
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "key_id": getattr(caller, "id", None),
        },
    )
