"""Webhooks in the graph, and the jobs that deliver changes to them in order."""

from __future__ import annotations

import asyncio
import builtins
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from graphmem.changes.feed import ChangeStore
from graphmem.changes.models import (
    MAX_WEBHOOKS,
    ChangeKind,
    CreatedWebhook,
    MemoryChange,
    Webhook,
    WebhookIn,
    WebhookStatus,
    generate_secret,
    is_wanted,
    make_event,
)
from graphmem.changes.sending import (
    CONNECT_SECONDS,
    Delivery,
    DeliveryFailed,
    DeliveryImpossible,
    ForbiddenAddress,
    WebhookSender,
    find_public_addresses,
)
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import SYSTEM_PARTITION, JobKind, JobPayload, JobWaits, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import Conflict, InvalidInput, NotFound, UserBeingForgotten
from graphmem.runtime.times import MICROSECOND, Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import wait_for_writer
from graphmem.tenants.users import lock_user


@dataclass(frozen=True, slots=True)
class StoredWebhook:
    """A webhook with its delivery data; `checked_at` is the time up to which everything was delivered."""

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
    """A user whose changes after `at` and `key` a webhook may not have delivered yet."""

    owner: Owner
    last_write_at: datetime
    at: datetime | None
    key: str | None


@dataclass(frozen=True, slots=True)
class WebhookPosition:
    """A user's last handled change: delivered at `delivered_at` with `status`, or passed over if both are None.

    `complete_until` is the time of the user's latest write, set if nothing is left to deliver.
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

    async def forget_user(self, owner: Owner, now: datetime) -> int:
        """Remove a user from the webhooks that name them, and disable those that name nobody else; return how many."""
        rows = await self._graph.execute("webhooks.forget_user", tenant=owner.tenant, user_id=owner.user_id, now=now)
        return len(rows)

    async def list_behind(self, webhook: StoredWebhook, changed_after: datetime, limit: int) -> list[PendingUser]:
        """Return users written to after `changed_after` and since the webhook last caught up with them."""
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

    async def wait_for_writer(self, owner: Owner) -> None:
        """Wait until all changes of a user's latest write can be read."""
        await wait_for_writer(self._graph, owner)

    async def advance(self, webhook_id: str, user: PendingUser, position: WebhookPosition) -> bool:
        """Store a webhook's position in a user's changes; return False if either is gone."""

        async def work(transaction: Transaction) -> bool:
            # The lock rejects users who are being forgotten, so that none of their positions is left behind.
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
        """Record a failed delivery; return when deliveries began to fail, and how many have failed since."""
        rows = await self._graph.execute(
            "webhooks.record_failure", webhook_id=webhook_id, status=status, error=error, now=now
        )
        return (rows[0]["failing_since"], rows[0]["failures"]) if rows else (now, 1)

    async def record_skipped(self, webhook_id: str, reason: str) -> None:
        """Record that a change was skipped because it cannot be sent."""
        await self._graph.execute("webhooks.record_skipped", webhook_id=webhook_id, reason=reason)

    async def record_complete(self, webhook_id: str, checked_at: datetime) -> None:
        """Record that everything written before `checked_at` was delivered."""
        await self._graph.execute("webhooks.record_complete", webhook_id=webhook_id, checked_at=checked_at)

    async def disable(self, webhook_id: str, reason: str, now: datetime) -> None:
        """Disable a webhook and store the reason."""
        await self._graph.execute("webhooks.disable", webhook_id=webhook_id, reason=reason, now=now)


def _webhook_from_row(row: Row) -> StoredWebhook:
    stored: dict[str, Any] = row["webhook"]
    kinds = stored.get("kinds")
    plain: Row = {name: stored.get(name) for name in Webhook.model_fields if name not in ("kinds", "status", "skipped")}
    view = Webhook(
        **plain,
        kinds=None if kinds is None else [ChangeKind(kind) for kind in kinds],
        status=_status_of(stored),
        skipped=stored.get("skipped", 0),
    )
    return StoredWebhook(view, stored["tenant"], stored["secret"], stored["checked_at"])


def _status_of(stored: dict[str, Any]) -> WebhookStatus:
    if stored.get("disabled_at"):
        return WebhookStatus.DISABLED
    return WebhookStatus.FAILING if stored.get("failing_since") else WebhookStatus.ACTIVE


RETRY_PAUSES = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0)
"""Seconds before each retry of a failed delivery; the last pause repeats."""

