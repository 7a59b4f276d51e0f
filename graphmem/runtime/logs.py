"""Logging: one JSON object per line, or coloured text on a terminal, with the request id."""

from __future__ import annotations

import logging
import sys
import traceback

import structlog
from structlog.types import EventDict, Processor


def configure_logs(level: int = logging.INFO) -> None:
    """Write every log line of the process to standard error, with the bound contextvars such as `request_id`."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact_exception,
    ]
    renderer: Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "neo4j", "dbos"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def redact_exception(_: object, __: str, event: EventDict) -> EventDict:
    """Replace an exception by its class and frames, because its text may quote a message."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["frames"] = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
    return event
