"""The process's one DBOS: claims jobs from the queue and runs their handlers on the application's event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from dbos import DBOS
from structlog.contextvars import bound_contextvars

from graphmem.errors import ConfigurationError, JobStoreUnavailable
from graphmem.jobs.recovery import JobRecovery
from graphmem.jobs.steps import JobHandler, JobInterrupted, JobRun
from graphmem.jobs.store import (
    APPLICATION,
    APPLICATION_VERSION,
    JOB_WORKFLOW,
    SYSTEM_PARTITION,
    TICK_WORKFLOW,
    JobStore,
)
from graphmem.jobs.worker_registry import WorkerProcess, WorkerRegistry
from graphmem.tracing import span

log = logging.getLogger(__name__)

# A job that has stopped this many workers is given up, so that it cannot stop them for ever.
MAX_RECOVERY_ATTEMPTS = 10
SHUTDOWN_TIMEOUT_SECONDS = 10.0


class Worker:
    """Runs jobs until closed; DBOS being global, there is one in a process at a time. Methods block."""

    _active: ClassVar[Worker | None] = None

    def __init__(
        self,
        store: JobStore,
        registry: WorkerRegistry,
        handlers: Mapping[str, JobHandler],
        *,
        loop: asyncio.AbstractEventLoop,
        dead_worker_seconds: float,
        retry_delays: Sequence[float],
    ) -> None:
        self.store = store
        self.process = WorkerProcess.current()
        self._registry = registry
        self._handlers = handlers
        self._loop = loop
        self._retry_delays = retry_delays
        self._recovery = JobRecovery(self, registry, dead_worker_seconds=dead_worker_seconds)
        self._runs: dict[str, JobRun] = {}
        self._lock = threading.Lock()
        self._closing = False

    def launch(self, concurrency: int) -> None:
        """Start to work; raise ConfigurationError when this process already does."""
        if Worker._active is not None:
            raise ConfigurationError(
                "This process already runs jobs: close the other JobRunner, or open with worker=False."
            )
        Worker._active = self
        try:
            self._registry.heartbeat(self.process)
            self.store.register_queues(concurrency)
            self._launch_dbos()
            self._recovery.start()
        except BaseException:
            self.close()
            raise

    def _launch_dbos(self) -> None:
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_engine": self.store.engine,
                "dbos_system_schema": self.store.schema,
                "serializer": self.store.serializer,
                "application_version": APPLICATION_VERSION,
                "executor_id": self.process.id,
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
            return self._run(str(DBOS.workflow_id), kind, payload)

        @DBOS.workflow(name=TICK_WORKFLOW, max_recovery_attempts=MAX_RECOVERY_ATTEMPTS)
        def tick(scheduled_at: datetime, context: dict[str, Any]) -> None:
            self._enqueue_scheduled(scheduled_at, context)

        with self.store.translate_errors():
            DBOS.launch()

    def _enqueue_scheduled(self, scheduled_at: datetime, context: dict[str, Any]) -> None:
        at = scheduled_at.isoformat()
        payload = {**context["payload"], "scheduled_at": at}
        self.store.enqueue(f"{context['name']}@{at}", context["kind"], SYSTEM_PARTITION + context["name"], payload)

    def _run(self, job_id: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        run = JobRun(
            job_id,
            self._handlers.get(kind, _missing_handler(kind)),
            payload,
            loop=self._loop,
            retry_delays=self._retry_delays,
        )
        with self._lock:
            if self._closing:
                raise JobInterrupted
            self._runs[job_id] = run
        # The handler runs on the event loop with a copy of what is bound here.
        with bound_contextvars(job_id=job_id), span(f"job {kind}", graphmem__job_id=job_id) as current:
            try:
                self._registry.claim(job_id, self.process.id)
                result = run.run_handler()
                current.set_attribute("graphmem.job_status", result["status"])
                seconds = result["receipt"]["seconds"]
                log.info("job", extra={"kind": kind, "status": result["status"], "seconds": seconds})
                return result
            finally:
                self._release(job_id)

    def _release(self, job_id: str) -> None:
        try:
            self._registry.release(job_id, self.process.id)
        except JobStoreUnavailable as error:
            log.warning("Job %s is still noted as running here: %s", job_id, error.detail)
        finally:
            with self._lock:
                del self._runs[job_id]

    def running_job_ids(self) -> set[str]:
        """The ids of the jobs whose handlers run here."""
        with self._lock:
            return set(self._runs)

    def abort(self, job_id: str) -> None:
        """Stop a handler of ours without an outcome."""
        with self._lock:
            run = self._runs.get(job_id)
        if run is not None:
            run.abort()

    def close(self) -> None:
        """Stop to work; what is cut short is taken up by the next worker, from its last finished step."""
        with self._lock:
            self._closing = True
            runs = list(self._runs.values())
        self._recovery.stop()
        for run in runs:
            run.abort()
        self._wait_until_idle(SHUTDOWN_TIMEOUT_SECONDS)
        DBOS.destroy(destroy_registry=True)
        Worker._active = None
        try:
            self._registry.remove([self.process.id])
        except JobStoreUnavailable as error:
            log.warning("Other workers learn late that this one has closed: %s", error.detail)

    def _wait_until_idle(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.running_job_ids() and time.monotonic() < deadline:
            time.sleep(0.02)


def _missing_handler(kind: str) -> JobHandler:
    async def refuse(_payload: dict[str, Any], _steps: Any) -> Any:
        raise ConfigurationError(f"This worker knows no job of kind {kind!r}; update it, then retry the job.")

    return refuse
