"""Rights: which memories a caller reads and writes. No other module says which groups a request may use."""

from __future__ import annotations

from collections.abc import Collection

from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import NotFound
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.scopes import GroupState, Reader, ReadScope, ReadState, scope_of
from graphmem.tenants.settling import StateSettling
from graphmem.tenants.spaces import SpaceRole, SpaceSelection, highest_role, key_member, require_role, user_member


class Rights:
    """Says which memories a caller reads and writes, from the key, the user and the memberships of both.

    Memberships are read anew for each request, in the query that reads the states of the groups, so that the end of one
    takes effect with the next request in every process.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._settling = StateSettling(graph)

    async def read_scope(self, owner: Owner, caller: ApiKey | None, spaces: SpaceSelection = "all") -> ReadScope:
        """Return what a caller reads on behalf of a user, with the states of the groups.

        A space is read if the user or the key is a member, and the key is not bound to others. Raises NotFound for a
        space by its id that is not read.
        """
        chosen = None if isinstance(spaces, str) else [Owner.of_space(owner.tenant, space) for space in spaces]
        members = [user_member(owner)]
        if caller is not None:
            members.append(key_member(owner.tenant, caller.id))
        allowed = _allowed_spaces(owner, caller, chosen)
        states = await self._get_states(owner, [] if spaces == "none" else members, allowed)
        scope = ReadScope(
            owner,
            tuple(
                (Owner.from_group_id(state.group_id), role)
                for state in states
                if (role := highest_role(map(SpaceRole, state.roles))) is not None
            ),
            states,
        )
        if chosen and not {*chosen} <= {space for space, _ in scope.spaces}:
            raise NotFound("There is no such space.")
        return scope

    async def get_state(self, reader: Reader) -> ReadState:
        """Return the states of the groups that a reader reads; those of a scope that has some are as old as it is."""
        scope = scope_of(reader)
        if scope.states is None:
            # Those of spaces come with their members only: a scope that holds spaces has its states.
            return ReadState(scope, await self._get_states(scope.owner, [], None))
        return ReadState(scope, scope.states)

    async def find_place(
        self, owner: Owner, caller: ApiKey | None, space: str | None, needed: SpaceRole = SpaceRole.READER
    ) -> Owner:
        """Return whose memory a request of a user is about: the user's own, or that of a space.

        Raises NotFound for a space to which the caller has no right, and Forbidden where the role is not enough.
        """
        return owner if space is None else (await self.find_places(owner, caller, [space], needed))[space]

    async def find_places(
        self,
        owner: Owner,
        caller: ApiKey | None,
        spaces: Collection[str],
        needed: SpaceRole = SpaceRole.READER,
    ) -> dict[str, Owner]:
        """Return spaces by their ids; raise NotFound and Forbidden as `find_place` does."""
        if not spaces:
            return {}
        scope = await self.read_scope(owner, caller, list(spaces))
        for _, role in scope.spaces:
            require_role(role, needed)
        return {str(space.space): space for space, _ in scope.spaces}

    async def _get_states(self, owner: Owner, members: list[str], allowed: list[str] | None) -> tuple[GroupState, ...]:
        found = await self._graph.fetch_value(
            "users.get_states", group_ids=ReadScope(owner).group_ids, members=members, allowed=allowed
        )
        return await self._settling.settle([GroupState(*columns) for columns in found])

    async def close(self) -> None:
        """Stop waiting for writers in the background."""
        await self._settling.close()


def _allowed_spaces(owner: Owner, caller: ApiKey | None, chosen: list[Owner] | None) -> list[str] | None:
    """Return the group ids of the spaces that may be read if the caller has a role in them; None: all."""
    bound = None if caller is None or caller.spaces is None else set(caller.spaces)
    if chosen is not None:
        return [space.group_id for space in chosen if bound is None or space.space in bound]
    return None if bound is None else [Owner.of_space(owner.tenant, space).group_id for space in sorted(bound)]