LATE_COMMITS = timedelta(minutes=10)
"""Longest delay between a write's timestamp and its commit; no transaction takes as long."""

USERS_AT_ONCE = 4
"""Number of users whose changes a job delivers concurrently."""

USERS_PER_PASS = 200
"""Number of users whose changes a job delivers before it looks for more."""

PAGE_SIZE = 50
"""Number of a user's changes read at once."""

MAX_FAILED_USERS = 5
"""Number of users with a failed delivery after which a job stops: then the receiver is at fault, not one change."""

MAX_JOB_SECONDS = 60.0
"""Seconds after which a job ends even if more is to be delivered, so that other jobs get their turn."""

HTTP_GONE = 410
"""Status with which a receiver refuses further deliveries."""

_log = structlog.get_logger(__name__)


class WebhookPayload(JobPayload):
    """The webhook to deliver changes to, and its tenant."""

    webhook_id: str
    tenant: str | None = None

    @property
    def partition(self) -> str:
        """The partition of the webhook."""
        return webhook_partition(self.webhook_id)


WEBHOOK_JOB = JobKind("webhook", WebhookPayload)
"""Delivers changes to a webhook."""


def webhook_partition(webhook_id: str) -> str:
    """Return the partition of a webhook's jobs."""
    return f"{SYSTEM_PARTITION}webhook:{webhook_id}"


@dataclass(slots=True)
class _Pass:
    """One pass of a job over users with changes, which ends at `deadline`."""

    webhook: StoredWebhook
    deadline: float
    failures: list[DeliveryFailed] = field(default_factory=list)
    is_interrupted: bool = False

    def is_out_of_time(self) -> bool:
        """Return whether the deadline has passed, and note it."""
        self.is_interrupted = self.is_interrupted or time.monotonic() > self.deadline
        return self.is_interrupted


