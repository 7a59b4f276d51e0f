"""Importing from Graphiti: a document of its nodes, edges and episodes, and reading a live graph as such a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphmem.conversations.session import MessageIn, MessageRole, MessagesIn, split_into_batches
from graphmem.memories.entity import parse_entity_type
from graphmem.memories.fact import ImportProvenance
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import NotFound
from graphmem.runtime.field_types import Id
from graphmem.user_data.foreign import NO_PLACE, ImportedTime, to_invalid_input
from graphmem.user_data.models import (
    DocumentPath,
    ElementId,
    ImportFormat,
    ParsedStatements,
    is_empty,
)

EPISODES_SESSION = "graphiti"
"""The session of the messages made from Graphiti's episodes."""

_NON_PREDICATE_CHARS = re.compile(r"[^A-Z0-9]+")

_ENTITY_PROPERTIES = frozenset({"uuid", "name", "group_id", "name_embedding", "summary", "created_at", "labels"})
_FACT_PROPERTIES = frozenset(
    {"uuid", "name", "fact", "fact_embedding", "group_id", "episodes", "created_at", "expired_at", "valid_at"}
    | {"invalid_at", "reference_time", "source_node_uuid", "target_node_uuid", "source_uuid", "target_uuid"}
)
"""Properties of every Graphiti node and edge; all others are attributes."""

_EPISODE_PROPERTIES = frozenset({"group_id", "labels", "entity_edges", "content_embedding"})
"""Properties of episodes that belong to Graphiti's graph."""


class _Node(BaseModel):
    model_config = ConfigDict(extra="allow")

    uuid: ElementId
    name: str
    labels: list[str] = Field(default_factory=list)
    summary: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)

    @property
    def all_attributes(self) -> dict[str, Any]:
        """The attributes, including properties that Graphiti does not give every node."""
        return {**_attributes(self.model_extra or {}, _ENTITY_PROPERTIES), **self.attributes}


class _Episode(BaseModel):
    model_config = ConfigDict(extra="allow")

    uuid: Id
    content: str
    name: str = ""
    source: str = "message"
    source_description: str = ""
    valid_at: ImportedTime | None = None
    created_at: ImportedTime | None = None


class _Edge(BaseModel):
    model_config = ConfigDict(extra="allow")

    uuid: ElementId
    fact: str
    name: str = ""
    source_node_uuid: str
    target_node_uuid: str
    valid_at: ImportedTime | None = None
    invalid_at: ImportedTime | None = None
    created_at: ImportedTime | None = None
    expired_at: ImportedTime | None = None
    episodes: list[Id] | None = None
    attributes: dict[str, Any] | None = None


