"""Files that commands read and write."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from graphmem.runtime.errors import InvalidInput

STANDARD_STREAM = "-"
"""The file name that stands for standard input or output."""


def read_bytes(file: str) -> bytes:
    """Return the bytes of a file or of standard input; raise InvalidInput when it cannot be read."""
    try:
        return sys.stdin.buffer.read() if file == STANDARD_STREAM else Path(file).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error


def read_input(file: str) -> str:
    """Return the text of a file or of standard input; raise InvalidInput when it cannot be read."""
    return read_bytes(file).decode("utf-8-sig")


def read_json(file: str) -> Any:
    """Return the value of a JSON file or of standard input; raise InvalidInput when there is none."""
    try:
        return json.loads(read_input(file))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{file} is not JSON.") from error


async def write_atomically(path: Path, chunks: AsyncIterator[bytes]) -> int:
    """Write a file that only its owner can read, and put it in place once it is complete; return its size in bytes.

    Raises InvalidInput when it cannot be written.
    """
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk)
            size = file.tell()
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)
    return size
