"""Operations on the custom instructions of tenants."""

from __future__ import annotations

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.times import Clock
from graphmem.secrets.policy import SecretPolicy
from graphmem.tenants.instructions import Instructions, InstructionsIn
from graphmem.tenants.instructions_store import InstructionStore
from graphmem.tenants.owners import Owner


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
