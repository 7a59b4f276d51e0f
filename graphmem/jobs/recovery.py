"""Takes over the jobs of workers that have ended, and queues again what a worker claimed and does not run."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from dbos import WorkflowStatus

from graphmem.jobs.dbos_internals import recover_jobs_of
from graphmem.jobs.job_run import WorkerContext
from graphmem.jobs.registry import WorkerProcess
from graphmem.runtime.errors import JobStoreUnavailable

log = logging.getLogger(__name__)

CHECKS_BEFORE_REQUEUE = 5
"""Checks in a row that must find a claimed job without a handler before it is queued again."""

MAX_CHECK_SECONDS = 2.0
"""Most seconds between two checks; a quarter of the time after which a silent worker is dead, where that is less."""


class JobRecovery:
    """A thread that checks the job store at regular intervals.

    A worker is dead when it has left, when its process on this machine is gone, or when its heartbeat has not changed
    for `dead_worker_seconds` seconds by this machine's clock, so that the clocks of two machines need not agree. A
    check that fails discards the heartbeats seen, so that no worker counts as dead after an outage of the job store.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._process = context.process
        self._running = context.running
        self._postponements = context.postponements
        self._store = context.store
        self._registry = context.registry
        self._dead_worker_seconds = context.options.dead_worker_seconds
        self._interval = min(MAX_CHECK_SECONDS, self._dead_worker_seconds / 4)
        self._last_heartbeats: dict[str, tuple[int, float]] = {}
        self._unstarted_checks: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, name="graphmem-jobs-recovery", daemon=True)

    def start(self) -> None:
        """Check once, which recovers the jobs of a crash on this machine, and then at intervals."""
        self.check()
        self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run_loop(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self.check()
            except JobStoreUnavailable as error:
                self._last_heartbeats.clear()
                log.warning("Job recovery cannot read the job store: %s", error.detail)
            except Exception:
                self._last_heartbeats.clear()
                log.warning("Job recovery failed", exc_info=True)

    def check(self) -> None:
        """Send a heartbeat, abort jobs that another worker has claimed, and recover the jobs of dead workers."""
        self._registry.heartbeat(self._process)
        running = self._running.ids()
        pending = self._store.list_statuses(status="PENDING")
        own_jobs = {status.workflow_id: status for status in pending if status.executor_id == self._process.id}
        for job_id in running - own_jobs.keys():
            self._running.abort(job_id)
        self._requeue_unstarted(own_jobs)
        self._recover_abandoned({str(status.executor_id) for status in pending} - {self._process.id})

    def _requeue_unstarted(self, own_jobs: dict[str, WorkflowStatus]) -> None:
        # Claimed by this worker but run by none of its threads: postponed, or the job store failed between the two.
        running = self._running.ids()
        self._postponements.retain(own_jobs.keys() | running)
        is_due = {job_id: self._postponements.is_due(job_id) for job_id in own_jobs.keys() - running}
        unstarted = [job_id for job_id, due in is_due.items() if due is None]
        self._unstarted_checks = Counter({job_id: self._unstarted_checks[job_id] + 1 for job_id in unstarted})
        for job_id, due in is_due.items():
            if due or self._unstarted_checks[job_id] >= CHECKS_BEFORE_REQUEUE:
                self._store.resume(own_jobs[job_id])

    def _recover_abandoned(self, executor_ids: set[str]) -> None:
        others = {worker.id: worker for worker in self._registry.list_workers() if worker.id != self._process.id}
        dead = {worker.id for worker in others.values() if self._is_dead(worker)}
        abandoned = sorted(executor_ids & dead | executor_ids - others.keys())
        if abandoned:
            recover_jobs_of(abandoned)
            log.info("Recovered the jobs of dead workers: %s", ", ".join(abandoned))
        if dead:
            self._registry.remove(dead)

    def _is_dead(self, worker: WorkerProcess) -> bool:
        now = time.monotonic()
        heartbeat, since = self._last_heartbeats.get(worker.id, (None, now))
        if heartbeat != worker.heartbeat:
            since = now
        self._last_heartbeats[worker.id] = (worker.heartbeat, since)
        return worker.has_exited() or now - since > self._dead_worker_seconds
