"""API keys in the graph: creating, listing and revoking them, authenticating requests, and rate limits."""

from __future__ import annotations

import builtins
import hashlib
import hmac
import ipaddress
import math
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from cachetools import LRUCache
from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string
from pydantic import SecretStr

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import (
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    NotFound,
    RateLimited,
    Unauthenticated,
)
from graphmem.runtime.times import MIN_TIME, Clock
from graphmem.tenants.access import (
    KEY_PREFIX,
    ApiKey,
    ApiKeyIn,
    CreatedApiKey,
    KeyRole,
)
from graphmem.tenants.owners import DEFAULT_TENANT, Owner
from graphmem.tenants.spaces import key_member


class RateLimit:
    """A limit per name in a moving window; without a rate, there is no limit.

    `reason` is the start of the error message: what happened too often.
    """

    def __init__(self, rate: RateLimitItem | None, reason: str, cache_url: str | None = None) -> None:
        self._rate = rate
        self._reason = reason
        shared = cache_url and storage_from_string(f"async+{cache_url}", implementation="redispy")
        self._limiter = MovingWindowRateLimiter(shared or MemoryStorage())

    async def check(self, *names: str) -> None:
        """Raise RateLimited with the seconds to wait if the window is full, without counting."""
        if self._rate is not None and not await self._limiter.test(self._rate, *names):
            await self._refuse(self._rate, *names)

    async def hit(self, *names: str) -> None:
        """Count once; raise RateLimited with the seconds to wait if the window is full."""
        if self._rate is not None and not await self._limiter.hit(self._rate, *names):
            await self._refuse(self._rate, *names)

    async def _refuse(self, rate: RateLimitItem, *names: str) -> None:
        reset_time = (await self._limiter.get_window_stats(rate, *names)).reset_time
        raise RateLimited(
            f"{self._reason}: wait for the seconds in `Retry-After`.",
            retry_after=max(1, math.ceil(reset_time - time.time())),
        )


def _key_from_row(row: Row) -> ApiKey:
    stored = row["key"]
    return ApiKey(
        id=stored["id"],
        name=stored["name"],
        role=stored["role"],
        users=stored.get("users"),
        spaces=stored.get("spaces"),
        source_kind=stored.get("source_kind") or "user",
        created_at=stored["created_at"],
        tenant=stored["tenant"],
    )


KEY_TTL_SECONDS = 2.0
"""Seconds for which a lookup result is used."""

MAX_KEYS = 10_000
"""Maximum results kept, for valid and unknown keys each; the least recently used is dropped first."""


@dataclass(frozen=True, slots=True)
class _LookUp:
    key: ApiKey | None
    time: float


class KeyCache:
    """Lookup results by key hash.

    Expired results are kept to distinguish formerly valid keys from keys that never were.
    """

    def __init__(self) -> None:
        self._valid: LRUCache[str, _LookUp] = LRUCache(MAX_KEYS)
        self._unknown: LRUCache[str, _LookUp] = LRUCache(MAX_KEYS)
        self._expired_before = 0.0

    def is_known(self, key_hash: str) -> bool:
        """Return whether the last lookup of a hash found a valid key."""
        return key_hash in self._valid

    async def get(self, key_hash: str, look_up: Callable[[], Awaitable[ApiKey | None]]) -> ApiKey | None:
        """Return the key of a hash, from memory or with `look_up`; None if it is unknown."""
        cached = self._valid.get(key_hash) or self._unknown.get(key_hash)
        if cached and cached.time > max(self._expired_before, time.monotonic() - KEY_TTL_SECONDS):
            return cached.key
        started = time.monotonic()
        key = await look_up()
        self._valid.pop(key_hash, None)
        self._unknown.pop(key_hash, None)
        # The time before the query, so that a result from before a change does not outlive it.
        found = self._valid if key else self._unknown
        found[key_hash] = _LookUp(key, started)
        return key

    def last_valid(self, key_hash: str, max_age: float) -> ApiKey | None:
        """Return the key that the last lookup of a hash found, unless it is older than `max_age` seconds."""
        cached = self._valid.get(key_hash)
        is_usable = cached and cached.time > max(self._expired_before, time.monotonic() - max_age)
        return cached.key if cached and is_usable else None

    def clear(self) -> None:
        """Ignore all results of lookups that started before now."""
        self._expired_before = time.monotonic()


_IPV6_PREFIX = 64
"""Bits of an IPv6 address that identify a client, which may use all addresses with this prefix."""


def _client_key(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped:
        return address
    return str(ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False))


FIRST_KEY = ApiKey(
    id="first",
    name="GRAPHMEM_ADMIN_KEY",
    role=KeyRole.ADMIN,
    users=None,
    created_at=MIN_TIME,
    tenant=DEFAULT_TENANT,
)
"""The admin key from the setting that it is named after; not stored."""


