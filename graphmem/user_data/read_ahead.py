"""Reading ahead of a slow caller: what a caller has not taken yet waits in a temporary file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing

from graphmem.runtime.errors import Unavailable

PART_BYTES = 64 * 1024
"""Most bytes that are yielded at once."""

MAX_MEMORY_BYTES = 1024 * 1024
"""Bytes that wait in memory; more are written to disk."""


async def read_ahead(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the bytes of a generator, which runs to its end however slowly the caller takes them.

    Raises what the generator raises after everything before it has been taken, and Unavailable when the temporary file
    cannot be written.
    """
    with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES) as file:
        progressed = asyncio.Event()

        async def fill() -> None:
            async with aclosing(chunks):
                async for chunk in chunks:
                    file.seek(0, os.SEEK_END)
                    try:
                        file.write(chunk)
                    except OSError as error:
                        raise Unavailable("The temporary folder cannot be written: free space there.") from error
                    progressed.set()

        filling = asyncio.create_task(fill())
        filling.add_done_callback(lambda _: progressed.set())
        position = 0
        try:
            while True:
                is_complete = filling.done()
                file.seek(position)
                if part := file.read(PART_BYTES):
                    position += len(part)
                    yield part
                elif is_complete:
                    filling.result()
                    return
                else:
                    await progressed.wait()
                    progressed.clear()
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)
