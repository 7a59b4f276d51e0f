"""Records of idempotent requests: claims, leases, expiry and erasure."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from pydantic import TypeAdapter

from graphmem.neo4j.driver import Graph
from graphmem.tenants.idempotency import IdempotencyStore, IdempotentRequest, StoredResponse, write_once
from graphmem.tenants.owners import Owner
from graphmem.user_data.forget import ForgetStore
from tests.conftest import FakeClock


@pytest.fixture
def store(graph: Graph, clock: FakeClock) -> IdempotencyStore:
    return IdempotencyStore(graph, clock, 30)


def make_request(owner: Owner, key: str = "k") -> IdempotentRequest:
    return IdempotentRequest(owner, "POST /x", key, "f")


async def stored_keys(graph: Graph, tenant: str) -> list[str]:
    text = "MATCH (i:IdempotentRequest {tenant: $tenant}) RETURN i.key AS key"
    rows = await graph.read(lambda transaction: transaction.run_text(text, {"tenant": tenant}))
    return [row["key"] for row in rows]


async def test_claim_of_a_dead_process_is_taken_over_after_its_lease(
    store: IdempotencyStore, owner: Owner, clock: FakeClock
) -> None:
    request = make_request(owner)
    dead = await store.claim(request)
    assert dead.is_acquired
    assert not (await store.claim(request)).is_acquired
    clock.advance(timedelta(seconds=25))
    await store.renew_lease(request, dead.token)
    clock.advance(timedelta(seconds=25))
    assert not (await store.claim(request)).is_acquired
    clock.advance(timedelta(seconds=6))
    later_claims = await asyncio.gather(*(store.claim(request) for _ in range(4)))
    assert [later_claim.is_acquired for later_claim in later_claims].count(True) == 1
    await store.complete(request, dead.token, StoredResponse(200, "late"))
    assert (await store.claim(request)).answer is None


async def test_idempotency_key_expires_after_thirty_days(
    store: IdempotencyStore, owner: Owner, clock: FakeClock
) -> None:
    request = make_request(owner)
    first = await store.claim(request)
    await store.complete(request, first.token, StoredResponse(200, "{}", "application/json"))
    clock.advance(timedelta(days=29, hours=23))
    assert (await store.claim(request)).answer == StoredResponse(200, "{}", "application/json")
    clock.advance(timedelta(hours=2))
    assert (await store.claim(request)).is_acquired


async def test_expired_requests_of_a_tenant_are_deleted(
    store: IdempotencyStore, owner: Owner, clock: FakeClock, graph: Graph
) -> None:
    await store.claim(make_request(owner, "old"))
    clock.advance(timedelta(days=29))
    await store.claim(make_request(owner, "new"))
    clock.advance(timedelta(days=2))
    assert await store.delete_expired(f"{owner.tenant}2") == 0
    assert await store.delete_expired(owner.tenant) == 1
    assert await stored_keys(graph, owner.tenant) == ["new"]


@pytest.mark.req("QUINN-25")
async def test_forget_erases_stored_responses_of_the_user(
    store: IdempotencyStore, owner: Owner, graph: Graph, clock: FakeClock
) -> None:
    for who, key in [(owner, "own"), (owner.tenant_global, "run of all users"), (Owner(owner.tenant, "omar"), "other")]:
        claim = await store.claim(make_request(who, key))
        await store.complete(make_request(who, key), claim.token, StoredResponse(200, "Mara likes tea"))
    erasure = await ForgetStore(graph, clock).begin(owner)
    assert (await erasure.end()).erased["IdempotentRequest"] == 2
    assert await stored_keys(graph, owner.tenant) == ["other"]


@pytest.mark.req("QUINN-25")
async def test_erasing_a_memory_blanks_the_responses_of_its_user(
    store: IdempotencyStore, owner: Owner, graph: Graph
) -> None:
    claim = await store.claim(make_request(owner))
    await store.complete(make_request(owner), claim.token, StoredResponse(200, '{"id": "m-1"}'))
    for user, blanked in ((Owner(owner.tenant, "omar"), 0), (owner, 1)):
        assert await graph.write(lambda transaction, user=user: store.erase_memory(transaction, user, "m-1")) == blanked
    answer = (await store.claim(make_request(owner))).answer
    assert answer
    assert answer.body is None


async def test_a_write_whose_process_died_before_its_response_is_not_repeated(
    store: IdempotencyStore, owner: Owner, clock: FakeClock, graph: Graph
) -> None:
    request, writes = make_request(owner), []

    async def write() -> list[str]:
        writes.append("a")
        return list(writes)

    async def write_for(request: IdempotentRequest) -> list[str]:
        return await graph.write(lambda transaction: write_once(transaction, request, TypeAdapter(list[str]), write))

    await store.claim(request)
    assert await write_for(request) == ["a"]
    clock.advance(timedelta(seconds=31))
    assert (await store.claim(request)).is_acquired
    assert await write_for(request) == ["a"]
    assert writes == ["a"]
    clock.advance(timedelta(days=31))
    assert (await store.claim(request)).is_acquired
    assert await write_for(request) == ["a", "a"]
