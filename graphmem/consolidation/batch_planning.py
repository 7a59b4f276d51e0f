"""Plans which memories a run analyses together. Pure.

A batch holds similar memories of one subject, scope and domain, and memories whose subjects may be one: their names
are alike, or one memory names the subject of another, or they share an entity that few others have.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from graphmem.consolidation.models import MemoryBatch
from graphmem.memories.entity import NamedEntity
from graphmem.memories.entity_names import NameIndex
from graphmem.text.names import strip_possessive

MAX_BEARERS = 16
"""Most entities, or memories, in common to what is looked at; what more of them share distinguishes nothing."""

MEMORIES_PER_NAME = 2
"""Memories of each of two entities with similar names that are analysed together."""

MAX_RELATED = 2
"""Most memories that a new one brings into its batch because of a name in a text or of an entity in common."""

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

MAX_SIMILAR_UNIT = 4
"""Most memories that stay in one batch because they are similar; larger units would leave batches half empty."""

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
    content: str
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
    def all_entity_ids(self) -> frozenset[str]:
        """The entities that it names, its subject included."""
        return self.entity_ids | {self.subject_id}

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
    *,
    entities: Sequence[NamedEntity] = (),
    similar: Sequence[tuple[str, str]] = (),
) -> DiscoveryResult:
    """Return up to `max_batches` batches of 2 to `batch_size` memories each: new memories first, then cold ones.

    `similar` are the pairs of entities that may be one by their names. A new memory that is in no batch, because there
    are too many or no other is left to compare it with, stays new.
    """
    neighbours = find_neighbours(candidates)
    scores = {
        index: discovery_score(candidates, index, neighbours[index], now)
        for index, candidate in enumerate(candidates)
        if candidate.is_new
    }
    chosen = sorted(scores, key=lambda index: -scores[index])[: batch_size * max_batches]
    ordered = _order_with_neighbours(candidates, chosen, neighbours, scores)
    units = _Units(ordered, batch_size)
    related = _Related(candidates, chosen, entities)
    for bond in related.by_names(similar):
        units.join(bond, batch_size // 2)
    for bond in [*related.by_mention(), *related.by_shared_entity()]:
        units.join(bond, MAX_SIMILAR_UNIT)
    units.join_similar(neighbours)
    packed = units.pack()
    _fill_single(packed, candidates, neighbours)
    batches = [_to_batch(candidates, batch, old=False) for batch in packed if len(batch) > 1][:max_batches]
    taken = {memory_id for batch in batches for memory_id in batch.memory_ids}
    compressible = {
        index
        for index, candidate in enumerate(candidates)
        if candidate.memory_id not in taken and candidate.is_compressible(now, cold_policy)
    }
    to_compress, isolated = _order_compressible(candidates, neighbours, compressible)
    units = _Units(to_compress, batch_size)
    units.join_similar(neighbours)
    old_batches = [_to_batch(candidates, batch, old=True) for batch in units.pack()]
    batches += [batch for batch in old_batches if len(batch.memory_ids) > 1][: max_batches - len(batches)]
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


class _Units:
    """Memories in the order of their analysis, joined to units that stay in one batch."""

    def __init__(self, ordered: Sequence[int], batch_size: int) -> None:
        self._batch_size = batch_size
        self._position = {index: position for position, index in enumerate(ordered)}
        self._unit_of = {index: [index] for index in ordered}

    def join(self, indexes: Iterable[int], limit: int) -> None:
        """Join the units of memories, and memories that are in none, unless that makes more than `limit`."""
        units = {id(unit): unit for index in indexes for unit in [self._unit_of.get(index, [index])]}
        joined = [index for unit in units.values() for index in unit]
        if len(joined) > min(max(limit, 2), self._batch_size):
            return
        for index in joined:
            self._position.setdefault(index, len(self._position))
            self._unit_of[index] = joined

    def join_similar(self, neighbours: Sequence[Neighbours]) -> None:
        """Join memories of similar meaning, the most similar first."""
        edges = [
            (-cosine, index, other)
            for index in self._position
            for other, cosine in neighbours[index]
            if cosine >= MIN_NEIGHBOUR_SIMILARITY and other in self._position
        ]
        for _, index, other in sorted(edges):
            if self._unit_of[index] is not self._unit_of[other]:
                self.join((index, other), MAX_SIMILAR_UNIT)

    def pack(self) -> list[list[int]]:
        """Return batches that keep units together, each in order; only the last may hold a single memory."""
        units = {id(unit): unit for unit in self._unit_of.values()}
        position = self._position.__getitem__
        ordered = sorted(units.values(), key=lambda unit: min(map(position, unit)))
        return [sorted(batch, key=position) for batch in _pack(ordered, self._batch_size)]


class _Related:
    """Which of the chosen memories, and of those analysed before, belong together though their subjects differ."""

    def __init__(
        self, candidates: Sequence[ConsolidationCandidate], chosen: Sequence[int], entities: Sequence[NamedEntity]
    ) -> None:
        self._candidates = candidates
        self._chosen = set(chosen)
        considered = [
            index for index, candidate in enumerate(candidates) if index in self._chosen or not candidate.is_new
        ]
        considered.sort(key=lambda index: candidates[index].created_at, reverse=True)
        considered.sort(key=lambda index: index not in self._chosen)
        self._order = {index: order for order, index in enumerate(considered)}
        self._by_entity: dict[str, list[int]] = defaultdict(list)
        self._naming: dict[str, set[int]] = defaultdict(set)
        self._user_ids = {entity.id for entity in entities if entity.is_user}
        names = NameIndex(entities)
        for index in considered:
            known = candidates[index].all_entity_ids
            for entity_id in known:
                self._by_entity[entity_id].append(index)
            for mention in names.find_full_names(strip_possessive(candidates[index].content)):
                if mention.id not in known and not mention.is_user:
                    self._naming[mention.id].add(index)

    def by_names(self, similar: Sequence[tuple[str, str]]) -> list[list[int]]:
        """Return memories of pairs of entities: those that name the other one first, and at least one chosen."""
        bonds = []
        for pair in similar:
            of_both = [index for entity_id in pair for index in self._by_entity.get(entity_id, ())]
            if not all(entity_id in self._by_entity for entity_id in pair) or self._chosen.isdisjoint(of_both):
                continue
            bond: dict[int, None] = {}
            for entity_id, other in (pair, pair[::-1]):
                naming = self._naming.get(other, set()) | set(self._by_entity[other])
                members = sorted(self._by_entity[entity_id], key=lambda index: index not in naming)
                bond |= dict.fromkeys(members[:MEMORIES_PER_NAME])
            if self._chosen.isdisjoint(bond):
                bond[next(index for index in of_both if index in self._chosen)] = None
            bonds.append(list(bond))
        return bonds

    def by_mention(self) -> list[list[int]]:
        """Return memories that name an entity, each with one that is linked to it."""
        bonds = []
        for entity_id in sorted(self._naming.keys() & self._by_entity.keys()):
            naming, members = self._naming[entity_id], self._by_entity[entity_id]
            for index in sorted(naming, key=self._order.__getitem__) if len(naming) <= MAX_BEARERS else ():
                partners = members if index in self._chosen else [key for key in members if key in self._chosen]
                bonds += [[index, partner] for partner in partners[:1] if partner != index]
        return bonds

    def by_shared_entity(self) -> list[list[int]]:
        """Return chosen memories with those of other subjects that share rare entities, the most shared first."""
        bonds = []
        for index in sorted(self._chosen, key=self._order.__getitem__):
            candidate = self._candidates[index]
            shared: dict[int, int] = defaultdict(int)
            for entity_id in candidate.all_entity_ids - self._user_ids:
                members = self._by_entity[entity_id]
                for other in members if len(members) <= MAX_BEARERS else ():
                    shared[other] += self._candidates[other].subject_id != candidate.subject_id
            others = [other for other, count in shared.items() if count]
            others.sort(key=lambda other: (-shared[other], self._order[other]))
            bonds += [[index, other] for other in others[:MAX_RELATED]]
        return bonds


def _pack(units: Sequence[Sequence[int]], batch_size: int) -> list[list[int]]:
    """Put units into batches of up to `batch_size` memories, each into the first that has room."""
    batches: list[list[int]] = []
    open_batches: list[list[int]] = []
    for unit in units:
        target = next((batch for batch in open_batches if len(batch) + len(unit) <= batch_size), None)
        if target is None:
            target = []
            batches.append(target)
            open_batches.append(target)
        target += unit
        open_batches = [batch for batch in open_batches if len(batch) < batch_size]
    if len(batches) > 1 and len(batches[-1]) == 1:
        _balance(batches, units)
    return batches


def _balance(batches: list[list[int]], units: Sequence[Sequence[int]]) -> None:
    """Move units of the second last batch to the last one, which holds a single memory, up to half of it."""
    *_, full, last = batches
    half = (len(full) + len(last)) // 2
    moved: list[int] = []
    for unit in reversed(units):
        if unit[0] in full and len(last) + len(moved) + len(unit) <= max(half, 2):
            moved[:0] = unit
    if len(full) - len(moved) > 1:
        full[:] = [index for index in full if index not in moved]
        last[:0] = moved


def _fill_single(
    batches: Sequence[list[int]],
    candidates: Sequence[ConsolidationCandidate],
    neighbours: Sequence[Neighbours],
) -> None:
    """Add to a batch of one memory the most similar one that was analysed before and is in no batch."""
    taken = {index for batch in batches for index in batch}
    for batch in batches:
        if len(batch) > 1:
            continue
        [index] = batch
        near = (other for other, _ in neighbours[index] if other not in taken and not candidates[other].is_new)
        company = next(near, None)
        if company is None:
            older = [other for other, found in enumerate(candidates) if other not in taken and not found.is_new]
            similarity = {other: float(candidates[index].vector @ candidates[other].vector) for other in older}
            company = max(older, key=similarity.__getitem__, default=None)
        if company is not None:
            batch.append(company)
            taken.add(company)


def _to_batch(candidates: Sequence[ConsolidationCandidate], indexes: Sequence[int], *, old: bool) -> MemoryBatch:
    return MemoryBatch(memory_ids=[candidates[index].memory_id for index in indexes], old=old)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
