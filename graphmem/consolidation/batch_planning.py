"""Plans which memories a run analyses together: by subject, and where subjects may be one. Pure.

These are similar ones of one subject, scope and domain, and those whose subjects may be one: see `related_memories`.

Names that look alike, a name in the text of a memory that is not linked to it, and a third entity in common bring
memories together. An index of the words and spellings of names keeps the cost in proportion to their number.
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
from graphmem.consolidation.names import PART_OF_NAME, find_same_name_reason, name_tokens
from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE
from graphmem.text.names import edit_distance, first_name_forms, max_typos, name_words, strip_possessive
from graphmem.text.normalising import to_latin

MAX_BEARERS = 16
"""Most entities, or memories, in common to what is looked at; what more of them share distinguishes nothing."""

MAX_ALIKE = 3
"""Most entities of similar names that are considered for one entity."""

MEMORIES_PER_NAME = 2
"""Memories of each of two entities with similar names that are analysed together."""

MAX_RELATED = 2
"""Most memories that a new one brings into its batch because of a name in a text or of an entity in common."""

_SPELLING_LENGTH = 3
"""Letters at the beginning and at the end of a name by which spellings are compared."""


@dataclass(frozen=True, slots=True)
class EntityNames:
    """The names of an entity, its own first, and what it is."""

    id: str
    names: tuple[str, ...]
    type: str = DEFAULT_ENTITY_TYPE
    is_user: bool = False


@dataclass(frozen=True, slots=True)
class RelatedText:
    """What is compared of a memory; `entity_ids` has its subject, and `order` is lower where it is preferred to others.

    A memory that is chosen will be analysed, another one only if it is related.
    """

    content: str
    subject_id: str
    entity_ids: frozenset[str]
    is_chosen: bool
    order: int


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """Small sets of memories to analyse together, the most important first; each has one that is chosen."""

    of_similar_names: list[list[int]]
    of_one_matter: list[list[int]]


def find_related(memories: Mapping[int, RelatedText], entities: Sequence[EntityNames]) -> RelatedMemories:
    """Return which memories, by their numbers, should be analysed together."""
    by_entity = _group_by_entity(memories)
    names = SimilarNameIndex(entities)
    named = _find_named(memories, names)
    user_ids = {entity.id for entity in entities if entity.is_user}
    others = {key: members for key, members in by_entity.items() if key not in user_ids}
    return RelatedMemories(
        [_choose_memories(memories, by_entity, pair, named) for pair in _find_pairs(memories, by_entity, names)],
        [*_relate_by_mention(memories, by_entity, named), *_relate_by_shared_entity(memories, others)],
    )


class SimilarNameIndex:
    """Finds entities by the words and the spelling of their names."""

    def __init__(self, entities: Sequence[EntityNames]) -> None:
        self._entities = {entity.id: entity for entity in entities}
        self._by_key: dict[str, set[str]] = defaultdict(set)
        self._by_first_word: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
        for entity in entities:
            for name in entity.names:
                words = name_tokens(name)
                for key in [*_word_keys(words), *_spelling_keys(words)]:
                    self._by_key[key].add(entity.id)
                if words and not entity.is_user:
                    self._by_first_word[words[0]].append((entity.id, words))

    def find_alike(self, entity_id: str) -> list[tuple[int, str]]:
        """Return the entities whose names may mean the same as those of one entity, each with its rank from 0."""
        entity = self._entities.get(entity_id)
        if entity is None:
            return []
        keys = {key for name in entity.names for key in _lookup_keys(name_tokens(name))}
        found = {other for key in keys for other in self._bearers(key)} - {entity_id}
        ranked = [(rank, other) for other in found if (rank := _rank(entity, self._entities[other])) is not None]
        return sorted(ranked)[:MAX_ALIKE]

    def find_in_text(self, text: str) -> set[str]:
        """Return the entities of which a text has a name; in scripts without spaces it finds none."""
        words = name_words(strip_possessive(text))
        found = set()
        for start, word in enumerate(words):
            bearers = self._by_first_word.get(word, ())
            if len(bearers) <= MAX_BEARERS:
                found |= {entity_id for entity_id, name in bearers if words[start : start + len(name)] == name}
        return found

    def _bearers(self, key: str) -> Iterable[str]:
        bearers = self._by_key.get(key, set())
        return bearers if len(bearers) <= MAX_BEARERS else ()


def _word_keys(words: Sequence[str]) -> list[str]:
    joined, initials = "".join(words), "".join(word[0] for word in words)
    return [f"word {joined}", f"initials {initials}", *(f"word {word}" for word in words)]


def _spelling_keys(words: Sequence[str]) -> list[str]:
    letters = to_latin("".join(words))
    return [f"begins {letters[:_SPELLING_LENGTH]}", f"ends {letters[-_SPELLING_LENGTH:]}"] if letters else []


def _lookup_keys(words: Sequence[str]) -> list[str]:
    """Return the keys under which other spellings, short forms and initials of a name are found."""
    forms = [f"word {form}" for word in words for form in first_name_forms(word)]
    initials = "".join(word[0] for word in words)
    return [*_word_keys(words), *_spelling_keys(words), *forms, f"word {initials}", f"initials {''.join(words)}"]


def _rank(one: EntityNames, other: EntityNames) -> int | None:
    """Return 0 for two names that often mean one, 1 for a similar spelling, 2 for a part of a name, and else None."""
    types = {one.type, other.type} - {DEFAULT_ENTITY_TYPE}
    if len(types) > 1 and PERSON_TYPE in types:
        return None
    people = types <= {PERSON_TYPE}
    reason = find_same_name_reason(one.names, other.names, people=people)
    if reason is not None:
        return 2 if reason == PART_OF_NAME else 0
    return 1 if any(_spelled_alike(first, second) for first in one.names for second in other.names) else None


def _spelled_alike(one: str, other: str) -> bool:
    first, second = (to_latin("".join(name_tokens(name))) for name in (one, other))
    return edit_distance(first, second, max_typos(min(len(first), len(second)))) is not None


def _group_by_entity(memories: Mapping[int, RelatedText]) -> dict[str, list[int]]:
    """Return the memories of each entity, the preferred first."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index in sorted(memories, key=lambda index: memories[index].order):
        for entity_id in memories[index].entity_ids:
            groups[entity_id].append(index)
    return groups


