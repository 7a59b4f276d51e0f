"""Spaces in the graph, and operations on spaces and their members."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import Forbidden, InvalidInput, NotFound, UserBeingForgotten
from graphmem.runtime.times import Clock
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import (
    MAX_MEMBERS,
    MemberKind,
    Space,
    SpaceIn,
    SpaceMember,
    SpaceRole,
    check_space_id,
    highest_role,
    require_role,
)
from graphmem.tenants.tenant_settings import TrustService
from graphmem.tenants.trust import Effect, StatedKind


class SpaceStore:
    """The spaces of all tenants. Like a user, a space is the node of its group, so that writes lock it.

    `home` is the graph that holds the keys, if it is a different one.
    """

    def __init__(self, graph: Graph, home: Graph | None = None) -> None:
        self._graph = graph
        self._home = home or graph

    async def find(self, owner: Owner) -> Space | None:
        """Return a space; None if it does not exist or is being deleted."""
        rows = await self._graph.fetch("spaces.list_spaces", group_ids=[owner.group_id])
        return _space_from_row(rows[0]) if rows else None

    async def list_spaces(self, tenant: str) -> list[Space]:
        """Return the spaces of a tenant, sorted by id."""
        return [_space_from_row(row) for row in await self._graph.fetch("spaces.list_all", tenant=tenant)]

    async def exists_key(self, tenant: str, key_id: str) -> bool:
        """Return whether a tenant has an unrevoked key with this id."""
        return any(row["key"]["id"] == key_id for row in await self._home.fetch("keys.list_keys", tenant=tenant))

    async def put(self, owner: Owner, space: SpaceIn, now: datetime, kind: StatedKind = "user") -> None:
        """Create or change a space on behalf of a source; raise UserBeingForgotten if it is being deleted."""

        async def work(transaction: Transaction) -> None:
            rows = await transaction.run(
                "spaces.put",
                group_id=owner.group_id,
                tenant=owner.tenant,
                user_id=owner.user_id,
                title=space.title,
                about=space.about,
                source_kind=kind,
                now=now,
            )
            if not rows:
                raise UserBeingForgotten("The space is being deleted: wait until that has ended.", retry_after=1)
            if space.members is not None:
                names = [member.stored_name(owner.tenant) for member in space.members]
                await transaction.run("spaces.remove_others", group_id=owner.group_id, members=names)
                await transaction.run(
                    "spaces.set_members", group_id=owner.group_id, rows=_member_rows(owner, space.members), now=now
                )

        await self._graph.write(work)

    async def set_member(self, owner: Owner, member: SpaceMember, now: datetime) -> None:
        """Give a member a role, if the space still exists."""
        await self._graph.execute(
            "spaces.set_members", group_id=owner.group_id, rows=_member_rows(owner, [member]), now=now
        )

    async def remove_member(self, owner: Owner, member: SpaceMember) -> None:
        """Remove a member."""
        await self._graph.execute(
            "spaces.remove_member", group_id=owner.group_id, member=member.stored_name(owner.tenant)
        )


def _member_rows(owner: Owner, members: Sequence[SpaceMember]) -> list[Row]:
    return [
        {"member": member.stored_name(owner.tenant), "properties": member.model_dump(mode="json")} for member in members
    ]


def _space_from_row(row: Row) -> Space:
    stored = row["space"]
    members = [SpaceMember(user=user, key=key, role=SpaceRole(role)) for user, key, role in row["members"]]
    return Space(
        id=Owner.from_group_id(stored["group_id"]).space or "",
        title=stored["title"],
        about=stored["about"],
        members=sorted(members, key=lambda member: (member.user is None, member.id)),
        created_at=stored["created_at"],
        updated_at=stored["updated_at"],
        source_kind=stored["source_kind"] or "user",
    )


class SpaceService:
    """Creates, changes and lists spaces, on behalf of a key.

    A key's role in a space is the highest among its own and those of the users it gives access to; an admin's role is
    owner. Without a role, the space is not found. A key that is less trusted than the source of a space can only change
    it if the key itself is an owner.
    """

    def __init__(self, store: SpaceStore, trust: TrustService, policy: SecretPolicy, clock: Clock) -> None:
        self._store = store
        self._trust = trust
        self._policy = policy
        self._clock = clock

    async def put(self, caller: ApiKey, space: str, request: SpaceIn) -> tuple[Space, bool]:
        """Create or change a space; return it, and whether it is new.

        Raises NotFound if the caller has no role in the space, Forbidden if it is not an owner or may not add a member,
        and InvalidInput for a secret, for an unknown key, or if the caller would not be an owner.
        """
        owner = _owner_of(caller, space)
        if refused := self._policy.refused_classes(f"{request.title}\n{request.about}", caller.tenant):
            raise InvalidInput(f"The title or the description contains secrets ({', '.join(refused)}): leave them out.")
        known = await self._store.find(owner)
        if known is not None:
            await self._require_owner(caller, known)
        elif not caller.can_reach(space):
            raise Forbidden("This key is bound to other spaces.")
        before = known.members if known else []
        members = before if request.members is None else request.members
        await self._check_added(caller, [member for member in members if member not in before])
        if not caller.is_admin and role_of(caller, space, members) is not SpaceRole.OWNER:
            raise InvalidInput(
                "This key would not own the space: name one of its users, or the key itself, as an owner."
            )
        await self._store.put(owner, request, self._clock(), caller.changes_as or "user")
        return await self._get(owner), known is None

    async def list(self, caller: ApiKey) -> builtins.list[Space]:
        """Return the tenant's spaces in which a key has a role, sorted by id."""
        return [
            space
            for space in await self._store.list_spaces(caller.tenant)
            if role_of(caller, space.id, space.members) is not None
        ]

    async def get(self, caller: ApiKey, space: str) -> Space:
        """Return a space; raise NotFound if the caller has no role in it."""
        return await self._find(caller, space)

    async def find_role(self, caller: ApiKey, space: str) -> SpaceRole | None:
        """Return the role of a key in a space, or None."""
        found = await self._store.find(_owner_of(caller, space))
        return None if found is None else role_of(caller, space, found.members)

    async def set_member(
        self, caller: ApiKey, space: str, member_id: str, role: SpaceRole, kind: MemberKind | None = None
    ) -> Space:
        """Give a user or a key a role in a space; raise as `put` does."""
        owner = _owner_of(caller, space)
        known = await self._find(caller, space)
        await self._require_owner(caller, known)
        kind = kind or await self._kind_of(caller.tenant, known, member_id)
        member = SpaceMember.model_validate({kind.value: member_id, "role": role})
        if member not in known.members:
            if len(known.members) >= MAX_MEMBERS:
                raise InvalidInput(f"A space has up to {MAX_MEMBERS} members.")
            await self._check_added(caller, [member])
        await self._store.set_member(owner, member, self._clock())
        return await self._get(owner)

    async def remove_member(self, caller: ApiKey, space: str, member_id: str, kind: MemberKind | None = None) -> None:
        """Remove a member, effective from the next request in every process; raise NotFound for an unknown member."""
        owner = _owner_of(caller, space)
        known = await self._find(caller, space)
        await self._require_owner(caller, known)
        kind = kind or await self._kind_of(caller.tenant, known, member_id)
        member = next((member for member in known.members if getattr(member, kind.value) == member_id), None)
        if member is None:
            raise NotFound("The space has no such member.")
        await self._store.remove_member(owner, member)

    async def check_deletable(self, caller: ApiKey, space: str) -> Owner:
        """Return a space, as an owner, whose memories the caller may erase; raise as `put` does."""
        await self._require_owner(caller, await self._find(caller, space), stated_by=["user"])
        return _owner_of(caller, space)

    async def _require_owner(self, caller: ApiKey, space: Space, stated_by: Sequence[StatedKind] = ()) -> None:
        """Raise unless a key may change a space's title and members, and the memories of the sources `stated_by`."""
        _require_owner(caller, space)
        if any(member.key == caller.id for member in space.members if member.role is SpaceRole.OWNER):
            return
        order = await self._trust.get_order(caller.tenant)
        most = order.most_trusted([space.source_kind, *stated_by])
        order.require(Effect.HIDE, caller.changes_as, most, f"The space {space.id}")

    async def _find(self, caller: ApiKey, space: str) -> Space:
        found = await self._store.find(_owner_of(caller, space))
        if found is None or role_of(caller, space, found.members) is None:
            raise NotFound("There is no such space.")
        return found

    async def _get(self, owner: Owner) -> Space:
        found = await self._store.find(owner)
        if found is None:
            raise NotFound("There is no such space.")
        return found

    async def _kind_of(self, tenant: str, space: Space, member_id: str) -> MemberKind:
        """Return the kind of an id: the member's kind, else key if such a key exists, else user."""
        kinds = [
            MemberKind.USER if member.user else MemberKind.KEY for member in space.members if member.id == member_id
        ]
        if kinds:
            return kinds[0]
        return MemberKind.KEY if await self._store.exists_key(tenant, member_id) else MemberKind.USER

    async def _check_added(self, caller: ApiKey, added: Sequence[SpaceMember]) -> None:
        """Raise unless a caller may add these members: those it acts for, or any if it is an admin."""
        for member in added:
            member.stored_name(caller.tenant)
            if not caller.is_admin and not _acts_for(caller, member):
                raise Forbidden("This key has no access to a user or key that would become a member.")
            if member.key and not await self._store.exists_key(caller.tenant, member.key):
                raise InvalidInput(f"There is no key {member.key!r}: give the id of a key of this tenant.")


def role_of(caller: ApiKey, space: str, members: Sequence[SpaceMember]) -> SpaceRole | None:
    """Return the role of a key in a space with these members, or None."""
    if caller.is_admin:
        return SpaceRole.OWNER
    if not caller.can_reach(space):
        return None
    return highest_role(member.role for member in members if _acts_for(caller, member))


def _acts_for(caller: ApiKey, member: SpaceMember) -> bool:
    """Return whether a member is the key itself or a user it gives access to."""
    return member.key == caller.id if member.key is not None else caller.can_access(member.user)


def _require_owner(caller: ApiKey, space: Space) -> None:
    """Raise NotFound for a key without a role in a space, Forbidden for a role other than owner."""
    role = role_of(caller, space.id, space.members)
    if role is None:
        raise NotFound("There is no such space.")
    require_role(role, SpaceRole.OWNER)


def _owner_of(caller: ApiKey, space: str) -> Owner:
    """Return a space of the caller's tenant as an owner of memories; raise InvalidInput for an invalid id."""
    try:
        return Owner.of_space(caller.tenant, check_space_id(space))
    except ValueError as error:
        raise InvalidInput(f"The id of a space {error}.") from error
