"""A tenant's settings in the graph: the instructions shown in prompts, and the order of trust."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Forbidden, InvalidInput
from graphmem.runtime.times import Clock
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Instructions, InstructionsIn, Owner
from graphmem.tenants.trust import (
    DEFAULT_ORDER,
    Effect,
    SourceKind,
    Trust,
    TrustIn,
    TrustOrder,
    dump_order,
    parse_order,
)


class InstructionStore:
    """One text per tenant, shown in prompts."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty if there are none."""
        rows = await self._graph.fetch("instructions.find", tenant=tenant)
        return Instructions(**rows[0]["instructions"]) if rows else Instructions()

    async def replace(self, tenant: str, text: str, now: datetime, actor: str) -> None:
        """Set the instructions of a tenant."""
        await self._graph.execute("instructions.replace", tenant=tenant, text=text, now=now, actor=actor)

    async def remove(self, tenant: str) -> None:
        """Remove the instructions of a tenant, if any."""
        await self._graph.execute("instructions.remove", tenant=tenant)


class InstructionService:
    """Reads and sets a tenant's instructions."""

    def __init__(self, store: InstructionStore, policy: SecretPolicy, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock

    async def get(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty if there are none."""
        return await self._store.find(Owner(tenant, "").tenant)

    async def set(self, tenant: str, request: InstructionsIn, actor: str) -> Instructions:
        """Set a tenant's instructions; an empty text removes them. Raises InvalidInput if they contain a secret."""
        tenant, text = Owner(tenant, "").tenant, request.text.strip()
        if refused := self._policy.refused_classes(text, tenant):
            raise InvalidInput(f"The instructions contain secrets ({', '.join(refused)}): leave them out.")
        if text:
            await self._store.replace(tenant, text, self._clock(), actor)
        else:
            await self._store.remove(tenant)
        return await self._store.find(tenant)


async def find_trust_order(
    transaction: Transaction, tenant: str, kinds: Iterable[SourceKind | None] | None = None
) -> TrustOrder:
    """Return a tenant's order of trust in an open transaction.

    Every order trusts sources of one kind equally, so with fewer than two `kinds` the default order is returned.
    """
    if kinds is not None and len({kind for kind in kinds if kind}) < 2:
        return DEFAULT_ORDER
    rows = await transaction.run("trust.find", tenant=tenant)
    return parse_order(rows[0]["trust"]["order"] if rows else None)


class TrustService:
    """Reads and sets tenants' orders of trust, and checks which sources keys may claim."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def get(self, tenant: str) -> Trust:
        """Return a tenant's order of trust, or the default order."""
        rows = await self._graph.fetch("trust.find", tenant=Owner(tenant, "").tenant)
        stored = rows[0]["trust"] if rows else {"order": None}
        groups = parse_order(stored["order"]).groups
        fields: dict[str, Any] = {**stored, "order": [list(group) for group in groups]}
        return Trust(**fields)

    async def get_order(self, tenant: str) -> TrustOrder:
        """Return a tenant's order of trust, for comparing sources."""
        rows = await self._graph.fetch("trust.find", tenant=Owner(tenant, "").tenant)
        return parse_order(rows[0]["trust"]["order"] if rows else None)

    async def set(self, tenant: str, request: TrustIn, actor: str) -> Trust:
        """Set a tenant's order of trust for all later reads and writes; an empty order removes it."""
        tenant = Owner(tenant, "").tenant
        if request.order:
            order = dump_order(request.to_order())
            await self._graph.execute("trust.replace", tenant=tenant, order=order, now=self._clock(), actor=actor)
        else:
            await self._graph.execute("trust.remove", tenant=tenant)
        return await self.get(tenant)

    async def check_claims(self, caller: ApiKey, kinds: Iterable[SourceKind | None]) -> None:
        """Raise Forbidden for a source that a key may not claim: the operator, or one more trusted than its own.

        An admin may name any source.
        """
        claimed = {kind for kind in kinds if kind is not None and kind != caller.source_kind}
        if not claimed or caller.is_admin:
            return
        order = await self.get_order(caller.tenant)
        for kind in sorted(claimed):
            if kind == "operator" or not order.permits(Effect.QUOTE_AS, caller.source_kind, kind):
                raise Forbidden(
                    f"This key saves as {caller.source_kind} and cannot save as {kind}: leave source.kind out, or name "
                    "a source that is trusted as much or less."
                )
