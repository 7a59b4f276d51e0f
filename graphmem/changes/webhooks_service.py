"""Operations on webhooks: create, list, delete."""

from __future__ import annotations

import uuid
from ipaddress import ip_address
from urllib.parse import urlsplit

from graphmem.changes.delivery_job import webhook_partition
from graphmem.changes.webhooks import StoredWebhook, WebhookStore
from graphmem.changes.webhooks_domain import (
    MAX_WEBHOOKS,
    CreatedWebhook,
    Webhook,
    WebhookIn,
    WebhookStatus,
    generate_secret,
    is_public_address,
)
from graphmem.jobs.runner import JobRunner
from graphmem.runtime.errors import Conflict, InvalidInput, NotFound
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

WATCH_SECONDS = 2.0
"""Seconds between two looks for changes to deliver."""


class WebhookService:
    """Operations on the webhooks of all tenants; `allow_private` permits HTTP and addresses that are not public."""

    def __init__(self, store: WebhookStore, jobs: JobRunner, clock: Clock, *, allow_private: bool = False) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock
        self._allow_private = allow_private

    async def create(self, tenant: str, request: WebhookIn, actor: str) -> CreatedWebhook:
        """Create a webhook; its secret is returned here only.

        Raises InvalidInput for an address that deliveries must not reach, Conflict when there are too many.
        """
        tenant = Owner(tenant, "").tenant
        if not self._allow_private and (problem := _find_address_problem(request.url)):
            raise InvalidInput(
                f"The webhook's address {problem}; for development, set GRAPHMEM_WEBHOOK_ALLOW_PRIVATE=true.",
                errors=[{"loc": ["url"], "msg": problem}],
            )
        if len(await self._store.list_of_tenant(tenant)) >= MAX_WEBHOOKS:
            raise Conflict(f"A tenant has at most {MAX_WEBHOOKS} webhooks: delete one first.")
        now = self._clock()
        webhook = Webhook(
            id=str(uuid.uuid4()),
            url=request.url,
            users=request.users,
            kinds=request.kinds,
            since=request.since or now,
            created_at=now,
            status=WebhookStatus.ACTIVE,
            last_delivered_at=None,
            last_status=None,
            last_error=None,
            failures=0,
            failing_since=None,
            disabled_at=None,
            disabled_reason=None,
        )
        secret = request.secret or generate_secret()
        await self._store.create(StoredWebhook(webhook, tenant, secret, checked_at=webhook.since), actor)
        return CreatedWebhook(**webhook.model_dump(), secret=secret)

    async def list(self, tenant: str) -> list[Webhook]:
        """Return the webhooks of a tenant without their secrets, oldest first."""
        return [webhook.view for webhook in await self._store.list_of_tenant(tenant)]

    async def delete(self, tenant: str, webhook_id: str) -> None:
        """Delete a webhook and its jobs; raise NotFound for one that is unknown or of another tenant."""
        if not await self._store.remove(tenant, webhook_id):
            raise NotFound("There is no such webhook.")
        await self._jobs.forget(webhook_partition(webhook_id))


def _find_address_problem(url: str) -> str | None:
    """Return why deliveries must not go to an address, as far as it shows; names are resolved when one is sent."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return "must begin with https://"
    try:
        is_public = is_public_address(str(ip_address(parts.hostname or "")))
    except ValueError:
        is_public = parts.hostname != "localhost"
    return None if is_public else "must be public"
