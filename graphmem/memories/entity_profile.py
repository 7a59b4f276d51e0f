"""Profiles of entities: what is known of one in a few sentences, each with the memories that say so. Pure.

A profile is stored as a memory of type `profile` about its entity. `derived_from` lists the memories that it was
written from, and its `content_data` holds the sentences with the places of theirs in that list, from 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from graphmem.runtime.times import MAX_TIME, from_micros
from graphmem.tenants.owners import Owner


class ProfileSentence(BaseModel):
    """One sentence of a profile, and the ids of the memories that say so."""

    content: str
    memory_ids: list[str]


class EntityProfile(BaseModel):
    """What is known of an entity in a few sentences, written by a consolidation run from current memories.

    `id` is the id of the memory that stores it, whose history has earlier versions. It is returned while everything
    that it was written from is unchanged: as far as is known, until `valid_until`.
    """

    id: str
    version: int
    entity_id: str
    space: str | None = Field(None, description="The space that it belongs to; null: it is the user's.")
    content: str
    sentences: list[ProfileSentence]
    written_at: datetime
    valid_until: datetime | None = Field(
        None, description="When a memory that it is derived from ends; null: not known."
    )

    @property
    def memory_ids(self) -> frozenset[str]:
        """The ids of the memories that it is derived from."""
        return frozenset(memory_id for sentence in self.sentences for memory_id in sentence.memory_ids)

    def holds_at(self, at: datetime) -> bool:
        """Return whether the memories that it is derived from hold at a time, by what was known when it was read."""
        return self.valid_until is None or at < self.valid_until


def number_sentences(sentences: Sequence[ProfileSentence]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the memories that sentences cite, each once, and the sentences as the `content_data` of a profile."""
    derived_from = tuple(dict.fromkeys(memory_id for sentence in sentences for memory_id in sentence.memory_ids))
    places = {memory_id: place for place, memory_id in enumerate(derived_from, 1)}
    return derived_from, {
        "sentences": [
            {"content": sentence.content, "derived_from": [places[memory_id] for memory_id in sentence.memory_ids]}
            for sentence in sentences
        ]
    }


def profile_from_columns(stored: Mapping[str, Any], times: Sequence[int]) -> EntityProfile:
    """Return a profile from the columns of `profiles.load`: its properties, and when it was written and ends."""
    written_at, until = map(from_micros, times)
    return EntityProfile(
        id=stored["memory_id"],
        version=stored["version"],
        entity_id=stored["entity_id"],
        space=Owner.from_group_id(stored["group_id"]).space,
        content=stored["fact"],
        sentences=[
            ProfileSentence(
                content=sentence["content"],
                memory_ids=[stored["derived_from"][place - 1] for place in sentence["derived_from"]],
            )
            for sentence in json.loads(stored["content_data"])["sentences"]
        ],
        written_at=written_at,
        valid_until=None if until == MAX_TIME else until,
    )
