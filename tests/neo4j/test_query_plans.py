"""No query reads every node of a label or every relationship of a type: each starts at an index.

Plans depend on statistics: in an empty database, a scan costs as little as an index. These tests therefore write
`NODES` nodes of each label, in many groups, and `NODES` facts, and have Neo4j sample its indexes, before they ask for
plans. Neo4j assumes lists of unknown length, whatever is given.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import pytest
from neo4j import AsyncSession
from neo4j.exceptions import Neo4jError

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import pack_vector, to_neo4j
from graphmem.neo4j.queries import Query, load_queries
from graphmem.neo4j.schema import RESERVED_LABELS

NODES = 200
"""Nodes of each label, and facts, that the statistics are made of; a user has 10 of each."""

EXCEPTIONS = {
    "schema.list_applied_migrations": "one node for each migration",
    "schema.record_migration": "one node for each migration",
    "schema.get_embedding_model": "one node in the whole database",
    "schema.record_embedding_model": "one node in the whole database",
    "schema.record_write_check": "one node in the whole database",
    "vectors.begin": "one node in the whole database",
    "vectors.get_state": "one node in the whole database",
    "vectors.record_progress": "one node in the whole database",
    "vectors.set_phase": "one node in the whole database",
    "vectors.end": "one node in the whole database",
    "consolidation.list_users_due": "decides for every user whether a run is due, once a night",
    "consolidation.list_users_with_due_profiles": "decides for every user whether a profile is due, once a night",
    "episodes.list_pending": "the index holds only the messages that a job has yet to read",
    "forget.list_begun": "one node for each user who is being forgotten",
    "forget.list_interrupted": "one node for each user who is being forgotten",
    "placements.list_tenants": "reads every user, when a graph is drained",
    "webhooks.list_enabled": "a tenant has at most 20 webhooks",
    "maintenance.estimate_stored_bytes": "stops after the sample; the totals are counters of the store",
}
"""Queries that may scan, with the reason."""

FILL_NODES = """
UNWIND $labels AS label
UNWIND range(1, $count) AS i
WITH label, i, toString(i) AS id, $tenant + ':' + toString(CASE label WHEN 'User' THEN i ELSE i / 10 END) AS group_id
CREATE (n:$(label))
SET n = {
  statistics: $tenant, group_id: group_id, owner_group: group_id, tenant: $tenant, user_id: '', uuid: $tenant + id,
  id: $tenant + id, key: id, name: id, name_key: id, hash: $tenant + id, session_id: id, message_id: id, position: i,
  role: 'user', run_id: $tenant + group_id, kind: 'fact', element_id: id, memory_id: id, route: id, item_key: id,
  preference_type: 'style', preference_key: id, pattern_type: 'topic', pattern_key: id, intent: id, extraction_id: id,
  trigger: 'curated', webhook_id: id, member: $tenant + ':' + id, content_hash: id, last_seen_at: datetime(),
  revision: i, status: 'succeeded', alias_keys: [], entity_edges: [],
  valid_at: datetime(), created_at: datetime() + duration({seconds: i}), updated_at: datetime(),
  finished_at: datetime(), memory_ids: [id], expires_at: datetime(), last_write_at: datetime() + duration({seconds: i})
}
"""

FILL_FACTS = """
MATCH (s:Entity) WHERE s.statistics = $tenant
MATCH (o:Entity {group_id: s.group_id})
WITH s, o LIMIT $count * 5
CREATE (s)-[r:RELATES_TO {
  uuid: randomUUID(), group_id: s.group_id, memory_id: randomUUID(), version: 1, content_hash: randomUUID(),
  active_hash: randomUUID(), scope: 'profile', known_to: datetime(), importance: 0.5, entity_ids: [],
  revision: 1, profile_of: s.uuid, created_at: datetime(), expired_at: datetime()
}]->(o)
CREATE (s)-[:REFERS_TO {group_id: s.group_id, memory_id: r.memory_id}]->(o)
"""

EMPTY = "UNWIND $labels AS label MATCH (n:$(label)) WHERE n.statistics = $tenant DETACH DELETE n"


NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)

TIMES = [
    *("now", "at", "since", "until", "before", "valid_at", "valid_after", "valid_before", "valid_until", "known_at"),
    *("said_until", "stored_until", "updated_until", "changed_after", "max_time", "old_before", "oldest"),
    "lease_until",
]
WORDS = [
    *("id", "type", "text", "prefix", "key", "name", "words", "needle", "topic", "route", "intent", "member", "sort"),
    *("title", "about", "actor", "order", "item_key", "version", "hash", "token", "fingerprint", "body", "headers"),
    *("media_type", "result", "source_kind", "job_store", "cached_version", "last_episode", "model", "embedder"),
    *("phase", "state", "holder", "graph", "target", "report", "shared_group", "checksum", "erased"),
]
COUNTS = [
    *("count", "sample", "preceding", "neighbours", "most_compared", "min_facts", "min_new", "min_own", "attempt"),
    *("access_threshold", "compatible_with", "done"),
]
SHARES = [
    *("seconds", "idle_seconds", "min_similarity", "core_importance", "confidence_step", "strength_step"),
    *("max_confidence", "max_strength"),
]
FLAGS = ["include_contested", "keyword_is_folded", "contains_user_text", "encrypted", "removes"]
IDS = [
    *("ids", "memory_ids", "message_ids", "session_ids", "entity_ids", "named_entity_ids", "element_ids", "uuids"),
    *("keys", "names", "hashes", "members", "permitted", "mentioned"),
]
VECTOR = pack_vector([0.05] * 384)

SENT: dict[str, Any] = {
    **dict.fromkeys(TIMES, NOW),
    **dict.fromkeys(WORDS, "x"),
    **dict.fromkeys(COUNTS, 60),
    **dict.fromkeys(SHARES, 0.5),
    **dict.fromkeys(FLAGS, False),
    **{name: ["x"] for name in IDS},
    **{name: {} for name in ("filters", "created", "changed", "fields", "attributes", "weights")},
    **dict.fromkeys(("after_id", "before_id", "excluded_session_id", "allowed", "user_ids")),
    "dimension": 384,
    "direction": 1,
    "foldings": [["é", "e"]],
    "foreign_after": timedelta(1),
    "intents": [],
    "properties": {"id": "x"},
    "status": 200,
    "vector": VECTOR,
    "vectors": [VECTOR],
    "worst_score": 2,
}
"""Values of parameters by name, of the types that are sent most; what is not named here is null or an empty list."""

SENT_BY: dict[str, dict[str, Any]] = {
    "consolidation.mark_consolidated": {"memory_ids": []},
    "consolidation.find_entities_near_names": {"names": [{}]},
    "context.delete_preferences": {"ids": []},
    "context.list_active_items": {"session_id": None},
    "context.load_surroundings": {"wanted": {}},
    "context_uses.save": {"rows": [{}]},
    "entities.list_page": {"type": None},
    "episodes.append_messages": {"batch": {}, "rows": [{}]},
    "episodes.list_session_messages": {"after": 0},
    "facts.commit_write": {"rows": {}},
    "facts.fetch_for_write": {"keys": {}},
    "facts.reinforce": {"hits": [{}]},
    "extraction.find_similar_entities": {"names": [{"words": "x", "vector": VECTOR}]},
    "moves.create_nodes": {"rows": [{"labels": ["User"], "properties": {}}]},
    **{f"moves.{name}": {"rows": [{}]} for name in ("create_facts", "create_links", "replace_nodes")},
    "moves.find_nodes": {"keys": [["x"]]},
    "placements.find_barrier": {"now": 0},
    "placements.list_since": {"version": 0},
    "placements.set_barrier": {"until": 0},
    "profiles.fetch_latest": {"entity_ids": []},
    "quarantine.list_page": {"after_id": "x"},
    "resident.load_changes": {"revisions": [["x", 1]]},
    "runs.list_page": {"before": None},
    "runs.list_page_of_user": {"before": None},
    "schema.record_migration": {"version": 0},
    "schema.take_migration_lease": {"version": 0},
    **{f"snapshots.{name}": {"rows": [{}]} for name in ("record_before", "record_after", "find_later_versions")},
    "snapshots.set_facts": {"rows": [{}]},
    "spaces.set_members": {"rows": [{"member": "x", "properties": {}}]},
    "users.list_owners": {"after": ""},
    "users.list_page": {"after": ""},
    "vectors.list_groups": {"after": ""},
    "vectors.store_next": {name: [{}] for name in ("entities", "facts", "messages")},
}
"""Values of parameters for which a query is sent others most."""


def sent_parameters(query: Query, group_id: str, id: str) -> dict[str, Any]:
    """Return parameters of a query, of the types that graphmem sends most: with many nulls and empty lists.

    Neo4j keeps a plan for the types of the parameters: what is planned here is not planned again later in the run.
    """
    values: dict[str, Any] = {}
    for name in query.parameters:
        is_list = re.search(rf"(UNWIND|IN|size\() ?\${name}\b", query.text) is not None
        if name in ("group_id", "group_ids", "owner_group", "owner_groups"):
            values[name] = [group_id] if name.endswith("s") else group_id
        elif name in SENT_BY.get(query.name, {}):
            values[name] = SENT_BY[query.name][name]
        elif f"${name}[0]" in query.text:  # a time as two numbers
            values[name] = [1_781_000_000, 0]
        elif name in SENT and not (is_list and isinstance(SENT[name], (str, dict)) and name != "filters"):
            values[name] = [id] if SENT[name] == ["x"] else SENT[name]
        elif name.endswith("limit") or name.startswith("max_"):
            values[name] = 3
        elif name.endswith("_id") or name == "tenant":
            values[name] = id
        else:
            values[name] = [] if is_list else None
    return values


@pytest.fixture(scope="module")
async def filled_graph(graph: Graph) -> AsyncIterator[Graph]:
    """The database with data of every label, so that the planner knows what a scan costs."""
    tenant = f"t{uuid.uuid4().hex[:12]}"
    labels = sorted(
        RESERVED_LABELS
        - {"EmbeddingSchema", "Erasure", "Migration", "TenantInstructions", "TenantTrust", "TenantTypes", "Webhook"}
        - {"Placement", "PlacementTable", "WriteBarrier"}
    )

    async def run(text: str, **parameters: Any) -> None:
        await graph.write(lambda transaction: transaction.run_text(text, {"tenant": tenant, **parameters}))

    try:
        await run(FILL_NODES, labels=labels, count=NODES)
        await run(FILL_FACTS, count=NODES)
        await run("CALL db.prepareForReplanning(60)")
        yield graph
    finally:
        await run(EMPTY, labels=labels)


def operators(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the operators of a plan with their details."""
    yield plan["operatorType"].partition("@")[0], plan.get("args", {}).get("Details", "")
    for child in plan.get("children", ()):
        yield from operators(child)


