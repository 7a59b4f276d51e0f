"""The vectors of facts and messages in the memory of this process, by which many similarities are computed at once.

Neo4j needs up to 0.07 ms for each cosine, most of it to read the vector from its store; a search needs hundreds. The
vector of a version and of a message never changes while the model stays the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph
from graphmem.runtime.field_types import Vector
from graphmem.runtime.metrics import HitRate
from graphmem.tenants.owners import Owner

MAX_VECTORS = 20_000
"""Most vectors that are kept, those used last; 20,000 of 384 numbers take some 35 MB."""

VectorKind = Literal["facts", "messages"]
"""What a vector is of."""

_QUERIES: Mapping[VectorKind, str] = {"facts": "vectors.load_facts", "messages": "vectors.load_messages"}

_Key = tuple[str, VectorKind, str]
_Array = NDArray[np.float32]


class StoredVectors:
    """Computes the cosine of stored vectors and others, and keeps the vectors that it had to fetch."""

    def __init__(self, graph: Graph, max_vectors: int = MAX_VECTORS) -> None:
        self._graph = graph
        self._max_vectors = max_vectors
        self._vectors: OrderedDict[_Key, _Array] = OrderedDict()
        self._model: EmbeddingModel | None = None
        self._hit_rate = HitRate("stored_vectors")

    async def similarities(
        self, owner: Owner, kind: VectorKind, ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines with each vector of facts, by the uuid of the version, or of messages, by their id.

        Those that have no vector, or that the user cannot read, are left out.
        """
        if not vectors:
            return {}
        stored = await self._load(owner, kind, list(ids))
        if not stored:
            return {}
        cosines = np.stack(list(stored.values())) @ np.stack([_normalise(vector) for vector in vectors]).T
        return dict(zip(stored, cosines.tolist(), strict=True))

    async def discard_user(self, owner: Owner) -> None:
        """Remove the vectors that were fetched for a user."""
        for key in [key for key in self._vectors if key[0] == owner.group_id]:
            del self._vectors[key]

    async def count_user(self, owner: Owner) -> int:
        """Return how many vectors were fetched for a user and are kept."""
        return sum(key[0] == owner.group_id for key in self._vectors)

    async def _load(self, owner: Owner, kind: VectorKind, ids: Sequence[str]) -> dict[str, _Array]:
        await self._forget_other_model()
        found: dict[str, _Array] = {}
        missing: list[str] = []
        for item_id in ids:
            key = (owner.group_id, kind, item_id)
            if (vector := self._vectors.get(key)) is not None:
                self._vectors.move_to_end(key)
                found[item_id] = vector
            else:
                missing.append(item_id)
        self._hit_rate.count_many(hits=len(found), misses=len(missing))
        if missing:
            found |= await self._fetch(owner, kind, missing)
        return found

    async def _fetch(self, owner: Owner, kind: VectorKind, ids: Sequence[str]) -> dict[str, _Array]:
        rows: Mapping[str, Any] = dict(
            await self._graph.fetch_value(_QUERIES[kind], group_ids=owner.readable_group_ids, ids=ids)
        )
        fetched = {item_id: _normalise(vector) for item_id, vector in rows.items() if vector is not None}
        for item_id, vector in fetched.items():
            self._vectors[owner.group_id, kind, item_id] = vector
        while len(self._vectors) > self._max_vectors:
            self._vectors.popitem(last=False)
        return fetched

    async def _forget_other_model(self) -> None:
        """Drop all vectors when the database has changed to those of another model."""
        state = await self._graph.vector_state()
        model = (state.next if state.reads_next else state.model) if state else None
        if self._model != model:
            self._vectors.clear()
            self._model = model


def _normalise(vector: Any) -> _Array:
    """Return a vector of Neo4j's or a list as an array of length 1; one of zeros stays as it is."""
    values = vector.to_numpy() if hasattr(vector, "to_numpy") else vector
    array = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array
