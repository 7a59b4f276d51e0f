"""Candidates of types that a tenant declared: how the prompt offers the types, and how an answer names them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from graphmem.ingestion.answer_schema import DeclaredExtraction, NamedAttribute
from graphmem.ingestion.llm_schemas import Candidate, Extraction
from graphmem.memories.declared_types import DeclaredMemoryType, DeclaredTypes
from graphmem.memories.type_checks import find_attribute_problem


class DeclaredLabel(BaseModel):
    """The declared type of a candidate, with its attributes."""

    name: str
    attributes: dict[str, Any] = Field(default_factory=dict)


def render_declared_types(types: DeclaredTypes) -> str:
    """Return one line for each declared type, with its attributes; nothing where there are none."""
    lines = []
    for kind, declared_types in (("memory", types.memory_types), ("entity", types.entity_types)):
        for declared in declared_types:
            description = f": {' '.join(declared.description.split())}" if declared.description.strip() else ""
            attributes = ", ".join(f"{name} ({kind_of})" for name, kind_of in declared.attribute_types.items())
            offered = f"; attributes: {attributes}" if attributes and kind == "memory" else ""
            lines.append(f"{kind} type {declared.name}{description}{offered}")
    return "\n".join(lines)


def read_labels(answer: Extraction, types: DeclaredTypes) -> tuple[Extraction, dict[int, DeclaredLabel]]:
    """Return an answer with the types that declared ones are based on, and the labels of its candidates by index.

    A candidate whose attributes do not fit its declared type has none.
    """
    if not isinstance(answer, DeclaredExtraction):
        return answer, {}
    candidates: list[Candidate] = []
    labels: dict[int, DeclaredLabel] = {}
    for index, candidate in enumerate(answer.candidates):
        plain = {name: getattr(candidate, name) for name in Candidate.model_fields}
        declared = types.find_memory_type(candidate.declared_type or "")
        if declared:
            attributes = _read_attributes(declared, candidate.attributes)
            if find_attribute_problem(declared, attributes) is None:
                plain["type"] = declared.base
                labels[index] = DeclaredLabel(name=declared.name, attributes=attributes)
        candidates.append(Candidate.model_construct(**plain))
    fields = {name: getattr(answer, name) for name in Extraction.model_fields}
    return Extraction.model_construct(**{**fields, "candidates": candidates}), labels


def _read_attributes(declared: DeclaredMemoryType, attributes: Iterable[NamedAttribute]) -> dict[str, Any]:
    """Return the attributes that the type lists, each as a value of its JSON type."""
    kinds = declared.attribute_types
    return {
        attribute.name: _read_value(attribute.value, kinds, attribute.name)
        for attribute in attributes
        if attribute.name in kinds
    }


def _read_value(text: str, kinds: Mapping[str, str], name: str) -> Any:
    if kinds[name] == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
