"""Graphiti exports: `{"nodes": [{uuid, name, …}], "edges": [{uuid, fact, …}], "episodes": [{uuid, content, …}]}`.

A live graph is read as such a document too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from graphmem.conversations.session import (
    MessageIn,
    MessageRole,
    MessagesIn,
    split_into_batches,
)
from graphmem.memories.entity import parse_entity_type
from graphmem.memories.provenance import ImportProvenance
from graphmem.runtime.times import Instant
from graphmem.runtime.validation_domain import describe_field_errors, field_errors
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.import_format import ImportFormat
from graphmem.user_data.models import ParsedStatements

EPISODES_SESSION = "graphiti"
"""The session of the messages that Graphiti's episodes become."""

_NON_PREDICATE_CHARS = re.compile(r"[^A-Z0-9]+")


class _Node(BaseModel):
    uuid: str = Field(min_length=1)
    name: str
    labels: list[str] = Field(default_factory=list)
    summary: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)


class _Episode(BaseModel):
    uuid: str = Field(min_length=1)
    content: str
    name: str = ""
    source: str = "message"
    source_description: str = ""
    valid_at: Instant | None = None
    created_at: Instant | None = None


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
    episodes: list[_Episode] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """The summary and the attributes of an entity; `path` is its place in the document."""

    path: tuple[str | int, ...]
    id: str
    name: str
    summary: str
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedGraph:
    """The facts of a Graphiti graph, the details of its entities, and its episodes in batches of messages."""

    statements: ParsedStatements
    details: list[NodeDetails]
    batches: list[MessagesIn]


def parse_graphiti(document: Any) -> ParsedGraph:
    """Return the facts of a Graphiti export with valid and known times; raise InvalidInput for another format.

    Nodes without an edge are not imported. Episodes become messages of the session `graphiti`, whose ids are the
    message ids of the facts that rest on them.
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
    named = {key for edge in graph.edges for key in (edge.source_node_uuid, edge.target_node_uuid)}
    details = [
        NodeDetails(("nodes", index), node.uuid, node.name, node.summary, node.attributes)
        for index, node in enumerate(graph.nodes)
        if node.uuid in named and (node.summary.strip() or node.attributes)
    ]
    return ParsedGraph(statements, details, list(_to_batches(graph.episodes, statements)))


def _to_batches(episodes: Sequence[_Episode], statements: ParsedStatements) -> Iterator[MessagesIn]:
    """Yield the episodes as messages of one session, in their order; those without a usable text are rejected."""
    messages: list[MessageIn] = []
    for index, episode in enumerate(episodes):
        try:
            messages.append(MessageIn.model_validate(_to_message_fields(episode)))
        except ValidationError as error:
            statements.reject(("episodes", index), episode.uuid, describe_field_errors(field_errors(error)[:1]))
    for batch in split_into_batches(messages):
        yield MessagesIn(session_id=EPISODES_SESSION, messages=batch, extract=False)


def _to_message_fields(episode: _Episode) -> dict[str, Any]:
    described = {"name": episode.name, "source": episode.source, "source_description": episode.source_description}
    return {
        "id": episode.uuid,
        "role": MessageRole.USER if episode.source == "message" else MessageRole.TOOL,
        "content": episode.content,
        "timestamp": episode.valid_at or episode.created_at,
        "metadata": {name: value for name, value in described.items() if value},
    }


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
