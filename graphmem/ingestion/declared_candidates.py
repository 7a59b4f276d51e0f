"""Candidates of the types that a tenant declared: what is asked for, and how the answer is read. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from graphmem.ingestion.llm_schemas import Candidate, Extraction
from graphmem.memories.declared_types import DeclaredMemoryType, DeclaredTypes
from graphmem.memories.type_checks import find_attribute_problem


class NamedAttribute(BaseModel):
    """One attribute of a candidate."""

    name: str
    value: str


class DeclaredCandidate(Candidate):
    """A candidate that may be of a declared type."""

    declared_type: str | None = Field(None, description="name of the declared memory type that fits, else null")
    attributes: list[NamedAttribute] = Field(
        default_factory=list, description="with declared_type: those of its attributes that the messages tell"
    )


class DeclaredExtraction(Extraction):
    """The answer of the first call for a tenant with declared memory types."""

    candidates: list[DeclaredCandidate]  # type: ignore[assignment]  # an answer is only read


class DeclaredLabel(BaseModel):
    """The declared type of a candidate, with its attributes."""

    name: str
    attributes: dict[str, Any] = Field(default_factory=dict)


def answer_schema(types: DeclaredTypes) -> type[Extraction]:
    """Return the answer that the first call asks for; without declared memory types it is the plain one."""
    return DeclaredExtraction if types.memory_types else Extraction


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
