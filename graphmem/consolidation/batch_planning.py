"""Plans which memories a run analyses together: similar ones of one subject, scope and domain. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from graphmem.domain.consolidation_models import MemoryBatch

RECENCY_WEIGHT = 0.3
"""Weight of recency in a discovery score; the four weights sum to 1."""

ISOLATION_WEIGHT = 0.2
"""Weight of having few associations in a discovery score."""

SIMILARITY_WEIGHT = 0.3
"""Weight of the similarity to the nearest other memory in a discovery score."""

OVERLAP_WEIGHT = 0.2
"""Weight of the entities shared with the nearest other memory in a discovery score."""

RECENT_HOURS = 24.0
"""Hours in which recency falls to 1/e."""

MIN_NEIGHBOUR_SIMILARITY = 0.6
"""Smallest cosine similarity of two memories that are analysed together."""

MAX_NEIGHBOURS = 8
"""Most similar memories that are looked at around one memory."""

MAX_OLDER_NEIGHBOURS = 2
"""Most memories analysed by earlier runs that join a batch because of one new memory."""

SIMILARITY_BLOCK_ROWS = 1024
"""Rows of the similarity matrix that are computed at once, to bound the memory it takes."""

Neighbours = Sequence[tuple[int, float]]
"""Similar memories of one memory, nearest first: their indexes and cosine similarities."""


@dataclass(frozen=True, slots=True)
class ColdMemoryPolicy:
    """Which memories are cold: those older than `min_age` and read less than `access_threshold` times.

    Cold memories may be compressed, that is, merged with similar ones.
    """

    min_age: timedelta = timedelta(days=7)
    access_threshold: int = 3


DEFAULT_COLD_MEMORY_POLICY = ColdMemoryPolicy()
"""The policy without settings."""


@dataclass(frozen=True, slots=True)
class ConsolidationCandidate:
    """A current memory that a run may analyse; `is_new` until a run has, and `vector` has length 1."""

    memory_id: str
    subject_id: str
    scope: str
    domain: str | None
    entity_ids: frozenset[str]
    associations: int
    created_at: datetime
    access_count: int
    is_new: bool
    considered_for_compression: bool
    vector: npt.NDArray[np.float32]

    @property
    def merge_group(self) -> tuple[str, str, str]:
        """Scope, domain and subject: only memories that agree in them can be merged."""
        return (self.scope, self.domain or "", self.subject_id)

    def is_compressible(self, now: datetime, cold_policy: ColdMemoryPolicy) -> bool:
        """Return whether the memory is cold and was analysed before."""
        return (
            self.created_at < now - cold_policy.min_age
            and self.access_count < cold_policy.access_threshold
            and not self.is_new
        )


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The batches to analyse, and the ids of cold memories without a similar one, which need no analysis."""

    batches: list[MemoryBatch]
    isolated_ids: list[str]


def plan_batches(
    candidates: Sequence[ConsolidationCandidate],
    now: datetime,
    batch_size: int,
    max_batches: int,
    cold_policy: ColdMemoryPolicy = DEFAULT_COLD_MEMORY_POLICY,
) -> DiscoveryResult:
    """Return up to `max_batches` batches of up to `batch_size` memories each: new memories first, then cold ones."""
    neighbours = find_neighbours(candidates)
    scores = {
        index: discovery_score(candidates, index, neighbours[index], now)
        for index, candidate in enumerate(candidates)
        if candidate.is_new
    }
    chosen = sorted(scores, key=lambda index: -scores[index])[: batch_size * max_batches]
    ordered = _order_with_neighbours(candidates, chosen, neighbours, scores)
    batches = _split(candidates, ordered, batch_size, max_batches, old=False)
    taken = {memory_id for batch in batches for memory_id in batch.memory_ids}
    compressible = {
        index
        for index, candidate in enumerate(candidates)
        if candidate.memory_id not in taken and candidate.is_compressible(now, cold_policy)
    }
    to_compress, isolated = _order_compressible(candidates, neighbours, compressible)
    batches += _split(candidates, to_compress, batch_size, max_batches - len(batches), old=True)
    return DiscoveryResult(batches, [candidates[index].memory_id for index in isolated])


