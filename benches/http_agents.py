"""The agents of `bench_http`, for Locust: each sends its next request as soon as the last one is answered.

Locust rounds milliseconds, counts the warm-up and does not write the last second to its CSV files. Durations and
failures are therefore kept here, and written with the CPU time of the server as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import psutil
from locust import FastHttpUser, constant, events, task

from benches.http_verbs import LoadPlan, PlannedRequest, make_verbs

PLAN = LoadPlan.model_validate_json(Path(os.environ["GRAPHMEM_BENCH_PLAN"]).read_text("utf-8"))
SAMPLES = Path(os.environ["GRAPHMEM_BENCH_SAMPLES"])
"""The file that is written at the end."""
MOST_FAILURES = 5
"""Kinds of failures that are written, the most frequent ones."""

VERB = next(verb for verb in make_verbs(dict.fromkeys(PLAN.users, 0)) if verb.key == PLAN.verb)


class Measurement:
    """What is counted after the warm-up: durations of successful requests, and CPU time of the server's processes."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.ended = 0.0
        self.durations_ms: list[float] = []
        self.failures: Counter[str] = Counter()
        self._processes = {name: psutil.Process(pid) for name, pid in PLAN.pids.items()}
        self._cpu_before: dict[str, float] = {}

    def start(self) -> None:
        """End the warm-up."""
        self._cpu_before = self._cpu_seconds()
        self.started = time.time()

    def count(self, duration_ms: float, began: float) -> None:
        """Count a request that was sent after the warm-up."""
        if self.started is not None and began >= self.started:
            self.durations_ms.append(duration_ms)
            self.ended = time.time()

    def write(self) -> None:
        """Write what was counted."""
        assert self.started is not None, "the run ended before its warm-up"
        after = self._cpu_seconds()
        samples = {
            "durations_ms": self.durations_ms,
            "seconds": self.ended - self.started if self.durations_ms else 0.0,
            "failures": [f"{times} × {failure}" for failure, times in self.failures.most_common(MOST_FAILURES)],
            "cpu_seconds": {name: after[name] - before for name, before in self._cpu_before.items()},
        }
        SAMPLES.write_text(json.dumps(samples), "utf-8")

    def _cpu_seconds(self) -> dict[str, float]:
        times = {name: process.cpu_times() for name, process in self._processes.items()}
        return {name: found.user + found.system for name, found in times.items()}


measurement = Measurement()
_numbers = itertools.count()


class Agent(FastHttpUser):
    """An agent that sends requests of one kind."""

    wait_time = constant(0)
    host = PLAN.address
    connection_timeout = 30.0
    network_timeout = 300.0

    def on_start(self) -> None:
        """Make the requests of this agent."""
        self._requests: Iterator[PlannedRequest] = VERB.make_requests(PLAN, next(_numbers))

    @task
    def send(self) -> None:
        """Send the next request."""
        request = next(self._requests)
        headers = {"Authorization": f"Bearer {PLAN.key}"}
        body: dict[str, Any] = {"json": request.body}
        if isinstance(request.body, bytes):
            headers["Content-Type"] = "application/json"
            body = {"data": request.body}
        self.client.request(request.method, request.path, headers=headers, name=VERB.key, **body)


@events.test_start.add_listener
def end_warm_up_later(**_: object) -> None:
    """Begin to count after the warm-up."""
    if PLAN.warm_up_seconds:
        gevent.spawn_later(PLAN.warm_up_seconds, measurement.start)
    else:
        measurement.start()


@events.request.add_listener
def count(response_time: float, exception: BaseException | None, start_time: float, **_: object) -> None:
    """Count a request that was answered, or that failed at any time."""
    if exception is not None:
        measurement.failures[repr(exception)[:200]] += 1
    else:
        measurement.count(response_time, start_time)


@events.quitting.add_listener
def write(**_: object) -> None:
    """Write what was counted."""
    measurement.write()
