"""The jobs that deliver changes to webhooks: one at a time for each webhook, the changes of a user in their order."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import structlog

from graphmem.changes.feed import ChangeStore
from graphmem.changes.models import MemoryChange
from graphmem.changes.sender import Delivery, DeliveryFailed, WebhookSender
from graphmem.changes.webhooks import (
    PendingUser,
    StoredWebhook,
    WebhookPosition,
    WebhookStore,
)
from graphmem.changes.webhooks_domain import is_wanted, make_event
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import SYSTEM_PARTITION, JobKind, JobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import JobWaits, Steps
from graphmem.runtime.times import MAX_TIME, Clock

RETRY_PAUSES = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0)
"""Seconds before a failed delivery is tried again, time after time; the last pause repeats."""

LATE_COMMITS = timedelta(minutes=10)
"""Time by which a write may be committed later than the time it has; no transaction takes as long."""

USERS_AT_ONCE = 4
"""Users whose changes one job delivers side by side."""

USERS_PER_PASS = 200
"""Users that a job delivers the changes of before it looks for more."""

PAGE_SIZE = 50
"""Changes of a user that are read at once."""

MAX_FAILED_USERS = 5
"""Users with a failed delivery after which a job stops: then the receiver fails, and not one change."""

MAX_JOB_SECONDS = 60.0
"""Seconds after which a job ends although more is to be delivered, so that the jobs of others get their turn."""

HTTP_GONE = 410
"""Status by which a receiver says that it wants no further deliveries."""

_log = structlog.get_logger(__name__)


class WebhookPayload(JobPayload):
    """The webhook to deliver changes to."""

    webhook_id: str

    @property
    def partition(self) -> str:
        """The partition of the webhook."""
        return webhook_partition(self.webhook_id)


WEBHOOK_JOB = JobKind("webhook", WebhookPayload)
"""Delivers changes to a webhook."""


def webhook_partition(webhook_id: str) -> str:
    """Return the partition of the jobs of a webhook."""
    return f"{SYSTEM_PARTITION}webhook:{webhook_id}"


class WebhookDelivery:
    """Finds webhooks with something to deliver, and handles their jobs.

    Neither a job nor its record holds data of a user: what is to be delivered is read from the graph when it is sent.
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
                await self._jobs.enqueue(WEBHOOK_JOB, WebhookPayload(webhook_id=webhook.id))
                queued += 1
        return queued

    async def handle(self, payload: WebhookPayload, _steps: Steps) -> JobOutcome:
        """Handle a job of kind `webhook`; after failed deliveries it waits and goes on."""
        deadline = time.monotonic() + MAX_JOB_SECONDS
        while True:
            webhook = await self._store.find(payload.webhook_id)
            if webhook is None or webhook.view.disabled_at is not None:
                return JobOutcome(status=JobStatus.SKIPPED, reason="the webhook is disabled or removed")
            started = self._clock()
            users = await self._store.list_behind(webhook, webhook.checked_at - LATE_COMMITS, USERS_PER_PASS)
            delivery_pass = _Pass(self._store, self._changes, self._sender, self._clock, webhook, deadline)
            await delivery_pass.deliver(users)
            if delivery_pass.failures:
                await self._settle_failures(webhook, delivery_pass.failures)
            if delivery_pass.is_interrupted:
                return JobOutcome()
            if len(users) < USERS_PER_PASS:
                await self._store.record_complete(webhook.id, started)
                return JobOutcome()

    async def _settle_failures(self, webhook: StoredWebhook, failures: list[DeliveryFailed]) -> None:
        """Store the failures of a pass, and let the job wait, or disable the webhook."""
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


class _Pass:
    """One pass of a job over users with changes."""

    def __init__(
        self,
        store: WebhookStore,
        changes: ChangeStore,
        sender: WebhookSender,
        clock: Clock,
        webhook: StoredWebhook,
        deadline: float,
    ) -> None:
        self._store = store
        self._changes = changes
        self._sender = sender
        self._clock = clock
        self._webhook = webhook
        self._deadline = deadline
        self.failures: list[DeliveryFailed] = []
        self.is_interrupted = False

    async def deliver(self, users: list[PendingUser]) -> None:
        """Deliver the changes of users, some users side by side."""
        waiting = iter(users)

        async def work() -> None:
            for user in waiting:
                if len(self.failures) >= MAX_FAILED_USERS or self._is_out_of_time():
                    return
                try:
                    await self._deliver_user(user)
                except DeliveryFailed as failure:
                    self.failures.append(failure)

        # Not a group of tasks, which would wrap the error of an unavailable database.
        ended = await asyncio.gather(*(work() for _ in range(USERS_AT_ONCE)), return_exceptions=True)
        for error in ended:
            if error is not None:
                raise error

    def _is_out_of_time(self) -> bool:
        self.is_interrupted = self.is_interrupted or time.monotonic() > self._deadline
        return self.is_interrupted

    async def _deliver_user(self, user: PendingUser) -> None:
        """Deliver the changes of a user, oldest first, until none is left, one fails or the time is up."""
        since, after_key = user.at or self._webhook.view.since, user.key
        while True:
            changes, position = await self._changes.list_page(
                user.owner, since, MAX_TIME, after_key, PAGE_SIZE, with_global=False
            )
            for change in changes:
                if self._is_out_of_time() or not await self._deliver_change(user, change):
                    return
                since, after_key = change.at, change.id
            if position is None:
                complete = WebhookPosition(since, after_key, user.last_write_at)
                await self._store.advance(self._webhook.id, user, complete)
                return
            since, after_key = position

    async def _deliver_change(self, user: PendingUser, change: MemoryChange) -> bool:
        """Deliver one change if the webhook wants it; return False when the user or the webhook is gone."""
        now, status = None, None
        if is_wanted(change, self._webhook.view.kinds):
            now = self._clock()
            body = make_event(user.owner.user_id, change).model_dump_json().encode()
            status = await self._sender.send(
                Delivery(self._webhook.view.url, self._webhook.secret, change.id, int(now.timestamp()), body)
            )
        position = WebhookPosition(change.at, change.id, delivered_at=now, status=status)
        return await self._store.advance(self._webhook.id, user, position)
