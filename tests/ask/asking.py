"""The users of `cases.yaml` behind a server whose model answers as recorded, and whose clock stands still."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml
from graphmem_api.app import create_app
from pydantic import BaseModel, Field, SecretStr

from graphmem.app.bootstrap import Services
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.conftest import FakeClock
from tests.stories.dialogues import RECORD_FROM, RECORDING_SECONDS, answering_model

CASES = Path(__file__).with_name("cases.yaml")
RECORDINGS = Path(__file__).with_name("recordings")
ASKED_AT = datetime.fromisoformat("2026-06-01T12:00:00Z")


class AskedQuestion(BaseModel):
    """A question and what its answer must be like; without `cites` anything may be cited."""

    ask: str
    session: str | None = None
    token_budget: int | None = None
    valid_as_of: datetime | None = None
    known_as_of: datetime | None = None
    says: list[str] = Field(default_factory=list)
    never: list[str] = Field(default_factory=list)
    cites: list[str] | None = None
    looks: int | None = None

    def body(self) -> dict[str, Any]:
        given = self.model_dump(mode="json", include={"token_budget", "valid_as_of", "known_as_of"}, exclude_none=True)
        return {"question": self.ask, **({"session_id": self.session} if self.session else {}), **given}

    def find_fault(self, response: Mapping[str, Any]) -> str | None:
        """Return what is wrong with a response, or None."""
        answer = response["answer"] or ""
        quotes = " | ".join(citation["quote"] for citation in response["citations"])
        faults = [
            *(f"does not say {part}" for part in self.says if not re.search(part, answer, re.IGNORECASE)),
            *(f"says {part}" for part in self.never if re.search(part, answer, re.IGNORECASE)),
            *(f"does not cite {part}" for part in self.cites or () if not _cites(response, part)),
        ]
        if self.cites == [] and response["answered"]:
            faults.append("answers what memory does not have")
        if response["answered"] is not bool(response["answer"] and response["citations"]):
            faults.append("answers without a citation, or cites without an answer")
        if self.looks is not None and response["llm_calls"] != self.looks:
            faults.append(f"takes {response['llm_calls']} calls")
        return f"{self.ask!r} {faults}: {answer!r} ({quotes})" if faults else None


def _cites(response: Mapping[str, Any], part: str) -> bool:
    return any(part in text for citation in response["citations"] for text in (citation["text"],))


class ToldSession(BaseModel):
    """The messages of a session, a minute apart."""

    id: str
    messages: list[dict[str, str]]


class ToldDay(BaseModel):
    """What was told on one day."""

    at: datetime
    memories: list[dict[str, Any]] = Field(default_factory=list)
    sessions: list[ToldSession] = Field(default_factory=list)


class AskingUser(BaseModel):
    """A user of the cases."""

    user: str
    days: list[ToldDay]
    questions: list[AskedQuestion]


def read_cases() -> list[AskingUser]:
    return [AskingUser.model_validate(entry) for entry in yaml.safe_load(CASES.read_text("utf-8"))]


@asynccontextmanager
async def serve_cases(settings: Settings, data_dir: Path, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the users of the cases to an admin of their tenant; the time of the server is `ASKED_AT`."""
    clock = FakeClock(ASKED_AT)
    with answering_model(RECORDINGS) as address:
        changed = settings.model_copy(
            update={
                "data_dir": data_dir,
                "openai_base_url": address,
                "openai_api_key": SecretStr("key"),
                "llm_timeout": RECORDING_SECONDS if RECORD_FROM in os.environ else settings.llm_timeout,
                "webhook_delivery": False,
            }
        )
        async with (
            Services.open(changed, worker=False, clock=clock) as services,
            serve_app(create_app(services, changed)) as server,
        ):
            key = await services.keys.create(tenant, ApiKeyIn(name="asking", role=KeyRole.ADMIN))
            timeout = RECORDING_SECONDS if RECORD_FROM in os.environ else 60
            headers = {"Authorization": f"Bearer {key.key}"}
            async with httpx.AsyncClient(base_url=server, headers=headers, timeout=timeout) as client:
                for user in read_cases():
                    await _tell(client, clock, user)
                clock.now = ASKED_AT
                yield client


async def _tell(client: httpx.AsyncClient, clock: FakeClock, user: AskingUser) -> None:
    for day in user.days:
        clock.now = day.at
        for memory in day.memories:  # one after the other, so that each has a time of its own
            clock.advance(timedelta(seconds=1))
            await post(client, f"/v1/users/{user.user}/memories", memories=[memory])
        for session in day.sessions:
            turns = [
                {"role": role, "content": content, "timestamp": (day.at + timedelta(minutes=minute)).isoformat()}
                for minute, message in enumerate(session.messages)
                for role, content in message.items()
            ]
            await post(client, f"/v1/users/{user.user}/messages", session_id=session.id, messages=turns, extract=False)


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await client.post(path, json=body)
    assert response.is_success, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def ask(client: httpx.AsyncClient, user: str, question: AskedQuestion) -> dict[str, Any]:
    """Ask a question, and add to each citation the text that it quotes."""
    response = await post(client, f"/v1/users/{user}/ask", **question.body())
    for citation in response["citations"]:
        if citation["memory_id"]:
            found = await client.get(f"/v1/users/{user}/memories/{citation['memory_id']}")
            citation["text"] = found.json()["content"]
        else:
            found = await client.post(f"/v1/users/{user}/messages/search", json={"query": citation["quote"]})
            texts = {hit["message"]["id"]: hit["message"]["content"] for hit in found.json()["results"]}
            citation["text"] = texts[citation["message_id"]]
        assert citation["quote"] in citation["text"], citation
    return response
