"""The vectors of facts and messages: of which model they are, their replacement, and those held in memory.

Neo4j needs up to 0.07 ms for each cosine, most of it to read the vector from its store; a search needs hundreds. The
vector of a version and of a message never changes while the model stays the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from graphmem.models.embedding_models import EmbeddingModel, ReembeddingPhase, VectorState, embedding_text
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.queries import on_next_vectors
from graphmem.runtime.field_types import Vector
from graphmem.runtime.files import cypher_root
from graphmem.runtime.metrics import HitRate
from graphmem.tenants.owners import Owner, message_ids_of
from graphmem.tenants.scopes import Reader, ReadScope, scope_of

MAX_VECTORS = 20_000
"""Most vectors that are kept, those used last; 20,000 of 384 numbers take some 35 MB."""

VectorKind = Literal["facts", "messages"]
"""What a vector is of."""

_QUERIES: Mapping[VectorKind, str] = {"facts": "vectors.load_facts", "messages": "vectors.load_messages"}

_Key = tuple[str, VectorKind, str, str]
"""The group, the kind and id of what a vector is of, and the name of its model."""

_Array = NDArray[np.float32]


class StoredVectors:
    """Computes the cosine of stored vectors and others, and keeps the vectors that it had to fetch."""

    def __init__(self, graph: Graph, max_vectors: int = MAX_VECTORS) -> None:
        self._graph = graph
        self._vectors: LRUCache[_Key, _Array] = LRUCache(max_vectors)
        self._hit_rate = HitRate("stored_vectors")

    async def similarities(
        self, reader: Reader, kind: VectorKind, ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines with each vector of facts, by the uuid of the version, or of messages, by their key.

        Those that have no vector, or that the reader cannot read, are left out.
        """
        if not vectors:
            return {}
        stored = await self._load(scope_of(reader), kind, list(ids))
        if not stored:
            return {}
        cosines = np.stack(list(stored.values())) @ np.stack([_normalise(vector) for vector in vectors]).T
        return dict(zip(stored, cosines.tolist(), strict=True))

    async def discard_user(self, owner: Owner) -> None:
        """Remove the vectors that were fetched for a user; those of a space with what its members were fetched."""
        prefix = f"{owner.tenant}:" if owner.is_space else f"{owner.group_id}\n"
        for key in [key for key in self._vectors if f"{key[0]}\n".startswith(prefix)]:
            del self._vectors[key]

    async def count_user(self, owner: Owner) -> int:
        """Return how many vectors were fetched for a user and are kept."""
        return sum(key[0] == owner.group_id for key in self._vectors)

    async def _load(self, scope: ReadScope, kind: VectorKind, ids: Sequence[str]) -> dict[str, _Array]:
        state = await self._graph.vector_state()
        model = state.searched_model.name if state else ""
        found: dict[str, _Array] = {}
        missing: list[str] = []
        for item_id in ids:
            if (vector := self._vectors.get((scope.owner.group_id, kind, item_id, model))) is not None:
                found[item_id] = vector
            else:
                missing.append(item_id)
        self._hit_rate.count_many(hits=len(found), misses=len(missing))
        if missing:
            fetched = await self._fetch(scope, kind, missing)
            self._vectors.update(
                {(scope.owner.group_id, kind, item_id, model): vector for item_id, vector in fetched.items()}
            )
            found |= fetched
        return found

    async def _fetch(self, scope: ReadScope, kind: VectorKind, ids: Sequence[str]) -> dict[str, _Array]:
        rows: Mapping[str, Any] = dict(
            await self._graph.fetch_value(_QUERIES[kind], group_ids=scope.group_ids, ids=message_ids_of(ids))
        )
        wanted = frozenset(ids)
        return {key: _normalise(vector) for key, vector in rows.items() if vector is not None and key in wanted}


def _normalise(vector: Any) -> _Array:
    """Return a vector of Neo4j's or a list as an array of length 1; one of zeros stays as it is."""
    values = vector.to_numpy() if hasattr(vector, "to_numpy") else vector
    array = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array


GROUPS_PER_PAGE = 500
"""Groups whose ids are read at once."""

MOVED_PER_TRANSACTION = 1_000
"""Vectors that one transaction moves or removes."""

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MissingVector:
    """An element without a vector of the next model: `text` is embedded, `stored` is the property it is made of."""

    kind: str
    id: str
    stored: str
    text: str


@dataclass(frozen=True, slots=True)
class OldImage:
    """An image of a consolidation run whose vector is of another model, and the text of that vector."""

    run_id: str
    kind: str
    element_id: str
    text: str


