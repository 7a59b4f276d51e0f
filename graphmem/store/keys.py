"""API keys in the graph, found by their hash."""

from __future__ import annotations

from datetime import datetime

from graphmem.domain.key import Key
from graphmem.store.driver import Graph, Row


class KeyStore:
    """Keys of all tenants; the keys themselves never come here, only their SHA-256 in hex."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def create(self, key: Key, digest: str) -> None:
        """Keep a new key under its hash."""
        properties = {**key.model_dump(), "role": key.role.value, "tenant": key.tenant, "hash": digest}
        await self._graph.execute("keys.create", properties=properties)

    async def by_hash(self, digest: str) -> Key | None:
        """Return the key of a hash, or None when it is unknown or revoked."""
        rows = await self._graph.fetch("keys.by_hash", hash=digest)
        return _key(rows[0]) if rows else None

    async def list(self, tenant: str) -> list[Key]:
        """Return a tenant's keys, oldest first."""
        return [_key(row) for row in await self._graph.fetch("keys.list", tenant=tenant)]

    async def revoke(self, tenant: str, key_id: str, now: datetime) -> bool:
        """Revoke a key at once; return whether there was one."""
        return bool(await self._graph.execute("keys.revoke", tenant=tenant, key_id=key_id, now=now))


def _key(row: Row) -> Key:
    stored = row["key"]
    return Key(
        id=stored["id"],
        name=stored["name"],
        role=stored["role"],
        users=stored.get("users"),
        created_at=stored["created_at"],
        tenant=stored["tenant"],
    )
