"""Plans which memories a run analyses together. Pure.

A batch holds related memories, whatever the night, scope or domain they were stated in: memories of one subject with
similar meanings or one predicate, memories that share an entity which few others have, and memories whose subjects may
be the same because their names are alike or one memory names the subject of another.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from graphmem.consolidation.models import MemoryBatch
from graphmem.memories.entity import NamedEntity
from graphmem.memories.fact import TYPE_PREDICATES
from graphmem.memories.names import NameIndex
from graphmem.text.names import strip_possessive

MAX_BEARERS = 16
"""Maximum memories naming an entity without a link to it; more are no evidence about it."""

MEMORIES_PER_NAME = 2
"""Number of memories of each of two entities with similar names to analyse together."""

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

MAX_NEIGHBOURS = 8
"""Maximum number of most similar memories considered for one memory, per group that it is in."""

MIN_BOND = 0.6
"""Minimum strength of a bond between two memories that are analysed together.

It is the similarity of their meanings, plus a term for a shared predicate and each shared entity, larger the fewer
memories have it.
"""

NAMING_BOND = math.inf
"""Strength of a bond between memories whose subjects may be the same."""

MAX_OLDER_NEIGHBOURS = 3
"""Maximum number of already analysed memories added to a batch for one new memory, besides those with its name."""

SIMILARITY_BLOCK_ROWS = 1024
"""Number of rows of the similarity matrix computed at once, to limit its memory use."""

Neighbours = Sequence[tuple[int, float]]
"""Similar memories of one memory, nearest first: their indexes and cosine similarities."""

Bond = tuple[float, int, int]
"""The strength of the relation between two memories, and their indexes."""


@dataclass(frozen=True, slots=True)
class ColdMemoryPolicy:
    """The criterion for cold memories: older than `min_age` and read less than `access_threshold` times.

    Cold memories may be compressed, that is, merged with similar ones.
    """

    min_age: timedelta = timedelta(days=7)
    access_threshold: int = 3


DEFAULT_COLD_MEMORY_POLICY = ColdMemoryPolicy()
"""The default policy."""


@dataclass(frozen=True, slots=True)
class ConsolidationCandidate:
    """A current memory that a run may analyse; `is_new` until a run has done so. `vector` has length 1."""

    memory_id: str
    content: str
    subject_id: str
    predicate: str
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
        """The entities that it names, including its subject."""
        return self.entity_ids | {self.subject_id}

    @property
    def merge_group(self) -> tuple[str, str, str]:
        """Subject, scope and domain, which memories must share to be merged."""
        return (self.subject_id, self.scope, self.domain or "")

    @property
    def family(self) -> tuple[str, str] | None:
        """Subject and predicate, unless the predicate merely states the memory's type."""
        return None if self.predicate in TYPE_PREDICATES else (self.subject_id, self.predicate)

    def is_compressible(self, now: datetime, cold_policy: ColdMemoryPolicy) -> bool:
        """Return whether the memory is cold and has been analysed before."""
        return (
            self.created_at < now - cold_policy.min_age
            and self.access_count < cold_policy.access_threshold
            and not self.is_new
        )


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The batches to analyse, and the ids of cold memories with no similar one, which need no analysis."""

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

    `similar` are the pairs of entities that may be the same by their names. A new memory in no batch, because there are
    too many or none is left to compare it with, stays new.
    """
    neighbours = find_neighbours(candidates)
    scores = {
        index: discovery_score(candidates, index, neighbours[index], now)
        for index, candidate in enumerate(candidates)
        if candidate.is_new
    }
    chosen = sorted(scores, key=lambda index: -scores[index])[: batch_size * max_batches]
    bonds = _find_bonds(candidates, neighbours, {entity.id for entity in entities if entity.is_user})
    named = _bind_names(candidates, chosen, entities, similar)
    packed = _pack(_cluster(candidates, chosen, [*bonds, *named], batch_size), batch_size)
    _give_company(packed, candidates)
    batches = [_to_batch(candidates, batch, old=False) for batch in packed if len(batch) > 1][:max_batches]
    taken = {memory_id for batch in batches for memory_id in batch.memory_ids}
    compressible = sorted(
        (
            index
            for index, candidate in enumerate(candidates)
            if candidate.memory_id not in taken and candidate.is_compressible(now, cold_policy)
        ),
        key=lambda index: candidates[index].created_at,
    )
    clusters = _cluster(candidates, compressible, bonds, batch_size)
    unseen = [
        cluster for cluster in clusters if not all(candidates[index].considered_for_compression for index in cluster)
    ]
    old_batches = _pack([cluster for cluster in unseen if len(cluster) > 1], batch_size)
    batches += [_to_batch(candidates, batch, old=True) for batch in old_batches][: max_batches - len(batches)]
    return DiscoveryResult(batches, [candidates[index].memory_id for [index, *rest] in unseen if not rest])


