"""API keys in the graph, found by their hash."""

from __future__ import annotations

from datetime import datetime

from graphmem.neo4j.driver import Graph, Row
from graphmem.tenants.access import ApiKey


class KeyStore:
    """The keys of all tenants; the store receives the SHA-256 of a key in hex, never the key."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def create(self, key: ApiKey, key_hash: str) -> None:
        """Store a new key under its hash."""
        properties = {**key.model_dump(), "role": key.role.value, "tenant": key.tenant, "hash": key_hash}
        await self._graph.execute("keys.create", properties=properties)

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key of a hash, or None when it is unknown or revoked."""
        rows = await self._graph.fetch("keys.find_by_hash", hash=key_hash)
        return _key_from_row(rows[0]) if rows else None

    async def list_keys(self, tenant: str) -> list[ApiKey]:
        """Return a tenant's keys, oldest first."""
        return [_key_from_row(row) for row in await self._graph.fetch("keys.list_keys", tenant=tenant)]

    async def revoke(self, tenant: str, key_id: str, now: datetime) -> bool:
        """Revoke a key at once; return whether there was one."""
        return bool(await self._graph.execute("keys.revoke", tenant=tenant, key_id=key_id, now=now))


def _key_from_row(row: Row) -> ApiKey:
    stored = row["key"]
    return ApiKey(
        id=stored["id"],
        name=stored["name"],
        role=stored["role"],
        users=stored.get("users"),
        created_at=stored["created_at"],
        tenant=stored["tenant"],
    )
