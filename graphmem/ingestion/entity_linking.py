"""Entity linking: the known entities that the statements of a window name, and the known facts near them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

from graphmem.ingestion.candidates import PENDING_TYPES, AliasGroup, ValidatedCandidate
from graphmem.ingestion.name_resolution import (
    AmbiguousName,
    EntityIds,
    LinkingResult,
    PossibleEntity,
)
from graphmem.ingestion.supersession import RelatedFact, collect_named_entities, select_related_facts
from graphmem.memories.entity import PERSON_TYPE, EntityIn
from graphmem.memories.fact import Fact, fact_from_row
from graphmem.memories.names import NameVerdict, compare_name_lists, is_short_form
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import FACT_TEXT_FIELDS, NAME_TEXT_FIELDS
from graphmem.runtime.field_types import Vector, content_hash, name_key
from graphmem.runtime.times import AS_OF_NOW
from graphmem.tenants.owners import Owner
from graphmem.text.lucene import build_lucene_query, query_terms

FACTS_PER_CHANNEL = 24
"""Facts that are found by vector, by words and at entities, of each, before the most related are selected."""


class CandidateLinker:
    """Looks up the entities and facts that new statements touch."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def link(
        self,
        owner: Owner,
        candidates: Sequence[ValidatedCandidate],
        aliases: Sequence[AliasGroup],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> tuple[LinkingResult, list[Fact]]:
        """Return what the statements touch, and its related facts; `vectors` holds those of all contents and names."""
        named = collect_named_entities(candidates, aliases)
        entities = await self._find_exact_matches(owner, list(named))
        entities = entities.with_names(_ids_by_alias(aliases, entities))
        same, known, ambiguous_names = await self._find_similar_names(owner, named, entities, vectors)
        entities = entities.with_names(same)
        found = await self._find_related_facts(owner, candidates, entities, vectors, keywords)
        related, related_by_candidate = select_related_facts(found, candidates, entities)
        linking = LinkingResult(
            entities=entities,
            known=known,
            ambiguous_names=ambiguous_names,
            related=[fact.memory_id for fact in related],
            related_by_candidate=related_by_candidate,
        )
        return linking, related

    async def _find_exact_matches(self, owner: Owner, keys: Sequence[str]) -> EntityIds:
        """Return the entities of these name keys, by name before alias, and the user's own."""
        rows = await self._graph.fetch_value(
            "extraction.find_entities_by_keys", group_ids=[owner.group_id], keys=[*keys, name_key(owner.entity_name)]
        )
        user: str | None = None
        found: dict[str, str] = {}
        for entity_id, entity_key, alias_keys, is_user in rows:
            if is_user:
                user = entity_id
            for key in keys:
                if entity_key == key or (key in alias_keys and key not in found):
                    found[key] = entity_id
        return EntityIds(user=user, by_name_key=found)

    async def _find_similar_names(
        self,
        owner: Owner,
        named: Mapping[str, EntityIn],
        entities: EntityIds,
        vectors: Mapping[str, Vector],
    ) -> tuple[dict[str, str], list[PossibleEntity], list[AmbiguousName]]:
        """Return the ids of names that differ in spelling only, and the ambiguous names with what they may mean.

        A name that exactly one known entity has is not ambiguous. That of a known person is, if another known person
        has it as well: as an alias, with a surname, or with what tells the two apart.
        """
        compared = {
            key: entity
            for key, entity in named.items()
            if key not in entities.by_name_key
            or (entity.type == PERSON_TYPE and entities.by_name_key[key] != entities.user)
        }
        if not compared:
            return {}, [], []
        rows = await self._graph.fetch_value(
            "extraction.find_similar_entities",
            group_id=owner.group_id,
            names=[
                {
                    "key": key,
                    "words": _build_fulltext_query(owner, entity.name, NAME_TEXT_FIELDS),
                    "vector": vectors[entity.name],
                }
                for key, entity in compared.items()
            ],
        )
        same: dict[str, str] = {}
        known: dict[str, PossibleEntity] = {}
        options: dict[str, list[str]] = {}
        for key, stored, similarity in rows:
            possible = PossibleEntity(**stored)
            if key in entities.by_name_key:
                if entities.by_name_key[key] == possible.id or _is_called(compared[key], possible):
                    known[possible.id] = possible
                    options.setdefault(key, []).append(possible.id)
                continue
            name, known_names = compared[key], (possible.name, *possible.aliases)
            match = compare_name_lists([name.name], name.type, known_names, possible.type, similarity)
            if match.verdict is NameVerdict.SAME:
                same.setdefault(key, possible.id)
            elif match.verdict is NameVerdict.POSSIBLE:
                known[possible.id] = possible
                options.setdefault(key, []).append(possible.id)
        ambiguous_names = [
            AmbiguousName(name=compared[key].name, type=compared[key].type, options=ids)
            for key, ids in options.items()
            if key not in same and _is_unsettled(ids, entities.by_name_key.get(key))
        ]
        asked = {entity_id for ambiguous_name in ambiguous_names for entity_id in ambiguous_name.options}
        possible_entities = [known[entity_id] for entity_id in asked]
        return same, sorted(possible_entities, key=lambda entity: (name_key(entity.name), entity.id)), ambiguous_names

    async def _find_related_facts(
        self,
        owner: Owner,
        candidates: Sequence[ValidatedCandidate],
        entities: EntityIds,
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> list[RelatedFact]:
        contents = [candidate.memory.content for candidate in candidates]
        rows = await self._graph.fetch(
            "extraction.find_related_facts",
            group_id=owner.group_id,
            vectors=[vectors[content] for content in contents],
            words=_build_fulltext_query(owner, " ".join([*keywords, *contents]), FACT_TEXT_FIELDS),
            entity_ids=sorted({entity_id for candidate in candidates for entity_id in entities.named_in(candidate)}),
            pairs=[
                [subject, candidate.memory.predicate]
                for candidate in candidates
                if (subject := entities.of_subject(candidate))
            ],
            hashes=[content_hash(content) for content in contents],
            user_id=entities.user,
            pending_types=sorted(PENDING_TYPES),
            ends_after=min(candidate.sent_at for candidate in candidates).astimezone(UTC),
            known_at=AS_OF_NOW,
            limit=FACTS_PER_CHANNEL,
        )
        return [RelatedFact(fact_from_row(row), row["similarities"]) for row in rows]


def _ids_by_alias(aliases: Sequence[AliasGroup], entities: EntityIds) -> dict[str, str]:
    """Return the ids of unknown names that are aliases of a known one."""
    found: dict[str, str] = {}
    for group in aliases:
        known = {**found, **entities.by_name_key}
        if entity_id := known.get(name_key(group.name)):
            found.update({key: entity_id for key in map(name_key, group.others) if key not in known})
    return found


def _is_called(entity: EntityIn, possible: PossibleEntity) -> bool:
    """Return whether a known person may be called by a name: it is an alias or part of the person's own name."""
    return possible.type == PERSON_TYPE and (
        name_key(entity.name) in map(name_key, possible.aliases) or is_short_form(entity.name, possible.name)
    )


def _is_unsettled(options: Sequence[str], known_id: str | None) -> bool:
    """Return whether a name may mean one of `options` that is not the known entity of exactly this name."""
    return known_id is None or (known_id in options and len(options) > 1)


def _build_fulltext_query(owner: Owner, text: str, fields: Sequence[str]) -> str:
    return build_lucene_query(query_terms(text), [owner.group_key], fields)
