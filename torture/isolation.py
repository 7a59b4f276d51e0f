"""Requests with another user's ids, cursors and names: no response holds their data, and nothing of theirs changes."""

from __future__ import annotations

import asyncio
import random
import string
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import hypothesis
import schemathesis
from hypothesis import given
from hypothesis import strategies as st

from graphmem.app.bootstrap import Services
from graphmem.neo4j.schema import RecordLabel
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.owners import Owner
from torture.findings import Findings, differences
from torture.fuzz_requests import HANG_SECONDS, METHODS, SETTINGS
from torture.hostile_values import INJECTIONS

USER = "mara"
"""The user whose data must stay hidden; another tenant has a user of the same id."""

NEIGHBOUR = "ines"
"""Another user of the same tenant."""

UNSTABLE = frozenset({"exported_at", "confidence", "access_count", "last_accessed_at", "strength", "retrieved_at"})
"""What reads of the user's own change in an export."""


@dataclass
class Victim:
    """A user: `mark` is part of their ids and names, `secret` of their texts, which no other caller may see."""

    owner: Owner
    mark: str
    secret: str
    client: httpx.AsyncClient
    known: list[str] = field(default_factory=list)
    """Ids, cursors and names, which another caller may have learned."""

    state: Any = None

    async def fill(self) -> None:
        """Store something of every kind, and remember what identifies it."""
        root = f"/v1/users/{self.owner.user_id}"
        mark, secret = self.mark, self.secret
        memories = [
            {"content": f"Knows {secret} {number}", "subject": {"name": f"Person {mark}"},
             "object": {"name": f"Place {mark}"}, "metadata": {"k": secret}, "domain": mark, "tags": [f"t-{secret}"],
             "source": {"session_id": f"s-{mark}", "message_ids": [f"m-{mark}-0"]}}
            for number in range(4)
        ]  # fmt: skip
        turns = [
            {"id": f"m-{mark}-{number}", "role": "user", "content": f"Tell {secret} {number}"} for number in range(4)
        ]
        session = {"session_id": f"s-{mark}", "messages": turns, "extract": False}
        posted = (await self.client.post(f"{root}/messages", json=session)).raise_for_status().json()
        saved = (await self.client.post(f"{root}/memories", json={"memories": memories})).raise_for_status().json()
        ids = [result["memory"]["id"] for result in saved["results"]]
        await self.client.patch(f"{root}/memories/{ids[0]}", json={"content": f"Corrected {secret}"})
        await self.client.post(f"{root}/messages/m-{mark}-0/feedback", json={"score": 2, "text": f"No {secret}"})
        proposal = {"action": "ASSOCIATE", "memory_ids": ids[:2]}
        body = {"user_id": self.owner.user_id, "proposals": [proposal], "wait": True}
        run = (await self.client.post("/v1/admin/consolidations", json=body)).raise_for_status().json()
        closed = await self.client.post(f"{root}/sessions/s-{mark}/summarize", json={})
        self.known = [*ids, f"s-{mark}", *(turn["id"] for turn in turns), run["id"], posted["session_id"]]
        self.known += [closed.json().get("id") or mark, *await self._cursors(root), *await self._entities(root)]
        self.state = await self.read_state()

    async def warm_caches(self) -> None:
        """Read what caches keep."""
        root = f"/v1/users/{self.owner.user_id}"
        await self.client.get(f"{root}/entities/lookup", params={"q": f"Person {self.mark}"})
        await self.client.post(f"{root}/search", json={"query": "Knows", "reinforce": False})
        await self.client.post(f"{root}/context", json={"question": "Who knows?"})

    async def read_state(self) -> Any:
        """Return the export without what reads change."""
        response = await self.client.get(f"/v1/users/{self.owner.user_id}/export")
        export = response.raise_for_status().json()
        export["records"] = [record for record in export["records"] if record["labels"] != [RecordLabel.CONTEXT_USE]]
        return _without_unstable(export)

    async def _cursors(self, root: str) -> list[str]:
        paths = ("/memories", f"/sessions/s-{self.mark}/messages", "/entities")
        pages = [await self.client.get(root + path, params={"limit": 1}) for path in paths]
        return [page.json()["next_cursor"] for page in pages]

    async def _entities(self, root: str) -> list[str]:
        items = (await self.client.get(f"{root}/entities")).json()["items"]
        return [value for item in items for value in (item["id"], item["name"])]