class _GraphitiGraph(BaseModel):
    nodes: list[Any]
    edges: list[Any]
    episodes: list[Any] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """The summary and attributes of an entity; `path` is its place in the document."""

    path: DocumentPath
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

    The summary of a node without edges becomes a memory about it. Episodes become messages of the session `graphiti`;
    the facts that rest on them have their ids as message ids.
    """
    try:
        graph = _GraphitiGraph.model_validate(document)
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export of Graphiti") from None
    statements = ParsedStatements("an export of Graphiti")
    nodes = {node.uuid: (path, node) for path, node in _parse_nodes(graph.nodes, statements)}
    named: set[str] = set()
    for index, entry in enumerate(graph.edges):
        path = ("edges", index)
        if (edge := statements.parse(path, _Edge, entry)) is None:
            continue
        ends = {edge.source_node_uuid, edge.target_node_uuid}
        if not ends <= nodes.keys():
            statements.reject(path, edge.uuid, "a node at one of its ends is not in the export")
            continue
        named |= ends
        provenance = ImportProvenance(
            f"{ImportFormat.GRAPHITI}:{edge.uuid}", edge.created_at, edge.created_at, edge.expired_at
        )
        subject, target = nodes[edge.source_node_uuid][1], nodes[edge.target_node_uuid][1]
        statements.add(path, edge.uuid, provenance, _edge_fields(edge, subject, target))
    for place, node in nodes.values():
        if node.uuid not in named:
            _add_lone_node(place, node, statements)
    details = [
        NodeDetails(place, node.uuid, node.name, node.summary, node.all_attributes)
        for place, node in nodes.values()
        if node.summary.strip() or (node.uuid in named and node.all_attributes)
    ]
    batches = list(_to_batches(graph.episodes, statements))
    statements.refuse_if_malformed(unless=bool(statements.accepted or batches))
    statements.reject_members(document, _GraphitiGraph.model_fields.keys(), NO_PLACE)
    return ParsedGraph(statements, details, batches)


def _parse_nodes(entries: Sequence[Any], statements: ParsedStatements) -> Iterator[tuple[DocumentPath, _Node]]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        path = ("nodes", index)
        if (node := statements.parse(path, _Node, entry)) is None:
            continue
        if node.uuid in seen:
            statements.reject(path, node.uuid, "its id is used earlier in the document")
            continue
        seen.add(node.uuid)
        yield path, node


def _add_lone_node(path: DocumentPath, node: _Node, statements: ParsedStatements) -> None:
    """Add the summary of a node without edges as a memory about it; reject a node without one."""
    if not node.summary.strip():
        statements.reject(path, node.uuid, "no fact names it, and it has no summary")
        return
    provenance = ImportProvenance(f"{ImportFormat.GRAPHITI}:{node.uuid}")
    statements.add(path, node.uuid, provenance, {"content": node.summary, "subject": _to_entity_fields(node)})


def _to_batches(entries: Sequence[Any], statements: ParsedStatements) -> Iterator[MessagesIn]:
    """Yield the episodes as messages of one session, in order; those without usable text are rejected."""
    messages: list[MessageIn] = []
    for index, entry in enumerate(entries):
        path = ("episodes", index)
        if (episode := statements.parse(path, _Episode, entry)) is None:
            continue
        if message := statements.validate(path, MessageIn, _to_message_fields(episode), episode.uuid):
            messages.append(message)
    for batch in split_into_batches(messages):
        yield MessagesIn(session_id=EPISODES_SESSION, messages=batch, extract=False)


def _to_message_fields(episode: _Episode) -> dict[str, Any]:
    described = {"name": episode.name, "source": episode.source, "source_description": episode.source_description}
    extra = _attributes(episode.model_extra or {}, _EPISODE_PROPERTIES)
    return {
        "id": episode.uuid,
        "role": MessageRole.USER if episode.source == "message" else MessageRole.TOOL,
        "content": episode.content,
        "timestamp": episode.valid_at or episode.created_at,
        "metadata": {name: value for name, value in {**extra, **described}.items() if not is_empty(value)},
    }


def _edge_fields(edge: _Edge, subject: _Node, target: _Node) -> dict[str, Any]:
    return {
        "content": edge.fact,
        "subject": _to_entity_fields(subject),
        "object": None if target is subject else _to_entity_fields(target),
        "predicate": _to_predicate(edge.name),
        "valid_at": edge.valid_at,
        "invalid_at": edge.invalid_at,
        "metadata": {**_attributes(edge.model_extra or {}, _FACT_PROPERTIES), **(edge.attributes or {})},
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
    """Return an edge's name as a predicate; None if it has no letter."""
    word = _NON_PREDICATE_CHARS.sub("_", name.upper()).strip("_0123456789")
    return word[:64] or None


async def read_group(graph: Graph, group_id: str) -> dict[str, Any]:
    """Return the nodes, edges and episodes of a group, without writing anything."""

    async def work(transaction: Transaction) -> dict[str, Any]:
        entities = await transaction.run("graphiti.list_entities", group_id=group_id)
        facts = await transaction.run("graphiti.list_facts", group_id=group_id)
        episodes = await transaction.run("graphiti.list_episodes", group_id=group_id)
        return {
            "nodes": [
                {
                    **_select(row["properties"], _ENTITY_PROPERTIES - {"name_embedding", "labels"}),
                    "labels": row["labels"],
                    "attributes": _attributes(row["properties"], _ENTITY_PROPERTIES),
                }
                for row in entities
            ],
            "edges": [
                {
                    **_select(row["properties"], _FACT_PROPERTIES - {"fact_embedding"}),
                    "source_node_uuid": row["source"],
                    "target_node_uuid": row["target"],
                    "attributes": _attributes(row["properties"], _FACT_PROPERTIES),
                }
                for row in facts
            ],
            "episodes": [_to_json(row["properties"]) for row in episodes],
        }

    return await graph.read(work)


def _select(properties: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
    return {name: _to_json(value) for name, value in properties.items() if name in names and value is not None}


def _attributes(properties: Mapping[str, Any], known: Set[str]) -> dict[str, Any]:
    return {name: _to_json(value) for name, value in properties.items() if name not in known and not is_empty(value)}


def _to_json(value: Any) -> Any:
    """Return a value with times as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value


async def read_graph(uri: str, user: str, password: str, database: str, group_id: str) -> dict[str, Any]:
    """Return a group of a live Graphiti graph as a document of the import format `graphiti`.

    The graph is only read. Raises DatabaseUnavailable, ConfigurationError for wrong credentials, and NotFound for a
    group without facts.
    """
    graph = Graph(uri, user, password, database)
    try:
        await graph.verify_connectivity()
        document = await read_group(graph, group_id)
    finally:
        await graph.close()
    if not document["edges"]:
        raise NotFound("The graph has no facts in this group: check --group and the address.")
    return document
