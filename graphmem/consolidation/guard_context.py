"""The data that the guards review proposals with. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphmem.consolidation.statement_tokens import user_names
from graphmem.memories.entity import PERSON_TYPE, Entity
from graphmem.memories.fact import Fact
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

USER_WORDS = load_words(*WRITTEN_LANGUAGES).user_words
"""What statements call the user who has no name in them, in all languages."""

MAX_WORDS_OF_USER_NAME = 2
"""Most words of a name that means the user, as "the user" and "der Nutzer" do."""

SecretFinder = Callable[[Any], Sequence[str]]
"""Returns the classes of secrets that a value contains and that may not be stored."""


@dataclass(frozen=True, slots=True)
class GuardContext:
    """The latest believed facts and the entities of one user that proposals name, and what surrounds them.

    - `entity_ids_by_name`: entity ids by name key, for all names and aliases that a proposal wants to give
    - `facts_by_entity`: for each entity to be linked, the believed facts at its edges and those that mention it
    - `other_relationships`: for each entity to be linked, the types of its other relationships
    - `similarly_named`: for each entity to be linked, the other entities whose names share a word with its name
    - `current`: memory ids of the current statements by their deduplication key (content and subject)
    - `contradicted`: memory ids of statements that the run reports as contradictory
    - `curated`: whether a person wrote the proposals
    """

    now: datetime
    facts: Mapping[str, Fact]
    entities: Mapping[str, Entity]
    entity_ids_by_name: Mapping[str, str] = field(default_factory=dict)
    facts_by_entity: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    similarly_named: Mapping[str, Sequence[Entity]] = field(default_factory=dict)
    other_relationships: Mapping[str, Sequence[str]] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    contradicted: frozenset[str] = frozenset()
    curated: bool = False
    find_secrets: SecretFinder = lambda _: ()

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """Return the names and aliases of known entities."""
        entities = (self.entities[key] for key in dict.fromkeys(ids) if key in self.entities)
        return [name for entity in entities for name in (entity.name, *entity.aliases)]

    @property
    def user_names(self) -> list[str]:
        """The names of the user's own entity, as far as it is known."""
        return self.names_of(key for key, entity in self.entities.items() if entity.is_user)

    def person_key(self, entity_id: str) -> str:
        """Return a key that is the same for the user's own entity and for one that is called "the user"."""
        entity = self.entities.get(entity_id)
        if entity is None:
            return entity_id
        words = entity.name.casefold().split()
        is_user = entity.is_user or (0 < len(words) <= MAX_WORDS_OF_USER_NAME and words[-1] in USER_WORDS)
        return "user" if is_user else entity_id

    def subject_names(self, fact: Fact) -> list[str]:
        """Return the names of a fact's subject; those of the user if it is the user under any name."""
        names = self.names_of([fact.subject_id])
        return [*names, *self.user_names] if self.person_key(fact.subject_id) == "user" else names

    def subject_phrases(self, fact: Fact) -> list[str]:
        """Return what statements call a fact's subject: its names, and "the user" if it is the user."""
        is_user = self.person_key(fact.subject_id) == "user"
        return [*self.subject_names(fact), *(user_names() if is_user else ())]

    def people_named(self, *facts: Fact) -> list[str]:
        """Return the names of the people that facts mention beside their subject."""
        ids = [key for fact in facts for key in fact.entity_ids if key != fact.subject_id]
        return self.names_of(key for key in ids if key in self.entities and self.entities[key].type == PERSON_TYPE)
