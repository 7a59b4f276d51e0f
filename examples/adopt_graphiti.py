"""Copy a group of a live Graphiti graph into graphmem, and ask graphmem about it; the graph itself is only read.

SOURCE_NEO4J_PASSWORD=… python examples/adopt_graphiti.py bolt://localhost:7687 my-group ada "Where does Ada live?"

`graphmem forget --user ada` removes the copy.
"""

import asyncio
import json
import os
import sys

from graphmem import GraphMemory
from graphmem.user_data.graphiti import read_graph


async def adopt(memory: GraphMemory, user_id: str, uri: str, user: str, password: str, group: str) -> dict[str, int]:
    """Copy the facts, entities and episodes of a group, and return the number of what is new."""
    document = await read_graph(uri, user, password, "neo4j", group)
    result = await memory.import_(user_id, json.dumps(document).encode(), format="graphiti")
    for entry in result.refused:
        print(f"not imported: {entry.loc}: {entry.reason}")
    return result.imported


async def answer(memory: GraphMemory, user_id: str, question: str) -> list[str]:
    """Return the memories that answer a question, best first."""
    response = await memory.search(user_id, question, limit=3)
    return [hit.memory.content for hit in response.results]


async def main(uri: str, group: str, user_id: str, question: str) -> None:
    """Copy a group, then print what graphmem knows."""
    user, password = os.environ.get("SOURCE_NEO4J_USER", "neo4j"), os.environ["SOURCE_NEO4J_PASSWORD"]
    async with GraphMemory.open() as memory:
        print(await adopt(memory, user_id, uri, user, password, group))
        print("\n".join(await answer(memory, user_id, question)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
