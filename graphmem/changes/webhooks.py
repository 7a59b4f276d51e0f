"""Webhooks in the graph: their addresses, how their deliveries go, and how far they are with each user."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from graphmem.changes.models import ChangeKind
from graphmem.changes.webhooks_domain import Webhook, WebhookStatus
from graphmem.neo4j.driver import Graph, Row, Transaction
from graphmem.runtime.errors import NotFound, UserBeingForgotten
from graphmem.tenants.owners import Owner
from graphmem.tenants.user_lock import lock_user


@dataclass(frozen=True, slots=True)
class StoredWebhook:
    """A webhook with what only deliveries need; `checked_at` is the time up to which everything was delivered."""

    view: Webhook
    tenant: str
    secret: str
    checked_at: datetime

    @property
    def id(self) -> str:
        """The id of the webhook."""
        return self.view.id


@dataclass(frozen=True, slots=True)
class PendingUser:
    """A user with changes that a webhook may have yet to deliver, those after `at` and `key`."""

    owner: Owner
    last_write_at: datetime
    at: datetime | None
    key: str | None


@dataclass(frozen=True, slots=True)
class WebhookPosition:
    """The last change of a user that was delivered with a `status` at `delivered_at`, or left out without them.

    `complete_until` is the time of the user's latest write where nothing after it is left to deliver.
    """

    at: datetime
    key: str | None
    complete_until: datetime | None = None
    delivered_at: datetime | None = None
    status: int | None = None


class WebhookStore:
    """The webhooks of all tenants."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def create(self, webhook: StoredWebhook, actor: str) -> None:
        """Store a new webhook."""
        view = webhook.view.model_dump(exclude={"status"})
        properties = {
            **view,
            "kinds": None if webhook.view.kinds is None else [kind.value for kind in webhook.view.kinds],
            "tenant": webhook.tenant,
            "secret": webhook.secret,
            "checked_at": webhook.checked_at,
            "created_by": actor,
        }
        await self._graph.execute("webhooks.create", properties=properties)

    async def find(self, webhook_id: str) -> StoredWebhook | None:
        """Return a webhook, or None."""
        rows = await self._graph.fetch("webhooks.find", webhook_id=webhook_id)
        return _webhook_from_row(rows[0]) if rows else None

    async def list_of_tenant(self, tenant: str) -> list[StoredWebhook]:
        """Return the webhooks of a tenant, oldest first."""
        return [_webhook_from_row(row) for row in await self._graph.fetch("webhooks.list_of_tenant", tenant=tenant)]

    async def list_enabled(self) -> list[StoredWebhook]:
        """Return the webhooks of all tenants that are not disabled."""
        return [_webhook_from_row(row) for row in await self._graph.fetch("webhooks.list_enabled")]

    async def remove(self, tenant: str, webhook_id: str) -> bool:
        """Remove a webhook; return whether there was one."""
        return bool(await self._graph.execute("webhooks.remove", tenant=tenant, webhook_id=webhook_id))

    async def list_behind(self, webhook: StoredWebhook, changed_after: datetime, limit: int) -> list[PendingUser]:
        """Return users who were written since that time and since the webhook was last up to date with them."""
        rows = await self._graph.fetch(
            "webhooks.list_behind",
            webhook_id=webhook.id,
            tenant=webhook.tenant,
            user_ids=webhook.view.users,
            changed_after=changed_after,
            limit=limit,
        )
        return [
            PendingUser(Owner.from_group_id(row["group_id"]), row["last_write_at"], row["at"], row["key"])
            for row in rows
        ]

    async def advance(self, webhook_id: str, user: PendingUser, position: WebhookPosition) -> bool:
        """Store the position of a webhook in the changes of a user; return False when either is gone."""

        async def work(transaction: Transaction) -> bool:
            # The lock refuses users who are being forgotten, so that no position of theirs is left behind.
            await lock_user(transaction, user.owner, position.at, count=0)
            rows = await transaction.run(
                "webhooks.advance",
                webhook_id=webhook_id,
                group_id=user.owner.group_id,
                **asdict(position),
            )
            return bool(rows)

        with suppress(NotFound, UserBeingForgotten):
            return await self._graph.write(work)
        return False

    async def record_failure(
        self, webhook_id: str, status: int | None, error: str, now: datetime
    ) -> tuple[datetime, int]:
        """Store that a delivery failed; return since when deliveries fail, and how many have failed since."""
        rows = await self._graph.execute(
            "webhooks.record_failure", webhook_id=webhook_id, status=status, error=error, now=now
        )
        return (rows[0]["failing_since"], rows[0]["failures"]) if rows else (now, 1)

    async def record_complete(self, webhook_id: str, checked_at: datetime) -> None:
        """Store that everything written before a time was delivered."""
        await self._graph.execute("webhooks.record_complete", webhook_id=webhook_id, checked_at=checked_at)

    async def disable(self, webhook_id: str, reason: str, now: datetime) -> None:
        """Disable a webhook for a reason."""
        await self._graph.execute("webhooks.disable", webhook_id=webhook_id, reason=reason, now=now)


def _webhook_from_row(row: Row) -> StoredWebhook:
    stored: dict[str, Any] = row["webhook"]
    kinds = stored.get("kinds")
    view = Webhook(
        **{name: stored.get(name) for name in Webhook.model_fields if name not in ("kinds", "status")},
        kinds=None if kinds is None else [ChangeKind(kind) for kind in kinds],
        status=_status_of(stored),
    )
    return StoredWebhook(view, stored["tenant"], stored["secret"], stored["checked_at"])


def _status_of(stored: dict[str, Any]) -> WebhookStatus:
    if stored.get("disabled_at"):
        return WebhookStatus.DISABLED
    return WebhookStatus.FAILING if stored.get("failing_since") else WebhookStatus.ACTIVE