def _find_pairs(
    memories: Mapping[int, RelatedText], by_entity: Mapping[str, Sequence[int]], names: SimilarNameIndex
) -> list[tuple[str, str]]:
    """Return the pairs of entities with similar names that have memories, one of them with a chosen one."""
    pairs: dict[tuple[str, str], int] = {}
    for entity_id in sorted(by_entity):
        if any(memories[index].is_chosen for index in by_entity[entity_id]):
            for rank, other in names.find_alike(entity_id):
                if other in by_entity:
                    pairs[min(entity_id, other), max(entity_id, other)] = rank
    return sorted(pairs, key=pairs.__getitem__)


def _find_named(memories: Mapping[int, RelatedText], names: SimilarNameIndex) -> dict[str, set[int]]:
    """Return for each entity the memories that have a name of it in their text but are not linked to it."""
    named: dict[str, set[int]] = defaultdict(set)
    for index, memory in memories.items():
        for entity_id in names.find_in_text(memory.content) - memory.entity_ids:
            named[entity_id].add(index)
    return named


def _choose_memories(
    memories: Mapping[int, RelatedText],
    by_entity: Mapping[str, Sequence[int]],
    pair: tuple[str, str],
    named: Mapping[str, set[int]],
) -> list[int]:
    """Return memories of two entities: those that name the other one first, and at least one that is chosen."""
    chosen: dict[int, None] = {}
    for entity_id, other in (pair, pair[::-1]):
        naming = named.get(other, set()) | set(by_entity[other])
        members = sorted(by_entity[entity_id], key=lambda index: index not in naming)
        chosen |= dict.fromkeys(members[:MEMORIES_PER_NAME])
    if not any(memories[index].is_chosen for index in chosen):
        of_both = (index for entity_id in pair for index in by_entity[entity_id])
        chosen[next(index for index in of_both if memories[index].is_chosen)] = None
    return list(chosen)


def _relate_by_mention(
    memories: Mapping[int, RelatedText], by_entity: Mapping[str, Sequence[int]], named: Mapping[str, set[int]]
) -> list[list[int]]:
    """Return memories that name an entity, each with one that is linked to it."""
    bonds = []
    for entity_id in sorted(named.keys() & by_entity.keys()):
        naming, members = named[entity_id], by_entity[entity_id]
        if len(naming) > MAX_BEARERS:
            continue
        for index in sorted(naming, key=lambda index: memories[index].order):
            partners = members if memories[index].is_chosen else [key for key in members if memories[key].is_chosen]
            bonds += [[index, partner] for partner in partners[:1] if partner != index]
    return bonds


def _relate_by_shared_entity(
    memories: Mapping[int, RelatedText], by_entity: Mapping[str, Sequence[int]]
) -> list[list[int]]:
    """Return chosen memories with those of other subjects that share rare entities with them, the most shared first."""
    bonds = []
    for index in sorted(memories, key=lambda index: memories[index].order):
        memory = memories[index]
        if not memory.is_chosen:
            continue
        shared: dict[int, int] = defaultdict(int)
        for entity_id in memory.entity_ids & by_entity.keys():
            members = by_entity[entity_id]
            for other in members if len(members) <= MAX_BEARERS else ():
                shared[other] += memories[other].subject_id != memory.subject_id
        others = sorted(
            (other for other, count in shared.items() if count),
            key=lambda other: (-shared[other], memories[other].order),
        )
        bonds += [[index, other] for other in others[:MAX_RELATED]]
    return bonds


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
    entities: Sequence[EntityNames] = (),
) -> DiscoveryResult:
    """Return up to `max_batches` batches of 2 to `batch_size` memories each: new memories first, then cold ones.

    A new memory that is in no batch, because there are too many or no other is left to compare it with, stays new.
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
    related = _find_related(candidates, entities, chosen)
    for bond in related.of_similar_names:
        units.join(bond, batch_size // 2)
    for bond in related.of_one_matter:
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


def _find_related(
    candidates: Sequence[ConsolidationCandidate], entities: Sequence[EntityNames], chosen: Sequence[int]
) -> RelatedMemories:
    """Return which of the chosen memories and of those analysed before belong together though their subjects differ."""
    are_chosen = set(chosen)
    considered = [index for index, candidate in enumerate(candidates) if index in are_chosen or not candidate.is_new]
    considered.sort(key=lambda index: candidates[index].created_at, reverse=True)
    considered.sort(key=lambda index: index not in are_chosen)
    texts = {
        index: RelatedText(
            content=candidates[index].content,
            subject_id=candidates[index].subject_id,
            entity_ids=candidates[index].entity_ids | {candidates[index].subject_id},
            is_chosen=index in are_chosen,
            order=order,
        )
        for order, index in enumerate(considered)
    }
    return find_related(texts, entities)


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
