"""Scopes: the groups of the graph that a request reads, and their states before anything else is read. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.runtime.errors import NotFound
from graphmem.tenants.owners import Owner, group_key
from graphmem.tenants.spaces import SpaceRole, require_role
from graphmem.tenants.trust import TrustOrder, parse_order


class GroupState(NamedTuple):
    """What reads need to know of a group first, in the order of the query `users.get_states`.

    No two lives of a user have the same `life`. `revision` is that of the latest transaction that locked the user,
    `removal_revision` that of the latest one that may have removed facts, entities or messages. `roles` are those that
    the caller has in a space, by the user and by the key; only spaces have a `title`. `trust_order` is that of the
    tenant, as JSON, and None for the default one. The query has no `unsettled`: where the latest transaction may not
    be applied in full (`neo4j.applied`), it is a text that no other state has.
    """

    group_id: str
    life: str
    write_version: int
    revision: int
    removal_revision: int
    persona: str | None
    last_write_at: int | None
    roles: list[str]
    title: str | None
    trust_order: str | None
    unsettled: str | None = None

    @property
    def settled_revision(self) -> int:
        """The latest revision that is applied in full; that of a transaction whose lock was free again for the next."""
        return self.revision if self.unsettled is None else self.revision - 1


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The memories that a request reads, an owner's own, the tenant's and spaces, and as of which revisions.

    Only `tenants.rights` makes one with spaces. `states` are the states of its groups when it was made, before anything
    else is read; a group to which nothing was written has none. None: they are not read yet (`Rights.get_state`).
    """

    owner: Owner
    spaces: tuple[tuple[Owner, SpaceRole], ...] = ()
    states: tuple[GroupState, ...] | None = None

    @property
    def group_ids(self) -> list[str]:
        """The ids of the groups that are read: the owner's own first."""
        groups = [self.owner, self.owner.tenant_global, *(space for space, _ in self.spaces)]
        return list(dict.fromkeys(owner.group_id for owner in groups))

    @property
    def group_keys(self) -> list[str]:
        """The keys of the groups that are read."""
        return [group_key(group_id) for group_id in self.group_ids]

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the spaces that are read, by their ids."""
        known = {state.group_id: state.title for state in self.groups}
        return {str(space.space): known.get(space.group_id) or str(space.space) for space, _ in self.spaces}

    @property
    def groups(self) -> tuple[GroupState, ...]:
        """The states of the groups to which something was written."""
        return self.states or ()

    @property
    def write_version(self) -> str:
        """The life and the write counter of each group, by which caches tell what they hold from what is stored.

        That of a state that is not settled is found in no cache.
        """
        return "".join(f"{group.life}:{group.write_version}{group.unsettled or ''};" for group in self.groups)

    @property
    def trust_order(self) -> TrustOrder:
        """The order of trust of the tenant."""
        return parse_order(self.groups[0].trust_order if self.groups else None)

    @property
    def persona(self) -> dict[str, float]:
        """The weights of the user; empty where there are none."""
        stored = next((group.persona for group in self.groups if group.group_id == self.owner.group_id), None)
        weights: dict[str, float] = json.loads(stored or "{}")
        return weights

    def find_space(self, space: str) -> Owner:
        """Return a space of the scope by its id; raise NotFound for another one."""
        found = next((owner for owner, _ in self.spaces if owner.space == space), None)
        if found is None:
            raise NotFound("There is no such space.")
        return found

    def require_space(self, space: str, needed: SpaceRole) -> Owner:
        """Return a space in which the caller has a role.

        Raises NotFound for one that the scope does not read, Forbidden where the role is not enough.
        """
        found = self.find_space(space)
        require_role(dict(self.spaces)[found], needed)
        return found

    def owner_of(self, group_id: str) -> Owner:
        """Return whose memory a group of the scope is; raise NotFound for another group."""
        if group_id not in self.group_ids:
            raise NotFound("There is no such memory.")
        return Owner.from_group_id(group_id)

    def may_write(self, owner: Owner) -> bool:
        """Return whether the caller may write what an owner of the scope has: all but spaces that it only reads."""
        role = dict(self.spaces).get(owner)
        return role is None or role.includes(SpaceRole.WRITER)

    def writable_owner_of(self, group_id: str) -> Owner:
        """Return whose memory a group of the scope is; raise Forbidden for a space that the caller only reads."""
        owner = self.owner_of(group_id)
        role = dict(self.spaces).get(owner)
        if role is not None:
            require_role(role, SpaceRole.WRITER)
        return owner


Reader = Owner | ReadScope
"""Whose memory a read covers: an owner stands for its own and the tenant's; a scope may hold spaces as well."""


def scope_of(reader: Reader) -> ReadScope:
    """Return the scope of a reader; that of an owner holds no space of which the owner is a member."""
    return ReadScope(reader) if isinstance(reader, Owner) else reader