def hash_key(secret: str) -> str:
    """Return the SHA-256 of a key in hex, the only form in which keys are stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class KeyService:
    """Operations on the API keys of all tenants. The graph stores a key's SHA-256 in hex, never the key.

    Keys are in the home graph; spaces with keys as members are in their tenant's graph.
    """

    def __init__(
        self,
        home: Graph,
        graph: Graph,
        clock: Clock,
        admin_key: SecretStr | None = None,
        *,
        max_failures_per_minute: int = 0,
    ) -> None:
        self._home = home
        self._graph = graph
        self._clock = clock
        self._cache = KeyCache()
        self._failures = RateLimit(
            RateLimitItemPerMinute(max_failures_per_minute) if max_failures_per_minute else None,
            "This address has sent too many unknown keys",
        )
        self._first_key_hash = (
            hash_key(admin_key.get_secret_value()) if admin_key and admin_key.get_secret_value() else None
        )

    async def check_first_key(self) -> None:
        """Raise ConfigurationError if the first admin key is already stored as a key with fewer rights."""
        known = await self._find_by_hash(self._first_key_hash) if self._first_key_hash else None
        if known is None or (known.is_admin and known.tenant == DEFAULT_TENANT):
            return
        raise ConfigurationError(
            f"GRAPHMEM_ADMIN_KEY holds the key {known.name!r} of role {known.role.value}, which would become an "
            "admin's: set it to a different secret, or unset it."
        )

    async def authenticate(self, secret: str, client: str = "", *, outage_seconds: float = 0.0) -> ApiKey:
        """Return the key of a secret sent by a client, which is identified by its address.

        A key revoked by another process is accepted for up to `KEY_TTL_SECONDS` more; while the database is
        unavailable, a key that was valid less than `outage_seconds` ago is accepted. Raises Unauthenticated for an
        invalid key, and RateLimited for a client that sends many of them; keys that have been valid before are never
        throttled.
        """
        key_hash = hash_key(secret)
        if self._first_key_hash is not None and hmac.compare_digest(key_hash, self._first_key_hash):
            return FIRST_KEY
        if not self._cache.is_known(key_hash):
            await self._failures.check(_client_key(client))
        try:
            key = await self._cache.get(key_hash, lambda: self._find_by_hash(key_hash))
        except DatabaseUnavailable:
            key = self._cache.last_valid(key_hash, outage_seconds)
            if key is None:
                raise
        if key is None:
            await self._failures.hit(_client_key(client))
            raise Unauthenticated("The key is unknown or revoked: send a valid one as `Authorization: Bearer <key>`.")
        return key

    async def create(self, tenant: str, request: ApiKeyIn) -> CreatedApiKey:
        """Create a key for a tenant; its secret is returned only here."""
        secret = f"{KEY_PREFIX}{secrets.token_urlsafe(32)}"
        key = ApiKey(
            id=str(uuid.uuid4()),
            name=request.name,
            role=request.role,
            users=request.users,
            spaces=request.spaces,
            source_kind=request.source_kind,
            created_at=self._clock(),
            tenant=Owner(tenant, "").tenant,
        )
        properties = {**key.model_dump(), "role": key.role.value, "tenant": key.tenant, "hash": hash_key(secret)}
        await self._home.execute("keys.create", properties=properties)
        self._cache.clear()
        return CreatedApiKey(**key.model_dump(), tenant=key.tenant, key=secret)

    async def list(self, tenant: str) -> builtins.list[ApiKey]:
        """Return a tenant's keys without their secrets, oldest first, including the first admin key."""
        first = [FIRST_KEY] if self._first_key_hash and tenant == DEFAULT_TENANT else []
        return [*first, *map(_key_from_row, await self._home.fetch("keys.list_keys", tenant=tenant))]

    async def forget_user(self, owner: Owner, now: datetime) -> int:
        """Remove a user from the keys that name them, at once; revoke keys that name nobody else; return the count."""
        rows = await self._home.execute("keys.forget_user", tenant=owner.tenant, user_id=owner.user_id, now=now)
        for row in rows:
            if row["is_revoked"]:
                await self._graph.execute("spaces.remove_key", member=key_member(owner.tenant, row["id"]))
        self._cache.clear()
        return len(rows)

    async def revoke(self, tenant: str, key_id: str) -> None:
        """Revoke a key at once; raise NotFound if it is unknown, already revoked or another tenant's.

        Raises Conflict for the first admin key, which is set in the server's settings.
        """
        if self._first_key_hash and key_id == FIRST_KEY.id:
            raise Conflict("This key is the server's GRAPHMEM_ADMIN_KEY: unset that and start the server again.")
        revoked = await self._home.execute("keys.revoke", tenant=tenant, key_id=key_id, now=self._clock())
        if revoked:
            await self._graph.execute("spaces.remove_key", member=key_member(tenant, key_id))
        self._cache.clear()
        if not revoked:
            raise NotFound("There is no such key.")

    async def _find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key of a hash, or None if it is unknown or revoked."""
        rows = await self._home.fetch("keys.find_by_hash", hash=key_hash)
        return _key_from_row(rows[0]) if rows else None
