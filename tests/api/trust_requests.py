"""Requests of the tests of trust: what sources save, and what a user reads."""

from __future__ import annotations

from typing import Any

import httpx

ADA = "/v1/users/ada"
MEMORIES = f"{ADA}/memories"


def home(place: str, **fields: Any) -> dict[str, Any]:
    statement = {"content": f"Ada lives in {place}", "predicate": "LIVES_IN", "object": {"name": place}}
    return {**statement, "single_valued": True, **fields}


async def save(client: httpx.AsyncClient, *memories: dict[str, Any], user: str = "ada") -> list[dict[str, Any]]:
    answer = await client.post(f"/v1/users/{user}/memories", json={"memories": list(memories)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def save_one(client: httpx.AsyncClient, memory: dict[str, Any], user: str = "ada") -> dict[str, Any]:
    (result,) = await save(client, memory, user=user)
    return result


async def current(client: httpx.AsyncClient, user: str = "ada", **params: Any) -> list[str]:
    answer = await client.get(f"/v1/users/{user}/memories", params=params)
    assert answer.status_code == 200, answer.text
    return sorted(item["content"] for item in answer.json()["items"])


async def read(client: httpx.AsyncClient, memory_id: str, user: str = "ada") -> dict[str, Any]:
    answer = await client.get(f"/v1/users/{user}/memories/{memory_id}")
    assert answer.status_code == 200, answer.text
    memory: dict[str, Any] = answer.json()
    return {name: value for name, value in memory.items() if name not in ("strength", "last_accessed_at")}


async def context(client: httpx.AsyncClient, question: str | None, **fields: Any) -> dict[str, Any]:
    body = {"question": question, **fields} if question else fields
    answer = await client.post(f"{ADA}/context", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made
