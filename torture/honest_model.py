"""A model that extracts each note of a user: the messages `I keep note-…` become the memories `User keeps note-…`.

In a consolidation it merges two statements of which one continues the other, into the longer one.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOTE = re.compile(r"^\[(\d+)\] USER.*?(note-[0-9a-f]+)", re.MULTILINE)
"""A line of a prompt with a note: its number and the note."""

STATEMENT = re.compile(r"^\[M(\d+)\] \([^)]*\) (.*)$", re.MULTILINE)
"""A line of a prompt with a statement of a memory: its number and the statement."""

PROPOSAL = re.compile(r"^\[P(\d+)\] merge of (.*?) into the new sentence: (.*)$", re.MULTILINE)
"""A line of a prompt with a merge to verify: its number, the numbers of its statements, and the new sentence."""

MODEL = "honest"
"""The name of the model."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request for a chat completion, by the name of its schema."""
    prompt = request["messages"][-1]["content"]
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("name", "")
    if schema == "Extraction":
        found = [_candidate(int(number), note) for number, note in NOTE.findall(_section(prompt, "conversation"))]
        return {"skip": not found, "reason": "", "keywords": [], "names": [], "candidates": found}
    if schema == "Reconciliation":
        numbers = re.findall(r"^\[(\d+)\]", _section(prompt, "new_statements"), re.MULTILINE)
        decisions: list[dict[str, Any]] = [
            {"new": int(number), "action": "insert", "known": [], "ended_at": None, "remaining": [], "reason": "new"}
            for number in numbers
        ]
        return {"decisions": decisions, "same_entities": []}
    if schema == "Analysis":
        return {"steps": [], "actions": _merges(_section(prompt, "memories")), "contradictions": []}
    if schema == "VerifierAnswer":
        statements = dict(STATEMENT.findall(_section(prompt, "statements")))
        proposed = PROPOSAL.findall(_section(prompt, "proposals"))
        checks = [_verify(number, sources, sentence, statements) for number, sources, sentence in proposed]
        return {"proposals": checks}
    return {"sentences": []}  # a profile


def _merges(memories: str) -> list[dict[str, Any]]:
    """Return a merge of each two statements that begin alike, of which one says more."""
    shown = STATEMENT.findall(memories)
    return [
        {"action": "MERGE", "memories": [int(short), int(long)], "content": full, "relation": "completes"}
        for short, text in shown
        for long, full in shown
        if full.startswith(f"{text} ")
    ]


def _verify(number: str, sources: str, sentence: str, statements: dict[str, str]) -> dict[str, Any]:
    """Return the check of a merge: each statement stands in the sentence as it is."""
    carried = [
        {
            "statement": int(source),
            "parts": [{"words": statements[source], "result": statements[source]}],
            "agreement": "same" if statements[source] in sentence else "lost",
        }
        for source in re.findall(r"\[M(\d+)\]", sources)
    ]
    return {"proposal": int(number), "differences": "none", "one_fact": True, "statements": carried}


def _section(prompt: str, name: str) -> str:
    return prompt.rpartition(f"<{name}>")[2].partition(f"</{name}>")[0]


def _candidate(number: int, note: str) -> dict[str, Any]:
    return {
        "content": f"User keeps {note}",
        "type": "fact",
        "subject": {"name": "User", "type": "Person"},
        "predicate": "KEEPS",
        "object": None,
        "entities": [],
        "valid_at": None,
        "invalid_at": None,
        "confidence": 0.95,
        "importance": 0.5,
        "tags": ["OTHER"],
        "domain": None,
        "single_valued": False,
        "retracts": False,
        "messages": [number],
    }


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seconds = 0.0

    def do_POST(self) -> None:
        """Answer a request for a chat completion."""
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(self.seconds)
        message = {"role": "assistant", "content": json.dumps(answer(request))}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        completion = {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
        raw = json.dumps(completion).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless whoever asked was killed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving_honest_model(seconds: float = 0.0) -> Iterator[str]:
    """Serve the model, which takes so long to answer, on a free port of 127.0.0.1; yield its address."""
    handler = type("_Exchange", (_Exchange,), {"seconds": seconds})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
