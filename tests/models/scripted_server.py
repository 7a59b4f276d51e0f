"""A model's server that follows a script over real HTTP, one step for each request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from pydantic import SecretStr

from graphmem.runtime.settings import Settings

Json = dict[str, Any]
Step = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request; a step answers it with `send`."""

    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def do_POST(self) -> None:
        self.body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.next_step(self.body)(self)

    def send(self, status: int, raw: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        pass


class ScriptedServer(ThreadingHTTPServer):
    """Plays the steps in order and repeats the last one; `requests` keeps every body it was sent."""

    daemon_threads = True

    def __init__(self, *steps: Step) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.steps = list(steps)
        self.requests: list[Json] = []
        self._lock = threading.Lock()

    def configure(self, settings: Settings, data_dir: Path, **changes: Any) -> Settings:
        """Return settings with this model and a data folder, without webhooks; `changes` are further settings."""
        model = {"openai_base_url": self.base_url, "openai_api_key": SecretStr("key")}
        return settings.model_copy(update={"data_dir": data_dir, "webhook_delivery": False, **model, **changes})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_step(self, body: Json) -> Step:
        with self._lock:
            step = self.steps[min(len(self.requests), len(self.steps) - 1)]
            self.requests.append(body)
            return step

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


def replies(content: str | None, *, finish: str = "stop", usage: Json | None = None, **message: Any) -> Step:
    """A completion with this text."""
    body: Json = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }
    if usage:
        body["usage"] = usage
    return lambda exchange: exchange.send(200, json.dumps(body).encode())


def fails(
    status: int, message: str = "no", *, code: str | None = None, param: str | None = None, **headers: str
) -> Step:
    """An error in the shape of the OpenAI API."""
    body = {"error": {"message": message, "type": "error", "code": code, "param": param}}
    return lambda exchange: exchange.send(status, json.dumps(body).encode(), **headers)


def sends(raw: bytes, kind: str = "application/json") -> Step:
    """200 with anything."""
    return lambda exchange: exchange.send(200, raw, kind)


def hangs(seconds: float = 5) -> Step:
    """No answer while the caller waits."""
    return lambda exchange: time.sleep(seconds)


def trickles(exchange: Exchange) -> None:
    """A byte now and then, for ever."""
    exchange.send_response(200)
    exchange.send_header("content-type", "application/json")
    exchange.send_header("content-length", "100000")
    exchange.end_headers()
    for _ in range(100):
        exchange.wfile.write(b" ")
        exchange.wfile.flush()
        time.sleep(0.05)


def hangs_up(exchange: Exchange) -> None:
    """Half an answer, then the connection is gone."""
    exchange.send_response(200)
    exchange.send_header("content-type", "application/json")
    exchange.send_header("content-length", "1000")
    exchange.end_headers()
    exchange.wfile.write(b'{"id": "chatc')
    exchange.close_connection = True
