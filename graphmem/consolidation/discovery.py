"""Discovery: finds the memories that a consolidation run analyses, and entities that may be the same by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from graphmem.consolidation.batch_planning import (
    DEFAULT_COLD_MEMORY_POLICY,
    MAX_BEARERS,
    SIMILARITY_BLOCK_ROWS,
    ColdMemoryPolicy,
    ConsolidationCandidate,
    DiscoveryResult,
    plan_batches,
)
from graphmem.memories.entity import NamedEntity
from graphmem.memories.names import NameReason, compare_name_lists, name_tokens
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.migrations import NAME_TEXT_FIELDS
from graphmem.tenants.owners import Owner
from graphmem.text.names import first_name_forms
from graphmem.text.normalising import to_latin
from graphmem.text.tokenising import build_lucene_query, query_terms

MIN_PROFILE_FACTS = 6
"""Minimum number of facts of an entity for a profile; with fewer, the facts themselves are short enough to read."""

MIN_OWN_FACTS = 3
"""Minimum number of facts with the entity as subject; facts about others, such as of an activity, give no profile."""

MIN_NEW_FACTS = 3
"""Number of newer facts at which a profile is rewritten even though everything it says still holds."""

NAMES_PER_QUERY = 100
"""Number of entities whose similar names are looked up in one query."""


class Discovery:
    """Finds the memories to consolidate, in batches of at most `batch_size`.

    Per user, at most `max_profiles` entity profiles are due at a time, and none without a model.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        batch_size: int,
        max_batches: int,
        cold_policy: ColdMemoryPolicy = DEFAULT_COLD_MEMORY_POLICY,
        max_profiles: int = 0,
    ) -> None:
        self._graph = graph
        self._batch_size = batch_size
        self._max_batches = max_batches
        self._cold_policy = cold_policy
        self._max_profiles = max_profiles

    async def find_owners(self, tenant: str | None, now: datetime) -> list[Owner]:
        """Return the users of a tenant, or of all tenants, with memories to analyse or profiles to write."""
        rows = await self._graph.fetch(
            "consolidation.list_users_due",
            tenant=tenant,
            now=now,
            old_before=now - self._cold_policy.min_age,
            access_threshold=self._cold_policy.access_threshold,
        )
        if self._max_profiles:
            rows += await self._graph.fetch(
                "consolidation.list_users_with_due_profiles",
                tenant=tenant,
                now=now,
                min_facts=MIN_PROFILE_FACTS,
                min_own=MIN_OWN_FACTS,
                min_new=MIN_NEW_FACTS,
            )
        found = sorted({(row["tenant"], row["user_id"]) for row in rows})
        return [Owner.from_stored(of_tenant, user_id) for of_tenant, user_id in found]

    async def find_due_profiles(self, owner: Owner, now: datetime) -> list[str]:
        """Return the ids of the entities whose profile is due, those with the most facts first."""
        if not self._max_profiles:
            return []
        rows = await self._graph.fetch(
            "consolidation.list_due_profiles",
            group_id=owner.group_id,
            now=now,
            min_facts=MIN_PROFILE_FACTS,
            min_own=MIN_OWN_FACTS,
            min_new=MIN_NEW_FACTS,
            limit=self._max_profiles,
        )
        return [row["id"] for row in rows]

    async def find_batches(self, owner: Owner, now: datetime) -> DiscoveryResult:
        """Return the batches of one run: memories that no run has analysed, best first, then cold ones."""
        rows = await self._graph.fetch("consolidation.fetch_discovery_candidates", group_id=owner.group_id, now=now)
        candidates = [_candidate_from_row(row) for row in rows]
        names = await self._graph.fetch("consolidation.fetch_entity_names", group_id=owner.group_id)
        entities = [
            NamedEntity(row["id"], row["name"], row["type"], tuple(row["aliases"]), row["is_user"]) for row in names
        ]
        similar = await self._find_similar_names(owner, candidates, entities)
        return plan_batches(
            candidates, now, self._batch_size, self._max_batches, self._cold_policy, entities=entities, similar=similar
        )

    async def _find_similar_names(
        self, owner: Owner, candidates: Sequence[ConsolidationCandidate], entities: Sequence[NamedEntity]
    ) -> list[tuple[str, str]]:
        """Return pairs of entities that may be the same by name, most alike first; at least one of each is new."""
        new_ids = {key for candidate in candidates if candidate.is_new for key in candidate.all_entity_ids}
        new = [entity for entity in entities if entity.id in new_ids]
        near = find_similar_spellings(new, entities)
        for start in range(0, len(new), NAMES_PER_QUERY):
            rows = await self._graph.fetch(
                "consolidation.find_entities_near_names",
                group_id=owner.group_id,
                names=[
                    {"id": entity.id, "words": _build_name_query(owner, entity)}
                    for entity in new[start : start + NAMES_PER_QUERY]
                ],
            )
            for row in rows:
                key = row["id"], row["other"]
                near[key] = max(row["similarity"], near.get(key, 0.0))
        return rank_similar_names(entities, near)


