"""Changed and made-up answers of a language model, for extraction, reconciliation and consolidation."""

from __future__ import annotations

import json
import random
import re
import threading
import uuid
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import Job
from graphmem.memories.memory import MemoryIn
from graphmem.tenants.owners import Owner
from torture.findings import Findings
from torture.hostile_values import TEXTS, mutate

ANSWERS: dict[str, Any] = {
    "Extraction": {
        "skip": False,
        "reason": "",
        "keywords": ["tea"],
        "names": [{"name": "Mara Lind", "others": ["User", "Mara"]}],
        "candidates": [
            {
                "content": content,
                "type": "fact",
                "subject": {"name": "User", "type": "Person"},
                "predicate": "LIVES_IN",
                "object": {"name": "Lund", "type": "Place"},
                "entities": [{"name": "Bob", "type": "Person"}],
                "valid_at": "2024-03",
                "invalid_at": None,
                "confidence": 0.9,
                "importance": 0.5,
                "tags": ["OTHER"],
                "domain": None,
                "single_valued": True,
                "retracts": False,
                "messages": [1],
            }
            for content in ("Mara lives in Lund", "Mara likes tea")
        ],
    },
    "Reconciliation": {
        "decisions": [
            {"new": number, "action": action, "known": [1, 2], "ended_at": "2024", "remaining": None, "reason": "r"}
            for number, action in ((1, "supersede"), (2, "reinforce"))
        ],
        "same_entities": [{"name": 1, "known": 1}],
    },
    "Analysis": {
        "steps": ["Both say the same."],
        "actions": [
            {"action": "MERGE", "memories": [1, 2], "content": "Mara lives in Lund and likes tea", "relation": "same",
             "reason": "r"},
            {"action": "ASSOCIATE", "memories": [1, 2], "reason": "r"},
            {"action": "UPDATE_ENTITY", "entities": [1], "aliases": ["M"], "evidence": [1],
             "attributes": [{"name": "mood", "value": "calm"}]},
            {"action": "LINK_ENTITIES", "entities": [1, 2], "evidence": [1, 2]},
            {"action": "CREATE_ENTITY", "name": "Lund", "type": "Place", "memories": [1]},
        ],
        "contradictions": [{"memories": [1, 2], "reason": "r"}],
    },
    "Summary": {"title": "t", "summary": "s", "takeaways": ["a"], "topics": ["b"], "sentiment": 0.5},
}  # fmt: skip
"""A well-formed answer to each kind of request, by the name of its schema."""

BUG = re.compile(r"^[A-Z]\w*(Error|Exception|Group)\b")
"""How the error of a job starts when an unexpected exception ended it."""

MODEL_SETTINGS: dict[str, Any] = {
    "openai_api_key": "key",
    "llm_model": "hostile",
    "llm_timeout": 2,
    "llm_attempts": 1,
    "llm_output": "native",
}
"""Settings of a service that calls the hostile model, besides its address."""


class HostileModel(ThreadingHTTPServer):
    """A server of a model that answers each request with a changed answer to it."""

    daemon_threads = True

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.last_answer = ""

    @property
    def base_url(self) -> str:
        """The address that clients of the OpenAI API use."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, schema: str, prompt: str) -> str:
        """Return the text of the next completion, whatever the prompt says."""
        with self._lock:
            if self._chance.random() < 0.05:
                return self._chance.choice(TEXTS)
            document = mutate(ANSWERS.get(schema, {}), self._chance, self._chance.randint(0, 4))
            self.last_answer = json.dumps(document)
            return self.last_answer

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HostileModel

    def do_POST(self) -> None:
        """Answer a request for a chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        prompt = body["messages"][-1]["content"]
        message = {"role": "assistant", "content": self.server.answer(schema, prompt)}
        completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "hostile"}
        raw = json.dumps(
            {**completion, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


async def fuzz_answers(services: Services, tenant: str, cases: int, model: HostileModel, findings: Findings) -> None:
    """Extract and consolidate with changed answers, as a new user each time; no job may end in a bug."""
    for number in range(cases):
        owner = Owner(tenant, f"user-{uuid.uuid4().hex}")
        await services.memories.save(
            owner, [MemoryIn(content=text) for text in ("Mara lives in Oslo", "Bob likes tea")]
        )
        findings.count_case()
        if number % 3:
            turns: Sequence[Any] = [{"role": "user", "content": "I moved to Lund in March with Bob. I like tea."}]
            done = await services.messages.add(owner, MessagesIn(session_id="s", messages=list(turns), wait=True))
            error = done.error if isinstance(done, Job) else None
        else:
            run = await services.consolidations.start(tenant, user_id=owner.user_id, wait=True)
            error = None if isinstance(run, str) else run.reason
        if error and BUG.match(error):
            findings.add(f"job: {error.partition(':')[0]}", f"{error[:300]} ← {model.last_answer[:3000]}")
