"""Operations on API keys: authenticate, create, list, revoke."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid

from pydantic import SecretStr

from graphmem.runtime.errors import NotFound, Unauthenticated
from graphmem.runtime.times import MIN_TIME, Clock
from graphmem.tenants.access import (
    ApiKey,
    ApiKeyIn,
    CreatedApiKey,
    KeyRole,
)
from graphmem.tenants.failure_throttle import FailureThrottle
from graphmem.tenants.key_cache import KeyCache
from graphmem.tenants.keys import KeyStore
from graphmem.tenants.owners import DEFAULT_TENANT, Owner

BOOTSTRAP_KEY_ID = "first"
"""Id of the admin key from the setting `GRAPHMEM_API_KEY`, which is not stored."""


def hash_key(secret: str) -> str:
    """Return the SHA-256 of a key in hex, the only form in which keys are stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class KeyService:
    """Operations on the API keys of all tenants."""

    def __init__(
        self,
        store: KeyStore,
        clock: Clock,
        bootstrap_key: SecretStr | None = None,
        *,
        max_failures_per_minute: int = 0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._cache = KeyCache()
        self._failures = FailureThrottle(max_failures_per_minute)
        self._bootstrap_key_hash = (
            hash_key(bootstrap_key.get_secret_value()) if bootstrap_key and bootstrap_key.get_secret_value() else None
        )

    async def authenticate(self, secret: str, client: str = "") -> ApiKey:
        """Return the key of a secret that a client, named by its address, has sent.

        A key that another process revokes is accepted for up to `KEY_TTL_SECONDS` more. Raises Unauthenticated for an
        invalid key, and RateLimited for a client that sends many; keys that have been valid before are never throttled.
        """
        key_hash = hash_key(secret)
        if self._bootstrap_key_hash is not None and hmac.compare_digest(key_hash, self._bootstrap_key_hash):
            return ApiKey(
                id=BOOTSTRAP_KEY_ID,
                name="GRAPHMEM_API_KEY",
                role=KeyRole.ADMIN,
                users=None,
                created_at=MIN_TIME,
                tenant=DEFAULT_TENANT,
            )
        if not self._cache.is_known(key_hash):
            self._failures.check(client)
        key = await self._cache.get(key_hash, lambda: self._store.find_by_hash(key_hash))
        if key is None:
            self._failures.count_failure(client)
            raise Unauthenticated("The key is unknown or revoked: send a valid one as `Authorization: Bearer <key>`.")
        return key

    async def create(self, tenant: str, request: ApiKeyIn) -> CreatedApiKey:
        """Create a key of a tenant; its secret is returned here only."""
        secret = f"gm_{secrets.token_urlsafe(32)}"
        key = ApiKey(
            id=str(uuid.uuid4()),
            name=request.name,
            role=request.role,
            users=request.users,
            created_at=self._clock(),
            tenant=Owner(tenant, "").tenant,
        )
        await self._store.create(key, hash_key(secret))
        self._cache.clear()
        return CreatedApiKey(**key.model_dump(), tenant=key.tenant, key=secret)

    async def list(self, tenant: str) -> list[ApiKey]:
        """Return the keys of a tenant without their secrets, oldest first."""
        return await self._store.list_keys(tenant)

    async def revoke(self, tenant: str, key_id: str) -> None:
        """Revoke a key at once; raise NotFound for one that is unknown, revoked already or of another tenant."""
        revoked = await self._store.revoke(tenant, key_id, self._clock())
        self._cache.clear()
        if not revoked:
            raise NotFound("There is no such key.")
