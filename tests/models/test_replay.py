"""Replay of recorded completions over real HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from graphmem.models.provider_model import ProviderModel
from graphmem.models.replay import (
    ReplayServer,
    load_recordings,
    pack_recordings,
    recording_key,
)
from graphmem.models.structured_output import response_schema
from graphmem.runtime.errors import ConfigurationError, ModelUnavailable


class Verdict(BaseModel):
    keep: bool


TOOLS = [{"type": "function", "function": {"name": "keep", "parameters": {"type": "object", "properties": {}}}}]


def response_format(schema: type[BaseModel]) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": schema.__name__, "strict": True, "schema": response_schema(schema)},
    }


def asks(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def recording(request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    return {"key": recording_key(request), "request": request, "answer": answer}


TEA = recording(
    {"messages": asks("Kaffee? Lieber Tee."), "response_format": response_format(Verdict)},
    {"content": '{"keep": true}'},
)
CAKE = recording(
    {"messages": asks("Cake\u2028?"), "tools": TOOLS},
    {"content": None, "tool_calls": [{"name": "keep", "arguments": {"what": "cake"}}]},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for entry in (TEA, CAKE):
        (tmp_path / f"{entry['key']}.json").write_text(json.dumps(entry, ensure_ascii=False, indent=1), "utf-8")
    return tmp_path


def test_the_key_is_over_messages_format_and_tools_only() -> None:
    request = {"messages": asks("Grüße"), "model": "a", "temperature": 0}
    assert recording_key(request) == recording_key({"messages": asks("Grüße"), "model": "b"})
    assert recording_key(request) == "5249f73b8fd42c8a917a3bbb", "shipped recordings have these keys"
    assert recording_key(request) != recording_key({**request, "tools": TOOLS})


def test_the_key_ignores_the_order_of_fields_and_defaults_that_are_spelled_out() -> None:
    function = {"name": "keep", "parameters": {"type": "object", "properties": {}}}
    plain = {"messages": asks("Tea?"), "tools": [{"type": "function", "function": function}]}
    spelled = {
        "tool_choice": "auto",
        "tools": [{"function": {**function, "description": "", "strict": False}, "type": "function"}],
        "messages": [{"name": None, "content": "Tea?", "role": "user"}],
    }
    assert recording_key(spelled) == recording_key(plain)
    assert recording_key({**plain, "tool_choice": "required"}) != recording_key(plain)
    described = {"type": "object", "properties": {}, "description": ""}
    changed = [{"type": "function", "function": {**function, "parameters": described}}]
    assert recording_key({**plain, "tools": changed}) != recording_key(plain), "schemas count as they are"


async def test_recorded_prompts_are_answered_as_recorded(folder: Path) -> None:
    with ReplayServer(folder) as replay:
        async with ProviderModel(base_url=replay.base_url) as model:
            completion = await model.complete_structured(TEA["request"]["messages"], Verdict)
        async with httpx.AsyncClient(base_url=replay.base_url) as client:
            for _ in range(2):
                answer = await client.post("chat/completions", json={**CAKE["request"], "model": "any"})
    assert completion.value == Verdict(keep=True)
    assert completion.receipt.prompt_tokens == len(json.dumps(TEA["request"]["messages"], ensure_ascii=False)) // 4
    (called,) = answer.json()["choices"][0]["message"]["tool_calls"]
    assert (called["function"]["name"], json.loads(called["function"]["arguments"])) == ("keep", {"what": "cake"})
    assert replay.calls == {TEA["key"]: 1, CAKE["key"]: 2}
    assert replay.missing == []


async def test_a_prompt_without_a_recording_fails_at_once_and_names_its_key(folder: Path) -> None:
    messages = asks("Never heard of it")
    key = recording_key({"messages": messages, "response_format": response_format(Verdict)})
    with ReplayServer(folder) as replay:
        async with ProviderModel(base_url=replay.base_url) as model:
            with pytest.raises(
                ModelUnavailable, match=f"No completion is recorded for this prompt .key {key}."
            ) as caught:
                await model.complete_structured(messages, Verdict)
    assert caught.value.retry_after is None
    assert replay.missing == [key]


async def test_concurrent_requests_are_answered(folder: Path) -> None:
    with ReplayServer(folder) as replay:
        async with ProviderModel(base_url=replay.base_url) as model:
            await asyncio.gather(*(model.complete_structured(TEA["request"]["messages"], Verdict) for _ in range(40)))
    assert replay.calls[TEA["key"]] == 40


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/chat/completions", b'{"messages": [], "stream": true}', 400),
        ("/v1/chat/completions", b'{"messages": []}', 501),
        ("/v1/embeddings", b"{}", 404),
    ],
)
async def test_other_requests_are_answered_with_errors_of_the_api(
    folder: Path, path: str, body: bytes, status: int
) -> None:
    with ReplayServer(folder) as replay:
        async with httpx.AsyncClient(trust_env=False) as http:
            response = await http.post(replay.base_url.removesuffix("/v1") + path, content=body)
    assert response.status_code == status
    assert response.json()["error"]["code"]


def test_a_packed_set_holds_the_same_recordings_one_a_line(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "sets" / "sample.jsonl"
    assert pack_recordings(folder, target) == 2
    lines = target.read_text("utf-8").rstrip("\n").split("\n")
    assert [json.loads(line)["key"] for line in lines] == sorted([TEA["key"], CAKE["key"]])
    assert load_recordings(target) == load_recordings(folder)


def broken(folder: Path, text: str, name: str = "x.json") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ("[]", "no answer"),
        (json.dumps({**TEA, "answer": {}}), "no answer"),
        (json.dumps({**TEA, "key": "0" * 24}), "does not carry the key of its request"),
        (json.dumps({**TEA, "answer": {"content": "other"}}), "two different answers"),
    ],
)
def test_a_broken_recording_is_refused_by_name(folder: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        load_recordings(broken(folder, text))
    assert "x.json" in caught.value.detail


def test_a_missing_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no recorded completions"):
        ReplayServer(tmp_path / "nowhere.jsonl")
