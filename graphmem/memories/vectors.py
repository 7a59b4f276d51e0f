"""The vectors of facts and messages: their model, those held in memory, and their replacement by a job."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from graphmem.jobs.job import Job, JobAction, JobOutcome, JobStatus
from graphmem.jobs.kinds import JobKind, JobPayload, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.models.embedder import RecordedEmbedder, create_embedder, describe_model
from graphmem.models.embedding_models import (
    EmbeddingModel,
    EmbeddingStatus,
    ReembeddingPhase,
    VectorState,
    embedding_text,
)
from graphmem.models.language_model import Receipt
from graphmem.neo4j.driver import NONE_HIDDEN_SECONDS, Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import MoveState, PlacedGraph, run_in_each_graph
from graphmem.neo4j.queries import on_next_vectors
from graphmem.runtime.errors import ConfigurationError, Conflict, InvalidInput
from graphmem.runtime.field_types import Vector
from graphmem.runtime.files import cypher_root
from graphmem.runtime.metrics import HitRate
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner, message_ids_of
from graphmem.tenants.spaces import Reader, ReadScope, scope_of

MAX_VECTORS = 20_000
"""Maximum vectors kept, the last used; 20,000 of 384 numbers take some 35 MB."""

VectorKind = Literal["facts", "messages"]
"""The kind of text that a vector represents."""

_QUERIES: Mapping[VectorKind, str] = {"facts": "vectors.load_facts", "messages": "vectors.load_messages"}

_Key = tuple[str, VectorKind, str, str]
"""The group, the element's kind and id, and the name of the vector's model."""

_Array = NDArray[np.float32]


class StoredVectors:
    """Computes cosines of stored vectors with others, and keeps the vectors it had to fetch."""

    def __init__(self, graph: Graph, max_vectors: int = MAX_VECTORS) -> None:
        self._graph = graph
        self._vectors: LRUCache[_Key, _Array] = LRUCache(max_vectors)
        self._hit_rate = HitRate("stored_vectors")

    async def similarities(
        self, reader: Reader, kind: VectorKind, ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines with each vector of facts, by version uuid, or of messages, by key.

        Elements without a vector, and those the reader cannot read, are left out.
        """
        if not vectors:
            return {}
        stored = await self._load(scope_of(reader), kind, list(ids))
        if not stored:
            return {}
        cosines = np.stack(list(stored.values())) @ np.stack([_normalise(vector) for vector in vectors]).T
        return dict(zip(stored, cosines.tolist(), strict=True))

    async def discard_user(self, owner: Owner) -> None:
        """Drop the vectors fetched for a user; a space's vectors are dropped with those fetched for its members."""
        prefix = f"{owner.tenant}:" if owner.is_space else f"{owner.group_id}\n"
        for key in [key for key in self._vectors if f"{key[0]}\n".startswith(prefix)]:
            del self._vectors[key]

    async def count_user(self, owner: Owner) -> int:
        """Return the number of kept vectors that were fetched for a user."""
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
    """Return a Neo4j vector or a list as an array of length 1; a zero vector is unchanged."""
    values = vector.to_numpy() if hasattr(vector, "to_numpy") else vector
    array = np.asarray(values, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array


GROUPS_PER_PAGE = 500
"""Number of groups whose ids are read at once."""

MOVED_PER_TRANSACTION = 1_000
"""Number of vectors moved or removed per transaction."""

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
    """An image of a consolidation run whose vector is from another model, and the text of that vector."""

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
        """Return the number of elements that may have a vector."""
        return int((await self._graph.fetch("vectors.count_vectors"))[0]["total"])

    async def enter(self, phase: ReembeddingPhase) -> None:
        """Enter a phase."""
        await self._graph.execute("vectors.set_phase", phase=phase.value)

    async def end(self) -> None:
        """Record that the replacement is over."""
        await self._graph.execute("vectors.end")

    async def create_indexes(self, dimension: int, *, of_next: bool) -> None:
        """Create the indexes of the vectors, or of the next ones, and wait until they are populated."""
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
        """Return up to `limit` elements of a user that have a vector but none of the next model."""
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
        """Replace a user's vectors by those of the next model, and return the number replaced."""
        return await self._repeat("vectors.move_vectors", "moved", group_id)

    async def remove_next(self, group_id: str) -> int:
        """Remove the copies that the replacement needed, and return their number."""
        return await self._repeat("vectors.remove_next", "removed", group_id)

    async def _repeat(self, query: str, column: str, group_id: str) -> int:
        total = 0
        while count := (await self._graph.execute(query, group_id=group_id, limit=MOVED_PER_TRANSACTION))[0][column]:
            total += count
        return total

    async def list_old_images(self, group_id: str, model: str, limit: int) -> list[OldImage]:
        """Return up to `limit` images of a user's consolidation runs whose vectors are from another model."""
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


BATCH_SIZE = 128
"""Number of texts embedded and written at once; a killed job repeats at most these."""

SWITCH_SECONDS = 2 * NONE_HIDDEN_SECONDS
"""Seconds until every process has seen a change of phase and finished the request it was answering."""

MOVE_PAUSE = 1.0
"""Seconds between two checks whether a move is over."""


class ReembeddingPayload(JobPayload):
    """The tenant whose admin requested the re-embedding, and the model of the new vectors."""

    tenant: str
    model: EmbeddingModel

    @property
    def partition(self) -> str:
        """The partition of the tenant's jobs that belong to no user."""
        return Owner(self.tenant, "").group_id


REEMBEDDING_JOB = JobKind("reembed", ReembeddingPayload)
"""Replaces the vectors of all users by those of another model."""


class ReembeddingAction(JobAction):
    """The end of a re-embedding: the model of all vectors, and the number computed in this attempt."""

    action: Literal["reembed"] = "reembed"
    model: str
    vectors: int


class ReembeddingJob:
    """Handles the jobs of kind `reembed`."""

    def __init__(
        self,
        vectors: VectorStore,
        embedder: RecordedEmbedder,
        placed: PlacedGraph | None = None,
        pause: float = SWITCH_SECONDS,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Create the handler; `pause` is the time in seconds for a change of phase to reach every process."""
        self._vectors = vectors
        self._embedder = embedder
        self._placed = placed
        self._pause = pause
        self._batch_size = batch_size

    async def handle(self, payload: ReembeddingPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `reembed`."""
        count = await steps.run_idempotent("reembed", lambda: self._replace_all(payload.model, steps.job_id))
        return JobOutcome(
            actions=[ReembeddingAction(model=payload.model.name, vectors=count)],
            receipt=Receipt(embedded_texts=count),
        )

    async def _replace_all(self, model: EmbeddingModel, job_id: str) -> int:
        await run_in_each_graph(self._placed, lambda: self._vectors.begin(model, job_id))
        await self._await_moves()
        return sum(await run_in_each_graph(self._placed, lambda: self._replace_in_graph(model, job_id)))

    async def _await_moves(self) -> None:
        """Wait for the moves that began before all graphs had a next model; later ones are refused."""
        while self._placed is not None:
            locations = await self._placed.locations.list_all()
            if all(location.state is MoveState.SETTLED for location in locations):
                return
            await asyncio.sleep(MOVE_PAUSE)

    async def _replace_in_graph(self, model: EmbeddingModel, job_id: str) -> int:
        state = await self._vectors.get_state()
        if state is None or state.job_id != job_id:
            return 0
        count, phase = 0, state.phase
        if phase is ReembeddingPhase.FILLING:
            await self._vectors.create_indexes(model.dimension, of_next=True)
            count += await self._fill(model)
            await self._switch_to(ReembeddingPhase.SERVING)
            phase = ReembeddingPhase.SERVING
        if phase is ReembeddingPhase.SERVING:
            count += await self._fill(model)
            await self._vectors.drop_indexes(of_next=False)
            await self._move(model)
            await self._vectors.create_indexes(model.dimension, of_next=False)
            count += await self._fill(model)
            await self._move(model)
            await self._switch_to(ReembeddingPhase.CLEANING)
        await self._vectors.drop_indexes(of_next=True)
        async for group_id in self._vectors.groups():
            await self._vectors.remove_next(group_id)
        await self._vectors.end()
        return count

    async def _switch_to(self, phase: ReembeddingPhase) -> None:
        await self._vectors.enter(phase)
        await asyncio.sleep(self._pause)

    async def _fill(self, model: EmbeddingModel) -> int:
        """Write the missing vectors of the next model until a pass finds none, and return their number."""
        embedder, total = await self._embedder.get(model), 0
        while True:
            found = 0
            async for group_id in self._vectors.groups():
                while missing := await self._vectors.list_missing(group_id, self._batch_size):
                    vectors = await embedder.embed([element.text for element in missing])
                    await self._vectors.store_next(group_id, missing, vectors)
                    found += len(missing)
            total += found
            if not found:
                return total

    async def _move(self, model: EmbeddingModel) -> None:
        """Replace the current vectors by the next ones, and recompute those that rollbacks restore."""
        embedder = await self._embedder.get(model)
        async for group_id in self._vectors.groups():
            await self._vectors.move(group_id)
            while images := await self._vectors.list_old_images(group_id, model.name, self._batch_size):
                vectors = await embedder.embed([image.text for image in images])
                await self._vectors.store_image_vectors(images, vectors, model.name)


class ReembeddingService:
    """Lets a worker replace all vectors by those of another model."""

    def __init__(
        self, vectors: VectorStore, jobs: JobRunner, settings: Settings, placed: PlacedGraph | None = None
    ) -> None:
        self._vectors = vectors
        self._jobs = jobs
        self._settings = settings
        self._placed = placed

    async def start(self, tenant: str, model: str | None) -> Job:
        """Queue the replacement and return its job; `model` defaults to the model in the settings.

        An interrupted or failed replacement by the same model continues under its own job. Raises InvalidInput for a
        model that the embedder cannot use, ConfigurationError if that model is from the settings, and Conflict while
        another replacement is under way or if the vectors are already from that model.
        """
        wanted = await self._describe(model)
        states = await self._list_states()
        state = _under_way(states)
        if state is not None and state.next is not None and state.job_id is not None:
            if state.next.name != wanted.name:
                raise Conflict(
                    f"A re-embedding with {state.next.name} is under way: wait for job {state.job_id} to end, then "
                    "start another."
                )
            job = await self._jobs.find(state.job_id)
            if job is not None and job.status is JobStatus.FAILED:
                return await self._jobs.retry(job.id)
            if job is not None and not job.status.is_final:
                return job
            job_id = state.job_id
        else:
            if all(state.model.name == wanted.name for state in states):
                raise Conflict(
                    f"All vectors are of {wanted.name} already: name another model, or set GRAPHMEM_EMBEDDER and "
                    "GRAPHMEM_EMBEDDING_MODEL to the new model."
                )
            job_id = str(uuid.uuid4())
        for begun in await run_in_each_graph(self._placed, lambda: self._vectors.begin(wanted, job_id)):
            if begun.job_id not in (None, job_id):
                raise Conflict(f"A re-embedding has just begun: wait for job {begun.job_id} to end.")
        await self._jobs.enqueue(REEMBEDDING_JOB, ReembeddingPayload(tenant=tenant, model=wanted), job_id)
        return await self._jobs.get(job_id)

    async def status(self) -> EmbeddingStatus:
        """Return the model of the vectors and the progress of a re-embedding, in all graphs together."""
        states = await self._list_states()
        state = _under_way(states) or states[0]
        status = EmbeddingStatus(model=state.model.name, dimension=state.model.dimension)
        if state.next is None:
            return status
        counts = await run_in_each_graph(self._placed, self._vectors.count)
        return status.model_copy(
            update={
                "next_model": state.next.name,
                "phase": state.phase,
                "job_id": state.job_id,
                "done": sum(state.done for state in states),
                "total": sum(counts),
            }
        )

    async def _list_states(self) -> list[VectorState]:
        """Return the state of the vectors in each graph, the home graph first."""
        found = await run_in_each_graph(self._placed, self._vectors.get_state)
        assert None not in found, "a graph is prepared before it is used"
        return [state for state in found if state is not None]

    async def _describe(self, model: str | None) -> EmbeddingModel:
        """Return a model of the configured embedder, which is loaded to verify that it works."""
        settings = self._settings if model is None else self._settings.model_copy(update={"embedding_model": model})
        try:
            embedder = create_embedder(settings)
            try:
                await embedder.open()
                return describe_model(embedder, settings)
            finally:
                await embedder.aclose()
        except ConfigurationError as error:
            if model is None:
                raise
            raise InvalidInput(error.detail, errors=[{"loc": ["model"], "msg": "cannot be used"}]) from error


def _under_way(states: Sequence[VectorState]) -> VectorState | None:
    """Return the state of the first graph whose vectors are being replaced."""
    return next((state for state in states if state.next is not None), None)
