"""The second step: names become entities, and what is already known near the new statements is fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, Field

from graphmem.domain.entity import EntityIn
from graphmem.domain.identity import Owner
from graphmem.domain.text import content_hash, name_key
from graphmem.domain.times import AS_OF_NOW, EPOCH
from graphmem.domain.types import Vector
from graphmem.ingestion.candidates import AliasGroup, ValidatedCandidate
from graphmem.ingestion.name_matching import NameMatch, match_names
from graphmem.store.driver import Graph
from graphmem.store.fulltext import FACT_FIELDS, NAME_FIELDS
from graphmem.text.lucene import build_lucene_query, query_terms

FACTS_PER_CHANNEL = 24
"""Facts each channel brings, of which the most related are used."""

MAX_RELATED_PER_CANDIDATE = 8
"""Most related facts one statement is compared with."""

MAX_RELATED_PER_WINDOW = 40
"""Most related facts one window is compared with."""

MIN_CONTENT_COSINE = 0.40
"""Cosine from which on two statements may be about the same."""

MIN_CONTENT_COSINE_SAME_ENTITY = 0.25
"""The same for a fact about an entity the statement names."""


class PossibleEntity(BaseModel):
    """An entity an unclear name may mean."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)


class AmbiguousName(BaseModel):
    """A name that may mean one of several known entities, or none."""

    name: str
    type: str | None
    options: list[str]


class LinkingResult(BaseModel):
    """What the link step found; JSON, so that it outlives the process.

    `entities` are ids by name key; `related` the memory ids of known facts, oldest first; `near` their places in
    `related` for each candidate.
    """

    entities: dict[str, str] = Field(default_factory=dict)
    known: list[PossibleEntity] = Field(default_factory=list)
    ambiguous_names: list[AmbiguousName] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list)
    related_by_candidate: list[list[int]] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RelatedFact:
    """A known fact as comparing needs it; `times` are when it was first told and from when it holds, if that is known.

    Times are microseconds since 1970; `similarities` are cosines with each candidate.
    """

    memory_id: str
    content: str
    content_hash: str
    predicate: str
    subject_id: str
    object_id: str | None
    entity_ids: Sequence[str]
    immutable: bool
    times: tuple[int, int | None]
    similarities: Sequence[float]

    @property
    def learnt_order(self) -> tuple[int, str]:
        """What puts facts in the order in which they were learnt."""
        return self.times[0], self.content

    @property
    def effective_start(self) -> datetime:
        """The start by which single-valued facts are ordered, as `Fact` has it."""
        told, valid = self.times
        return EPOCH + timedelta(microseconds=told if valid is None else valid)


class CandidateLinker:
    """Looks up what new statements touch; `embed` results are handed in, nothing is computed here."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def link(
        self,
        owner: Owner,
        candidates: Sequence[ValidatedCandidate],
        aliases: Sequence[AliasGroup],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> tuple[LinkingResult, list[RelatedFact]]:
        """Return what the candidates touch, and the facts among it; `vectors` holds those of all contents and names."""

        named = collect_named_entities(candidates, aliases)
        entities = await self._find_exact_matches(owner, list(named))
        for alias in aliases:
            if alias.name and (meant := entities.get(name_key(alias.name))):
                entities.update({key: meant for key in map(name_key, alias.others) if key not in entities})
        known, ambiguous_names = await self._find_similar_names(owner, named, entities, vectors)
        found = await self._find_related_facts(owner, candidates, entities, vectors, keywords)
        related, near = select_related_facts(found, candidates, entities)
        linking = LinkingResult(
            entities=entities, known=known, ambiguous_names=ambiguous_names, related_by_candidate=near
        )
        return linking.model_copy(update={"related": [fact.memory_id for fact in related]}), related

    async def _find_exact_matches(self, owner: Owner, keys: list[str]) -> dict[str, str]:
        own = name_key(owner.user_id)
        stored = await self._graph.fetch_value(
            "extraction.find_entities_by_keys", group_id=owner.group_id, keys=[*keys, own]
        )
        found: dict[str, str] = {}
        for entity_id, key_of_name, alias_keys, is_user in stored:
            if is_user:
                found[""] = entity_id
            for key in keys:
                if key_of_name == key or (key in alias_keys and key not in found):
                    found[key] = entity_id
        return found

    async def _find_similar_names(
        self,
        owner: Owner,
        named: Mapping[str, EntityIn],
        entities: dict[str, str],
        vectors: Mapping[str, Vector],
    ) -> tuple[list[PossibleEntity], list[AmbiguousName]]:
        """Settle into `entities` the names that differ by spelling only; return the others with what they may mean."""
        new = {key: entity for key, entity in named.items() if key not in entities}
        if not new:
            return [], []
        alike = await self._graph.fetch_value(
            "extraction.find_similar_entities",
            group_id=owner.group_id,
            names=[
                {
                    "key": key,
                    "words": _build_fulltext_query(owner, entity.name, NAME_FIELDS),
                    "vector": vectors[entity.name],
                }
                for key, entity in new.items()
            ],
        )
        known: dict[str, PossibleEntity] = {}
        options: dict[str, list[str]] = {}
        for key, stored, similarity in alike:
            candidate, entity = PossibleEntity(**stored), new[key]
            how = max(
                match_names(entity.name, entity.type, name, candidate.type, similarity)
                for name in (candidate.name, *candidate.aliases)
            )
            if how is NameMatch.SAME:
                entities.setdefault(key, candidate.id)
            elif how is NameMatch.POSSIBLE:
                known[candidate.id] = candidate
                options.setdefault(key, []).append(candidate.id)
        ambiguous_names = [
            AmbiguousName(name=new[key].name, type=new[key].type, options=ids)
            for key, ids in options.items()
            if key not in entities
        ]
        asked = {each for ambiguous_name in ambiguous_names for each in ambiguous_name.options}
        return sorted((known[each] for each in asked), key=lambda each: (name_key(each.name), each.id)), ambiguous_names

    async def _find_related_facts(
        self,
        owner: Owner,
        candidates: Sequence[ValidatedCandidate],
        entities: Mapping[str, str],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> list[RelatedFact]:
        contents = [candidate.memory.content for candidate in candidates]
        found = await self._graph.fetch_value(
            "extraction.find_related_facts",
            group_id=owner.group_id,
            vectors=[vectors[content] for content in contents],
            words=_build_fulltext_query(owner, " ".join([*keywords, *contents]), FACT_FIELDS),
            entity_ids=sorted(
                {
                    entities[key]
                    for candidate in candidates
                    for key in entity_name_keys(candidate)
                    if key and key in entities
                }
            ),
            pairs=[
                [subject, candidate.memory.predicate]
                for candidate in candidates
                if (subject := entities.get(subject_key(candidate)))
            ],
            hashes=[content_hash(content) for content in contents],
            ends_after=min(candidate.sent_at for candidate in candidates).astimezone(UTC),
            known_at=AS_OF_NOW,
            limit=FACTS_PER_CHANNEL,
        )
        return [RelatedFact(*each) for each in found]


def collect_named_entities(
    candidates: Sequence[ValidatedCandidate], aliases: Sequence[AliasGroup]
) -> dict[str, EntityIn]:
    """Return every entity named but the user's own, by name key."""
    named: dict[str, EntityIn] = {}
    for candidate in candidates:
        for entity in (candidate.memory.subject, candidate.memory.object, *candidate.memory.entities):
            if entity and (name_key(entity.name) not in named or named[name_key(entity.name)].type is None):
                named[name_key(entity.name)] = entity
    for alias in aliases:
        for name in (alias.name, *alias.others) if alias.name else ():
            named.setdefault(name_key(name), EntityIn(name=name))
    return named


