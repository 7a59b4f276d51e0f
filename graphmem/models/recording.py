"""Recording of completions: a server on this machine that passes prompts on to a model and keeps its answers.

A prompt that an earlier run has recorded is answered from the recording, so that an interrupted run goes on without
asking again, and `graphmem.models.replay` repeats a whole run without a model.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

import httpx

from graphmem.models.openai_client import is_loopback
from graphmem.models.replay import (
    KEY_FIELDS,
    CompletionServer,
    build_completion,
    build_error,
    read_entries,
    recording_key,
)

Json = dict[str, Any]


class RecordingServer(CompletionServer):
    """An OpenAI-compatible server on 127.0.0.1 in front of another one, during the `with` block.

    `target` is the file of recordings, which may exist; `upstream` the address of the model's server, and `timeout`
    the seconds to wait for its answer. A prompt that is asked again although it was answered in this block, which a
    caller does who cannot use the answer, is passed on again, and its last answer is kept. Errors of the model's server
    are passed back and not recorded.
    """

    def __init__(self, target: Path, upstream: str, api_key: str, timeout: float) -> None:
        super().__init__()
        self._target = target
        self._recordings = {entry["key"]: entry for _, entry in read_entries(target)} if target.exists() else {}
        self._answered: set[str] = set()
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._file_lock = threading.Lock()
        self._upstream = upstream.rstrip("/")
        self._client = httpx.Client(
            headers={"authorization": f"Bearer {api_key}"},
            timeout=httpx.Timeout(timeout, connect=60.0),
            limits=httpx.Limits(max_connections=None),
            trust_env=not is_loopback(upstream),
        )

    def __enter__(self) -> Self:
        self._rewrite()
        return super().__enter__()

    def __exit__(self, *exit_details: object) -> None:
        super().__exit__(*exit_details)
        self._client.close()
        self._rewrite()

    def answer(self, request: Json) -> tuple[int, Json]:
        """Return the HTTP status and body for one chat completion request."""
        key = recording_key(request)
        with self._file_lock:
            lock = self._locks[key]
        with lock:
            recording = self._recordings.get(key)
            if recording is None or key in self._answered:
                status, body = self._pass_on("/chat/completions", request)
                if status == httpx.codes.OK and self._record(key, request, body):
                    self._answered.add(key)
                return status, body
            self._answered.add(key)
        completion = build_completion(key, request, recording["answer"])
        return 200, {**completion, "usage": recording.get("usage") or completion["usage"]}

    def answer_other(self, path: str, request: Json) -> tuple[int, Json]:
        """Return what the model's server answers to a request for vectors, which is not recorded."""
        return self._pass_on(path.removeprefix("/v1"), request)

    def _pass_on(self, path: str, request: Json) -> tuple[int, Json]:
        try:
            response = self._client.post(self._upstream + path, json=request)
            body = response.json()
        except httpx.TimeoutException:
            return 504, build_error("the model's server did not answer in time", "timeout")
        except (httpx.HTTPError, ValueError) as error:
            return 502, build_error(f"the model's server cannot be used: {type(error).__name__}", "bad_gateway")
        is_object = isinstance(body, dict)
        return response.status_code, body if is_object else build_error("the answer is no JSON object", "bad_gateway")

    def _record(self, key: str, request: Json, body: Json) -> bool:
        """Keep an answer that was given completely; return whether it was."""
        answer = _read_answer(body)
        if answer is None:
            return False
        kept = {name: request[name] for name in KEY_FIELDS if name in request}
        recording = {"key": key, "request": kept, "answer": answer, "usage": body.get("usage")}
        with self._file_lock:
            self._recordings[key] = recording
            self._target.parent.mkdir(parents=True, exist_ok=True)
            with self._target.open("a", encoding="utf-8") as file:
                file.write(json.dumps(recording, ensure_ascii=False) + "\n")
        return True

    def _rewrite(self) -> None:
        """Write every recording once, sorted by key."""
        if not self._recordings:
            return
        lines = (json.dumps(self._recordings[key], ensure_ascii=False) + "\n" for key in sorted(self._recordings))
        draft = self._target.with_suffix(".draft")
        draft.write_text("".join(lines), "utf-8")
        draft.replace(self._target)


def _read_answer(body: Json) -> Json | None:
    """Return a complete answer as recordings hold it."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        calls = [
            {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
            for call in message.get("tool_calls") or []
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if choice.get("finish_reason") not in ("stop", "tool_calls"):
        return None
    if calls:
        return {"tool_calls": calls}
    return {"content": message["content"]} if message.get("content") else None
