"""A process that is killed when it has the lease to migrate: `migrating_process.py FOLDER LEASE_SECONDS`.

It looks at the applied migrations before it takes the lease and again when it has it, and then ends by SIGKILL. The
database is that of the settings.
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
    die_at_query("schema.list_applied_migrations", 2)
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2])))
