"""Reading an imported document: from text to a value of JSON types, and the detection of its format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.json_values import UnstorableValue, check_json_value
from graphmem.runtime.validation_domain import invalid_input_from
from graphmem.user_data.import_format import ImportFormat

MAX_REPORTED_ERRORS = 20
"""Places that one refusal names at most."""


def parse_document(raw: bytes, source_format: ImportFormat = ImportFormat.AUTO) -> tuple[ImportFormat, Any]:
    """Return the format of a document and its value; raise InvalidInput when it cannot be read."""
    document = parse_structured_text(raw)
    return (detect_format(document) if source_format is ImportFormat.AUTO else source_format), document


def parse_structured_text(raw: bytes) -> Any:
    """Return the value of JSON, JSONL (as a list) or YAML.

    Raises InvalidInput for any other text, and for values that JSON does not have or that cannot be stored.
    """
    try:
        value = _parse_text(raw)
        check_json_value(value)
    except UnstorableValue as error:
        raise InvalidInput(
            "The import contains a value that cannot be stored.", errors=[{"loc": list(error.path), "msg": str(error)}]
        ) from None
    except json.JSONDecodeError as error:
        problem = {"loc": [], "msg": f"is not valid JSON at character {error.pos}"}
        raise InvalidInput("The import is not JSON.", errors=[problem]) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error
    return value


def detect_format(document: Any) -> ImportFormat:
    """Return the format of a document by its structure; raise InvalidInput when no format matches."""
    if isinstance(document, dict):
        if document.get("format") == "graphmem-export":
            return ImportFormat.GRAPHMEM
        if "edges" in document:
            return ImportFormat.GRAPHITI
        if "records" in document:
            return ImportFormat.RECORDS
        if "messages" in document or "role" in document:
            return ImportFormat.CHAT
        if "results" in document:
            return ImportFormat.MEM0
        if "content" in document:
            return ImportFormat.RECORDS
    if isinstance(document, list) and document and isinstance(document[0], dict):
        if "memory" in document[0]:
            return ImportFormat.MEM0
        if {"role", "messages"} & document[0].keys():
            return ImportFormat.CHAT
        if "content" in document[0]:
            return ImportFormat.RECORDS
    raise InvalidInput(
        "The import is of no known format: give an export of graphmem (`format: graphmem-export`), records (`records`, "
        "or `content` without a role), an export of mem0 (`results`) or of Graphiti (`nodes` and `edges`), or a chat "
        "log (`role` and `content`)."
    )


def to_invalid_input(error: ValidationError, path: Sequence[str | int], what: str) -> InvalidInput:
    """Return a validation error as InvalidInput; its message does not quote values."""
    detail = f"The import does not have the form of {what}."
    return invalid_input_from(error, detail, path=path, max_errors=MAX_REPORTED_ERRORS)


def _parse_text(raw: bytes) -> Any:
    text = raw.decode("utf-8-sig")
    if lines := _split_jsonl(raw):
        return [json.loads(line) for line in lines]
    if text.lstrip().startswith(("{", "[")):
        return json.loads(text)
    from graphmem.user_data.yaml_document import parse_yaml  # callers of the HTTP API need no YAML

    return parse_yaml(text)


def _split_jsonl(raw: bytes) -> list[bytes]:
    """Return the lines of a JSONL text; nothing for other texts, whose first line is not an object."""
    first, _, rest = raw.strip().partition(b"\n")
    if not (first.startswith(b"{") and first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")):
        return []
    return [line for line in raw.split(b"\n") if line.strip()]
