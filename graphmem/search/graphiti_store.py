"""Reading a group of a graph that Graphiti wrote, as a document of the import format `graphiti`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime
from typing import Any

from graphmem.neo4j.driver import Graph, Transaction

_ENTITY_PROPERTIES = frozenset({"uuid", "name", "group_id", "name_embedding", "summary", "created_at", "labels"})
_FACT_PROPERTIES = frozenset(
    {"uuid", "name", "fact", "fact_embedding", "group_id", "episodes", "created_at", "expired_at", "valid_at"}
    | {"invalid_at", "reference_time", "source_node_uuid", "target_node_uuid", "source_uuid", "target_uuid"}
)
"""Properties that Graphiti gives every node and every edge; the others are attributes."""


async def read_group(graph: Graph, group_id: str) -> dict[str, Any]:
    """Return the nodes, edges and episodes of a group; nothing is written."""

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
    return {name: _to_json(value) for name, value in properties.items() if name not in known and value is not None}


def _to_json(value: Any) -> Any:
    """Return a value with times as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value