class IsolationProbe:
    """Sends generated requests as another caller, into which the victim's ids are put."""

    def __init__(
        self, openapi: Mapping[str, Any], address: str, victim: Victim, findings: Findings, *, seed: int | None = None
    ) -> None:
        self._schema = schemathesis.openapi.from_dict(dict(openapi))
        self._address = address
        self._victim = victim
        self._findings = findings
        self._seed = seed
        self.operations = [
            (path, method) for path, methods in openapi["paths"].items() for method in methods if method in METHODS
        ]

    def probe(self, name: str, key: str, user: str, cases: int, first: int) -> None:
        """Send requests with a key for a user: of every operation, or of every third one where cases are few."""
        operations = self.operations if cases >= len(self.operations) else self.operations[first % 3 :: 3]
        for path, method in operations:
            self._probe_operation(name, key, user, path, method, max(1, cases // len(operations)))

    def _probe_operation(self, name: str, key: str, user: str, path: str, method: str, cases: int) -> None:
        known = self._victim.known
        headers = {"Authorization": f"Bearer {key}"}

        @given(case=self._schema[path][method].as_strategy(), chance=st.integers(0, 2**32))
        @hypothesis.settings(max_examples=cases, **SETTINGS)
        def send(case: schemathesis.Case[Any], chance: int) -> None:
            borrow = random.Random(chance)
            for parameter in case.path_parameters or {}:
                case.path_parameters[parameter] = user if parameter == "user_id" else borrow.choice(known)
            if case.query:
                case.query = {key: _borrow(value, known, borrow) for key, value in case.query.items()}
            if isinstance(case.body, (dict, list)):
                case.body = _borrow(case.body, known, borrow)
            self._findings.count_case()
            response = case.call(base_url=self._address, headers=headers, timeout=HANG_SECONDS)
            label = f"{name}: {method} {path}"
            shown = f"{case.as_curl_command()} → {response.text[:300]}"
            if self._victim.secret in response.text:
                self._findings.add(f"{label}: data of another user", shown)
            # 501 says that the server under test has no provider of models.
            if response.status_code >= 500 and response.status_code != 501:
                self._findings.add(f"{label}: {response.status_code}", shown)

        (hypothesis.seed(self._seed)(send) if self._seed is not None else send)()


async def probe_isolation(
    services: Services,
    openapi: Mapping[str, Any],
    address: str,
    cases: int,
    findings: Findings,
    seed: int | None = None,
    injections: Sequence[str] = INJECTIONS,
) -> None:
    """Fill a user, attack them as a neighbour, as another tenant's user of the same id and as its admin, and compare.

    Raises httpx.HTTPStatusError when the victim's own writes fail.
    """
    tenant, other = f"t{uuid.uuid4().hex[:10]}", f"o{uuid.uuid4().hex[:10]}"

    async def key_of(of: str, role: KeyRole, users: list[str] | None) -> str:
        return (await services.keys.create(of, ApiKeyIn(name=role.value, role=role, users=users))).key

    admin_key = await key_of(tenant, KeyRole.ADMIN, None)
    headers = {"Authorization": f"Bearer {admin_key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
        victim = Victim(Owner(tenant, USER), _new_word(), _new_word(), client)
        await victim.fill()
        probe = IsolationProbe(openapi, address, victim, findings, seed=seed)
        callers = [
            ("neighbour", await key_of(tenant, KeyRole.AGENT, [NEIGHBOUR]), NEIGHBOUR),
            ("other tenant", await key_of(other, KeyRole.ADMIN, None), USER),
            ("bound agent", await key_of(tenant, KeyRole.AGENT, [NEIGHBOUR]), USER),
        ]
        for number, (name, key, user) in enumerate(callers):
            await victim.warm_caches()
            await asyncio.to_thread(probe.probe, name, key, user, cases // len(callers), number)
            for change in differences(victim.state, await victim.read_state()):
                findings.add(f"{name}: the victim's data has changed", change)
        await check_injections(client, victim, findings, injections)


async def check_injections(
    client: httpx.AsyncClient, victim: Victim, findings: Findings, injections: Sequence[str] = INJECTIONS
) -> None:
    """Put each injection string into every text field of a neighbour: it is stored as it is, or refused with 422."""
    root = f"/v1/users/{NEIGHBOUR}-{uuid.uuid4().hex[:6]}"
    for text in injections:
        memory: dict[str, Any] = {
            "content": f"Says {text}",
            "subject": {"name": text, "type": text[:60]},
            "object": {"name": text},
            "entities": [{"name": text}],
            "domain": text[:60],
            "source": {"session_id": text, "message_ids": [text]},
            "metadata": {text: text},
        }
        fields = [{key: value} for key, value in memory.items() if key != "content"]
        for body in [memory, *fields]:
            await _expect(client, "POST", f"{root}/memories", findings, {"memories": [{"content": text, **body}]})
        turn = {"role": "user", "content": text, "name": text, "intent": text, "metadata": {text: text}}
        await _expect(client, "POST", f"{root}/messages", findings, {"session_id": text, "messages": [turn]})
        for path in ("/memories", "/entities", "/entities/lookup"):
            params = {"q": text, "query": text, "keyword": text, "entity": text, "domain": text, "session_id": text}
            answer = await _expect(client, "GET", root + path, findings, params=params)
            _expect_no_secret(victim, path, text, answer, findings)
        for path, query in (("/search", "query"), ("/messages/search", "query"), ("/context", "question")):
            answer = await _expect(client, "POST", root + path, findings, {query: text})
            _expect_no_secret(victim, path, text, answer, findings)
    stored = (await client.get(f"{root}/memories", params={"limit": 200})).json()["items"]
    for memory in stored:
        if memory["content"] not in INJECTIONS and memory["content"].removeprefix("Says ") not in INJECTIONS:
            findings.add("injection: stored text differs", memory["content"])
    if not stored:
        findings.add("injection: nothing was stored", root)


async def _expect(
    client: httpx.AsyncClient, method: str, path: str, findings: Findings, body: Any = None, **options: Any
) -> httpx.Response:
    findings.count_case()
    response = await client.request(method, path, json=body, **options)
    if response.status_code not in (200, 202, 422):
        findings.add(f"injection: {method} {path.rpartition('/')[2]}: {response.status_code}", f"{body} {options}")
    return response


def _expect_no_secret(victim: Victim, path: str, text: str, response: httpx.Response, findings: Findings) -> None:
    if victim.secret in response.text:
        findings.add(f"injection: {path}: data of another user", text)


def _new_word() -> str:
    """Return a word of letters: digits could look like a secret."""
    return "".join(random.choices(string.ascii_lowercase, k=12))


def _borrow(value: Any, known: list[str], chance: random.Random) -> Any:
    """Return a value in which some texts are replaced with the victim's."""
    match value:
        case dict():
            return {key: _borrow(item, known, chance) for key, item in value.items()}
        case list():
            return [_borrow(item, known, chance) for item in value]
        case str() if chance.random() < 0.5:
            return chance.choice(known)
        case _:
            return value


def _without_unstable(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_unstable(item) for key, item in value.items() if key not in UNSTABLE}
        case list():
            return [_without_unstable(item) for item in value]
        case _:
            return value