def grows_with_the_database(operator: str) -> bool:
    """Whether an operator reads all of a label, of a type or of an index, or follows paths of any length."""
    return "Scan" in operator or operator.startswith(("VarLength", "Repeat", "AllNodes", "AllRelationships"))


def growing_steps(plan: dict[str, Any]) -> list[str]:
    """Return the operators of a plan that read what grows with the database."""
    return [f"{operator} {details}" for operator, details in operators(plan) if grows_with_the_database(operator)]


async def profile(session: AsyncSession, text: LiteralString, parameters: dict[str, Any]) -> dict[str, Any]:
    """Run a query, undo what it did, and return its plan."""
    prefix: LiteralString = "CYPHER 25" if text.startswith("CYPHER 25") else ""
    transaction = await session.begin_transaction()
    try:
        result = await transaction.run(f"{prefix} PROFILE {text.removeprefix(prefix)}", to_neo4j(parameters))
        plan = (await result.consume()).profile
    finally:
        await transaction.close()
    assert plan
    return plan


@pytest.mark.req("QUINN-39")
async def test_every_query_starts_at_an_index_and_none_fails_on_what_is_absent(filled_graph: Graph) -> None:
    """Each query runs on facts and nodes without their optional properties, with nulls and empty lists.

    One test shows both, since planning a query takes most of the time.
    """
    scans, failed = {}, {}
    # All rows at once: a query has no profile where some are left.
    async with filled_graph._driver.session(fetch_size=-1) as session:
        record = await (
            await session.run("MATCH (:Entity)-[r:RELATES_TO]->() WHERE r.message_ids IS NULL RETURN r LIMIT 1")
        ).single()
        assert record
        group_id, memory_id = record["r"]["group_id"], record["r"]["memory_id"]
        for query in load_queries().values():
            try:
                plan = await profile(session, query.text, sent_parameters(query, group_id, memory_id))
            except Neo4jError as error:
                failed[query.name] = (error.message or "").partition("\n")[0]
            else:
                scans[query.name] = growing_steps(plan)
    assert failed == {}
    # In a database with other data the planner may find an index for an exception too.
    assert {name: found for name, found in scans.items() if found and name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= scans.keys()


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (n) WHERE n.group_id = $group_id RETURN n",
        "MATCH (p:LearnedPreference) WHERE p.frequency = $group_id RETURN p",
        "MATCH ()-[r:RELATES_TO]->() WHERE r.actor = $group_id RETURN r",
        "MATCH (:Entity {uuid: $group_id})-[:RELATES_TO*]-(n) RETURN n",
    ],
)
async def test_a_query_that_grows_with_the_database_is_found(filled_graph: Graph, text: LiteralString) -> None:
    async with filled_graph._driver.session() as session:
        assert growing_steps(await profile(session, text, {"group_id": "x"}))


async def test_a_page_of_users_reads_no_more_users_than_it_shows(filled_graph: Graph) -> None:
    """The index gives the users of a tenant in order, so that no query sorts all of them for each page."""
    query = load_queries()["users.list_page"]
    async with filled_graph._driver.session() as session:
        plan = await profile(session, query.text, {**sent_parameters(query, "x", "x"), "text": "", "after": ""})
    assert not [operator for operator, details in operators(plan) if operator == "Top" and "user_id" in details]
