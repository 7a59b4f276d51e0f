"""Recorded completions: a local server that answers only recorded prompts, and one that records them.

A recording is `{key, request, answer}`. `key` is a hash of the model's input: the messages, the response format, the
tools and the tool choice of the request, without the model's name and sampling. `answer` is `{"content": text}` or
`{"tool_calls": [{"name", "arguments"}]}`.

The recording server forwards prompts to a model and keeps its answers. A prompt recorded by an earlier run is answered
from the recording, so that an interrupted run continues without asking again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx

from graphmem.models.language_model import CHARACTERS_PER_TOKEN
from graphmem.models.openai_api import is_loopback
from graphmem.runtime.errors import ConfigurationError

Json = dict[str, Any]

KEY_FIELDS = ("messages", "response_format", "tools", "tool_choice")
"""The request fields that determine the answer."""

_SCHEMA_FIELDS = {"schema", "parameters"}
_DEFAULTS: Mapping[str, Any] = {"tool_choice": "auto", "description": "", "strict": False}


def recording_key(request: Mapping[str, Any]) -> str:
    """Return a hash of the chat completion request's fields that determine the answer, as 24 hex digits.

    Key order does not matter, nor whether default values are sent or left out.
    """
    hashed = {name: _without_defaults(request[name]) for name in KEY_FIELDS if not _is_default(name, request.get(name))}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:24]


def _without_defaults(value: Any) -> Any:
    """Return a request value without the fields that have the API's default; schemas stay whole."""
    if isinstance(value, list):
        return [_without_defaults(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: child if name in _SCHEMA_FIELDS else _without_defaults(child)
        for name, child in value.items()
        if not _is_default(name, child)
    }


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name in _DEFAULTS and value == _DEFAULTS[name])


def load_recordings(source: Path) -> dict[str, Json]:
    """Return recordings by key, from a `.jsonl` file or from every `.json` and `.jsonl` file of a folder.

    Raises ConfigurationError for a missing source, an invalid entry, a key that does not match its request, or two
    answers to one key.
    """
    if not source.exists():
        raise ConfigurationError(f"There are no recorded completions at {source}: give a folder or a .jsonl file.")
    files = (
        sorted(path for path in source.iterdir() if path.suffix in (".json", ".jsonl")) if source.is_dir() else [source]
    )
    recordings: dict[str, Json] = {}
    for path in files:
        for number, entry in read_entries(path):
            recording = _validate_entry(entry, f"{path.name}, entry {number}")
            known = recordings.setdefault(recording["key"], recording)
            if known["answer"] != recording["answer"]:
                raise ConfigurationError(
                    f"The recording {recording['key']} has two different answers; the second is in {path.name}."
                )
    return recordings


def pack_recordings(source: Path, target: Path) -> int:
    """Write the recordings of `source` to one JSONL file, sorted by key; return their number."""
    recordings = load_recordings(source)
    lines = (json.dumps(recordings[key], ensure_ascii=False, separators=(",", ":")) for key in sorted(recordings))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(line + "\n" for line in lines), "utf-8")
    return len(recordings)


class CompletionServer(ABC):
    """An OpenAI-compatible server on 127.0.0.1 during the `with` block; subclasses answer the requests."""

    @property
    def base_url(self) -> str:
        """The address for `OPENAI_BASE_URL`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._server = _CompletionHTTPServer(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="completions", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @abstractmethod
    def answer(self, request: Json) -> tuple[int, Json]:
        """Return the HTTP status and body for one chat completion request, which is not streamed."""

    def answer_other(self, path: str, request: Json) -> tuple[int, Json]:
        """Return the HTTP status and body for a request to a path other than chat completions."""
        return 404, build_error(f"no {path} here, only /v1/chat/completions", "not_found")


class ReplayServer(CompletionServer):
    """Answers from recordings.

    A prompt without a recording is answered with status 501 and the code `no_recording`. `calls` counts the answered
    requests by key; `missing` lists the keys without a recording.
    """

    def __init__(self, source: Path) -> None:
        self.recordings = load_recordings(source)
        self.calls: Counter[str] = Counter()
        self.missing: list[str] = []
        self._lock = threading.Lock()

    def answer(self, request: Json) -> tuple[int, Json]:
        """Return the HTTP status and body for one chat completion request."""
        key = recording_key(request)
        recording = self.recordings.get(key)
        with self._lock:
            if recording is None:
                self.missing.append(key)
                return 501, build_error(f"no completion is recorded for the prompt {key}", "no_recording")
            self.calls[key] += 1
        return 200, build_completion(key, request, recording["answer"])


class _CompletionHTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, completions: CompletionServer) -> None:
        super().__init__(("127.0.0.1", 0), _CompletionHandler)
        self.completions = completions

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore callers that disconnect."""


