"""Reading an imported document: from text to a value of JSON types, and the detection of its format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import MAX_JSON_DEPTH, UnstorableValue, check_json_value
from graphmem.runtime.validation import invalid_input_from
from graphmem.user_data.models import ImportFormat

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

    return parse_yaml(text)


def _split_jsonl(raw: bytes) -> list[bytes]:
    """Return the lines of a JSONL text; nothing for other texts, whose first line is not an object."""
    first, _, rest = raw.strip().partition(b"\n")
    if not (first.startswith(b"{") and first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")):
        return []
    return [line for line in raw.split(b"\n") if line.strip()]


_TAG_PREFIX = "tag:yaml.org,2002:"
_JSON_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")


def parse_yaml(text: str) -> Any:
    """Return the value of YAML.

    Raises InvalidInput for what is not YAML, and for aliases and deep nesting, which make a small text expensive.
    """
    loader = _json_types_loader()
    depth = 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_JSON_DEPTH or isinstance(event, yaml.AliasEvent):
                raise InvalidInput(f"The import has aliases or more than {MAX_JSON_DEPTH} levels.")
        return yaml.load(text, loader)
    except (yaml.YAMLError, ValueError, LookupError) as error:  # `!!bool x` is a KeyError, `!!int ""` an IndexError
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error


def _json_types_loader() -> type[yaml.SafeLoader]:
    """Return a loader of JSON types: it reads a time as text and refuses tags such as `!!binary` and `!!set`."""
    base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    known = {None, *(_TAG_PREFIX + name for name in _JSON_TYPES)}
    return type(
        "JsonTypesLoader",
        (base,),
        {
            "yaml_constructors": {tag: make for tag, make in base.yaml_constructors.items() if tag in known},
            "yaml_implicit_resolvers": {
                first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG_PREFIX + "timestamp"]
                for first, resolvers in base.yaml_implicit_resolvers.items()
            },
        },
    )
