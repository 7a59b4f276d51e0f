"""The second step: names become entities, and what is already known near the new statements is fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, Field

from graphmem.domain.entity import EntityIn
from graphmem.domain.identity import Owner
from graphmem.domain.text import content_hash, name_key
from graphmem.domain.times import LATEST
from graphmem.ingestion.claims import Alias, Claim
from graphmem.ingestion.likeness import Likeness, likeness
from graphmem.store.driver import Graph
from graphmem.store.rows import EPOCH, group_key

POOL = 24
"""Facts each channel brings, of which the most related are used."""

RELATED = 8
"""Most related facts one statement is compared with."""

ALL_RELATED = 40
"""Most related facts one window is compared with."""

SIMILAR = 0.40
"""Cosine from which on two statements may be about the same."""

SHARING = 0.25
"""The same for a fact about an entity the statement names."""

_TERM = re.compile(r"\w{2,40}")
MAX_TERMS = 120

Vector = list[float]


class KnownEntity(BaseModel):
    """An entity an unclear name may mean."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)


class Doubt(BaseModel):
    """A name that may mean one of several known entities, or none."""

    name: str
    type: str | None
    options: list[str]


class Linked(BaseModel):
    """What the link step found; JSON, so that it outlives the process.

    `entities` are ids by name key; `related` the memory ids of known facts, oldest first; `near` their places in
    `related` for each claim.
    """

    entities: dict[str, str] = Field(default_factory=dict)
    known: list[KnownEntity] = Field(default_factory=list)
    doubts: list[Doubt] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list)
    near: list[list[int]] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """A known fact as comparing needs it; `times` are when it was first told and from when it holds, if that is known.

    Times are microseconds since 1970; `similarities` are cosines with each claim.
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
    def age(self) -> tuple[int, str]:
        """What puts facts in the order in which they were learnt."""
        return self.times[0], self.content

    @property
    def effective_start(self) -> datetime:
        """The start by which single-valued facts are ordered, as `Fact` has it."""
        told, valid = self.times
        return EPOCH + timedelta(microseconds=told if valid is None else valid)


class Linker:
    """Looks up what new statements touch; `embed` results are handed in, nothing is computed here."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def link(
        self,
        owner: Owner,
        claims: Sequence[Claim],
        aliases: Sequence[Alias],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> tuple[Linked, list[Found]]:
        """Return what the claims touch, and the facts among it; `vectors` holds those of all contents and names."""

        named = names_of(claims, aliases)
        entities = await self._exact(owner, list(named))
        for alias in aliases:
            if alias.name and (meant := entities.get(name_key(alias.name))):
                entities.update({key: meant for key in map(name_key, alias.others) if key not in entities})
        known, doubts = await self._alike(owner, named, entities, vectors)
        found = await self._related(owner, claims, entities, vectors, keywords)
        related, near = select(found, claims, entities)
        linked = Linked(entities=entities, known=known, doubts=doubts, near=near)
        return linked.model_copy(update={"related": [fact.memory_id for fact in related]}), related

    async def _exact(self, owner: Owner, keys: list[str]) -> dict[str, str]:
        own = name_key(owner.user_id)
        stored = await self._graph.value("linking.entities_named", group_id=owner.group_id, keys=[*keys, own])
        found: dict[str, str] = {}
        for entity_id, key_of_name, alias_keys, is_user in stored:
            if is_user:
                found[""] = entity_id
            for key in keys:
                if key_of_name == key or (key in alias_keys and key not in found):
                    found[key] = entity_id
        return found

    async def _alike(
        self,
        owner: Owner,
        named: Mapping[str, EntityIn],
        entities: dict[str, str],
        vectors: Mapping[str, Vector],
    ) -> tuple[list[KnownEntity], list[Doubt]]:
        """Settle into `entities` the names that differ by spelling only; return the others with what they may mean."""
        new = {key: entity for key, entity in named.items() if key not in entities}
        if not new:
            return [], []
        alike = await self._graph.value(
            "linking.similar_entities",
            group_id=owner.group_id,
            names=[
                {"key": key, "words": full_text(owner, entity.name), "vector": vectors[entity.name]}
                for key, entity in new.items()
            ],
        )
        known: dict[str, KnownEntity] = {}
        options: dict[str, list[str]] = {}
        for key, stored, similarity in alike:
            candidate, entity = KnownEntity(**stored), new[key]
            how = max(
                likeness(entity.name, entity.type, name, candidate.type, similarity)
                for name in (candidate.name, *candidate.aliases)
            )
            if how is Likeness.SAME:
                entities.setdefault(key, candidate.id)
            elif how is Likeness.DOUBTFUL:
                known[candidate.id] = candidate
                options.setdefault(key, []).append(candidate.id)
        doubts = [
            Doubt(name=new[key].name, type=new[key].type, options=ids)
            for key, ids in options.items()
            if key not in entities
        ]
        asked = {each for doubt in doubts for each in doubt.options}
        return sorted((known[each] for each in asked), key=lambda each: (name_key(each.name), each.id)), doubts

    async def _related(
        self,
        owner: Owner,
        claims: Sequence[Claim],
        entities: Mapping[str, str],
        vectors: Mapping[str, Vector],
        keywords: Sequence[str],
    ) -> list[Found]:
        contents = [claim.memory.content for claim in claims]
        found = await self._graph.value(
            "linking.related_facts",
            group_id=owner.group_id,
            vectors=[vectors[content] for content in contents],
            words=full_text(owner, " ".join([*keywords, *contents])),
            entity_ids=sorted({entities[key] for claim in claims for key in keys_of(claim) if key and key in entities}),
            pairs=[
                [subject, claim.memory.predicate] for claim in claims if (subject := entities.get(subject_key(claim)))
            ],
            hashes=[content_hash(content) for content in contents],
            valid_after=min(claim.told_at for claim in claims).astimezone(UTC),
            known_at=LATEST,
            limit=POOL,
        )
        return [Found(*each) for each in found]


