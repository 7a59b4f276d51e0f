"""A document on its way in: its text as a value, and which format the value has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from graphmem.domain.validation import invalid_input_from
from graphmem.errors import InvalidInput

MAX_YAML_DEPTH = 64
"""Levels a document in YAML may be nested."""

_MAX_ERRORS = 20


class ImportFormat(StrEnum):
    """Whose format a document has; `auto` tells it by its shape."""

    AUTO = "auto"
    GRAPHMEM = "graphmem"
    MEM0 = "mem0"
    GRAPHITI = "graphiti"
    OPENAI = "openai"


def parse_document(raw: bytes, form: ImportFormat = ImportFormat.AUTO) -> tuple[ImportFormat, Any]:
    """Return the format of a text and its value; raise InvalidInput where it has none."""
    document = parse_structured_text(raw)
    return (detect_format(document) if form is ImportFormat.AUTO else form), document


def parse_structured_text(raw: bytes) -> Any:
    """Return the value of a text in JSON, JSONL (as a list) or YAML; raise InvalidInput where it is none of them."""
    import yaml

    try:
        text = raw.decode("utf-8-sig")
        if lines := split_jsonl(raw):
            return [json.loads(line) for line in lines]
        return json.loads(text) if text.lstrip().startswith(("{", "[")) else _parse_yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidInput("The import is neither JSON nor JSONL nor YAML.") from error


def split_jsonl(raw: bytes) -> list[bytes]:
    """Return the lines of a JSONL text; none for any other: there the first line is no object of its own."""
    first, _, rest = raw.strip().partition(b"\n")
    if not (first.startswith(b"{") and first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")):
        return []
    return [line for line in raw.split(b"\n") if line.strip()]


def detect_format(document: Any) -> ImportFormat:
    """Return the format a document has by its shape; raise InvalidInput when it has none that is known."""
    if isinstance(document, dict):
        if document.get("format") == "graphmem-export":
            return ImportFormat.GRAPHMEM
        if "edges" in document:
            return ImportFormat.GRAPHITI
        if "messages" in document or "role" in document:
            return ImportFormat.OPENAI
        if "results" in document:
            return ImportFormat.MEM0
    if isinstance(document, list) and document and isinstance(document[0], dict):
        if "memory" in document[0]:
            return ImportFormat.MEM0
        if {"role", "messages"} & document[0].keys():
            return ImportFormat.OPENAI
    raise InvalidInput(
        "The import is of no known format: give an export of graphmem (`format: graphmem-export`), of mem0 (`results`) "
        "or of Graphiti (`nodes` and `edges`), or a chat log (`role` and `content`)."
    )


def to_invalid_input(error: ValidationError, path: Sequence[str | int], what: str) -> InvalidInput:
    """Return what is wrong with a part of a document as an error of ours; values are not quoted."""
    return invalid_input_from(error, f"The import does not have the form of {what}.", path=path, max_errors=_MAX_ERRORS)


def _parse_yaml(text: str) -> Any:
    """Read YAML of few levels and without aliases: either can make a small text too much for the reader."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_YAML_DEPTH or isinstance(event, yaml.AliasEvent):
            raise InvalidInput(f"The import has aliases or more than {MAX_YAML_DEPTH} levels.")
    return yaml.load(text, loader)