def discovery_score(
    candidates: Sequence[ConsolidationCandidate], index: int, neighbours: Neighbours, now: datetime
) -> float:
    """Return the priority of a memory for analysis, from 0 to 1.

    It is `0.3·exp(−hours/24) + 0.2/(1 + associations) + 0.3·similarity + 0.2·overlap`, where similarity and entity
    overlap (Jaccard) refer to the nearest other memory.
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
    candidates: Sequence[ConsolidationCandidate],
    groups_of: Callable[[ConsolidationCandidate], Iterable[Hashable]] = lambda candidate: [candidate.subject_id],
) -> list[list[tuple[int, float]]]:
    """Return, for each memory, the most similar others in each of its groups, nearest first.

    By default, memories are grouped by subject.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, candidate in enumerate(candidates):
        for key in groups_of(candidate):
            groups[key].append(index)
    found: list[dict[int, float]] = [{} for _ in candidates]
    for members in groups.values():
        if len(members) < 2:
            continue
        vectors = np.stack([candidates[index].vector for index in members])
        for start in range(0, len(members), SIMILARITY_BLOCK_ROWS):
            cosines = vectors[start : start + SIMILARITY_BLOCK_ROWS] @ vectors.T
            cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = -1.0
            count = min(MAX_NEIGHBOURS, len(members) - 1)
            best = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            for row, columns in enumerate(best):
                found[members[start + row]] |= {members[column]: float(cosines[row, column]) for column in columns}
    return [sorted(near.items(), key=lambda neighbour: -neighbour[1]) for near in found]


def _find_bonds(
    candidates: Sequence[ConsolidationCandidate], neighbours: Sequence[Neighbours], user_ids: set[str]
) -> list[Bond]:
    """Return the bonds between memories with similar meanings, the same predicate or shared entities."""
    bearers = Counter(key for candidate in candidates for key in candidate.all_entity_ids)
    families = Counter(candidate.family for candidate in candidates)

    def shared_groups(candidate: ConsolidationCandidate) -> list[Hashable]:
        family = [candidate.family] if candidate.family else []
        return [*family, *(candidate.all_entity_ids - user_ids)]

    strengths: dict[tuple[int, int], float] = {}
    related = find_neighbours(candidates, shared_groups)
    for index, one in enumerate(candidates):
        for position, cosine in {**dict(neighbours[index]), **dict(related[index])}.items():
            other = candidates[position]
            shared = (one.all_entity_ids & other.all_entity_ids) - user_ids
            shared -= {one.subject_id} if one.subject_id == other.subject_id else set()
            strength = max(0.0, cosine) + sum(_rarity(bearers[key]) for key in shared)
            if one.family and one.family == other.family:
                strength += _rarity(families[one.family])
            strengths[min(index, position), max(index, position)] = strength
    return [(strength, one, other) for (one, other), strength in strengths.items() if strength >= MIN_BOND]


def _rarity(bearers: int) -> float:
    """Return the weight of a feature shared by two memories, given how many bear it: 0.63 for two."""
    return 1 / math.log2(1 + bearers)


