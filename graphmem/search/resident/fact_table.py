"""The versions of a group's memories in memory, with a column for all that a filter asks. Pure."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmem.memories.entity import EntityRef
from graphmem.memories.entity_profile import EntityProfile, profile_from_columns
from graphmem.memories.fact import TIME_FIELDS, Fact, fact_from_row, memory_at, memory_from_fact, with_lists
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory, MemoryStatus, MemoryType
from graphmem.runtime.times import MAX_TIME, to_micros
from graphmem.search.fact_candidate import FactCandidate, FactText
from graphmem.search.resident.columns import Column, Members, Words, cosines, unit_vector
from graphmem.search.resident.text_index import POSTING_BYTES, Mask, TextIndex, best_rows
from graphmem.tenants.owners import message_key
from graphmem.text.folding import join_folded_words

FACT_BYTES = 3_700
"""Memory of a version beside its vector, its texts and its postings, measured over conversations.

The stems of those that searches find are not in it: 0.8 kB each.
"""

MAX_CONTEXT = 1_500
"""Characters of the context of a candidate."""

FOREVER = to_micros(MAX_TIME)
"""The end of an interval that is open."""

_ACCESSED, _CREATED = TIME_FIELDS.index("last_accessed_at"), TIME_FIELDS.index("first_created_at")
_INVALID, _EXPIRED, _EXPIRES = (TIME_FIELDS.index(name) for name in ("invalid_at", "expired_at", "expires_at"))


_WORD_COLUMNS = (
    *("type", "subtype", "subtype_key", "domain", "scope"),
    *("source_kind", "trust_kind", "speaker", "agent", "session_id"),
)
"""Columns of words that filters compare."""


class RowMasks(NamedTuple):
    """Which rows pass some filters: their times, all the others, and both."""

    filters: FactFilters
    times: Mask
    attributes: Mask
    both: Mask


class ShownFact(NamedTuple):
    """A version as callers see it, with entities that are called so."""

    refs: Mapping[str, EntityRef]
    fact: Fact
    memory: Memory


@dataclass(slots=True)
class ResidentFact:
    """A version in memory: its properties as queries return them, its ends, and its row in its table."""

    table: FactTable
    row: int
    properties: Mapping[str, Any]
    times: Sequence[int | None]
    subject_id: str
    object_id: str
    search_text: str
    known_from: int
    candidate: FactCandidate
    shown: ShownFact | None = None

    @property
    def texts(self) -> tuple[str, str, str]:
        """What full-text search finds it by: its statement, its further words, and the folded words of both."""
        content = self.properties["fact"]
        return content, self.search_text, join_folded_words(content, self.search_text) or ""

    @property
    def text_bytes(self) -> int:
        """The memory of its texts."""
        return sum(len(text.encode()) for text in self.texts)

    @property
    def ends(self) -> tuple[str, str]:
        """The ids of its subject and object."""
        return self.subject_id, self.object_id

    @property
    def mentioned_ids(self) -> list[str]:
        """The ids of the entities that it mentions beside subject and object."""
        return [entity_id for entity_id in self.properties["entity_ids"] if entity_id not in self.ends]

    def to_memory(self, refs: Mapping[str, EntityRef], now: datetime) -> Memory:
        """Return what callers see at `now`; `refs` holds the entities by id."""
        if self.shown is None or self.shown.refs != refs:
            row = {
                "fact": self.properties,
                "times": self.times,
                "subject_id": self.subject_id,
                "object_id": self.object_id,
            }
            fact = fact_from_row(row)
            self.shown = ShownFact(refs, fact, memory_from_fact(fact, refs, now))
        return memory_at(self.shown.memory, self.shown.fact, now)

    @property
    def retrieval_state(self) -> list[Any]:
        """The value of the fragment `retrieval_state`."""
        names = ("memory_id", "version", "strength", "decay_rate", "confidence", "access_count")
        return [*(self.properties[name] for name in names), [self.times[_ACCESSED], self.times[_CREATED]]]


def rank_by_importance(fact: ResidentFact) -> tuple[float, int, str]:
    """Return a key that sorts facts by importance and by when they became known, the highest and the latest first."""
    return -fact.properties["importance"], -fact.known_from, fact.properties["uuid"]


class FactTable:
    """Versions by row."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self.facts: list[ResidentFact] = []
        self._by_uuid: dict[str, ResidentFact] = {}
        self._by_memory: dict[str, dict[str, ResidentFact]] = defaultdict(dict)
        self._outgoing: dict[str, dict[str, ResidentFact]] = defaultdict(dict)
        self._incoming: dict[str, dict[str, ResidentFact]] = defaultdict(dict)
        self._mentioning: dict[str, set[str]] = defaultdict(set)
        self._profiles: dict[str, dict[str, ResidentFact]] = defaultdict(dict)
        self._texts = TextIndex(fields=3)
        self._text_bytes = 0
        self._vectors = Column(np.float32, dimension)
        self._has_vector, self._states = Column(np.bool_), Column(np.bool_)
        self._times = {
            name: Column(np.int64)
            for name in (
                *("valid_from", "valid_to", "known_from", "known_to", "first_created_at"),
                *("contested_valid_to", "contested_known_to"),
            )
        }
        self._numbers = {name: Column(np.float64) for name in ("importance", "confidence")}
        self._words = {name: Words() for name in _WORD_COLUMNS}
        self._tags, self._entities = Members(), Members()
        self._masks: RowMasks | None = None

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def nbytes(self) -> int:
        """An estimate of the memory that the table takes."""
        postings = self._texts.postings * POSTING_BYTES
        return self._vectors.nbytes + len(self.facts) * FACT_BYTES + self._text_bytes + postings

    # Changing

    def reserve(self, rows: int) -> None:
        """Make room for the vectors of so many rows."""
        self._vectors.reserve(rows)

    def put(self, columns: Sequence[Any]) -> None:
        """Add or replace a version, from the columns of `resident.load_facts`."""
        (stored, times, subject_id, object_id), search_text, bounds, vector = columns
        stored = with_lists(stored, subject_id, object_id)
        properties = {sys.intern(name): value for name, value in stored.items()}  # else each row has its own names
        self._masks = None
        old = self._by_uuid.get(properties["uuid"])
        if old is not None:
            self._unlink(old)
        fact = ResidentFact(
            table=self,
            row=len(self.facts) if old is None else old.row,
            properties=properties,
            times=times,
            subject_id=subject_id,
            object_id=object_id,
            search_text=search_text or "",
            known_from=bounds[2],
            candidate=_to_candidate(properties, times, search_text or "", bounds),
        )
        if old is None:
            self._append(fact)
        else:
            self.facts[fact.row] = fact
            self._texts.replace(fact.row, old.texts, fact.texts)
            self._text_bytes += fact.text_bytes - old.text_bytes
        self._fill(fact, bounds, vector)
        self._link(fact)

    def _append(self, fact: ResidentFact) -> None:
        self.facts.append(fact)
        self._texts.append(*fact.texts)
        self._text_bytes += fact.text_bytes
        for column in (self._vectors, self._has_vector, self._states, *self._times.values(), *self._numbers.values()):
            column.append(0)
        for words in self._words.values():
            words.column.append(0)

    def _fill(self, fact: ResidentFact, bounds: Sequence[int], vector: Any) -> None:
        row, properties = fact.row, fact.properties
        self._has_vector.set(row, vector is not None)
        self._states.set(row, properties["type"] != MemoryType.PROFILE)
        self._vectors.set(row, unit_vector(vector, self._dimension))
        for name, value in zip(("valid_from", "valid_to", "known_from", "known_to"), bounds, strict=True):
            self._times[name].set(row, value)
        self._times["first_created_at"].set(row, fact.times[_CREATED])
        valid_to, known_to = _ends_of_contested(properties, fact.times)
        self._times["contested_valid_to"].set(row, valid_to)
        self._times["contested_known_to"].set(row, known_to)
        for name, column in self._numbers.items():
            column.set(row, properties[name])
        subtype = properties["subtype"]
        values = {
            "type": properties["type"],
            "subtype": subtype,
            "subtype_key": (subtype or properties["type"]).replace("-", "_").replace(" ", "_").lower(),
            "domain": properties["domain"],
            "scope": properties["scope"],
            "source_kind": properties["source_kind"],
            "trust_kind": properties["trusted_as"] or properties["source_kind"],
            "speaker": properties["speaker"],
            "agent": properties["actor"],
            "session_id": properties["session_id"],
        }
        for name, words in self._words.items():
            words.column.set(row, words.code(values[name]))

    def _link(self, fact: ResidentFact) -> None:
        uuid, memory_id = fact.properties["uuid"], fact.properties["memory_id"]
        self._by_uuid[uuid] = fact
        self._by_memory[memory_id][uuid] = fact
        self._outgoing[fact.subject_id][uuid] = fact
        self._incoming[fact.object_id][uuid] = fact
        if fact.properties["type"] == MemoryType.PROFILE:
            self._profiles[fact.subject_id][uuid] = fact
        for entity_id in fact.mentioned_ids:
            self._mentioning[entity_id].add(memory_id)
        self._tags.replace(fact.row, (), fact.properties["tags"])
        self._entities.replace(fact.row, (), fact.properties["entity_ids"])

    def _unlink(self, fact: ResidentFact) -> None:
        self._outgoing[fact.subject_id].pop(fact.properties["uuid"])
        self._incoming[fact.object_id].pop(fact.properties["uuid"])
        if fact.properties["type"] == MemoryType.PROFILE:
            self._profiles[fact.subject_id].pop(fact.properties["uuid"])
        self._tags.replace(fact.row, fact.properties["tags"], ())
        self._entities.replace(fact.row, fact.properties["entity_ids"], ())

    # Reading

    def mask(self, filters: FactFilters) -> Mask:
        """Return which rows pass both times and every other filter."""
        return self.masks(filters).both

    def masks(self, filters: FactFilters) -> RowMasks:
        """Return which rows pass filters; the channels of a search share the masks."""
        if self._masks is None or self._masks.filters is not filters:
            times, attributes = self.mask_of_times(filters), self._mask_of_attributes(filters)
            self._masks = RowMasks(filters, times, attributes, times & attributes)
        return self._masks

    def mask_of_times(self, filters: FactFilters) -> Mask:
        """Return which rows pass both times."""
        at = {name: seconds * 1_000_000 + micros for name, (seconds, micros) in filters.as_of_params.items()}
        values = {name: column.values for name, column in self._times.items()}
        held: Mask = (values["known_to"] > at["known_at"]) & (values["valid_to"] >= at["valid_after"])
        if filters.includes_contested:
            held |= (values["contested_known_to"] > at["known_at"]) & (
                values["contested_valid_to"] >= at["valid_after"]
            )
        mask: Mask = (values["known_from"] <= at["known_at"]) & (values["valid_from"] <= at["valid_at"]) & held
        return mask

    def _mask_of_attributes(self, filters: FactFilters) -> Mask:
        """Return which rows pass every filter but the times, as the fragment `matches_filters` says."""
        given = filters.attribute_params
        mask = self._matches_types(given["types"]) if given["types"] else self.is_statement.copy()
        for name, value in given.items():
            if name == "entity_ids":
                if value is not None:
                    mask &= self._has_any(self._entities, value)
            elif name not in ("types", "metadata") and value is not None and value != []:
                mask &= self._mask_of(name, value)
        patterns = [re.compile(pattern) for pattern in given["metadata"]]
        for row in np.flatnonzero(mask) if patterns else ():
            metadata = self.facts[row].properties["metadata"] or ""
            mask[row] = all(pattern.match(metadata) for pattern in patterns)
        return mask

    def _mask_of(self, name: str, value: Any) -> Mask:
        """Return which rows pass one filter; a filter without a rule here would let everything pass."""
        mask: Mask
        match name:
            case "domain" | "scope" | "source_kind" | "speaker" | "agent" | "session_id":
                mask = self._words[name].matches([value])
            case "subtype":
                mask = self._words["subtype_key"].matches([value])
            case "trust_kinds":
                mask = self._words["trust_kind"].matches(value)
            case "tags_any":
                mask = self._has_any(self._tags, value)
            case "tags_all":
                mask = np.logical_and.reduce([self._tags.matches(tag, len(self)) for tag in value])
            case "tags_none":
                mask = ~self._has_any(self._tags, value)
            case "min_confidence" | "min_importance":
                mask = self._numbers[name.removeprefix("min_")].values >= value
            case "created_after":
                mask = self._times["first_created_at"].values >= to_micros(value)
            case "created_before":
                mask = self._times["first_created_at"].values < to_micros(value)
            case _:
                raise LookupError(f"The copy in memory has no rule for the filter {name!r}.")
        return mask

    def _matches_types(self, types: Sequence[str]) -> Mask:
        return self._words["type"].matches(types) | self._words["subtype_key"].matches(types)

    def _has_any(self, column: Members, values: Sequence[str]) -> Mask:
        mask: Mask = np.zeros(len(self), dtype=bool)
        for value in values:
            mask |= column.matches(value, len(self))
        return mask

    @property
    def is_statement(self) -> Mask:
        """Which rows state something, as the fragment `is_statement` says: a profile says what others state."""
        return self._states.values

    def find_profile(self, entity_id: str, filters: FactFilters) -> EntityProfile | None:
        """Return the profile of an entity as of the times of filters, as the query `profiles.load` finds it."""
        versions = list(self._profiles.get(entity_id, {}).values())
        if not versions:
            return None
        mask, valid_to = self.mask_of_times(filters), self._times["valid_to"].values
        for profile in versions:
            if not mask[profile.row]:
                continue
            derived_from = profile.properties["derived_from"]
            facts = [
                fact
                for memory_id in derived_from
                for fact in self._by_memory.get(memory_id, {}).values()
                if mask[fact.row] and fact.known_from <= profile.known_from
            ]
            if len(facts) == len(derived_from):
                until = min(int(valid_to[fact.row]) for fact in (profile, *facts))
                stored = {**profile.properties, "entity_id": entity_id}
                return profile_from_columns(stored, [profile.known_from, until])
        return None

    def get(self, uuid: str) -> ResidentFact | None:
        """Return a version by its uuid."""
        return self._by_uuid.get(uuid)

    def believed(self, memory_id: str) -> ResidentFact | None:
        """Return the latest version of a memory that was not deleted."""
        versions = self._by_memory.get(memory_id, {}).values()
        return next((fact for fact in versions if fact.times[_EXPIRED] is None), None)

    def outgoing(self, entity_id: str) -> Mapping[str, ResidentFact]:
        """Return every version whose subject an entity is, by uuid."""
        return self._outgoing.get(entity_id, {})

    def incoming(self, entity_id: str) -> Mapping[str, ResidentFact]:
        """Return every version whose object an entity is, by uuid; without an object it is that of the subject."""
        return self._incoming.get(entity_id, {})

    def at_entity(self, entity_id: str) -> dict[str, ResidentFact]:
        """Return every version whose subject or object an entity is, by uuid."""
        return {**self.outgoing(entity_id), **self.incoming(entity_id)}

    def about_entity(self, entity_id: str) -> dict[str, ResidentFact]:
        """Return every version at an entity and every version of the memories that mention it, by uuid."""
        found = self.at_entity(entity_id)
        for memory_id in self._mentioning.get(entity_id, ()):
            versions = self._by_memory[memory_id]
            if any(entity_id in fact.mentioned_ids for fact in versions.values()):
                found |= versions
        return found

    def count_current(self, entity_id: str, now: int) -> int:
        """Return how many versions about an entity are believed and valid `now`, in microseconds since 1970."""
        rows = np.asarray([fact.row for fact in self.about_entity(entity_id).values()], dtype=np.int64)
        times = self._times
        current = (
            self.is_statement[rows]
            & (times["known_to"].values[rows] == FOREVER)
            & (times["valid_from"].values[rows] <= now)
            & (times["valid_to"].values[rows] > now)
        )
        return int(current.sum())

    def find_by_vector(self, vector: NDArray[np.float32], mask: Mask, limit: int) -> list[tuple[float, ResidentFact]]:
        """Return the nearest versions among the rows of the mask with their cosines, best first."""
        similarities = cosines(self._vectors.values, vector)
        rows = np.flatnonzero(mask & self._has_vector.values)
        best = best_rows(rows, similarities[rows], limit)
        rows_with_cosines = zip(best.tolist(), similarities[best].tolist(), strict=True)
        return [(similarity, self.facts[row]) for row, similarity in rows_with_cosines]

    def find_by_text(self, words: Sequence[str], mask: Mask, limit: int) -> list[tuple[float, ResidentFact]]:
        """Return the versions among the rows of the mask that contain any of the words, with scores, best first."""
        return [(score, self.facts[row]) for row, score in self._texts.find(words, mask, limit)]

    def similarities(self, facts: Sequence[ResidentFact], vectors: NDArray[np.float32]) -> list[list[float]]:
        """Return the cosines of versions, which have a vector, with each of some vectors of length 1."""
        found: list[list[float]] = (self._vectors.values[[fact.row for fact in facts]] @ vectors.T).tolist()
        return found

    def has_vector(self, fact: ResidentFact) -> bool:
        """Return whether a version has a vector."""
        return bool(self._has_vector.values[fact.row])

    def in_scope_or_domain(self, scopes: Sequence[str], domain: str | None) -> Mask:
        """Return which rows are of one of the scopes or of a domain."""
        mask = self._words["scope"].matches(scopes)
        return mask if domain is None else mask | self._words["domain"].matches([domain])


