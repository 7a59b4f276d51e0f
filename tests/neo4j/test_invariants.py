"""The invariants of the stored data hold for a user with data of every kind, and every violation is found."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import LiteralString

import pytest

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import check_invariants
from graphmem.neo4j.queries import Query, load_checks
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user

TEA = "MATCH ()-[r:RELATES_TO {group_id: $g, fact: 'Mara loves tea'}]->() WHERE r.expired_at IS NULL"
FIRST_TEA = "MATCH ()-[r:RELATES_TO {group_id: $g, fact: 'Mara likes tea'}]->()"
LUND = "MATCH (s)-[r:RELATES_TO {group_id: $g, fact: 'Mara lives in Lund', version: 2}]->(o)"
MESSAGE = "MATCH (m:Episodic {group_id: $g, message_id: 'm2'})"
BOB = "MATCH (e:Entity {group_id: $g, name_key: 'bob'})"

DAMAGE: dict[str, LiteralString] = {
    "facts.missing_versions": f"{FIRST_TEA} DELETE r",
    "facts.known_gaps": f"{FIRST_TEA} SET r.expired_at = r.expired_at + duration('PT1S')",
    "facts.empty_known_times": f"{FIRST_TEA} SET r.expired_at = r.created_at",
    "facts.ended_without_successor": f"{TEA} DELETE r",
    "facts.wrong_shadow_bounds": f"{LUND} SET r.invalid_at = r.invalid_at + duration('P1D')",
    "facts.wrong_active_hashes": f"{TEA} SET r.content_hash = 'other'",
    "facts.repeated_statements": f"""{TEA} WITH startNode(r) AS s, endNode(r) AS o, r
        CREATE (s)-[again:RELATES_TO]->(o)
        SET again = r {{.*, uuid: 'again', memory_id: 'again', version: 1, active_hash: null}}""",
    "facts.rival_values": f"{LUND} SET r.valid_to = datetime('9999-12-31T00:00Z')",
    "provenance.sources_without_message": "MATCH (m:Episodic {group_id: $g, message_id: 'm0'}) DETACH DELETE m",
    "provenance.messages_with_lost_facts": "MATCH ()-[r:RELATES_TO {group_id: $g, type: 'plan'}]->() DELETE r",
    "provenance.lost_memories": "MATCH ()-[r:RELATES_TO {group_id: $g, fact: 'Mara lives in Malmö'}]->() DELETE r",
    "provenance.lost_entities": f"{TEA} SET r.entity_ids = coalesce(r.entity_ids, []) + 'gone'",
    "provenance.missing_references": f"{BOB}<-[r:REFERS_TO]-() DELETE r",
    "provenance.references_without_memory": f"{BOB}<-[r:REFERS_TO]-() SET r.memory_id = 'gone'",
    "provenance.wrong_aliases": f"{BOB} SET e.alias_keys = coalesce(e.alias_keys, []) + 'rob'",
    "provenance.crossings": f"{BOB} CREATE (e)-[:RELATES_TO {{group_id: $g}}]->(:Entity {{group_id: 'other:mara'}})",
    "messages.messages_without_session": f"{MESSAGE}<-[r:HAS_EPISODE]-() DELETE r",
    "messages.repeated_positions": f"{MESSAGE} SET m.position = 1",
    "messages.wrong_message_counts": "MATCH (s:Session {group_id: $g, session_id: 'talk'}) SET s.message_count = 7",
    "messages.read_and_pending": f"{MESSAGE} SET m.pending_job = 'job', m.extracted_at = datetime()",
    "storage.wrong_vectors": f"{TEA} SET r.fact_embedding = r.fact_embedding[1..]",
    "storage.data_without_user": "MATCH (u:User {group_id: $g}) DETACH DELETE u",
}
"""Cypher that violates each invariant in the data of a user."""


@pytest.fixture(scope="module")
async def filled(database: Settings, embedder: Embedder, graph: Graph) -> AsyncIterator[Owner]:
    """A user with data of every kind, which the tests of this module leave as it is."""
    owner = Owner(f"t{uuid.uuid4().hex[:12]}", "mara")
    async with Services.open(database, worker=False, embedder=embedder) as services:
        await fill_user(services, owner)
        yield owner


async def test_data_of_every_kind_is_sound(graph: Graph, filled: Owner) -> None:
    assert [result async for result in check_invariants(graph, filled.tenant) if result.count] == []


@pytest.mark.parametrize("check", load_checks().values(), ids=lambda check: check.name)
async def test_a_violation_is_found(graph: Graph, filled: Owner, check: Query) -> None:
    async with graph._driver.session() as session, await session.begin_transaction() as transaction:
        await (await transaction.run(DAMAGE[check.name], g=filled.group_id)).consume()
        found = await (await transaction.run(check.text, tenant=filled.tenant, limit=10)).data()
        await transaction.rollback()
    assert {row["group_id"] for row in found} == {filled.group_id}
