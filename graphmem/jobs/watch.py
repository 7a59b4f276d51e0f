"""The watch each worker keeps: it shows that it lives, and takes over from those that do not."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from dbos import DBOS, WorkflowStatus

from graphmem.errors import JobsUnavailable
from graphmem.jobs.workers import Roster, WorkerProcess

if TYPE_CHECKING:
    from graphmem.jobs.worker import Worker

log = logging.getLogger(__name__)

LOOKS_BEFORE_STRAY = 5


class Watch:
    """A thread that looks around every `interval` seconds.

    A worker is dead when it has left, when its process on this machine is gone, or when its heartbeat has stood still
    for `dead_after` seconds by our own clock, so that no two machines need agree on the time. A look that fails
    forgets what was seen: after an outage of the job store nobody is taken for dead at once.
    """

    def __init__(self, worker: Worker, roster: Roster, *, dead_after: float) -> None:
        self._worker = worker
        self._roster = roster
        self._dead_after = dead_after
        self._interval = min(2.0, dead_after / 4)
        self._beats: dict[str, tuple[int, float]] = {}
        self._strays: Counter[str] = Counter()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="graphmem-jobs-watch", daemon=True)

    def start(self) -> None:
        """Look once now, which takes up what a crash of this machine left, and then again and again."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _keep(self) -> None:
        while not self._stop.wait(self._interval):
            try:
                self.look()
            except JobsUnavailable as error:
                self._beats.clear()
                log.warning("The watch over jobs is blind: %s", error.detail)
            except Exception:
                self._beats.clear()
                log.warning("The watch over jobs failed", exc_info=True)

    def look(self) -> None:
        """Beat, let go of what is no longer ours, take up what nobody runs."""
        me = self._worker.process
        self._roster.beat(me)
        running = self._worker.running()
        pending = self._worker.store.statuses(status="PENDING")
        mine = {status.workflow_id: status for status in pending if status.executor_id == me.id}
        for job_id in running - mine.keys():
            self._worker.abort(job_id)
        self._take_up_strays(mine)
        self._take_over({str(status.executor_id) for status in pending} - {me.id})

    def _take_up_strays(self, mine: dict[str, WorkflowStatus]) -> None:
        # Claimed by us but run by no thread of ours: the job store failed between the two.
        idle = mine.keys() - self._worker.running()
        self._strays = Counter({job_id: self._strays[job_id] + 1 for job_id in idle})
        for job_id in [job_id for job_id, looks in self._strays.items() if looks >= LOOKS_BEFORE_STRAY]:
            self._worker.store.client.resume_workflow(job_id, queue_name=mine[job_id].queue_name)

    def _take_over(self, owners: set[str]) -> None:
        others = {worker.id: worker for worker in self._roster.workers() if worker.id != self._worker.process.id}
        dead = {worker.id for worker in others.values() if self._is_dead(worker)}
        abandoned = sorted(owners & dead | owners - others.keys())
        if abandoned:
            # DBOS's own recovery of named executors is not public. Its public `resume_workflow` would not do: it moves
            # a job whoever runs it, so two watchers could start one twice, and it resets the count that ends a job
            # which kills every worker it meets.
            DBOS._recover_pending_workflows(abandoned)
            log.info("Took over the jobs of workers that are gone: %s", ", ".join(abandoned))
        if dead:
            self._roster.remove(dead)

    def _is_dead(self, worker: WorkerProcess) -> bool:
        now = time.monotonic()
        beat, since = self._beats.get(worker.id, (None, now))
        if beat != worker.beat:
            since = now
        self._beats[worker.id] = (worker.beat, since)
        return worker.is_gone() or now - since > self._dead_after
