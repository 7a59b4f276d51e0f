"""What graphmem leaves as it is in the process of a caller that imports and opens it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from graphmem.runtime.settings import Settings
from tests.models.scripted_server import ScriptedServer, replies

CALLER = """
import asyncio, gc, json, logging, os, signal, sys, threading, warnings
import dbos, numpy, openai, psycopg, pydantic, pydantic_ai.models.openai, sqlalchemy  # what they change is theirs

logging.getLogger("openai").setLevel(logging.DEBUG)


def state():
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    configured = [logger for logger in loggers if logger.level or logger.handlers or not logger.propagate]
    return json.loads(json.dumps({
        "base model": pydantic.BaseModel.model_config,
        "garbage": [gc.get_freeze_count(), gc.get_threshold(), gc.isenabled()],
        "event loop": type(asyncio.get_event_loop_policy()).__qualname__,
        "environment": dict(os.environ),
        "warnings": [str(entry) for entry in warnings.filters],
        "root logger": [logging.root.level, len(logging.root.handlers)],
        # DBOS would put a handler of its own on its logger, which writes to the console; graphmem's writes nothing.
        "loggers": {logger.name: [logger.level, len(logger.handlers), logger.propagate] for logger in configured
                    if logger.name != "dbos"},
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook)],
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), threading.stack_size()],
        "streams": [id(sys.stdout), id(sys.stderr)],
        "signals": [str(signal.getsignal(number)) for number in signal.valid_signals() if number != signal.SIGINT],
        "umask": oct((os.umask(0o022), os.umask(os.umask(0o022)))[0]),
        "path": sys.path,
    }, default=str))


seen = [state()]
import graphmem

seen.append(state())


async def use():
    async with graphmem.GraphMemory.open(worker=True) as memory:
        await memory.add("Mara lives in Lund", user_id="mara", infer=False)
        await memory.search("Where does Mara live?", user_id="mara")
        seen.append(state())
    seen.append(state())


asyncio.run(use())
print(json.dumps([{name: [seen[0][name], now[name]] for name in now if now[name] != seen[0][name]} for now in seen]))
"""


def test_importing_and_opening_the_library_changes_nothing_in_the_process(
    database: Settings, tenant: str, tmp_path: Path
) -> None:
    assert database.neo4j_uri
    assert database.neo4j_password
    with ScriptedServer(replies("{}")) as server:
        given = {
            "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
            "GRAPHMEM_NEO4J_USER": database.neo4j_user,
            "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
            "GRAPHMEM_DATA_DIR": str(tmp_path),
            "OPENAI_BASE_URL": server.base_url,
        }
        caller = subprocess.run(
            [sys.executable, "-c", CALLER],
            env={**os.environ, **given},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert caller.returncode == 0, caller.stderr
    assert json.loads(caller.stdout) == [{}, {}, {}, {}]
