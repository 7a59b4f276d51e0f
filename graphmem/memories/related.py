"""The current memories that a new statement may contradict or repeat."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from typing import NamedTuple

import numpy as np
from neo4j.vector import Vector as Neo4jVector
from numpy.typing import NDArray

from graphmem.memories.fact import Fact
from graphmem.memories.new_memory import NewMemory
from graphmem.neo4j.driver import Transaction
from graphmem.neo4j.driver_values import pack_vector
from graphmem.runtime.field_types import Vector
from graphmem.tenants.owners import Owner

MIN_RELATED_COSINE = 0.58
"""Minimum cosine at which statements about one subject may contradict each other, measured with the default model."""

MIN_SLOT_COSINE = 0.40
"""Minimum cosine for two statements of one relation with different objects."""

COMPARED_PER_STATEMENT = 50
"""Number of entities' versions that cost as much to compare with all statements as one vector index search."""

NEIGHBOURS = 12
"""Number of facts near a statement to search for those about its subject."""

MAX_RELATED = 5
"""Maximum memories that a save names as related to one statement."""


async def find_related(
    transaction: Transaction,
    owner: Owner,
    memories: Sequence[NewMemory],
    drafts: Sequence[Fact],
    new_entity_ids: Set[str],
    now: datetime,
) -> list[list[str]]:
    """Return, for each statement, the ids of current memories that it may contradict or repeat.

    Imported statements are history and are not compared. A new entity has no facts to compare with.
    """
    about = [
        set() if memory.provenance else {*draft.entity_ids} - new_entity_ids
        for memory, draft in zip(memories, drafts, strict=True)
    ]
    compared = [at for at, entity_ids in enumerate(about) if entity_ids]
    related: list[list[str]] = [[] for _ in drafts]
    if not compared:
        return related
    vectors = [memories[at].vector for at in compared]
    rows = await transaction.fetch_value(
        "facts.find_comparable",
        group_id=owner.group_id,
        entity_ids=sorted(set().union(*about)),
        vectors=[*map(pack_vector, vectors)],
        dimension=len(vectors[0]),
        now=now,
        most_compared=COMPARED_PER_STATEMENT * len(compared),
        neighbours=NEIGHBOURS,
    )
    # In this order, equal cosines do not depend on the database.
    known = sorted((ComparableFact(*columns) for columns in rows), key=lambda fact: fact.memory_id)
    if known:
        cosines = cosines_of(vectors, [fact.vector for fact in known])
        for at, row in zip(compared, cosines, strict=True):
            related[at] = _most_related(drafts[at], about[at], known, row)
    return related


class ComparableFact(NamedTuple):
    """The values that decide whether a current fact is related; without an object, the subject takes its place."""

    memory_id: str
    subject_id: str
    object_id: str
    predicate: str
    content_hash: str
    vector: Neo4jVector


def cosines_of(vectors: Sequence[Vector], others: Sequence[Neo4jVector]) -> NDArray[np.float32]:
    """Return the cosine of each vector with each of the vectors from rows."""
    read = np.frombuffer(b"".join(vector.raw() for vector in others), ">f4").astype(np.float32)
    return _of_length_1(np.array(vectors, np.float32)) @ _of_length_1(read.reshape(len(others), -1)).T


def _of_length_1(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def _most_related(
    draft: Fact, entity_ids: Set[str], known: Sequence[ComparableFact], cosines: NDArray[np.float32]
) -> list[str]:
    """Return the ids of the facts about its entities that are most similar to a statement, the most similar first.

    Less similar facts are only included if the relation is the same and the object different.
    """
    near = np.flatnonzero(cosines >= (MIN_SLOT_COSINE if draft.object_id else MIN_RELATED_COSINE))
    found: list[str] = []
    for at in near[np.argsort(-cosines[near], kind="stable")].tolist():
        fact = known[at]
        if (
            fact.subject_id in entity_ids
            and fact.content_hash != draft.content_hash
            and (cosines[at] >= MIN_RELATED_COSINE or _is_other_value(draft, fact))
        ):
            found.append(fact.memory_id)
            if len(found) == MAX_RELATED:
                break
    return found


def _is_other_value(draft: Fact, fact: ComparableFact) -> bool:
    return fact.predicate == draft.predicate and fact.object_id != draft.object_id
