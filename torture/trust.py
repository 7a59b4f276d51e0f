"""Random writes of less trusted sources about what the user stated: no read of the user's changes.

The naive model is the state in which the user left the memory: whatever others write, on every path, the user's
memories stay as they are, except for what a retrieval changes, and what contradicts them is contested.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessageIn, MessagesIn
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.runtime.errors import Conflict, Forbidden, GraphmemError, InvalidInput, NotFound
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import StatedKind
from graphmem.user_data.models import ImportFormat

LESSER: tuple[StatedKind, ...] = ("document", "assistant", "tool", "web")
"""The sources that attack: all that are trusted less than the user and no import of the user's own."""

PLACES = ("Lund", "Oslo", "Turin")
PEOPLE = ("Carol", "Bob")
THINGS = ("tea", "maps", "jazz")
REFUSALS = (Conflict, Forbidden, InvalidInput, NotFound)
VOLATILE = frozenset({"strength", "last_accessed_at", "access_count", "updated_at", "confidence"})
"""What a retrieval changes, and so may a repetition."""


class TrustWorld:
    """A user whose memories others attack; `expected` is what the user reads, `log` what was tried."""

    def __init__(self, services: Services, owner: Owner, rng: random.Random) -> None:
        self._services = services
        self._owner = owner
        self._rng = rng
        self._own: list[str] = []
        self._others: list[str] = []
        self.expected: dict[str, Any] = {}
        self.log: list[str] = []

    async def fill(self) -> None:
        """Let the user state things of every kind."""
        statements = [self._home("Carol", "Lund", single_valued=True), self._home("Bob", "Oslo", single_valued=True)]
        statements += [MemoryIn.model_validate({"content": f"Carol likes {what}", "subject": {"name": "Carol"}})
                       for what in THINGS]  # fmt: skip
        statements[-1] = statements[-1].model_copy(update={"immutable": True})
        saved = await self._services.memories.save(self._owner, statements, kind="user")
        self._own = [result.memory.id for result in saved if result.memory]
        self.expected = await self.read()

    async def read(self) -> dict[str, Any]:
        """Return what the user reads of the own memories, by every way that others could change."""
        page = await self._services.memories.page(self._owner, ListFilters(min_trust="user", limit=200))
        by_name = {
            name: sorted(
                memory.id
                for memory in (
                    await self._services.memories.page(
                        self._owner, ListFilters(entity=name, min_trust="user", limit=200)
                    )
                ).items
            )
            for name in PEOPLE
        }
        histories = {
            memory_id: len(await self._services.memories.history(self._owner, memory_id)) for memory_id in self._own
        }
        return {"memories": {one.id: _lasting(one) for one in page.items}, "named": by_name, "versions": histories}

    async def attack(self) -> None:
        """Let a less trusted source do one thing; what is refused is not done."""
        verbs: list[Callable[[StatedKind], Awaitable[None]]] = [
            self._save, self._save, self._save, self._alias, self._patch, self._delete, self._revert, self._resolve,
            self._supersede, self._repeat, self._import_records, self._import_graphiti, self._say,
        ]  # fmt: skip
        verb, kind = self._rng.choice(verbs), self._rng.choice(LESSER)
        self.log.append(f"{verb.__name__} as {kind}")
        try:
            await verb(kind)
        except REFUSALS as error:
            self.log[-1] += f": {type(error).__name__}"

    def _home(self, name: str, place: str, **fields: Any) -> MemoryIn:
        return MemoryIn.model_validate(
            {
                "content": f"{name} lives in {place}",
                "subject": {"name": name, "type": "Person"},
                "predicate": "LIVES_IN",
                "object": {"name": place, "type": "Place"},
                **fields,
            }
        )

    def _random_home(self) -> MemoryIn:
        choose, fields = self._rng.choice, dict[str, Any]()
        if self._rng.random() < 0.5:
            fields["valid_at"] = choose(["2019-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2030-01-01T00:00:00Z"])
        flags = {"single_valued": choose([True, False]), "immutable": choose([True, False])}
        return self._home(choose(PEOPLE), choose(PLACES), importance=choose([0.1, 1.0]), **flags, **fields)

    async def _store(self, kind: StatedKind, memory: MemoryIn) -> None:
        for result in await self._services.memories.save(self._owner, [memory], kind=kind):
            if result.memory and result.memory.id not in self._own:
                self._others.append(result.memory.id)

    async def _save(self, kind: StatedKind) -> None:
        await self._store(kind, self._random_home())

    async def _alias(self, kind: StatedKind) -> None:
        name, other = self._rng.sample(PEOPLE, 2)
        thief = {"name": name, "type": "Person", "aliases": [other, self._owner.user_id]}
        await self._store(kind, MemoryIn.model_validate({"content": f"{name} sells maps", "subject": thief}))

    async def _repeat(self, kind: StatedKind) -> None:
        what = self._rng.choice(THINGS)
        louder = {"content": f"Carol likes {what}", "subject": {"name": "Carol"}, "importance": 1.0, "tags": ["loud"]}
        await self._store(kind, MemoryIn.model_validate({**louder, "metadata": {"url": "x"}, "immutable": True}))

    async def _supersede(self, kind: StatedKind) -> None:
        replaced = {"supersedes": [self._rng.choice(self._own)], "associations": [self._rng.choice(self._own)]}
        await self._store(kind, MemoryIn.model_validate({"content": "Carol likes chess", **replaced}))

    async def _patch(self, kind: StatedKind) -> None:
        change = self._rng.choice(
            [
                {"confidence": 0.5}, {"importance": 0.0}, {"domain": "travel"}, {"tags": ["x"]}, {"metadata": {"k": 1}},
                {"content": "Carol likes golf"}, {"invalid_at": "2020-01-01T00:00:00Z"}, {"type": "plan"},
                {"expires_at": "2020-01-01T00:00:00Z"}, {"associations": []},
            ]
        )  # fmt: skip
        patch = MemoryPatch.model_validate(change)
        changed = await self._services.memories.patch(self._owner, self._rng.choice(self._own), patch, kind=kind)
        self._others += [changed.id] if changed.id not in self._own else []

    async def _delete(self, kind: StatedKind) -> None:
        await self._services.memories.delete(self._owner, self._rng.choice(self._own), kind=kind)

    async def _revert(self, kind: StatedKind) -> None:
        target = self._rng.choice([*self._own, *self._others])
        await self._services.memories.revert(self._owner, target, kind=kind)

    async def _resolve(self, kind: StatedKind) -> None:
        if self._others:
            target = self._rng.choice(self._others)
            await self._services.memories.resolve(self._owner, target, holds=self._rng.random() < 0.5, kind=kind)

    async def _import(self, kind: StatedKind, document: Any, source_format: ImportFormat) -> None:
        raw = json.dumps(document).encode()
        await self._services.imports.import_(self._owner, raw, source_format=source_format, kind=kind)

    async def _import_records(self, kind: StatedKind) -> None:
        record = {"id": self._rng.choice(self._own), "content": "Carol likes golf", "active": self._rng.random() < 0.5}
        await self._import(kind, {"records": [record]}, ImportFormat.RECORDS)

    async def _import_graphiti(self, kind: StatedKind) -> None:
        nodes = [{"uuid": name, "name": name, "labels": ["Entity"], "summary": f"{kind} says"} for name in
                 ("Carol", "Turin")]  # fmt: skip
        edge = {"uuid": f"e-{kind}", "name": "LIVES_IN", "fact": "Carol lives in Turin", "source_node_uuid": "Carol",
                "target_node_uuid": "Turin", "created_at": "2024-01-01T00:00:00Z"}  # fmt: skip
        await self._import(kind, {"nodes": nodes, "edges": [edge]}, ImportFormat.GRAPHITI)

    async def _say(self, kind: StatedKind) -> None:
        turn = MessageIn.model_validate({"role": "user", "name": "Carol", "content": "I live in Turin."})
        batch = MessagesIn(session_id="s", messages=[turn], extract=False)
        await self._services.messages.add(self._owner, batch, sent_as=kind)


def _lasting(memory: Memory) -> dict[str, Any]:
    return memory.model_dump(mode="json", exclude=set(VOLATILE))


async def probe_trust(services: Services, tenant: str, seeds: int, findings: Any) -> int:
    """Attack one user a seed, record what changed of the user's, and return how many things were tried."""
    tried = 0
    for seed in range(seeds):
        world = TrustWorld(services, Owner(tenant, f"trust-{seed}"), random.Random(seed))
        await world.fill()
        for _ in range(30):
            try:
                await world.attack()
            except GraphmemError as error:
                findings.add("trust", f"{world.log[-1]}: {error}")
            tried += 1
            if await world.read() != world.expected:
                findings.add("trust", f"seed {seed}: {world.log[-1]} changed what the user reads")
                break
    return tried
