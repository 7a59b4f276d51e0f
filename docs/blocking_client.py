"""Makes the blocking client from the asynchronous one: `python docs/blocking_client.py`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "graphmem" / "client"

_REPLACEMENTS = (
    (
        r"The client of the HTTP API for asyncio, one method an operation; `client.py` is its blocking form.",
        "The blocking client of the HTTP API, made from `async_client.py` by `docs/blocking_client.py`.",
    ),
    (
        r"The HTTP API, asynchronous: `async with AsyncClient\(key\) as memory: await ",
        "The HTTP API, blocking: `with Client(key) as memory: ",
    ),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncTransport\b", "BlockingTransport"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\bawait ", ""),
)
"""What differs, as regular expressions and their replacements, in the order in which they apply."""


def make_blocking(source: str) -> str:
    """Return the source of the blocking client for that of the asynchronous one."""
    for pattern, replacement in _REPLACEMENTS:
        source = re.sub(pattern, replacement, source)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FOLDER / "client.py"), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    made = make_blocking((FOLDER / "async_client.py").read_text("utf-8"))
    (FOLDER / "client.py").write_text(made, "utf-8")
