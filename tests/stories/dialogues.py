"""The dialogues of `dialogues.yaml`, sent over HTTP to a server whose model answers as recorded."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml
from graphmem_api.app import create_app
from pydantic import BaseModel, Field, SecretStr

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.models.replay import ReplayServer
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app

DIALOGUES = Path(__file__).with_name("dialogues.yaml")
RECORDINGS = Path(__file__).with_name("recordings")
RECORD_FROM = "GRAPHMEM_RECORD_FROM"
"""The environment variable with the address of a model that answers instead of the recordings."""

RECORDING_SECONDS = 3000
FINAL = {"succeeded", "skipped", "failed"}
POLL_SECONDS = 0.5


class Talk(BaseModel):
    """One session of a dialogue; its messages are a minute apart."""

    at: datetime
    messages: list[dict[str, str]]
    metadata: dict[str, Any] = Field(default_factory=dict)
    domain: str | None = None

    def turns(self) -> list[dict[str, str]]:
        return [
            {"role": role, "content": content, "timestamp": (self.at + timedelta(minutes=minute)).isoformat()}
            for minute, message in enumerate(self.messages)
            for role, content in message.items()
        ]


class Dialogue(BaseModel):
    """What one user says, what is known before, and what the tenant may store."""

    user: str
    sessions: list[Talk]
    known: list[dict[str, Any]] = Field(default_factory=list)
    allows: list[str] = Field(default_factory=list)
    by_tool: bool = False
    summarized: bool = False


def read_dialogues() -> list[Dialogue]:
    return [Dialogue.model_validate(entry) for entry in yaml.safe_load(DIALOGUES.read_text("utf-8"))]


@dataclass
class DialogueUser:
    """A user of a server who sends a dialogue; `jobs` are the jobs of its extractions, in order."""

    client: httpx.AsyncClient
    user: str
    jobs: list[dict[str, Any]] = field(default_factory=list)

    async def get(self, path: str, **params: Any) -> dict[str, Any]:
        return await self._ask("GET", f"/v1/users/{self.user}/{path}", params=params)

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        return await self._ask("POST", f"/v1/users/{self.user}/{path}", json=body)

    async def memories(self, **params: Any) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.get("memories", **params))["items"]
        return items

    async def saved(self) -> list[dict[str, Any]]:
        """Return the memories that the dialogue made, current or not, in order."""
        ids = [action["memory_id"] for job in self.jobs for action in job["actions"] if "memory_id" in action]
        return [await self.get(f"memories/{memory_id}") for memory_id in dict.fromkeys(ids)]

    async def preamble(self, question: str, **body: Any) -> str:
        answer: str = (await self.post("context", question=question, **body))["preamble"]
        return answer

    async def send(self, dialogue: Dialogue) -> None:
        """Send the sessions one after the other, and wait until all of one has been remembered."""
        if dialogue.known:
            await self.post("memories", memories=dialogue.known)
        for number, talk in enumerate(dialogue.sessions, 1):
            session_id = f"{self.user}-{number}"
            await self.post("sessions", session_id=session_id, metadata=talk.metadata, domain=talk.domain)
            sent = await self.post(
                "messages", session_id=session_id, messages=talk.turns(), extract=not dialogue.by_tool
            )
            job_id = await self._trigger(session_id) if dialogue.by_tool else sent["job_id"]
            self.jobs.append(await self._finish(job_id))
            if dialogue.summarized:
                await self._poll(f"/v1/users/{self.user}/sessions/{session_id}", lambda session: session["summary"])

    async def _trigger(self, session_id: str) -> str:
        body = {"session_id": session_id, "user_id": self.user}
        message = (await self._ask("POST", "/_admin/trigger-memory-extraction-v2", json=body))["message"]
        started: str = (await self.get(f"sessions/{message.rpartition(' ')[2]}"))["job_id"]
        return started

    async def _finish(self, job_id: str) -> dict[str, Any]:
        job = await self._poll(f"/v1/jobs/{job_id}", lambda job: job["status"] in FINAL or job["waits_until"])
        assert not job["error"], job
        assert not job["waits_until"], "a prompt is not recorded"
        return job

    async def _poll(self, path: str, is_there: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        while not is_there(answer := await self._ask("GET", path)):  # noqa: ASYNC110 - it asks over HTTP
            await asyncio.sleep(POLL_SECONDS)
        return answer

    async def _ask(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        answer = await self.client.request(method, path, **content)
        assert answer.is_success, (path, answer.text)
        body: dict[str, Any] = answer.json()
        return body


@contextmanager
def answering_model(recordings: Path = RECORDINGS) -> Iterator[str]:
    """The address of the recordings, or of the model that is to be recorded."""
    if live := os.environ.get(RECORD_FROM):
        yield live
        return
    with ReplayServer(recordings) as replay:
        yield replay.base_url


@asynccontextmanager
async def serve_dialogues(
    settings: Settings, embedder: Embedder, data_dir: Path
) -> AsyncIterator[Mapping[str, DialogueUser]]:
    """Send all dialogues at once, and yield who heard them by the name of the user."""
    tenants = {dialogue.user: f"t{uuid.uuid4().hex[:12]}" for dialogue in read_dialogues()}
    allowed = [f"{tenants[dialogue.user]}:{cls}" for dialogue in read_dialogues() for cls in dialogue.allows]
    with answering_model() as address:
        changed = settings.model_copy(
            update={
                "data_dir": data_dir,
                "openai_base_url": address,
                "openai_api_key": SecretStr("key"),
                "llm_timeout": RECORDING_SECONDS if RECORD_FROM in os.environ else settings.llm_timeout,
                "allowed_secret_classes": allowed,
                "webhook_delivery": False,
            }
        )
        async with (
            Services.open(changed, embedder=embedder) as services,
            serve_app(create_app(services, changed)) as server,
        ):
            async with asyncio.TaskGroup() as group:
                users = {
                    dialogue.user: await _connect(services, server, tenants[dialogue.user], dialogue.user)
                    for dialogue in read_dialogues()
                }
                for dialogue in read_dialogues():
                    group.create_task(users[dialogue.user].send(dialogue))
            yield users
            for user in users.values():
                await user.client.aclose()


async def _connect(services: Services, server: str, tenant: str, user: str) -> DialogueUser:
    key = await services.keys.create(tenant, ApiKeyIn(name=user, role=KeyRole.ADMIN))
    headers = {"Authorization": f"Bearer {key.key}"}
    return DialogueUser(httpx.AsyncClient(base_url=server, headers=headers, timeout=60), user)
