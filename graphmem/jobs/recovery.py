"""The watch each worker keeps: it shows that it lives, and takes over from those that do not."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from dbos import DBOS, WorkflowStatus

from graphmem.errors import JobStoreUnavailable
from graphmem.jobs.worker_registry import WorkerProcess, WorkerRegistry

if TYPE_CHECKING:
    from graphmem.jobs.worker import Worker

log = logging.getLogger(__name__)

CHECKS_BEFORE_REQUEUE = 5


class JobRecovery:
    """A thread that checks around every `interval` seconds.

    A worker is dead when it has left, when its process on this machine is gone, or when its heartbeat has stood still
    for `dead_worker_seconds` seconds by our own clock, so that no two machines need agree on the time. A check that fails
    forgets what was seen: after an outage of the job store nobody is taken for dead at once.
    """

    def __init__(self, worker: Worker, registry: WorkerRegistry, *, dead_worker_seconds: float) -> None:
        self._worker = worker
        self._registry = registry
        self._dead_worker_seconds = dead_worker_seconds
        self._interval = min(2.0, dead_worker_seconds / 4)
        self._last_heartbeats: dict[str, tuple[int, float]] = {}
        self._unstarted_checks: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, name="graphmem-jobs-recovery", daemon=True)

    def start(self) -> None:
        """Look once now, which takes up what a crash of this machine left, and then again and again."""
        self.check()
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run_loop(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self.check()
            except JobStoreUnavailable as error:
                self._last_heartbeats.clear()
                log.warning("The watch over jobs is blind: %s", error.detail)
            except Exception:
                self._last_heartbeats.clear()
                log.warning("The watch over jobs failed", exc_info=True)

    def check(self) -> None:
        """Beat, let go of what is no longer ours, take up what nobody runs."""
        this_worker = self._worker.process
        self._registry.heartbeat(this_worker)
        running = self._worker.running_job_ids()
        pending = self._worker.store.list_statuses(status="PENDING")
        own_jobs = {status.workflow_id: status for status in pending if status.executor_id == this_worker.id}
        for job_id in running - own_jobs.keys():
            self._worker.abort(job_id)
        self._requeue_unstarted(own_jobs)
        self._recover_abandoned({str(status.executor_id) for status in pending} - {this_worker.id})

    def _requeue_unstarted(self, own_jobs: dict[str, WorkflowStatus]) -> None:
        # Claimed by us but run by no thread of ours: the job store failed between the two.
        idle = own_jobs.keys() - self._worker.running_job_ids()
        self._unstarted_checks = Counter({job_id: self._unstarted_checks[job_id] + 1 for job_id in idle})
        for job_id in [job_id for job_id, checks in self._unstarted_checks.items() if checks >= CHECKS_BEFORE_REQUEUE]:
            self._worker.store.client.resume_workflow(job_id, queue_name=own_jobs[job_id].queue_name)

    def _recover_abandoned(self, owners: set[str]) -> None:
        others = {worker.id: worker for worker in self._registry.list_workers() if worker.id != self._worker.process.id}
        dead = {worker.id for worker in others.values() if self._is_dead(worker)}
        abandoned = sorted(owners & dead | owners - others.keys())
        if abandoned:
            # DBOS's own recovery of named executors is not public. Its public `resume_workflow` would not do: it moves
            # a job whoever runs it, so two watchers could start one twice, and it resets the count that ends a job
            # which kills every worker it meets.
            DBOS._recover_pending_workflows(abandoned)
            log.info("Took over the jobs of workers that are gone: %s", ", ".join(abandoned))
        if dead:
            self._registry.remove(dead)

    def _is_dead(self, worker: WorkerProcess) -> bool:
        now = time.monotonic()
        heartbeat, since = self._last_heartbeats.get(worker.id, (None, now))
        if heartbeat != worker.heartbeat:
            since = now
        self._last_heartbeats[worker.id] = (worker.heartbeat, since)
        return worker.has_exited() or now - since > self._dead_worker_seconds
