"""Settings of a tenant in the graph: the instructions shown in prompts, and the order of trust."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

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
    """One text a tenant, which prompts show."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty ones where it has none."""
        rows = await self._graph.fetch("instructions.find", tenant=tenant)
        return Instructions(**rows[0]["instructions"]) if rows else Instructions()

    async def replace(self, tenant: str, text: str, now: datetime, actor: str) -> None:
        """Set the instructions of a tenant."""
        await self._graph.execute("instructions.replace", tenant=tenant, text=text, now=now, actor=actor)

    async def remove(self, tenant: str) -> None:
        """Remove the instructions of a tenant; do nothing where it has none."""
        await self._graph.execute("instructions.remove", tenant=tenant)


class InstructionService:
    """Reads and sets what a tenant wants remembered."""

    def __init__(self, store: InstructionStore, policy: SecretPolicy, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock

    async def get(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty ones where it has none."""
        return await self._store.find(Owner(tenant, "").tenant)

    async def set(self, tenant: str, request: InstructionsIn, actor: str) -> Instructions:
        """Set the instructions of a tenant, or remove them by an empty text; raise InvalidInput for a secret in it."""
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
    """Return the order of a tenant in an open transaction.

    Sources of one kind are trusted alike by every order: with at most one of `kinds` the default one is returned.
    """
    if kinds is not None and len({kind for kind in kinds if kind}) < 2:
        return DEFAULT_ORDER
    rows = await transaction.run("trust.find", tenant=tenant)
    return parse_order(rows[0]["trust"]["order"] if rows else None)


class TrustService:
    """Reads and sets the order of trust of tenants, and says what keys may claim."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def get(self, tenant: str) -> Trust:
        """Return the order of a tenant; the default one where it has none."""
        rows = await self._graph.fetch("trust.find", tenant=Owner(tenant, "").tenant)
        stored = rows[0]["trust"] if rows else {"order": None}
        groups = parse_order(stored["order"]).groups
        return Trust(**{**stored, "order": [list(group) for group in groups]})

    async def get_order(self, tenant: str) -> TrustOrder:
        """Return the order of a tenant, to compare sources by."""
        rows = await self._graph.fetch("trust.find", tenant=Owner(tenant, "").tenant)
        return parse_order(rows[0]["trust"]["order"] if rows else None)

    async def set(self, tenant: str, request: TrustIn, actor: str) -> Trust:
        """Set the order of a tenant, which applies to every later read and write; an empty one removes it."""
        tenant = Owner(tenant, "").tenant
        if request.order:
            order = dump_order(request.to_order())
            await self._graph.execute("trust.replace", tenant=tenant, order=order, now=self._clock(), actor=actor)
        else:
            await self._graph.execute("trust.remove", tenant=tenant)
        return await self.get(tenant)

    async def check_claims(self, caller: ApiKey, kinds: Iterable[SourceKind | None]) -> None:
        """Raise Forbidden for a source that a key may not speak as: the operator, or one that is trusted more than it.

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
