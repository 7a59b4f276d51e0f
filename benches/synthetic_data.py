"""Synthetic users with any number of facts: texts, entities and vectors generated from a seed.

Every word has a random direction, and the vector of a text is the sum of its words with some noise, so that texts with
common words are similar, as with a real embedder. A third of a user's facts are about the user, the others about other
entities.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from graphmem.memories.fact import Fact, fact_to_properties
from graphmem.memories.memory import MemoryType, Scope
from graphmem.runtime.field_types import content_hash, name_key
from graphmem.tenants.owners import Owner, group_key

SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "el")]
"""Syllables of the generated words."""

VOCABULARY = 8_000
"""Number of generated words."""

FACTS_PER_ENTITY = 6
"""Mean number of facts for each entity of a user."""

NOISE = 0.35
"""Length of the noise in the vector of a fact, relative to that of one of its words."""

START = datetime(2024, 1, 1, tzinfo=UTC)
"""Time of the first fact of a user; the others follow second by second."""


@dataclass(frozen=True, slots=True)
class SyntheticUser:
    """The entities and facts of a user, as rows for the queries that create them."""

    owner: Owner
    entities: list[dict[str, Any]]
    facts: list[dict[str, Any]]


class SyntheticData:
    """Generates texts, their vectors, and users, from `VOCABULARY` words, which are generated too if not given."""

    def __init__(self, seed: int, dimension: int, words: Sequence[str] = ()) -> None:
        self.rng = random.Random(seed)
        numbers = np.random.default_rng(seed)
        self._numbers = numbers
        self.words = list(words) or [
            "".join(self.rng.choices(SYLLABLES, k=self.rng.choice((2, 2, 3)))) for _ in range(VOCABULARY)
        ]
        self._place = {word: index for index, word in enumerate(self.words)}
        self._directions = numbers.standard_normal((VOCABULARY, dimension)).astype(np.float32)
        ranks = np.arange(1, VOCABULARY + 1)
        self._odds = (1 / ranks**0.8) / (1 / ranks**0.8).sum()

    def sentence(self, length: int = 10) -> list[str]:
        """Return random words; those early in the vocabulary are more frequent."""
        return [self.words[index] for index in self._numbers.choice(VOCABULARY, size=length, p=self._odds)]

    def vector(self, text: str, noise: float = 0.0) -> list[float]:
        """Return the vector of a text, of length 1."""
        rows = [self._place[word] for word in text.lower().split() if word in self._place] or [0]
        vector = self._directions[rows].sum(axis=0)
        if noise:
            vector = vector + self._numbers.standard_normal(len(vector)) * noise * np.sqrt(len(rows))
        unit: list[float] = (vector / np.linalg.norm(vector)).astype(float).tolist()
        return unit

    def user(self, owner: Owner, count: int) -> SyntheticUser:
        """Return a user with `count` facts."""
        names = list(dict.fromkeys(" ".join(self.sentence(2)) for _ in range(max(3, count // FACTS_PER_ENTITY))))
        own = self._entity(owner, owner.entity_name, "Person", is_user=True)
        others = [self._entity(owner, name, self.rng.choice(("Person", "Place", "Thing"))) for name in names]
        facts = [self._fact(owner, own, others, START + timedelta(seconds=place)) for place in range(count)]
        return SyntheticUser(owner, [own, *others], facts)

    def _entity(self, owner: Owner, name: str, kind: str, *, is_user: bool = False) -> dict[str, Any]:
        return {
            "uuid": str(uuid.UUID(int=self.rng.getrandbits(128))),
            "group_id": owner.group_id,
            "group_key": group_key(owner.group_id),
            "name": name,
            "name_key": name_key(name),
            "type": kind,
            "labels": ["Entity", kind],
            "summary": "",
            "alias_text": "",
            "attributes": "{}",
            "is_user": is_user,
            "created_at": START,
            "updated_at": START,
        }

    def _fact(self, owner: Owner, own: dict[str, Any], others: list[dict[str, Any]], at: datetime) -> dict[str, Any]:
        subject = own if self.rng.random() < 1 / 3 else self.rng.choice(others)
        target = self.rng.choice(others)
        content = " ".join([subject["name"], *self.sentence(), target["name"]])
        key = str(uuid.UUID(int=self.rng.getrandbits(128)))
        fact = Fact(
            uuid=key,
            memory_id=key,
            version=1,
            group_id=owner.group_id,
            subject_id=subject["uuid"],
            object_id=target["uuid"],
            entity_ids=(subject["uuid"], target["uuid"]),
            predicate="KNOWS_OF",
            content=content,
            content_hash=content_hash(content),
            type=MemoryType.FACT,
            scope=Scope.PROFILE,
            importance=round(self.rng.random(), 2),
            created_at=at,
            first_created_at=at,
            updated_at=at,
            decay_rate=0.01,
            search_text=f"{subject['name']} {target['name']}",
        ).with_active_hash(at)
        return {
            "subject_id": subject["uuid"],
            "object_id": target["uuid"],
            "properties": {**fact_to_properties(fact), "fact_embedding": self.vector(content, NOISE)},
        }


def users(total: int, tenant: str, big: int = 10_000, small: int = 500) -> Iterator[tuple[Owner, int]]:
    """Yield users with `total` facts together: half of the facts in users of `big` facts, the rest in users of `small`.

    Users of `big` facts need a total above `big`.
    """
    left, number = total, 0
    for size, remaining in ((big, total // 2 if total > big else 0), (small, 0)):
        while left - size >= remaining:
            yield Owner(tenant, f"user{number}"), size
            left, number = left - size, number + 1
