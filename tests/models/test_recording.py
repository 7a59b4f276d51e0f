"""Recording of completions: a server in front of a model, over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphmem.models.replay import (
    CompletionServer,
    RecordingServer,
    ReplayServer,
    build_completion,
    build_error,
    recording_key,
)


class CountingModel(CompletionServer):
    """Answers each request with its number; refuses those that say `broken`, and cuts those that say `long`."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.count += 1
        text = request["messages"][0]["content"]
        if text == "broken":
            return 429, build_error("too many", "rate_limited")
        completion = build_completion(recording_key(request), request, {"content": f"answer {self.count}"})
        if text == "long":
            completion["choices"][0]["finish_reason"] = "length"
        return 200, {**completion, "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}

    def answer_other(self, path: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"path": path, "input": request["input"]}


@pytest.fixture
def model() -> Iterator[CountingModel]:
    with CountingModel() as running:
        yield running


def ask(server: CompletionServer, text: str) -> httpx.Response:
    body = {"model": "small", "messages": [{"role": "user", "content": text}]}
    with httpx.Client(trust_env=False, timeout=60) as http:
        return http.post(f"{server.base_url}/chat/completions", json=body)


def text_of(response: httpx.Response) -> str:
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def record(model: CountingModel, target: Path) -> RecordingServer:
    return RecordingServer(target, model.base_url, "key", timeout=10)


def test_an_answer_of_an_earlier_run_is_given_again_without_asking(model: CountingModel, tmp_path: Path) -> None:
    target = tmp_path / "run" / "recordings.jsonl"
    with record(model, target) as recording:
        first = ask(recording, "tea?")
        ask(recording, "cake?")
    with record(model, target) as recording:
        again = ask(recording, "tea?")
    assert text_of(first) == text_of(again) == "answer 1"
    assert (
        first.json()["usage"]
        == again.json()["usage"]
        == {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
        }
    )
    assert model.count == 2
    with ReplayServer(target) as replay:
        assert text_of(ask(replay, "cake?")) == "answer 2"


def test_a_prompt_that_is_asked_again_in_one_run_is_answered_anew_and_the_last_answer_kept(
    model: CountingModel, tmp_path: Path
) -> None:
    target = tmp_path / "recordings.jsonl"
    with record(model, target) as recording:
        assert [text_of(ask(recording, "tea?")) for _ in range(2)] == ["answer 1", "answer 2"]
    with ReplayServer(target) as replay:
        assert text_of(ask(replay, "tea?")) == "answer 2"
    with record(model, target) as recording:
        assert [text_of(ask(recording, "tea?")) for _ in range(2)] == ["answer 2", "answer 3"]


def test_errors_and_answers_that_were_cut_are_passed_back_and_not_kept(model: CountingModel, tmp_path: Path) -> None:
    target = tmp_path / "recordings.jsonl"
    with record(model, target) as recording:
        refused, cut = ask(recording, "broken"), ask(recording, "long")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limited")
    assert cut.json()["choices"][0]["finish_reason"] == "length"
    assert not target.exists()


def test_a_model_that_is_not_there_is_a_bad_gateway(model: CountingModel, tmp_path: Path) -> None:
    with RecordingServer(tmp_path / "r.jsonl", "http://127.0.0.1:9/v1", "key", timeout=1) as recording:
        response = ask(recording, "tea?")
    assert (response.status_code, response.json()["error"]["code"]) == (502, "bad_gateway")


def test_requests_for_vectors_are_passed_on(model: CountingModel, tmp_path: Path) -> None:
    with record(model, tmp_path / "r.jsonl") as recording, httpx.Client(trust_env=False) as http:
        response = http.post(f"{recording.base_url}/embeddings", json={"input": ["tea"]})
    assert response.json() == {"path": "/v1/embeddings", "input": ["tea"]}


def test_many_requests_at_once_are_all_recorded(model: CountingModel, tmp_path: Path) -> None:
    target = tmp_path / "recordings.jsonl"
    with record(model, target) as recording, ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda number: ask(recording, f"tea {number}").status_code, range(200)))
    assert answers == [200] * 200
    with ReplayServer(target) as replay:
        assert len(replay.recordings) == 200
