"""Members, former members and strangers of a space, while it is written and its members change: who reads what.

Each text that is stored in the space holds its secret. A reader who was no member from before a read began until it had
been answered may not see it, and whoever was no writer may not have written. Who had the right at one moment in between
may have seen and written either. Every write is sent twice with one idempotency key: a replay needs the same right.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from graphmem.app.bootstrap import Services
from graphmem.tenants.access import ApiKeyIn, KeyRole
from torture.findings import Findings

SPACE = "atlas"
MEMBER, STRANGER = "ann", "dora"
CHANGING = ("bob", "cy")
"""Users whose membership begins and ends all the time."""

PLACES = "What is in the vault?"


@dataclass
class Permitted:
    """Who may have a right now; `begun` counts how often the right of each user has begun."""

    users: set[str] = field(default_factory=set)
    begun: Counter[str] = field(default_factory=Counter)

    def begin(self, user: str) -> None:
        """Note that the right of a user is about to begin."""
        self.users.add(user)
        self.begun[user] += 1

    def end(self, user: str) -> None:
        """Note that the end of the right of a user has been answered."""
        self.users.discard(user)

    def watch(self, user: str) -> Callable[[], bool]:
        """Return what says whether a user had the right at any moment from now on."""
        had, begun = user in self.users, self.begun[user]
        return lambda: had or self.begun[user] > begun


class SpaceProbe:
    """Reads and writes of a space by its member, two users who come and go, and a stranger."""

    def __init__(
        self, admin: httpx.AsyncClient, clients: dict[str, httpx.AsyncClient], findings: Findings, seed: int
    ) -> None:
        self._admin = admin
        self._clients = clients
        self._findings = findings
        self._random = random.Random(seed)
        self._secret = "".join(self._random.choices("abcdefghijklmnop", k=12))
        self._readers, self._writers = Permitted(), Permitted()
        self._known = ["none"]
        self._numbers = itertools.count(1)
        self._end = 0.0
        self.seen = 0
        """Reads in which a member saw the secret: without any, the probe would prove nothing."""

    async def run(self, seconds: float) -> None:
        """Probe for a time; then compare what is stored with what members wrote."""
        members = [{"user": MEMBER, "role": "owner"}]
        body = {"title": f"Vault {self._secret}", "about": f"About {self._secret}", "members": members}
        (await self._admin.put(f"/v1/spaces/{SPACE}", json=body)).raise_for_status()
        self._readers.begin(MEMBER)
        self._writers.begin(MEMBER)
        await self._write(MEMBER)
        self._end = time.monotonic() + seconds
        reads = [self._repeat(self._read, user) for user in (MEMBER, *CHANGING, STRANGER)]
        writes = [self._repeat(self._write, user) for user in (MEMBER, *CHANGING, STRANGER)]
        await asyncio.gather(*reads, *writes, *(self._repeat(self._change, user) for user in CHANGING))
        for user in CHANGING:  # with nothing under way, none of them reads anything any more
            await self._admin.delete(f"/v1/spaces/{SPACE}/members/{user}")
            self._readers.end(user)
            for request in self._reads(user):
                await self._send(user, request)
        if not self.seen:
            self._findings.add("a member reads nothing of the space", MEMBER)

    async def _repeat(self, step: Callable[[str], Awaitable[None]], user: str) -> None:
        while time.monotonic() < self._end:
            await step(user)

    async def _change(self, user: str) -> None:
        role = self._random.choice(("reader", "writer"))
        rights = [self._readers, self._writers] if role == "writer" else [self._readers]
        for right in rights:
            right.begin(user)
        member = f"/v1/spaces/{SPACE}/members/{user}"
        (await self._admin.put(member, json={"role": role})).raise_for_status()
        await asyncio.sleep(self._random.random())
        (await self._admin.delete(member)).raise_for_status()
        for right in rights:
            right.end(user)
        await asyncio.sleep(self._random.random())

    def _reads(self, user: str) -> list[dict[str, Any]]:
        """Return a request of every way to read what is in a space."""
        root, memory = f"/v1/users/{user}", self._random.choice(self._known)
        chosen = self._random.choice(({}, {"spaces": [SPACE]}))
        return [
            {"method": "GET", "url": f"{root}/memories", "params": chosen},
            {"method": "GET", "url": f"{root}/memories/{memory}"},
            {"method": "GET", "url": f"{root}/memories/{memory}/history"},
            {"method": "GET", "url": f"{root}/entities/lookup", "params": {"q": "vault", **chosen}},
            {"method": "GET", "url": f"{root}/entities", "params": chosen},
            {"method": "GET", "url": f"{root}/export", "params": {"space": SPACE}},
            {"method": "GET", "url": f"{root}/changes", "params": {"space": SPACE}},
            {"method": "GET", "url": f"{root}/sessions", "params": {"space": SPACE}},
            {"method": "GET", "url": f"{root}/sessions/standup/messages", "params": {"space": SPACE}},
            {"method": "GET", "url": f"{root}/profile"},
            {"method": "GET", "url": f"/v1/spaces/{SPACE}"},
            {"method": "GET", "url": "/v1/spaces"},
            {"method": "POST", "url": f"{root}/search", "json": {"query": PLACES, "include_messages": True, **chosen}},
            {"method": "POST", "url": f"{root}/messages/search", "json": {"query": PLACES, **chosen}},
            {"method": "POST", "url": f"{root}/context", "json": {"question": PLACES, **chosen}},
            {"method": "POST", "url": f"{root}/context", "json": chosen},
        ]

    async def _read(self, user: str) -> None:
        await self._send(user, self._random.choice(self._reads(user)))

    async def _send(self, user: str, request: dict[str, Any]) -> httpx.Response:
        """Send a request, and report the secret in the answer to somebody who was no member all the time."""
        may_have_read = self._readers.watch(user)
        self._findings.count_case()
        answer = await self._clients[user].request(**request)
        shown = f"{user}: {request} → {answer.status_code} {answer.text[:300]}"
        label = f"spaces: {request['method']} {request['url'].rpartition('/')[2]}"
        if answer.status_code >= 500:
            self._findings.add(f"{label}: {answer.status_code}", shown)
        if self._secret in answer.text:
            self.seen += 1
            if not may_have_read():
                self._findings.add(f"{label}: data of a space that its reader has no right to", shown)
        return answer

    async def _write(self, user: str) -> None:
        may_have_written = self._writers.watch(user)
        number, text = next(self._numbers), self._random.choice(("memory", "message", "correction"))
        root, said = f"/v1/users/{user}", f"In the vault is {self._secret}"
        memory = {"content": f"{said}, piece {number}", "space": SPACE, "subject": {"name": "Vault", "type": "Place"}}
        turn = {"id": f"m{number}", "role": "user", "content": f"{said}, message {number}"}
        batch = {"session_id": "standup", "space": SPACE, "messages": [turn], "extract": False}
        request: dict[str, Any] = {"method": "POST", "url": f"{root}/memories", "json": {"memories": [memory]}}
        if text == "message":
            request = {"method": "POST", "url": f"{root}/messages", "json": batch}
        elif text == "correction" and len(self._known) > 1:
            changed = f"{root}/memories/{self._random.choice(self._known[1:])}"
            request = {"method": "PATCH", "url": changed, "json": {"importance": round(self._random.random(), 3)}}
        # A repeated request is answered from what is stored: it needs the rights of a new one.
        request["headers"] = {"Idempotency-Key": uuid.uuid4().hex}
        answer = await self._send(user, request)
        if answer.is_success:
            if not may_have_written():
                self._findings.add("spaces: a write of somebody who is no writer", f"{user}: {request}")
            self._known += [result["memory"]["id"] for result in answer.json().get("results", [])]
            await self._send(user, request)
        elif answer.status_code not in (403, 404, 409):
            self._findings.add(f"spaces: a write is answered {answer.status_code}", f"{request} → {answer.text[:300]}")


async def probe_space_isolation(
    services: Services, address: str, seconds: float, findings: Findings, seed: int
) -> None:
    """Probe a new space for a time; raise httpx.HTTPStatusError where its admin is refused."""
    tenant = f"t{uuid.uuid4().hex[:10]}"

    async def open_client(role: KeyRole, users: list[str] | None) -> httpx.AsyncClient:
        key = await services.keys.create(tenant, ApiKeyIn(name=role.value, role=role, users=users))
        return httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {key.key}"}, timeout=60)

    admin = await open_client(KeyRole.ADMIN, None)
    clients = {user: await open_client(KeyRole.AGENT, [user]) for user in (MEMBER, *CHANGING, STRANGER)}
    try:
        await SpaceProbe(admin, clients, findings, seed).run(seconds)
    finally:
        for client in (admin, *clients.values()):
            await client.aclose()
