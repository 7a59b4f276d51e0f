"""The agents of the load test, for Locust: four of five requests read."""

from __future__ import annotations

import os
import random
import time

from locust import FastHttpUser, between, events, task
from locust.env import Environment

KEY = os.environ["GRAPHMEM_TORTURE_KEY"]
USERS = int(os.environ.get("GRAPHMEM_TORTURE_USERS", "20"))
"""Users whose memories the agents share."""

PLACES = ["Lund", "Turin", "Porto", "Oslo", "Gdansk", "Leeds", "Graz", "Nantes", "Bergen", "Split"]
PAUSE = float(os.environ.get("GRAPHMEM_TORTURE_PAUSE", "1"))
"""Mean seconds between two requests of an agent."""

REFUSALS = frozenset({429, 503})
"""Responses of a server beyond its capacity; they must name when to try again."""


class Agent(FastHttpUser):
    """An agent that reads and writes memories of users."""

    wait_time = between(0.5 * PAUSE, 1.5 * PAUSE)
    host = os.environ.get("GRAPHMEM_TORTURE_ADDRESS", "")
    connection_timeout = 30.0
    network_timeout = 60.0

    @task(30)
    def search(self) -> None:
        """Search memories."""
        self._send("POST", "/search", {"query": f"Who lives in {random.choice(PLACES)}?", "include_messages": True})

    @task(20)
    def lookup(self) -> None:
        """Look an entity up."""
        self._send("GET", f"/entities/lookup?q={random.choice(PLACES)}", name="/entities/lookup")

    @task(20)
    def build_context(self) -> None:
        """Build a context."""
        self._send("POST", "/context", {"question": f"What about {random.choice(PLACES)}?", "session_id": "talk"})

    @task(10)
    def list_memories(self) -> None:
        """List memories."""
        self._send("GET", "/memories")

    @task(12)
    def save(self) -> None:
        """Save a memory."""
        place, number = random.choice(PLACES), random.randrange(10**6)
        memory = {"content": f"Friend {number} lives in {place}", "object": {"name": place}}
        self._send("POST", "/memories", {"memories": [memory]}, name="save")

    @task(8)
    def send_messages(self) -> None:
        """Send messages without extraction, whose speed is that of a model."""
        turns = [
            {"role": "user", "content": f"Tell me about {random.choice(PLACES)} {random.randrange(10**6)}"},
            {"role": "assistant", "content": "It is a city."},
        ]
        body = {"session_id": f"talk{random.randrange(10**4)}", "messages": turns, "extract": False}
        self._send("POST", "/messages", body, name="messages")

    def _send(self, method: str, path: str, body: object = None, name: str | None = None) -> None:
        user = f"/v1/users/load{random.randrange(USERS)}"
        headers = {"Authorization": f"Bearer {KEY}"}
        with self.client.request(
            method, user + path, json=body, headers=headers, name=name or path, catch_response=True
        ) as response:
            pause = response.headers.get("Retry-After") if response.headers else None
            if response.status_code not in REFUSALS or pause is None:
                return
            response.success()
            _refused[response.status_code] = _refused.get(response.status_code, 0) + 1
        time.sleep(float(pause))


_refused: dict[int, int] = {}


@events.quitting.add_listener
def report_refusals(environment: Environment, **_: object) -> None:
    """Print how many requests were refused, by status."""
    print("refused:", " ".join(f"{status}={count}" for status, count in sorted(_refused.items())), flush=True)
