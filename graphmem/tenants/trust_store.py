"""The order of trust of each tenant in the graph, and what callers do with it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Forbidden
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import (
    DEFAULT_ORDER,
    SourceKind,
    Trust,
    TrustIn,
    TrustOrder,
    dump_order,
    parse_order,
)


async def find_trust_order(
    transaction: Transaction, tenant: str, kinds: Iterable[SourceKind | None] | None = None
) -> TrustOrder:
    """Return the order of a tenant in an open transaction.

    Sources of one kind are trusted alike by every order: with at most one of `kinds` the default one is returned.
    """
    if kinds is not None and len({kind for kind in kinds if kind}) < 2:
        return DEFAULT_ORDER
    rows = await transaction.run("trust.find", tenant=tenant)
    return parse_order(rows[0]["trust"]["order"] if rows else None)


class TrustStore:
    """One order a tenant."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> Trust:
        """Return the order of a tenant; the default one where it has none."""
        rows = await self._graph.fetch("trust.find", tenant=tenant)
        stored = rows[0]["trust"] if rows else {"order": None}
        groups = parse_order(stored["order"]).groups
        return Trust(**{**stored, "order": [list(group) for group in groups]})

    async def replace(self, tenant: str, order: TrustOrder, now: datetime, actor: str) -> None:
        """Set the order of a tenant."""
        await self._graph.execute("trust.replace", tenant=tenant, order=dump_order(order), now=now, actor=actor)

    async def remove(self, tenant: str) -> None:
        """Remove the order of a tenant; do nothing where it has none."""
        await self._graph.execute("trust.remove", tenant=tenant)


class TrustService:
    """Reads and sets the order of trust of tenants, and says what keys may claim."""

    def __init__(self, store: TrustStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, tenant: str) -> Trust:
        """Return the order of a tenant; the default one where it has none."""
        return await self._store.find(Owner(tenant, "").tenant)

    async def get_order(self, tenant: str) -> TrustOrder:
        """Return the order of a tenant, to compare sources by."""
        return TrustOrder(tuple(map(tuple, (await self.get(tenant)).order)))

    async def set(self, tenant: str, request: TrustIn, actor: str) -> Trust:
        """Set the order of a tenant, which applies to every later read and write; an empty one removes it."""
        tenant = Owner(tenant, "").tenant
        if request.order:
            await self._store.replace(tenant, request.to_order(), self._clock(), actor)
        else:
            await self._store.remove(tenant)
        return await self._store.find(tenant)

    async def check_claims(self, caller: ApiKey, kinds: Iterable[SourceKind | None]) -> None:
        """Raise Forbidden for a source that a key may not speak as: the operator, or one that is trusted more than it.

        An admin may name any source.
        """
        claimed = {kind for kind in kinds if kind is not None and kind != caller.source_kind}
        if not claimed or caller.is_admin:
            return
        order = await self.get_order(caller.tenant)
        for kind in sorted(claimed):
            if kind == "operator" or order.is_less(caller.source_kind, than=kind):
                raise Forbidden(
                    f"This key saves as {caller.source_kind} and cannot save as {kind}: leave source.kind out, or name "
                    "a source that is trusted as much or less."
                )