class WebhookDelivery:
    """Finds webhooks with something to deliver, and handles their jobs.

    Neither a job nor its record holds user data: changes are read from the graph when they are sent.
    """

    def __init__(
        self,
        store: WebhookStore,
        changes: ChangeStore,
        jobs: JobRunner,
        sender: WebhookSender,
        clock: Clock,
        max_failing_days: float,
    ) -> None:
        self._store = store
        self._changes = changes
        self._jobs = jobs
        self._sender = sender
        self._clock = clock
        self.max_failing = timedelta(days=max_failing_days)

    async def queue_due(self) -> int:
        """Queue a job for each webhook that has something to deliver and no job; return how many."""
        queued = 0
        for webhook in await self._store.list_enabled():
            if not await self._store.list_behind(webhook, webhook.checked_at - LATE_COMMITS, 1):
                continue
            if not await self._jobs.is_busy(webhook_partition(webhook.id)):
                await self._jobs.enqueue(WEBHOOK_JOB, WebhookPayload(webhook_id=webhook.id, tenant=webhook.tenant))
                queued += 1
        return queued

    async def handle(self, payload: WebhookPayload, _steps: Steps) -> JobOutcome:
        """Handle a job of kind `webhook`; after failed deliveries, it waits and continues."""
        deadline = time.monotonic() + MAX_JOB_SECONDS
        while True:
            webhook = await self._store.find(payload.webhook_id)
            if webhook is None or webhook.view.disabled_at is not None:
                return JobOutcome(status=JobStatus.SKIPPED, reason="the webhook is disabled or removed")
            started = self._clock()
            users = await self._store.list_behind(webhook, webhook.checked_at - LATE_COMMITS, USERS_PER_PASS)
            going = _Pass(webhook, deadline)
            await self._deliver(going, users)
            if going.failures:
                await self._record_failures(webhook, going.failures)
            if going.is_interrupted:
                return JobOutcome()
            if len(users) < USERS_PER_PASS:
                await self._store.record_complete(webhook.id, started)
                return JobOutcome()

    async def _deliver(self, going: _Pass, users: list[PendingUser]) -> None:
        """Deliver the changes of several users concurrently."""
        waiting = iter(users)

        async def work() -> None:
            for user in waiting:
                if len(going.failures) >= MAX_FAILED_USERS or going.is_out_of_time():
                    return
                try:
                    await self._deliver_user(going, user)
                except DeliveryFailed as failure:
                    going.failures.append(failure)

        # Not a TaskGroup, which would wrap the error of an unavailable database.
        ended = await asyncio.gather(*(work() for _ in range(USERS_AT_ONCE)), return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error

    async def _deliver_user(self, going: _Pass, user: PendingUser) -> None:
        """Deliver the changes of a user, oldest first, until none is left, one fails or the time is up."""
        since, after_key = user.at or going.webhook.view.since, user.key
        # While a write is being applied, only some of its changes can be read; the others would be skipped.
        await self._store.wait_for_writer(user.owner)
        until = user.last_write_at + MICROSECOND
        while True:
            changes, position = await self._changes.list_page(
                user.owner, since, until, after_key, PAGE_SIZE, with_global=False
            )
            for change in changes:
                if going.is_out_of_time() or not await self._deliver_change(going.webhook, user, change):
                    return
                since, after_key = change.at, change.id
            if position is None:
                complete = WebhookPosition(since, after_key, user.last_write_at)
                await self._store.advance(going.webhook.id, user, complete)
                return
            since, after_key = position

    async def _deliver_change(self, webhook: StoredWebhook, user: PendingUser, change: MemoryChange) -> bool:
        """Deliver one change if the webhook wants it; return False when the user or the webhook is gone."""
        now, status = None, None
        if is_wanted(change, webhook.view.kinds):
            now = self._clock()
            body = make_event(user.owner, change).model_dump_json().encode()
            delivery = Delivery(webhook.view.url, webhook.secret, change.id, int(now.timestamp()), body)
            try:
                status = await self._sender.send(delivery)
            except DeliveryImpossible as error:
                _log.warning("a change is not delivered", webhook_id=webhook.id, change_id=change.id)
                await self._store.record_skipped(webhook.id, f"{change.id!r}: {error}")
                now = None
        position = WebhookPosition(change.at, change.id, delivered_at=now, status=status)
        return await self._store.advance(webhook.id, user, position)

    async def _record_failures(self, webhook: StoredWebhook, failures: list[DeliveryFailed]) -> None:
        """Store the failures of a pass, then let the job wait or disable the webhook."""
        now = self._clock()
        last = failures[-1]
        failing_since, count = await self._store.record_failure(webhook.id, last.status, last.reason, now)
        if any(failure.status == HTTP_GONE for failure in failures):
            await self._disable(webhook, f"the receiver answered {HTTP_GONE}: it wants no further deliveries")
        elif now - failing_since >= self.max_failing:
            days = f"{self.max_failing.total_seconds() / 86_400:g}"
            await self._disable(webhook, f"deliveries failed for {days} days: {last.reason}")
        else:
            raise JobWaits(last.reason, RETRY_PAUSES[min(count, len(RETRY_PAUSES)) - 1])

    async def _disable(self, webhook: StoredWebhook, reason: str) -> None:
        _log.warning("a webhook is disabled", webhook_id=webhook.id, reason=reason)
        await self._store.disable(webhook.id, reason, self._clock())


WATCH_SECONDS = 2.0
"""Seconds between checks for changes to deliver."""


class WebhookService:
    """Operations on the webhooks of all tenants; `allow_private` permits HTTP and addresses that are not public."""

    def __init__(self, store: WebhookStore, jobs: JobRunner, clock: Clock, *, allow_private: bool = False) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock
        self._allow_private = allow_private

    async def create(self, tenant: str, request: WebhookIn, actor: str) -> CreatedWebhook:
        """Create a webhook; its secret is returned here only.

        Raises InvalidInput for a forbidden address, Conflict if the tenant has too many webhooks.
        """
        tenant = Owner(tenant, "").tenant
        if not self._allow_private:
            await _check_address(request.url)
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

    async def list(self, tenant: str) -> builtins.list[Webhook]:
        """Return the webhooks of a tenant without their secrets, oldest first."""
        return [webhook.view for webhook in await self._store.list_of_tenant(tenant)]

    async def delete(self, tenant: str, webhook_id: str) -> None:
        """Delete a webhook and its jobs; raise NotFound if it is unknown or belongs to another tenant."""
        if not await self._store.remove(tenant, webhook_id):
            raise NotFound("There is no such webhook.")
        await self._jobs.forget(webhook_partition(webhook_id))


async def _check_address(url: str) -> None:
    """Raise InvalidInput for a forbidden address; a host name that does not resolve yet is accepted."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await find_public_addresses(url)
    except ForbiddenAddress as problem:
        raise InvalidInput(
            f"The webhook's address {problem}; for development, set GRAPHMEM_WEBHOOK_ALLOW_PRIVATE=true.",
            errors=[{"loc": ["url"], "msg": str(problem)}],
        ) from None
    except OSError:  # includes TimeoutError
        return
