"""Rights: which memories a caller reads and writes. Only this module decides which groups a request may use."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Sequence
from contextvars import Context
from dataclasses import replace

import structlog

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.placed_graph import set_tenant
from graphmem.runtime.errors import NotFound, Unavailable
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import (
    GroupState,
    Reader,
    ReadScope,
    SpaceRole,
    SpaceSelection,
    highest_role,
    key_member,
    require_role,
    scope_of,
    user_member,
)

WAIT_SECONDS = 0.05
"""Seconds that a read waits for another process's transaction to be applied, which takes milliseconds.

Meanwhile, the next writer may hold the lock that shows it, for as long as its transaction takes.
"""

log = structlog.get_logger(__name__)


class Rights:
    """Determines which memories a caller reads and writes, from the key, the user and the memberships of both.

    Memberships are read again for each request, in the query that reads the group states, so that ending one takes
    effect with the next request in every process.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._applied_states = AppliedStates(graph)

    async def read_scope(self, owner: Owner, caller: ApiKey | None, spaces: SpaceSelection = "all") -> ReadScope:
        """Return the scope that a caller reads on behalf of a user, with the group states.

        A space is read if the user or the key is a member, and the key is not bound to others. Raises NotFound for a
        space id that the caller may not read.
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

    async def get_state(self, reader: Reader) -> ReadScope:
        """Return a reader's scope with its group states; existing states of a scope are kept, however old."""
        scope = scope_of(reader)
        if scope.states is not None:
            return scope
        # States of spaces are only read with their members: a scope with spaces already has its states.
        return replace(scope, states=await self._get_states(scope.owner, [], None))

    async def find_group(
        self, owner: Owner, caller: ApiKey | None, space: str | None, needed: SpaceRole = SpaceRole.READER
    ) -> Owner:
        """Return the owner of the memory that a user's request addresses: the user or a space.

        Raises NotFound for a space that the caller may not access, and Forbidden if the role is insufficient.
        """
        return owner if space is None else (await self.find_groups(owner, caller, [space], needed))[space]

    async def find_groups(
        self,
        owner: Owner,
        caller: ApiKey | None,
        spaces: Collection[str],
        needed: SpaceRole = SpaceRole.READER,
    ) -> dict[str, Owner]:
        """Return spaces by their ids; raise NotFound and Forbidden as `find_group` does."""
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
        return await self._applied_states.mark_pending([GroupState(*columns) for columns in found])

    async def close(self) -> None:
        """Stop waiting for writers in the background."""
        await self._applied_states.close()


def _allowed_spaces(owner: Owner, caller: ApiKey | None, chosen: list[Owner] | None) -> list[str] | None:
    """Return the group ids of spaces that may be read if the caller has a role in them; None means all."""
    bound = None if caller is None or caller.spaces is None else set(caller.spaces)
    if chosen is not None:
        return [space.group_id for space in chosen if bound is None or space.space in bound]
    return None if bound is None else [Owner.of_space(owner.tenant, space).group_id for space in sorted(bound)]


# Whether caches may store data for a revision whose transaction may not be applied yet


class AppliedStates:
    """Finds out whether the latest transactions of groups are fully applied (`neo4j.applied`)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._waits: dict[str, asyncio.Task[None]] = {}

    async def mark_pending(self, states: Sequence[GroupState]) -> tuple[GroupState, ...]:
        """Return the states, marked as pending if not applied yet; wait briefly for other processes' writes."""
        unknown = [state for state in states if not self._is_applied(state)]
        if unknown:
            await asyncio.wait([self._wait_for_writer(state.group_id) for state in unknown], timeout=WAIT_SECONDS)
        return tuple(state if self._is_applied(state) else state._replace(pending=uuid.uuid4().hex) for state in states)

    async def close(self) -> None:
        """Stop waiting."""
        waits = [*self._waits.values()]
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    def _is_applied(self, state: GroupState) -> bool:
        return self._graph.applied.include(state.group_id, state.life, state.revision)

    def _wait_for_writer(self, group_id: str) -> asyncio.Task[None]:
        """Wait in the background for as long as it takes; later reads use the result."""
        if group_id not in self._waits:
            # Not in a request's context, whose limits end with the request.
            wait = asyncio.create_task(self._find_out(Owner.from_group_id(group_id)), context=Context())
            self._waits[group_id] = wait
            wait.add_done_callback(lambda _: self._waits.pop(group_id))
        return self._waits[group_id]

    async def _find_out(self, owner: Owner) -> None:
        set_tenant(owner.tenant)
        try:
            await wait_for_writer(self._graph, owner)
        except Unavailable as error:
            log.info("whether a write is applied is not known yet", reason=error.detail)
        except Exception:  # nobody awaits the result, and without it caches are bypassed
            log.exception("whether a write is applied could not be found out")


async def wait_for_writer(graph: Graph, owner: Owner) -> None:
    """Wait until the transaction that holds a user's lock is fully applied."""

    async def work(transaction: Transaction) -> None:
        for row in await transaction.run("users.wait_for_writer", group_id=owner.group_id):
            transaction.revisions[owner.group_id] = (row["life"], row["revision"])

    await graph.write(work)