def _bind_names(
    candidates: Sequence[ConsolidationCandidate],
    chosen: Sequence[int],
    entities: Sequence[NamedEntity],
    similar: Sequence[tuple[str, str]],
) -> list[Bond]:
    """Return the bonds between memories whose subjects may be the same, each with a chosen memory.

    The memories are about two entities with similar names, preferring those that name the other entity; or one names an
    entity that another is linked to.
    """
    rank = {index: position for position, index in enumerate(chosen)}
    order = [*chosen, *(index for index, candidate in enumerate(candidates) if not candidate.is_new)]
    by_entity: dict[str, list[int]] = defaultdict(list)
    naming: dict[str, list[int]] = defaultdict(list)
    names = NameIndex(entities)
    for index in order:
        known = candidates[index].all_entity_ids
        for entity_id in known:
            by_entity[entity_id].append(index)
        for mention in names.find_full_names(strip_possessive(candidates[index].content)):
            if mention.id not in known and not mention.is_user:
                naming[mention.id].append(index)
    bonds: list[Bond] = []

    def bind(indexes: Iterable[int]) -> None:
        first, *others = sorted(indexes, key=lambda index: rank.get(index, len(rank)))
        if first in rank:
            bonds.extend((NAMING_BOND, first, other) for other in others)

    for pair in similar:
        bound: dict[int, None] = {}
        for entity_id, other in (pair, pair[::-1]):
            telling = {*naming.get(other, ()), *by_entity.get(other, ())}
            members = sorted(by_entity.get(entity_id, ()), key=lambda index: index not in telling)
            bound |= dict.fromkeys(members[:MEMORIES_PER_NAME])
            bound |= dict.fromkeys([index for index in by_entity.get(entity_id, ()) if index in rank][:1])
        if all(entity_id in by_entity for entity_id in pair):
            bind(bound)
    for entity_id in sorted(naming.keys() & by_entity.keys()):
        for index in naming[entity_id] if len(naming[entity_id]) <= MAX_BEARERS else ():
            partners = by_entity[entity_id] if index in rank else [key for key in by_entity[entity_id] if key in rank]
            bind({index, *partners[:1]})
    return bonds


def _cluster(
    candidates: Sequence[ConsolidationCandidate], chosen: Sequence[int], bonds: Iterable[Bond], batch_size: int
) -> list[list[int]]:
    """Return clusters of the chosen memories with related ones, strongest bonds first, each at most a batch.

    A few memories that were analysed before join each new one. A cluster keeps memories together that can be merged.
    """
    rank = {index: position for position, index in enumerate(chosen)}
    cluster_of = {index: [index] for index in chosen}
    older: Counter[int] = Counter()
    for strength, *ends in sorted(bonds, key=lambda bond: (-bond[0], bond[1:])):
        hosts = [index for index in ends if index in rank]
        if not hosts:
            continue
        if len(hosts) == 1:
            [host], [guest] = hosts, [index for index in ends if index not in rank]
            older[host] += strength < NAMING_BOND
            is_welcome = candidates[host].is_new and older[host] <= MAX_OLDER_NEIGHBOURS
            if candidates[guest].is_new or not is_welcome:
                continue
        one, other = (cluster_of.get(index, [index]) for index in ends)
        if one is not other and len(one) + len(other) <= batch_size:
            joined = [*one, *other]
            cluster_of |= dict.fromkeys(joined, joined)
    clusters = list({id(cluster): cluster for cluster in cluster_of.values()}.values())
    last = len(rank)
    return [_order(candidates, cluster, rank, last) for cluster in clusters]


def _order(
    candidates: Sequence[ConsolidationCandidate], cluster: Sequence[int], rank: Mapping[int, int], last: int
) -> list[int]:
    """Return the memories ordered so that those that can be merged are adjacent, otherwise in the order chosen."""
    ordered = sorted(cluster, key=lambda index: (rank.get(index, last), index))
    groups = list(dict.fromkeys(candidates[index].merge_group for index in ordered))
    return sorted(ordered, key=lambda index: groups.index(candidates[index].merge_group))


def _pack(clusters: Sequence[Sequence[int]], batch_size: int) -> list[list[int]]:
    """Pack clusters into batches of up to `batch_size` memories, each into the first batch with room."""
    batches: list[list[int]] = []
    open_batches: list[list[int]] = []
    for cluster in clusters:
        target = next((batch for batch in open_batches if len(batch) + len(cluster) <= batch_size), None)
        if target is None:
            target = []
            batches.append(target)
            open_batches.append(target)
        target += cluster
        open_batches = [batch for batch in open_batches if len(batch) < batch_size]
    return batches


def _give_company(batches: Sequence[list[int]], candidates: Sequence[ConsolidationCandidate]) -> None:
    """Add the most similar already analysed memory to a batch of one, or else a memory of a larger batch."""
    for batch in batches:
        if len(batch) > 1:
            continue
        vector, taken = candidates[batch[0]].vector, {index for other in batches for index in other}
        company = [index for index, found in enumerate(candidates) if index not in taken and not found.is_new]
        company = company or [index for other in batches if len(other) > 2 for index in other]
        if company:
            nearest = max(company, key=lambda index: float(candidates[index].vector @ vector))
            for other in batches:
                if nearest in other:
                    other.remove(nearest)
            batch.append(nearest)


def _to_batch(candidates: Sequence[ConsolidationCandidate], indexes: Sequence[int], *, old: bool) -> MemoryBatch:
    return MemoryBatch(memory_ids=[candidates[index].memory_id for index in indexes], old=old)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
