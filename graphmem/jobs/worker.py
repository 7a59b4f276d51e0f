"""The worker of a process: it claims jobs until it is closed, and takes over from dead ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from itertools import product
from typing import Any, ClassVar

from dbos import DBOS

from graphmem.jobs.job import JobStatus
from graphmem.jobs.job_run import JobRun, RunningJobs, WorkerContext, WorkerOptions
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.postponements import Postponements
from graphmem.jobs.recovery import JobRecovery
from graphmem.jobs.registry import WorkerProcess, WorkerRegistry
from graphmem.jobs.store import APPLICATION, APPLICATION_VERSION, JOB_WORKFLOW, SERIALIZER, TICK_WORKFLOW, JobStore
from graphmem.runtime.errors import ConfigurationError, JobStoreUnavailable
from graphmem.runtime.metrics import JOBS_FINISHED

log = logging.getLogger(__name__)

MAX_RECOVERY_ATTEMPTS = 10
"""Workers that a job may stop before it is given up."""

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
        loop: asyncio.AbstractEventLoop,
        options: WorkerOptions,
    ) -> None:
        self.running = RunningJobs()
        self._context = WorkerContext(
            store=store,
            registry=registry,
            handlers={handler.kind.name: handler for handler in handlers},
            loop=loop,
            options=options,
            process=WorkerProcess.current(),
            running=self.running,
            postponements=Postponements(options.first_postponement),
        )
        for kind, status in product(self._context.handlers, JobStatus):
            if status.is_final:
                JOBS_FINISHED.labels(kind, status)  # from 0, so that an alert sees the first failure
        self._recovery = JobRecovery(self._context)

    def launch(self) -> None:
        """Start to work; raise ConfigurationError when this process already does."""
        if Worker._active is not None:
            raise ConfigurationError(
                "This process already runs jobs: close the other worker, or open this one with worker=False."
            )
        Worker._active = self
        try:
            self._context.registry.heartbeat(self._context.process)
            self._context.store.register_queues(self._context.options.concurrency)
            self._launch_dbos()
            self._recovery.start()
        except BaseException:
            self.close()
            raise

    def _launch_dbos(self) -> None:
        store = self._context.store
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": store.engine,
                "dbos_system_schema": store.schema,
                "serializer": SERIALIZER,
                "application_version": APPLICATION_VERSION,
                "executor_id": self._context.process.id,
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
            return JobRun(self._context, str(DBOS.workflow_id), kind, payload).run().model_dump(mode="json")

        @DBOS.workflow(name=TICK_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def tick(scheduled_at: datetime, context: dict[str, Any]) -> None:
            store.enqueue_scheduled(scheduled_at.isoformat(), context)

        DBOS.listen_queues(store.listened_queues)
        with store.translate_errors():
            DBOS.launch()

    def close(self) -> None:
        """Stop working; the next worker resumes the jobs that are cut short, at their last finished step."""
        self._recovery.stop()
        self.running.close(SHUTDOWN_TIMEOUT_SECONDS)
        DBOS.destroy(destroy_registry=True)
        Worker._active = None
        try:
            self._context.registry.remove([self._context.process.id])
        except JobStoreUnavailable as error:
            log.warning("Other workers will find out late that this one has closed: %s", error.detail)
