"""Random members, writes and reads of spaces give what a naive model says: no member, no read, by any path."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextRequest
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.runtime.errors import Forbidden, NotFound
from graphmem.runtime.times import utc_now
from graphmem.search.models import EntityListQuery, SearchQuery
from graphmem.tenants.access import ApiKey, KeyRole, make_local_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceIn, SpaceRole
from tests.conftest import examples

USERS = ("ann", "bob", "cy", "dora")
SPACES = ("atlas", "hermes", "zeus")
KEYS = ("free", "bound")
"""Ids of keys: one that reaches every space, and one that is bound to the first."""

STEPS = 30
TOPIC = "launch"


@dataclass
class Model:
    """Who is in which space, and which memories each of them and each user has, by id."""

    roles: dict[tuple[str, str], SpaceRole] = field(default_factory=dict)
    spaces: set[str] = field(default_factory=set)
    memories: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """The user who saved each memory, and its space."""

    def role(self, space: str, user: str, key: str) -> SpaceRole | None:
        """Return the role that a user has in a space with a key."""
        if space not in self.spaces or (key == "bound" and space != SPACES[0]):
            return None
        roles = [self.roles[space, member] for member in (user, f"key {key}") if (space, member) in self.roles]
        return max(roles, key=list(SpaceRole).index, default=None)

    def readable(self, user: str, key: str) -> set[str]:
        """Return the ids of the memories that a user reads with a key."""
        return {
            memory_id
            for memory_id, (writer, space) in self.memories.items()
            if (writer == user if space is None else self.role(space, user, key) is not None)
        }


class World:
    """The services and the model next to them."""

    def __init__(self, memory: Services, tenant: str, rng: random.Random) -> None:
        self.memory = memory
        self.tenant = tenant
        self.rng = rng
        self.model = Model()
        self.admin = make_local_key("admin", tenant)
        self.count = 0

    def key(self, name: str) -> ApiKey:
        """Return the key of a name."""
        spaces = [SPACES[0]] if name == "bound" else None
        return ApiKey(
            id=name, name=name, role=KeyRole.AGENT, users=None, spaces=spaces, created_at=utc_now(), tenant=self.tenant
        )

    async def step(self) -> None:
        """Do one random thing to both, and compare who may do it."""
        await self.rng.choice(
            [self.put, self.set_role, self.remove, self.save, self.save, self.save, self.patch, self.drop]
        )()

    async def put(self) -> None:
        """Create a space, or change it without its members."""
        space = self.rng.choice(SPACES)
        await self.memory.spaces.put(self.admin, space, SpaceIn(title=space.title()))
        self.model.spaces.add(space)

    async def set_role(self) -> None:
        """Give a user or a key a role."""
        space, role = self.rng.choice(SPACES), self.rng.choice(list(SpaceRole))
        user = self.rng.choice([*USERS, *USERS, "key free"])
        if space not in self.model.spaces:
            with pytest.raises(NotFound):
                await self.memory.spaces.set_member(self.admin, space, "ann", role)
            return
        owner = Owner.of_space(self.tenant, space)
        if user.startswith("key "):
            # The store of these keys is the test: none of them is in the database.
            row = {"member": f"{self.tenant} free", "properties": {"key": "free", "role": role.value}}
            await self.memory.components.graph.execute(
                "spaces.set_members", group_id=owner.group_id, rows=[row], now=utc_now()
            )
        else:
            await self.memory.spaces.set_member(self.admin, space, user, role)
        self.model.roles[space, user] = role

    async def remove(self) -> None:
        """Remove a member."""
        if self.model.roles:
            space, user = self.rng.choice(sorted(self.model.roles))
            await self.memory.spaces.remove_member(self.admin, space, user.removeprefix("key "))
            del self.model.roles[space, user]

    async def save(self) -> None:
        """Save a statement in a user's own memory or in a space."""
        user, key = self.rng.choice(USERS), self.rng.choice(KEYS)
        space = self.rng.choice([None, *SPACES])
        self.count += 1
        statement = MemoryIn(content=f"The {TOPIC} number {self.count} is ready", space=space)
        owner, caller = Owner(self.tenant, user), self.key(key)
        role = None if space is None else self.model.role(space, user, key)
        try:
            spaces = await self.memory.rights.find_groups(owner, caller, [space] if space else [], SpaceRole.WRITER)
            (result,) = await self.memory.memories.save(owner, [statement], spaces=spaces)
        except NotFound:
            assert space is not None
            assert role is None
        except Forbidden:
            assert role is SpaceRole.READER
        else:
            assert space is None or (role is not None and role.includes(SpaceRole.WRITER))
            assert result.memory
            assert result.memory.space == space
            self.model.memories[result.memory.id] = (user, space)

    async def patch(self) -> None:
        """Change a memory that somebody else may have saved."""
        if not self.model.memories:
            return
        user, key = self.rng.choice(USERS), self.rng.choice(KEYS)
        memory_id = self.rng.choice(sorted(self.model.memories))
        writer, space = self.model.memories[memory_id]
        scope = await self.memory.rights.read_scope(Owner(self.tenant, user), self.key(key))
        role = None if space is None else self.model.role(space, user, key)
        try:
            await self.memory.memories.patch(scope, memory_id, MemoryPatch(importance=self.rng.random()))
        except NotFound:
            assert memory_id not in self.model.readable(user, key)
        except Forbidden:
            assert role is SpaceRole.READER
        else:
            assert writer == user if space is None else role is not None and role.includes(SpaceRole.WRITER)

    async def drop(self) -> None:
        """Delete a space with everything in it, sometimes."""
        space = self.rng.choice(SPACES)
        if space not in self.model.spaces or self.rng.random() < 0.6:
            return
        result = await self.memory.forgetting.forget(Owner.of_space(self.tenant, space))
        assert result.residue == 0
        self.model.spaces.discard(space)
        self.model.roles = {place: role for place, role in self.model.roles.items() if place[0] != space}
        self.model.memories = {key: place for key, place in self.model.memories.items() if place[1] != space}

    async def compare(self) -> None:
        """Compare what a random user reads by every path with what the model says."""
        user, key = self.rng.choice(USERS), self.rng.choice(KEYS)
        readable = self.model.readable(user, key)
        own = {key for key in readable if self.model.memories[key][1] is None}
        scope = await self.memory.rights.read_scope(Owner(self.tenant, user), self.key(key))
        listed = await self.memory.memories.page(scope, ListFilters(limit=200))
        assert {memory.id for memory in listed.items} == readable
        found = await self.memory.retrieval.search(scope, SearchQuery(query=f"Which {TOPIC} is ready?", limit=100))
        assert {hit.memory.id for hit in found.results} == readable
        assert all(hit.memory.space == self.model.memories[hit.memory.id][1] for hit in found.results)
        looked_up = await self.memory.retrieval.lookup(scope, " ".join(USERS), 200)
        assert {memory.id for entity in looked_up.entities for memory in entity.memories} <= readable
        profile = await self.memory.retrieval.load_profile(scope)
        assert {memory.id for memories in profile.memories.values() for memory in memories} == readable
        context = await self.memory.contexts.build(scope, ContextRequest(question=f"Which {TOPIC} is ready?"))
        assert {memory.id for memory in context.memories} <= readable
        for entity in (await self.memory.entities.page(scope, EntityListQuery(limit=200))).items:
            assert (await self.memory.entities.get(scope, entity.id)).id == entity.id
        none = await self.memory.rights.read_scope(Owner(self.tenant, user), self.key(key), "none")
        assert {memory.id for memory in (await self.memory.memories.page(none, ListFilters(limit=200))).items} == own
        for memory_id in self.model.memories.keys() - readable:
            with pytest.raises(NotFound):
                await self.memory.memories.get(scope, memory_id)
            with pytest.raises(NotFound):
                await self.memory.memories.history(scope, memory_id)
            with pytest.raises(NotFound):
                await self.memory.contexts.list_uses(scope, memory_id, 5)


@pytest.mark.parametrize("seed", range(examples(0.025)))
async def test_reads_and_writes_of_spaces_are_those_of_their_members(memory: Services, tenant: str, seed: int) -> None:
    world = World(memory, tenant, random.Random(seed))
    for space in SPACES[:2]:
        await memory.spaces.put(world.admin, space, SpaceIn(title=space.title()))
        world.model.spaces.add(space)
    for _ in range(STEPS):
        await world.step()
        await world.compare()