def discovery_score(
    candidates: Sequence[ConsolidationCandidate], index: int, neighbours: Neighbours, now: datetime
) -> float:
    """Return the priority of a memory for analysis, from 0 to 1.

    It is `0.3·exp(−hours/24) + 0.2/(1 + associations) + 0.3·similarity + 0.2·overlap`, where similarity and overlap of
    entities (Jaccard) are those with the nearest other memory.
    """
    candidate = candidates[index]
    hours = max(0.0, (now - candidate.created_at).total_seconds() / 3600)
    similarity = neighbours[0][1] if neighbours else 0.0
    overlap = _jaccard(candidate.entity_ids, candidates[neighbours[0][0]].entity_ids) if neighbours else 0.0
    return (
        RECENCY_WEIGHT * math.exp(-hours / RECENT_HOURS)
        + ISOLATION_WEIGHT / (1 + candidate.associations)
        + SIMILARITY_WEIGHT * max(0.0, similarity)
        + OVERLAP_WEIGHT * overlap
    )


def find_neighbours(
    candidates: Sequence[ConsolidationCandidate], limit: int = MAX_NEIGHBOURS
) -> list[list[tuple[int, float]]]:
    """Return for each memory up to `limit` most similar others of its merge group, nearest first."""
    found: list[list[tuple[int, float]]] = [[] for _ in candidates]
    for members in _group_by_merge_group(candidates, range(len(candidates))):
        if len(members) < 2:
            continue
        vectors = np.stack([candidates[index].vector for index in members])
        for start in range(0, len(members), SIMILARITY_BLOCK_ROWS):
            cosines = vectors[start : start + SIMILARITY_BLOCK_ROWS] @ vectors.T
            cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1.0
            count = min(limit, len(members) - 1)
            best = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            for row, columns in enumerate(best):
                near = [(members[column], float(cosines[row, column])) for column in columns]
                found[members[start + row]] = sorted(near, key=lambda neighbour: -neighbour[1])
    return found


def _group_by_merge_group(candidates: Sequence[ConsolidationCandidate], indexes: Sequence[int]) -> list[list[int]]:
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index in indexes:
        groups[candidates[index].merge_group].append(index)
    return list(groups.values())


def _order_with_neighbours(
    candidates: Sequence[ConsolidationCandidate],
    chosen: Sequence[int],
    neighbours: Sequence[Neighbours],
    scores: Mapping[int, float],
) -> list[int]:
    """Return the chosen memories group by group, each followed by similar ones, new or analysed before."""
    groups = _group_by_merge_group(candidates, chosen)
    groups.sort(key=lambda members: -max(scores[index] for index in members))
    ordered: dict[int, None] = {}
    for members in groups:
        waiting = dict.fromkeys(members)
        while waiting:
            stack = [next(iter(waiting))]
            while stack:
                index = stack.pop()
                if index in ordered:
                    continue
                ordered[index] = None
                waiting.pop(index, None)
                similar = [
                    other
                    for other, cosine in neighbours[index]
                    if cosine >= MIN_NEIGHBOUR_SIMILARITY and other not in ordered
                ]
                stack += [other for other in reversed(similar) if other in waiting]
                older = [other for other in similar if not candidates[other].is_new]
                ordered |= dict.fromkeys(older[:MAX_OLDER_NEIGHBOURS])
    return list(ordered)


def _order_compressible(
    candidates: Sequence[ConsolidationCandidate], neighbours: Sequence[Neighbours], compressible: set[int]
) -> tuple[list[int], list[int]]:
    """Return compressible memories, each followed by similar ones, and those without a similar one.

    A memory that was considered for compression before occurs only as a similar one.
    """
    ordered: dict[int, None] = {}
    isolated = []
    for index in sorted(compressible, key=lambda index: candidates[index].created_at):
        if candidates[index].considered_for_compression:
            continue
        similar = [
            other for other, cosine in neighbours[index] if other in compressible and cosine >= MIN_NEIGHBOUR_SIMILARITY
        ]
        if similar:
            ordered |= dict.fromkeys([index, *similar])
        else:
            isolated.append(index)
    return list(ordered), isolated


def _split(
    candidates: Sequence[ConsolidationCandidate],
    indexes: Sequence[int],
    batch_size: int,
    max_batches: int,
    *,
    old: bool,
) -> list[MemoryBatch]:
    chunks = [indexes[start : start + batch_size] for start in range(0, len(indexes), batch_size)]
    return [
        MemoryBatch(memory_ids=[candidates[index].memory_id for index in chunk], old=old)
        for chunk in chunks[: max(0, max_batches)]
    ]


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
