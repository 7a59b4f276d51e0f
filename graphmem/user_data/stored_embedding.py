"""Which model the vectors of a user are of."""

from __future__ import annotations

from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.user_data.export_document import EmbeddingInfo


async def find_embedding(graph: Graph, embedder: Embedder) -> EmbeddingInfo:
    """Return the model that the user's graph is searched with; the embedder's where the graph has no vectors yet."""
    state = await graph.vector_state()
    if state is None:
        return EmbeddingInfo(model=embedder.model, dimension=embedder.dimension)
    return EmbeddingInfo(model=state.searched_model.name, dimension=state.searched_model.dimension)
