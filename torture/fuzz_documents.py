"""Changed and made-up documents for every import format, sent to a server."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx
import yaml

from torture.findings import Findings
from torture.fuzz_requests import HANG_SECONDS
from torture.hostile_values import TEXTS, mutate

MAX_CHANGES = 4
"""Most changes of one document."""

MEM0 = {
    "results": [
        {"id": "1", "memory": "likes tea", "user_id": "mara", "metadata": {"a": 1}, "categories": ["food"],
         "created_at": "2026-01-02T03:04:05Z", "updated_at": None, "expiration_date": "2030-01-01"},
        {"id": "2", "memory": "lives in Lund", "hash": "x", "score": 0.5},
    ]
}  # fmt: skip
CHAT = [
    {"id": "c", "messages": [
        {"role": "user", "content": "I like tea", "created_at": 1767225600},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}], "name": "Bot"},
    ]}
]  # fmt: skip
GRAPHITI = {
    "nodes": [{"uuid": "n1", "name": "Mara", "labels": ["Entity", "Person"], "summary": "", "created_at": None},
              {"uuid": "n2", "name": "Lund", "labels": ["Entity"], "attributes": {"a": 1}}],
    "edges": [{"uuid": "e1", "source_node_uuid": "n1", "target_node_uuid": "n2", "name": "LIVES_IN",
               "fact": "Mara lives in Lund", "valid_at": "2024-01-01T00:00:00Z", "invalid_at": None,
               "created_at": "2024-02-01T00:00:00Z", "expired_at": None, "episodes": []}],
}  # fmt: skip


class DocumentFuzzer:
    """Imports changed documents and records each response that is neither a success nor a refusal."""

    def __init__(self, client: httpx.AsyncClient, export: dict[str, Any], findings: Findings, seed: int) -> None:
        self._client = client
        self._documents = [export, export, MEM0, CHAT, GRAPHITI]
        self._findings = findings
        self._chance = random.Random(seed)

    async def fuzz(self, cases: int, users: list[str]) -> None:
        """Import documents as the given users in turn; each import is followed by reads of what it left."""
        for number in range(cases):
            user = users[number % len(users)]
            body, content_type = self._make_document()
            await self._send("import", "POST", f"/v1/users/{user}/import", body, content_type)
            if number % 5 == 0:
                await self.read_everything(user)

    async def read_everything(self, user: str) -> None:
        """Read what imports may have left: no read may fail, whatever was imported."""
        root = f"/v1/users/{user}"
        for path in ("/memories", "/memories?include_superseded=true", "/entities", "/sessions", "/export"):
            await self._send(f"read {path}", "GET", root + path)
        for path in ("/preferences", "/patterns", "/contexts", "/entities/lookup?q=Mara%20Lund"):
            await self._send(f"read {path}", "GET", root + path)
        for path, body in (("/search", {"query": "tea", "include_messages": True}), ("/context", {"question": "tea"})):
            await self._send(f"read {path}", "POST", root + path, json.dumps(body).encode())

    def _make_document(self) -> tuple[bytes, str]:
        document = mutate(self._chance.choice(self._documents), self._chance, self._chance.randint(1, MAX_CHANGES))
        match self._chance.randrange(4):
            case 0:
                return yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "surrogatepass"), "application/yaml"
            case 1:
                text = json.dumps(document)
                at = self._chance.randrange(len(text) + 1)
                return (text[:at] + self._chance.choice(TEXTS) + text[at:]).encode(), "application/json"
            case _:
                return json.dumps(document).encode(), "application/json"

    async def _send(
        self, what: str, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> None:
        self._findings.count_case()
        try:
            response = await self._client.request(
                method, path, content=body, headers={"content-type": content_type}, timeout=HANG_SECONDS
            )
        except httpx.TimeoutException:
            self._findings.add(f"{what}: no response", repr(body[:2000]))
            return
        allowed = {200} if method == "GET" else {200, 409, 413, 422}
        if response.status_code not in allowed:
            self._findings.add(f"{what}: {response.status_code}", f"{response.text[:200]} ← {body[:3000]!r}")