class VectorStore:
    """Reads and replaces the vectors of all users; every step may be repeated."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def get_state(self) -> VectorState | None:
        """Return the state of the vectors, or None for a database without a schema."""
        return await self._graph.vector_state(refresh=True)

    async def begin(self, model: EmbeddingModel, job_id: str) -> VectorState:
        """Start to replace the vectors, unless a replacement is under way, and return the state."""
        rows = await self._graph.execute(
            "vectors.begin", model=model.name, dimension=model.dimension, embedder=model.embedder, job_id=job_id
        )
        return VectorState.from_properties(rows[0]["state"])

    async def count(self) -> int:
        """Return how many elements may have a vector."""
        return int((await self._graph.fetch("vectors.count_vectors"))[0]["total"])

    async def enter(self, phase: ReembeddingPhase) -> None:
        """Enter a phase."""
        await self._graph.execute("vectors.set_phase", phase=phase.value)

    async def end(self) -> None:
        """Record that the replacement is over."""
        await self._graph.execute("vectors.end")

    async def create_indexes(self, dimension: int, *, of_next: bool) -> None:
        """Create the indexes of the vectors, or of the next ones, and wait until they contain everything."""
        await self._apply("create.cypher", {"{{dimension}}": str(dimension)}, of_next=of_next)
        await self._graph.fetch("schema.await_indexes")

    async def drop_indexes(self, *, of_next: bool) -> None:
        """Drop the indexes of the vectors, or of the next ones."""
        await self._apply("drop.cypher", {}, of_next=of_next)

    async def _apply(self, file: str, placeholders: Mapping[str, str], *, of_next: bool) -> None:
        text = _COMMENT.sub("", (cypher_root() / "vector_indexes" / file).read_text("utf-8"))
        for placeholder, value in placeholders.items():
            text = text.replace(placeholder, value)
        for statement in filter(None, map(str.strip, (on_next_vectors(text) if of_next else text).split(";"))):
            await self._graph.apply_schema(statement)

    async def groups(self) -> AsyncIterator[str]:
        """Yield the group id of every user."""
        after = ""
        while rows := await self._graph.fetch("vectors.list_groups", after=after, limit=GROUPS_PER_PAGE):
            for row in rows:
                yield row["group_id"]
            after = rows[-1]["group_id"]

    async def list_missing(self, group_id: str, limit: int) -> list[MissingVector]:
        """Return up to `limit` elements of a user that have a vector, but none of the next model."""
        rows = await self._graph.fetch("vectors.list_missing", group_id=group_id, limit=limit)
        return [
            MissingVector(row["kind"], row["id"], row["text"], embedding_text(row["speaker"], row["text"]))
            for row in rows
        ]

    async def store_next(self, group_id: str, missing: Sequence[MissingVector], vectors: Sequence[Vector]) -> None:
        """Write vectors of the next model, and count them as done."""
        rows: dict[str, list[Row]] = {"fact": [], "entity": [], "message": []}
        for element, vector in zip(missing, vectors, strict=True):
            rows[element.kind].append({"id": element.id, "text": element.stored, "vector": vector})

        async def work(transaction: Transaction) -> None:
            await transaction.run(
                "vectors.store_next",
                group_id=group_id,
                facts=rows["fact"],
                entities=rows["entity"],
                messages=rows["message"],
            )
            await transaction.run("vectors.record_progress", done=len(missing))

        await self._graph.write(work)

    async def move(self, group_id: str) -> int:
        """Replace the vectors of a user by those of the next model, and return how many were replaced."""
        return await self._repeat("vectors.move_vectors", "moved", group_id)

    async def remove_next(self, group_id: str) -> int:
        """Remove the copies that the replacement needed, and return how many there were."""
        return await self._repeat("vectors.remove_next", "removed", group_id)

    async def _repeat(self, query: str, column: str, group_id: str) -> int:
        total = 0
        while count := (await self._graph.execute(query, group_id=group_id, limit=MOVED_PER_TRANSACTION))[0][column]:
            total += count
        return total

    async def list_old_images(self, group_id: str, model: str, limit: int) -> list[OldImage]:
        """Return up to `limit` images of a user's consolidation runs whose vectors are of another model."""
        rows = await self._graph.fetch("vectors.list_old_images", group_id=group_id, model=model, limit=limit)
        return [OldImage(row["run_id"], row["kind"], row["element_id"], _image_text(row["image"])) for row in rows]

    async def store_image_vectors(self, images: Sequence[OldImage], vectors: Sequence[Vector], model: str) -> None:
        """Write the vectors of images."""
        rows = [
            {"run_id": image.run_id, "kind": image.kind, "element_id": image.element_id, "vector": vector}
            for image, vector in zip(images, vectors, strict=True)
        ]
        await self._graph.execute("vectors.store_image_vectors", rows=rows, model=model)


def _image_text(image: str) -> str:
    properties = json.loads(image)["properties"]
    text: str = properties.get("fact") or properties["name"]
    return text