def names_of(claims: Sequence[Claim], aliases: Sequence[Alias]) -> dict[str, EntityIn]:
    """Return every entity named but the user's own, by name key."""
    named: dict[str, EntityIn] = {}
    for claim in claims:
        for entity in (claim.memory.subject, claim.memory.object, *claim.memory.entities):
            if entity and (name_key(entity.name) not in named or named[name_key(entity.name)].type is None):
                named[name_key(entity.name)] = entity
    for alias in aliases:
        for name in (alias.name, *alias.others) if alias.name else ():
            named.setdefault(name_key(name), EntityIn(name=name))
    return named


def subject_key(claim: Claim) -> str:
    """Return the name key of whom a claim is about; empty for the user."""
    return name_key(claim.memory.subject.name) if claim.memory.subject else ""


def keys_of(claim: Claim) -> list[str]:
    """Return the name keys of the entities a claim names."""
    named = (claim.memory.subject, claim.memory.object, *claim.memory.entities)
    return [name_key(entity.name) for entity in named if entity]


def select(
    found: Sequence[Found], claims: Sequence[Claim], entities: Mapping[str, str]
) -> tuple[list[Found], list[list[int]]]:
    """Return the facts worth comparing, the oldest first, and for each claim their places in that list.

    The order is that in which they were learnt: unlike a ranking it is the same on every machine.
    """
    chosen: list[list[Found]] = []
    for index, claim in enumerate(claims):
        scored = [(nearness(each, index, claim, entities), each) for each in found]
        scored = [(score, fact) for score, fact in scored if score > 0]
        scored.sort(key=lambda pair: (-round(pair[0], 4), pair[1].age))
        chosen.append([fact for _, fact in scored[:RELATED]])
    best = {fact.memory_id: fact for rank in range(RELATED) for facts in chosen for fact in facts[rank : rank + 1]}
    kept = sorted(list(best.values())[:ALL_RELATED], key=lambda fact: fact.age)
    place = {fact.memory_id: index for index, fact in enumerate(kept)}
    near = [sorted(place[fact.memory_id] for fact in facts if fact.memory_id in place) for facts in chosen]
    return kept, near


def nearness(fact: Found, index: int, claim: Claim, entities: Mapping[str, str]) -> float:
    """Return how much a known fact has to do with a claim: above 1 in the same place, its cosine where near, else 0."""
    similarity = fact.similarities[index]
    subject = entities.get(subject_key(claim))
    if fact.content_hash == content_hash(claim.memory.content) and fact.subject_id == subject:
        return 3.0
    if subject == fact.subject_id and fact.predicate == claim.memory.predicate and claim.memory.single_valued:
        return 2.0
    target = entities.get(name_key(claim.memory.object.name)) if claim.memory.object else None
    if subject == fact.subject_id and target and fact.object_id == target:
        return 1.0 + max(similarity, 0.0)
    shared = {entities.get(key) for key in keys_of(claim) if key} & set(fact.entity_ids)
    same_place = subject == fact.subject_id and fact.predicate == claim.memory.predicate
    return similarity if similarity >= (SHARING if shared or same_place else SIMILAR) else 0.0


def full_text(owner: Owner, text: str) -> str:
    """Return the Lucene query for the words of a text within one user's documents."""
    words = list(dict.fromkeys(word.lower() for word in _TERM.findall(text)))[:MAX_TERMS]
    return f"+group_key:{group_key(owner.group_id)} +({' '.join(words) or 'x'})"
