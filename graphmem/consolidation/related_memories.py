"""Finds memories that should be analysed together although their subjects differ, because these may be one. Pure.

Names that look alike, a name in the text of a memory that is not linked to it, and a third entity in common bring
memories together. An index of the words and spellings of names keeps the cost in proportion to their number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmem.consolidation.names import PART_OF_NAME, find_same_name_reason, name_tokens
from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE
from graphmem.text.names import edit_distance, first_name_forms, max_typos, name_words, strip_possessive
from graphmem.text.transliterating import to_latin

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
