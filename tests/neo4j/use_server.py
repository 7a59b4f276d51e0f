"""Use the embedded Neo4j of a data folder until the process is killed: `use_server.py DATA_DIR CACHE_DIR`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graphmem.neo4j.embedded.server import EmbeddedNeo4j


async def main(data_dir: str, cache_dir: str) -> None:
    """Start or join the server, print its process id, and wait."""
    server = await EmbeddedNeo4j.start_or_join(Path(data_dir), Path(cache_dir))
    print(server.info.pid, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
