"""A graph of LangGraph with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/langgraph_memory.py mara "My cat is called Momo."
python examples/langgraph_memory.py mara "What is my cat called?"
"""

import asyncio
import os
import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from graphmem.client import AsyncClient
from graphmem.integrations.langgraph import GraphmemStore


class Turn(TypedDict):
    """What a user says, and what the agent knows about it."""

    user_id: str
    said: str
    known: list[str]


async def recall(state: Turn, *, runtime: Runtime[None]) -> dict[str, list[str]]:
    """Search the user's notes, then add what was said to them."""
    assert runtime.store is not None
    notes = ("notes", state["user_id"])
    found = await runtime.store.asearch(notes, query=state["said"], limit=3)
    await runtime.store.aput(notes, state["said"].lower(), {"text": state["said"]})
    return {"known": [item.value["text"] for item in found]}


def build_graph(store: GraphmemStore) -> CompiledStateGraph[Turn, None, Turn, Turn]:  # pyrefly: ignore[bad-specialization]
    """Return the compiled graph; its store keeps the notes of the user whom the second label of a namespace names."""
    builder = StateGraph(Turn)  # pyrefly: ignore[bad-specialization]
    builder.add_node("recall", recall)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", END)
    return builder.compile(store=store)


async def main(user_id: str, said: str) -> None:
    """Take one turn."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as client:
        store = GraphmemStore(async_client=client, user_label=1)
        result = await build_graph(store).ainvoke({"user_id": user_id, "said": said, "known": []})
        print("\n".join(result["known"]) or "Nothing is known about this yet.")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
