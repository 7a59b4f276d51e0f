"""The process's one DBOS: claims jobs from the queue and runs their handlers on the application's event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import product
from typing import Any, ClassVar

from dbos import DBOS
from structlog.contextvars import bound_contextvars

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.job_run import JobRun, RunningJobs, StartHandler
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.postponement import Postponements
from graphmem.jobs.records import JobResult
from graphmem.jobs.recovery import JobRecovery
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.steps import JobWaits, Steps
from graphmem.jobs.store import APPLICATION, APPLICATION_VERSION, JOB_WORKFLOW, TICK_WORKFLOW, JobStore
from graphmem.runtime.errors import (
    ConfigurationError,
    JobStoreUnavailable,
    ModelAnswerUnusable,
    ModelUnavailable,
)
from graphmem.runtime.metrics import JOBS_FINISHED
from graphmem.runtime.retries import DEFAULT_RETRY_AFTER_SECONDS
from graphmem.runtime.tracing import span

log = logging.getLogger(__name__)

MAX_RECOVERY_ATTEMPTS = 10
"""Workers that a job may stop before it is given up."""

MAX_WAITS_FOR_ANSWER = 2
"""How often a job waits after answers that cannot be used, which often stay so."""

SHUTDOWN_TIMEOUT_SECONDS = 5.0
"""Seconds that closing waits for the handlers it has aborted."""


class Worker:
    """Runs jobs until closed. DBOS is global, so that a process has one worker at a time. Methods block."""

    _active: ClassVar[Worker | None] = None

    def __init__(
        self,
        store: JobStore,
        registry: WorkerRegistry,
        handlers: Iterable[JobHandler[Any]],
        *,
        loop: asyncio.AbstractEventLoop,
        dead_worker_seconds: float,
        retry_delays: Sequence[float],
        first_postponement: float,
        model_pauses: Sequence[float],
    ) -> None:
        self.running = RunningJobs()
        self._store = store
        self._registry = registry
        self._handlers = {handler.kind.name: handler for handler in handlers}
        for kind, status in product(self._handlers, JobStatus):
            if status.is_final:
                JOBS_FINISHED.labels(kind, status)  # from 0, so that an alert sees the first failure
        self._loop = loop
        self._retry_delays = retry_delays
        self._model_pauses = model_pauses
        self._process = WorkerProcess.current()
        self._postponements = Postponements(first_postponement)
        self._recovery = JobRecovery(
            self._process,
            self.running,
            self._postponements,
            store,
            registry,
            dead_worker_seconds=dead_worker_seconds,
        )

    def launch(self, concurrency: int) -> None:
        """Start to work; raise ConfigurationError when this process already does."""
        if Worker._active is not None:
            raise ConfigurationError(
                "This process already runs jobs: close the other worker, or open this one with worker=False."
            )
        Worker._active = self
        try:
            self._registry.heartbeat(self._process)
            self._store.register_queues(concurrency)
            self._launch_dbos()
            self._recovery.start()
        except BaseException:
            self.close()
            raise

    def _launch_dbos(self) -> None:
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": self._store.engine,
                "dbos_system_schema": self._store.schema,
                "serializer": self._store.serializer,
                "application_version": APPLICATION_VERSION,
                "executor_id": self._process.id,
                "run_migrations": False,
                "log_level": "WARNING",
                "enable_otlp": False,
                "scheduler_polling_interval_sec": 10.0,
                # Nothing here waits for notifications; this only bounds how long closing waits for their listener.
                "notification_listener_polling_interval_sec": 0.2,
            }
        )

        @DBOS.workflow(name=JOB_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def job(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
            return self._run(str(DBOS.workflow_id), kind, payload).model_dump(mode="json")

        @DBOS.workflow(name=TICK_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def tick(scheduled_at: datetime, context: dict[str, Any]) -> None:
            self._store.enqueue_scheduled(scheduled_at.isoformat(), context)

        DBOS.listen_queues(self._store.listened_queues)
        with self._store.translate_errors():
            DBOS.launch()

    def _run(self, job_id: str, kind: str, payload: dict[str, Any]) -> JobResult:
        run = JobRun(
            job_id,
            self._handler_of(kind, payload),
            loop=self._loop,
            retry_delays=self._retry_delays,
            postpone=partial(self._postpone, job_id, kind),
            find_pause=partial(self._find_pause, job_id),
        )
        self.running.add(run)
        # The handler runs on the event loop with a copy of what is bound here.
        with bound_contextvars(job_id=job_id), span(f"job {kind}", graphmem__job_id=job_id) as current:
            try:
                self._registry.claim(job_id, self._process.id)
                if (seconds := self._store.seconds_of_earlier_wait(job_id)) is not None:
                    raise JobWaits("an earlier job of this user waits for a model", seconds)
                result = run.run()
                current.set_attribute("graphmem.job_status", result.status)
                JOBS_FINISHED.labels(kind, result.status).inc()
                log.info("job", extra={"kind": kind, "status": result.status, "seconds": result.receipt.seconds})
                return result
            except JobWaits as wait:
                log.warning("Job %s waits %.0f s: %s", job_id, wait.seconds, wait.reason)
                self._store.delay(job_id, wait.reason, wait.seconds)
                raise
            finally:
                self._release(job_id)

    def _find_pause(self, job_id: str, error: ModelUnavailable) -> float | None:
        """Return how long a job waits for a model, at least as long as its server asks; None to let it fail."""
        limit = MAX_WAITS_FOR_ANSWER if isinstance(error, ModelAnswerUnusable) else None
        pauses = self._model_pauses[:limit]
        waits = self._store.count_waits(job_id)
        if waits >= len(pauses):
            return None
        asked = error.retry_after or 0
        return max(pauses[waits], asked) if asked > DEFAULT_RETRY_AFTER_SECONDS else pauses[waits]

    def _handler_of(self, kind: str, payload: dict[str, Any]) -> StartHandler:
        handler = self._handlers.get(kind)
        return partial(_refuse_kind, kind) if handler is None else partial(handler.run, payload)

    def _postpone(self, job_id: str, kind: str) -> bool:
        pause = self._postponements.postpone(job_id)
        if pause is not None:
            log.warning("job postponed", extra={"kind": kind, "seconds": pause})
        return pause is not None

    def _release(self, job_id: str) -> None:
        try:
            self._registry.release(job_id, self._process.id)
        except JobStoreUnavailable as error:
            log.warning("Job %s is still registered as running here: %s", job_id, error.detail)
        finally:
            self.running.remove(job_id)

    def close(self) -> None:
        """Stop working; the next worker resumes the jobs that are cut short, at their last finished step."""
        self._recovery.stop()
        self.running.close(SHUTDOWN_TIMEOUT_SECONDS)
        DBOS.destroy(destroy_registry=True)
        Worker._active = None
        try:
            self._registry.remove([self._process.id])
        except JobStoreUnavailable as error:
            log.warning("Other workers will find out late that this one has closed: %s", error.detail)


async def _refuse_kind(kind: str, _steps: Steps) -> JobOutcome:
    raise ConfigurationError(f"This worker knows no job of kind {kind!r}; update it, then retry the job.")
