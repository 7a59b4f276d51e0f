"""Running one hook: within a time limit, silent about failures, so that it never stands in the agent's way."""

from __future__ import annotations

import json
import os
import sys
import threading

from graphmem.hooks.installation import HookStep
from graphmem.hooks.session import HookSession, HookSettings

MAX_INPUT_CHARACTERS = 10_000_000
"""Characters of the agent's input that are read."""


def run_hook(step: HookStep, agent_name: str, user_id: str | None, *, debug: bool = False) -> None:
    """Run a hook on the JSON of standard input, print what it returns and end the process with exit code 0.

    What fails or takes longer than its time is left out, without a word unless `debug`.
    """
    settings = HookSettings.read(os.environ, user_id)
    if settings.is_off or not settings.api_key:
        return
    printed: list[str] = []

    def work() -> None:
        try:
            given = json.loads(sys.stdin.read(MAX_INPUT_CHARACTERS) or "{}")
            if isinstance(given, dict):
                printed.append(HookSession(agent_name, settings, given).run(step))
        except Exception as error:
            if debug:
                sys.stderr.write(f"graphmem: {type(error).__name__}: {error}\n")

    # A thread, because neither reading standard input nor resolving a host name has a time limit of its own.
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(settings.seconds)
    sys.stdout.write("".join(printed))
    sys.stdout.flush()
    if worker.is_alive():
        os._exit(0)
