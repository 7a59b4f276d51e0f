"""The types that tenants declare: their storage in the graph and the operations on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from graphmem.memories.declared_types import (
    DeclaredTypes,
    DeclaredTypesIn,
    UndeclaredType,
    check_type_filter,
    find_invalid_schemas,
    needs_declared_types,
    resolve_memory,
    resolve_patch,
)
from graphmem.memories.memory import MemoryIn, MemoryPatch, is_built_in_type
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import stored_values
from graphmem.runtime.times import Clock
from graphmem.runtime.validation import describe_field_errors
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner

_SECTIONS = ("memory_types", "entity_types")


class DeclaredTypeStore:
    """Stores one set of types per tenant."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> DeclaredTypes:
        """Return a tenant's declared types, empty if there are none."""
        rows = await self._graph.fetch("declared_types.find", tenant=tenant)
        if not rows:
            return DeclaredTypes()
        stored = rows[0]["types"]
        return DeclaredTypes(**{**stored, **{name: json.loads(stored[name]) for name in _SECTIONS}})

    async def replace(self, tenant: str, types: DeclaredTypesIn, now: datetime, actor: str) -> None:
        """Set the declared types of a tenant."""
        sections = types.model_dump(mode="json")
        await self._graph.execute(
            "declared_types.replace",
            tenant=tenant,
            memory_types=json.dumps(sections["memory_types"], ensure_ascii=False),
            entity_types=json.dumps(sections["entity_types"], ensure_ascii=False),
            now=now,
            actor=actor,
        )

    async def remove(self, tenant: str) -> None:
        """Remove a tenant's declared types, if any."""
        await self._graph.execute("declared_types.remove", tenant=tenant)


class DeclaredTypeService:
    """Reads and sets the declared types of tenants, and checks filters that name one."""

    def __init__(self, store: DeclaredTypeStore, policy: SecretPolicy, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock

    async def get(self, tenant: str) -> DeclaredTypes:
        """Return a tenant's declared types, empty if there are none."""
        return await self._store.find(Owner(tenant, "").tenant)

    async def set(self, tenant: str, request: DeclaredTypesIn, actor: str) -> DeclaredTypes:
        """Set a tenant's declared types; empty lists remove them.

        Memories keep a type that is no longer declared. Raises InvalidInput for secrets and invalid schemas.
        """
        tenant = Owner(tenant, "").tenant
        if refused := self._policy.refused_classes(stored_values(request), tenant):
            raise InvalidInput(f"The types contain secrets ({', '.join(refused)}): leave them out.")
        if errors := [{"loc": list(path), "msg": message} for path, message in find_invalid_schemas(request)]:
            raise InvalidInput(f"The types cannot be declared: {describe_field_errors(errors)}.", errors=errors)
        if request.memory_types or request.entity_types:
            await self._store.replace(tenant, request, self._clock(), actor)
        else:
            await self._store.remove(tenant)
        return await self._store.find(tenant)

    async def resolve(self, owner: Owner, memories: Sequence[MemoryIn]) -> list[MemoryIn | UndeclaredType]:
        """Return each statement with its declared type's base type, or why it fits no declared type."""
        if not any(map(needs_declared_types, memories)):
            return list(memories)
        declared = await self._store.find(owner.tenant)
        resolved: list[MemoryIn | UndeclaredType] = []
        for memory in memories:
            try:
                resolved.append(resolve_memory(declared, memory))
            except UndeclaredType as error:
                resolved.append(error)
        return resolved

    async def resolve_all(self, owner: Owner, memories: Sequence[MemoryIn]) -> list[MemoryIn]:
        """Return every statement as `resolve` does; raise InvalidInput if one fits no declared type."""
        resolved = await self.resolve(owner, memories)
        errors = [
            {"loc": ["memories", index, *memory.path], "msg": str(memory)}
            for index, memory in enumerate(resolved)
            if isinstance(memory, UndeclaredType)
        ]
        if errors:
            raise InvalidInput(f"The input cannot be used: {describe_field_errors(errors)}.", errors=errors)
        return [memory for memory in resolved if isinstance(memory, MemoryIn)]

    async def resolve_patch(self, owner: Owner, patch: MemoryPatch) -> MemoryPatch:
        """Return a correction as `resolve` does a statement; raise InvalidInput if it fits no declared type."""
        if patch.declared_type is None:
            return patch
        try:
            return resolve_patch(await self._store.find(owner.tenant), patch)
        except UndeclaredType as error:
            errors = [{"loc": list(error.path), "msg": str(error)}]
            raise InvalidInput(f"The input cannot be used: {describe_field_errors(errors)}.", errors=errors) from None

    async def check_filter(self, owner: Owner, types: Sequence[str] | None) -> None:
        """Raise InvalidInput if a type filter names a type that is neither built in nor declared."""
        if all(map(is_built_in_type, types or ())):
            return
        try:
            check_type_filter(await self._store.find(owner.tenant), types or ())
        except UndeclaredType as error:
            raise InvalidInput(
                f"A type to filter by {error}.", errors=[{"loc": ["types"], "msg": str(error)}]
            ) from None