class _CompletionHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _CompletionHTTPServer

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because requests contain user text."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            request = json.loads(raw)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            return self._reply(400, build_error("the body is no JSON object", "invalid_json"))
        if self.path.rstrip("/") != "/v1/chat/completions":
            return self._reply(*self.server.completions.answer_other(self.path, request))
        if request.get("stream"):
            return self._reply(400, build_error("recorded completions are not streamed", "unsupported_parameter"))
        return self._reply(*self.server.completions.answer(request))

    def _reply(self, status: int, body: Json) -> None:
        raw = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def read_entries(path: Path) -> Iterable[tuple[int, Any]]:
    """Yield the entries of a recorded file with their numbers; raise ConfigurationError if one is not JSON."""
    text = path.read_text("utf-8")
    pieces = [line for line in text.split("\n") if line.strip()] if path.suffix == ".jsonl" else [text]
    for number, piece in enumerate(pieces, 1):
        try:
            yield number, json.loads(piece)
        except ValueError:
            raise ConfigurationError(f"The recorded completion in {path.name}, entry {number}, is not JSON.") from None


def _validate_entry(entry: Any, where: str) -> Json:
    answer = entry.get("answer") if isinstance(entry, dict) else None
    if not isinstance(answer, dict) or not (isinstance(answer.get("content"), str) or answer.get("tool_calls")):
        raise ConfigurationError(f"The recorded completion in {where} has no answer with content or tool_calls.")
    if entry.get("key") != recording_key(entry.get("request") or {}):
        raise ConfigurationError(f"The recorded completion in {where} does not carry the key of its request.")
    return {name: entry[name] for name in ("key", "request", "answer")}


def build_completion(key: str, request: Json, answer: Json) -> Json:
    """Return a recorded answer as a chat completion; its tokens are estimated."""
    message: Json = {"role": "assistant", "content": answer.get("content")}
    if answer.get("tool_calls"):
        message["tool_calls"] = [
            {
                "id": f"call_{i}",
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
            }
            for i, call in enumerate(answer["tool_calls"])
        ]
    prompt, answered = (json.dumps(part, ensure_ascii=False) for part in (request.get("messages", []), message))
    prompt_tokens, completion_tokens = len(prompt) // CHARACTERS_PER_TOKEN, len(answered) // CHARACTERS_PER_TOKEN
    return {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", "replay"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if answer.get("tool_calls") else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def build_error(message: str, code: str) -> Json:
    """Return the body of an error response."""
    return {"error": {"message": message, "type": "replay_error", "code": code}}


class RecordingServer(CompletionServer):
    """An OpenAI-compatible server on 127.0.0.1 in front of another one, during the `with` block.

    `target` is the file of recordings, which may exist; `upstream` is the model server's address, and `timeout` the
    seconds to wait for its answer. If a caller repeats a prompt within the block, because the answer was unusable, it
    is forwarded again and the last answer is kept. The model server's errors are passed back and not recorded.
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
        """Return the model server's answer to a request for vectors, without recording it."""
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
        """Record an answer if it is complete; return whether it was."""
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
    """Return a complete answer in the format of recordings."""
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
