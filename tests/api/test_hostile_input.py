"""Input that no client sends by accident gets a 4xx, and nothing of it is stored."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter, ValidationError

from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import EntityName
from graphmem.tenants.owners import Owner

USER = "/v1/users/mara"
LIGATURE = "\ufdfa"
"""One character that becomes 18 when it is normalised."""

POSITIONS = [
    "not base64",
    "null",
    "[]",
    "{}",
    '["-created_at", NaN, "a"]',
    '["-created_at", 1e999, "a"]',
    '["-created_at", 1, "\\ud800"]',
    '["-created_at", 1, "\\u0000"]',
    '["-created_at", true, "a"]',
    '["sideways", 1, "a"]',
    '["2026-01-01T00:00:00Z", "\\ud800"]',
    '["0001-01-01T00:00:00+14:00", "a"]',
    '["9999-12-31T23:59:59-14:00", "a"]',
    '["\\ud800", "a"]',
    '["a", "\\ud800"]',
    f"[{2**63}]",
    f"[-1{'0' * 400}]",
    "[true]",
    f"[{'[' * 500}",
]


NAMES = ['["0001-01-01T00:00:00+14:00", "a"]', '["9999-12-31T23:59:59-14:00", "a"]']
"""Positions that a page of entities could have given: two texts."""


async def test_a_cursor_that_no_page_gave_is_422(agent: httpx.AsyncClient) -> None:
    taken = await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": [
        {"role": "user", "content": "hi"}], "extract": False})  # fmt: skip
    assert taken.status_code == 202
    accepted = []
    for path in ("/memories", "/sessions", "/sessions/s/messages", "/entities"):
        for position in POSITIONS:
            cursor = base64.urlsafe_b64encode(position.encode()).decode()
            answer = await agent.get(USER + path, params={"cursor": cursor})
            if answer.status_code != 422:
                accepted.append((path, position, answer.status_code))
    assert accepted == [("/entities", position, 200) for position in NAMES]


@pytest.mark.parametrize(
    "memory",
    [
        {"content": "a", "subject": {"name": LIGATURE * 300}},
        pytest.param({"content": "a", "object": {"name": "Ada", "aliases": [LIGATURE * 300]}}, marks=pytest.mark.long),
        pytest.param({"content": "a", "entities": [{"name": LIGATURE * 300}]}, marks=pytest.mark.long),
        {"content": "a", "valid_at": "0001-01-01T00:00:00+14:00"},
        pytest.param({"content": "a", "expires_at": "9999-12-31T23:59:59-14:00"}, marks=pytest.mark.long),
    ],
)
async def test_what_grows_or_overflows_when_it_is_normalised_is_422(
    agent: httpx.AsyncClient, memory: dict[str, Any]
) -> None:
    answer = await agent.post(f"{USER}/memories", json={"memories": [memory]})
    assert answer.status_code == 422, answer.text
    assert (await agent.get(f"{USER}/memories")).json()["items"] == []


async def test_a_user_id_that_grows_when_it_is_normalised_is_422(agent: httpx.AsyncClient) -> None:
    answer = await agent.post(f"/v1/users/{LIGATURE * 255}/memories", json={"memories": [{"content": "a"}]})
    assert answer.status_code == 422


MEM0 = '{"results": [{"id": "1", "memory": "likes tea", "metadata": %s}]}'


UNSTORABLE_DOCUMENTS = [
    MEM0 % "NaN",
    MEM0 % '{"a": NaN}',
    MEM0 % '{"a": -Infinity}',
    MEM0 % '{"a": 1e999}',
    MEM0 % f'{{"a": {10**30}}}',
    MEM0 % f'{{"a": 1{"0" * 5000}}}',
    MEM0 % '{"a": "\\ud800"}',
    MEM0 % '{"\\udfff": 1}',
    '[{"role": "user", "content": "\\ud800"}]',
    '[{"role": "user", "content": "a", "created_at": 1e300}]',
    '[{"role": "user", "content": "a", "created_at": NaN}]',
    '[{"role": "user", "content": "a", "timestamp": "0001-01-01T00:00:00+14:00"}]',
    "results: !!set {a, b}",
    "results: !!bool maybe",
    "results: !!int ''",
    "results: !!float ''",
    "results: !!int '_'",
    "results: [{id: a, memory: b, metadata: {c: .nan}}]",
    "results: [{id: a, memory: b, metadata: {c: .inf}}]",
    "results: [{id: a, memory: b, metadata: {c: 0x%s}}]" % ("f" * 40),
    "results: [{id: a, memory: b, metadata: {? [x] : y}}]",
    "results: !!omap [a: 1]",
    "results: !!pairs [a: 1]",
    "results: !!binary aGk=",
    "results: 0001-01-01T00:00:00+14:00",
    'results: "\\ud800"',
    "\ud800",
]


async def test_a_document_that_cannot_be_stored_is_422(agent: httpx.AsyncClient) -> None:
    accepted = []
    for document in UNSTORABLE_DOCUMENTS:
        body = document.encode("utf-8", "surrogatepass")
        for content_type in ("application/json", "text/plain", "application/yaml"):
            answer = await agent.post(f"{USER}/import", content=body, headers={"content-type": content_type})
            if answer.status_code != 422:
                accepted.append((document, content_type, answer.text))
    assert accepted == []
    assert (await agent.get(f"{USER}/memories")).json()["items"] == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, 2**64, "\ud800", {"\ud800": 1}, {1: 2}, b"a"])
def test_metadata_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        MemoryIn.model_validate({"content": "a", "metadata": {"value": value}})


def test_names_and_user_ids_are_measured_as_they_are_indexed() -> None:
    name: TypeAdapter[str] = TypeAdapter(EntityName)
    assert name.validate_python(LIGATURE * 16)
    with pytest.raises(ValidationError, match="at most 300 characters when it is normalised"):
        name.validate_python(LIGATURE * 17)
    with pytest.raises(InvalidInput, match="normalised"):
        Owner("default", LIGATURE * 15)


def test_no_tenant_can_be_named_like_the_queues_of_the_system() -> None:
    from graphmem.jobs.kinds import SYSTEM_PARTITION

    with pytest.raises(InvalidInput):
        Owner.from_group_id(SYSTEM_PARTITION + "maintenance")