def subject_key(candidate: ValidatedCandidate) -> str:
    """Return the name key of whom a candidate is about; empty for the user."""
    return name_key(candidate.memory.subject.name) if candidate.memory.subject else ""


def entity_name_keys(candidate: ValidatedCandidate) -> list[str]:
    """Return the name keys of the entities a candidate names."""
    named = (candidate.memory.subject, candidate.memory.object, *candidate.memory.entities)
    return [name_key(entity.name) for entity in named if entity]


def select_related_facts(
    found: Sequence[RelatedFact], candidates: Sequence[ValidatedCandidate], entities: Mapping[str, str]
) -> tuple[list[RelatedFact], list[list[int]]]:
    """Return the facts worth comparing, the oldest first, and for each candidate their places in that list.

    The order is that in which they were learnt: unlike a ranking it is the same on every machine.
    """
    chosen: list[list[RelatedFact]] = []
    for index, candidate in enumerate(candidates):
        scored = [(score_relatedness(each, index, candidate, entities), each) for each in found]
        scored = [(score, fact) for score, fact in scored if score > 0]
        scored.sort(key=lambda pair: (-round(pair[0], 4), pair[1].learnt_order))
        chosen.append([fact for _, fact in scored[:MAX_RELATED_PER_CANDIDATE]])
    best = {
        fact.memory_id: fact
        for rank in range(MAX_RELATED_PER_CANDIDATE)
        for facts in chosen
        for fact in facts[rank : rank + 1]
    }
    kept = sorted(list(best.values())[:MAX_RELATED_PER_WINDOW], key=lambda fact: fact.learnt_order)
    place = {fact.memory_id: index for index, fact in enumerate(kept)}
    near = [sorted(place[fact.memory_id] for fact in facts if fact.memory_id in place) for facts in chosen]
    return kept, near


def score_relatedness(
    fact: RelatedFact, index: int, candidate: ValidatedCandidate, entities: Mapping[str, str]
) -> float:
    """Return how much a known fact has to do with a candidate: above 1 in the same place, its cosine where near, else 0."""
    similarity = fact.similarities[index]
    subject = entities.get(subject_key(candidate))
    if fact.content_hash == content_hash(candidate.memory.content) and fact.subject_id == subject:
        return 3.0
    if subject == fact.subject_id and fact.predicate == candidate.memory.predicate and candidate.memory.single_valued:
        return 2.0
    target = entities.get(name_key(candidate.memory.object.name)) if candidate.memory.object else None
    if subject == fact.subject_id and target and fact.object_id == target:
        return 1.0 + max(similarity, 0.0)
    shared = {entities.get(key) for key in entity_name_keys(candidate) if key} & set(fact.entity_ids)
    same_place = subject == fact.subject_id and fact.predicate == candidate.memory.predicate
    return (
        similarity
        if similarity >= (MIN_CONTENT_COSINE_SAME_ENTITY if shared or same_place else MIN_CONTENT_COSINE)
        else 0.0
    )


def _build_fulltext_query(owner: Owner, text: str, fields: Sequence[str]) -> str:
    return build_lucene_query(query_terms(text), [owner.group_key], fields)
