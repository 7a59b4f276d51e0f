"""A process that migrates a database and kills itself at a query: `migrating_process.py FOLDER LEASE_SECONDS QUERY`.

It ends by SIGKILL when it has run the query once. The database is that of the settings.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from graphmem.app.components import open_graph
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.migrations import migrate
from graphmem.runtime.settings import Settings
from tests.faults.reembedding_worker import die_at_query

MODEL = EmbeddingModel(name="model", dimension=384, embedder="openai")


async def main(folder: Path, lease_seconds: float) -> None:
    async with open_graph(Settings()) as graph:
        await migrate(graph, MODEL, folder, lease_seconds=lease_seconds)


if __name__ == "__main__":
    die_at_query(sys.argv[3], 1)
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
