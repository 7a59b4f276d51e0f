"""Graphiti exports: `{"nodes": [{uuid, name, labels}], "edges": [{uuid, fact, name, source_node_uuid, …}]}`."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from graphmem.domain.entity import parse_entity_type
from graphmem.domain.formats.document import ImportFormat, to_invalid_input
from graphmem.domain.formats.provenance import ParsedStatements
from graphmem.domain.provenance import ImportProvenance
from graphmem.domain.times import Instant

_NON_PREDICATE_CHARS = re.compile(r"[^A-Z0-9]+")


class _Node(BaseModel):
    uuid: str = Field(min_length=1)
    name: str
    labels: list[str] = Field(default_factory=list)


class _Edge(BaseModel):
    uuid: str = Field(min_length=1)
    fact: str
    name: str = ""
    source_node_uuid: str
    target_node_uuid: str
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    created_at: Instant | None = None
    expired_at: Instant | None = None
    episodes: list[str] | None = None
    attributes: dict[str, Any] | None = None


class _GraphitiGraph(BaseModel):
    nodes: list[_Node]
    edges: list[_Edge]


def parse_graphiti(document: Any) -> ParsedStatements:
    """Return the facts of a Graphiti export with valid and known times; raise InvalidInput for another format.

    Nodes without an edge are not imported. The episodes of an edge become the message ids of the fact.
    """
    try:
        graph = _GraphitiGraph.model_validate(document)
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export of Graphiti") from None
    nodes = {node.uuid: node for node in graph.nodes}
    statements = ParsedStatements()
    for index, edge in enumerate(graph.edges):
        path = ("edges", index)
        if not {edge.source_node_uuid, edge.target_node_uuid} <= nodes.keys():
            statements.reject(path, edge.uuid, "a node at one of its ends is not in the export")
            continue
        provenance = ImportProvenance(
            f"{ImportFormat.GRAPHITI}:{edge.uuid}", edge.created_at, edge.created_at, edge.expired_at
        )
        statements.add(path, edge.uuid, provenance, _to_memory_fields(edge, nodes))
    return statements


def _to_memory_fields(edge: _Edge, nodes: dict[str, _Node]) -> dict[str, Any]:
    subject, target = nodes[edge.source_node_uuid], nodes[edge.target_node_uuid]
    return {
        "content": edge.fact,
        "subject": _to_entity_fields(subject),
        "object": None if target is subject else _to_entity_fields(target),
        "predicate": _to_predicate(edge.name),
        "valid_at": edge.valid_at,
        "invalid_at": edge.invalid_at,
        "metadata": edge.attributes or {},
        "source": {"message_ids": edge.episodes} if edge.episodes else None,
    }


def _to_entity_fields(node: _Node) -> dict[str, Any]:
    kinds = [label for label in node.labels if label != "Entity"]
    try:
        kind = parse_entity_type(kinds[0]) if kinds else None
    except ValueError:
        kind = None
    return {"name": node.name, "type": kind}


def _to_predicate(name: str) -> str | None:
    """Return the name of an edge as a predicate; None when it has no letter."""
    word = _NON_PREDICATE_CHARS.sub("_", name.upper()).strip("_0123456789")
    return word[:64] or None
