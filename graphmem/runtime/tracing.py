"""OpenTelemetry spans: operations with their duration and status, without user text.

No global tracer provider is set, because libraries put queries and invalid input into their own spans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.trace import NoOpTracer, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from graphmem.runtime.errors import ConfigurationError

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_tracer: Tracer = NoOpTracer()


def is_tracing_enabled(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the standard variables enable traces: an OTLP endpoint is set and nothing disables them."""
    off = (
        environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
    )
    return not off and any(environment.get(name) for name in _ENDPOINTS)


@contextmanager
def export_spans() -> Iterator[None]:
    """Export spans over OTLP during the block if the standard `OTEL_…` variables enable it.

    Raises ConfigurationError if they do and the exporter is not installed.
    """
    global _tracer
    if not is_tracing_enabled():
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT enables traces: pip install 'graphmem[otel]', or set OTEL_SDK_DISABLED=true."
        ) from error
    provider = TracerProvider(
        resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "graphmem")})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("graphmem")
    try:
        yield
    finally:
        _tracer = NoOpTracer()
        provider.shutdown()


@contextmanager
def span(
    name: str,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    caller: Mapping[str, str] | None = None,
    **attributes: str | int | float,
) -> Iterator[Span]:
    """Record the block as a span; a failed span has only the error's class, because its text may quote a message.

    `caller` are the headers of a request, which may name a parent span. In attribute names, `__` means a dot.
    """
    context = TraceContextTextMapPropagator().extract(caller) if caller is not None else None
    with _tracer.start_as_current_span(
        name,
        context,
        kind,
        {key.replace("__", "."): value for key, value in attributes.items()},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            mark_failed(current, type(error).__qualname__)
            raise


def mark_failed(current: Span, why: str) -> None:
    """Mark a span as failed; `why` must not contain user text."""
    current.set_attribute("error.type", why)
    current.set_status(StatusCode.ERROR)