def _build_name_query(owner: Owner, entity: NamedEntity) -> str:
    """Return the full-text query for entities sharing a word, a form of a first name or initials with this one."""
    words = {word: None for name in _names_of(entity) for token in name_tokens(name) for word in _forms(token)}
    words |= {initials: None for name in _names_of(entity) if (initials := _initials(name_tokens(name)))}
    return build_lucene_query(query_terms(" ".join([*_names_of(entity), *words])), [owner.group_key], NAME_TEXT_FIELDS)


def _forms(word: str) -> list[str]:
    return [word, *sorted(first_name_forms(word))]


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _candidate_from_row(row: Row) -> ConsolidationCandidate:
    vector = np.asarray(row["vector"], dtype=np.float32)
    length = float(np.linalg.norm(vector))
    fields: Row = {**row, "entity_ids": frozenset(row["entity_ids"]), "vector": vector / length if length else vector}
    return ConsolidationCandidate(**fields)


# Similar names

MIN_SPELLING_SIMILARITY = 0.8
"""Minimum share of equal letters for the spellings of two names to be compared further."""

MAX_ALIKE = 3
"""Maximum number of entities with similar names considered for one entity."""


def find_similar_spellings(new: Sequence[NamedEntity], entities: Sequence[NamedEntity]) -> dict[tuple[str, str], float]:
    """Return the pairs of entities with a name whose letters or initials nearly agree, in any script."""
    own, others = _list_spellings(new), _list_spellings(entities)
    near: dict[tuple[str, str], float] = {}
    for start in range(0, len(own), SIMILARITY_BLOCK_ROWS):
        block = own[start : start + SIMILARITY_BLOCK_ROWS]
        # pyrefly: ignore[no-matching-overload] - the stub's scorer protocol does not admit RapidFuzz's own scorers
        alike = process.cdist(
            [spelling for spelling, _ in block],
            [spelling for spelling, _ in others],
            scorer=OSA.normalized_similarity,
            score_cutoff=MIN_SPELLING_SIMILARITY,
        )
        near |= {(block[row][1], others[column][1]): 0.0 for row, column in np.argwhere(alike > 0)}
    return near


def _list_spellings(entities: Sequence[NamedEntity]) -> list[tuple[str, str]]:
    return [
        (spelling, entity.id)
        for entity in entities
        for words in map(name_tokens, _names_of(entity))
        for spelling in {to_latin("".join(words)), _initials(words)} - {""}
    ]


def rank_similar_names(entities: Sequence[NamedEntity], near: Mapping[tuple[str, str], float]) -> list[tuple[str, str]]:
    """Return the pairs whose names may mean one entity, the most alike first, at most `MAX_ALIKE` per entity.

    `near` holds the pairs to compare, with the similarity of their vectors. A name shared by many entities is left out.
    """
    by_id = {entity.id: entity for entity in entities}
    reasons: dict[str, dict[str, NameReason]] = defaultdict(dict)
    for (one, other), similarity in near.items():
        if one != other and one in by_id and other in by_id:
            first, second = by_id[one], by_id[other]
            reason = compare_name_lists(_names_of(first), first.type, _names_of(second), second.type, similarity)
            if reason is not None and reason not in _CONTAINING:
                reasons[one][other] = reasons[other][one] = reason
    pairs: dict[tuple[str, str], NameReason] = {}
    for one, found in reasons.items():
        known = [other for other in found if max(len(found), len(reasons[other])) <= MAX_BEARERS]
        for other in sorted(known, key=lambda other: (_descending(found[other]), other))[:MAX_ALIKE]:
            pairs[min(one, other), max(one, other)] = found[other]
    return sorted(pairs, key=lambda pair: (_descending(pairs[pair]), pair))


_CONTAINING = (NameReason.CONTAINED, NameReason.QUALIFIER)
"""Reasons where two names often mean two things, such as a company and one of its branches."""


def _descending(reason: NameReason) -> tuple[int, ...]:
    return tuple(-int(value) for value in reason.strength)


def _names_of(entity: NamedEntity) -> list[str]:
    return [entity.name, *entity.aliases]