def _ends_of_contested(properties: Mapping[str, Any], times: Sequence[int | None]) -> tuple[int, int]:
    """Return the ends of the valid and of the known time that a contested version would have; 0 for another one."""
    if properties["status"] != MemoryStatus.CONTESTED:
        return 0, 0
    ends = [end for end in (times[_INVALID], times[_EXPIRES]) if end is not None]
    expired = times[_EXPIRED]
    return min(ends, default=FOREVER), FOREVER if expired is None else expired


def _to_candidate(
    properties: Mapping[str, Any], times: Sequence[int | None], search_text: str, bounds: Sequence[int]
) -> FactCandidate:
    accessed = times[_ACCESSED] if times[_ACCESSED] is not None else times[_CREATED]
    assert accessed is not None, "every version has the time of the first one"
    return FactCandidate(
        uuid=properties["uuid"],
        memory_id=properties["memory_id"],
        score=0.0,
        text=FactText(properties["fact"], search_text[:MAX_CONTEXT]),
        type=properties["type"],
        tags=properties["tags"],
        importance=properties["importance"],
        strength=properties["strength"],
        decay_rate=properties["decay_rate"],
        last_accessed_ms=accessed // 1000,
        valid_from=bounds[0] // 1000,
        valid_to=bounds[1] // 1000,
        message_ids=[message_key(properties["group_id"], key) for key in properties["message_ids"]],
        entity_ids=properties["entity_ids"],
        similarity=None,
        trust_kind=properties["trusted_as"] or properties["source_kind"],
    )
