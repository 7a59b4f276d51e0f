"""The versions of a group's memories in memory, with a column for everything that filters compare. Pure."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, chain
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import TIME_FIELDS, Fact, fact_from_row, memory_at, memory_from_fact, with_lists
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory, MemoryStatus, MemoryType
from graphmem.runtime.times import MAX_TIME, to_micros
from graphmem.search.bm25 import POSTING_BYTES, Scores, TextIndex
from graphmem.search.candidates import FactNumbers, FactRow, Mask, Rows, unit_vector
from graphmem.tenants.owners import message_key
from graphmem.text.folding import join_folded_words

FACT_BYTES = 3_700
"""Memory of a version in bytes without its vector, texts and postings, measured over conversations.

It does not include the stems of versions found by searches: 0.8 kB each.
"""

MAX_CONTEXT = 1_500
"""Maximum characters of a candidate's context."""

FOREVER = to_micros(MAX_TIME)
"""The end of an open interval."""

_ACCESSED, _CREATED = TIME_FIELDS.index("last_accessed_at"), TIME_FIELDS.index("first_created_at")
_INVALID, _EXPIRED, _EXPIRES = (TIME_FIELDS.index(name) for name in ("invalid_at", "expired_at", "expires_at"))


_FIRST_CAPACITY = 64


class Column:
    """Values of one numeric type by row, or vectors of one length."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._shape: tuple[int, ...] = () if width is None else (width,)
        self._values: NDArray[Any] = np.zeros((_FIRST_CAPACITY, *self._shape), dtype=dtype)
        self._size = 0

    @property
    def values(self) -> NDArray[Any]:
        """The values of all rows; valid until a row is added."""
        return self._values[: self._size]

    @property
    def nbytes(self) -> int:
        """The memory used by the column."""
        return int(self._values.nbytes)

    def append(self, value: Any) -> None:
        """Add a row."""
        if self._size == len(self._values):
            self.reserve(self._size + self._size // 4)
        self._values[self._size] = value
        self._size += 1

    def reserve(self, rows: int) -> None:
        """Make room for this total number of rows."""
        if rows > len(self._values):
            grown = np.zeros((rows, *self._shape), dtype=self._values.dtype)
            grown[: self._size] = self._values[: self._size]
            self._values = grown

    def set(self, row: int, value: Any) -> None:
        """Replace the value of a row."""
        self._values[row] = value


class Words:
    """Words by row, each stored as a number."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {}
        self.column = Column(np.int32)

    def code(self, word: str | None) -> int:
        """Return the number of a word, adding it if it is new."""
        return self._codes.setdefault(word, len(self._codes))

    def matches(self, words: Iterable[str]) -> Mask:
        """Return which rows have one of the words."""
        codes = [self._codes[word] for word in words if word in self._codes]
        return np.isin(self.column.values, codes)


class Members:
    """The members of a set by row, such as tags, and the rows of each member."""

    def __init__(self) -> None:
        self._rows: dict[str, set[int]] = defaultdict(set)

    def replace(self, row: int, old: Sequence[str], new: Sequence[str]) -> None:
        """Replace the members of a row."""
        for member in old:
            self._rows[member].discard(row)
        for member in new:
            self._rows[member].add(row)

    def matches(self, member: str, size: int) -> Mask:
        """Return which of `size` rows have a member."""
        mask = np.zeros(size, dtype=bool)
        mask[list(self._rows.get(member, ()))] = True
        return mask


def cosines(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosines of all vectors with one, each of length 1; a missing vector gives 0.

    A matrix product would keep a second core busy for half a millisecond's work.
    """
    result: NDArray[np.float32] = np.vecdot(vectors, vector)
    return result


_WORD_COLUMNS = (
    *("type", "subtype", "subtype_key", "domain", "scope"),
    *("source_kind", "trust_kind", "speaker", "agent", "session_id"),
)
"""Columns of words that filters compare."""


class ShownFact(NamedTuple):
    """A version as shown to callers, valid while its entities have these names."""

    refs: Mapping[str, EntityRef]
    fact: Fact
    memory: Memory


@dataclass(slots=True, kw_only=True)
class ResidentFact(FactRow):
    """A version in memory: its properties as queries return them, its times, and the ids of its subject and object.

    `rank` sorts facts by importance and by when they became known, the highest and the latest first.
    """

    properties: Mapping[str, Any]
    times: Sequence[int | None]
    ends: tuple[str, str]
    search_text: str
    rank: tuple[float, int, str]
    shown: ShownFact | None = None

    @property
    def texts(self) -> tuple[str, str, str]:
        """The texts for full-text search: its statement, its further words, and the folded words of both."""
        content = self.properties["fact"]
        return content, self.search_text, join_folded_words(content, self.search_text) or ""

    @property
    def text_bytes(self) -> int:
        """The memory used by its texts."""
        return sum(len(text.encode()) for text in self.texts)

    def to_memory(self, refs: Mapping[str, EntityRef], now: datetime) -> Memory:
        """Return the memory for callers at `now`; `refs` holds the entities by id."""
        if self.shown is None or self.shown.refs != refs:
            row = {
                "fact": self.properties,
                "times": self.times,
                "subject_id": self.ends[0],
                "object_id": self.ends[1],
            }
            fact = fact_from_row(row)
            self.shown = ShownFact(refs, fact, memory_from_fact(fact, refs, now))
        return memory_at(self.shown.memory, self.shown.fact, now)

    @property
    def retrieval_state(self) -> list[Any]:
        """The value of the fragment `retrieval_state`."""
        names = ("memory_id", "version", "strength", "decay_rate", "confidence", "access_count")
        return [*(self.properties[name] for name in names), [self.times[_ACCESSED], self.times[_CREATED]]]


class FactTable:
    """Versions by row."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self.facts: list[ResidentFact] = []
        self._rows: dict[str, int] = {}
        self._by_memory: dict[str, dict[int, None]] = defaultdict(dict)
        self._outgoing: dict[str, dict[int, None]] = defaultdict(dict)
        self._incoming: dict[str, dict[int, None]] = defaultdict(dict)
        self._profiles: dict[str, dict[int, None]] = defaultdict(dict)
        self._texts = TextIndex(fields=3)
        self._text_bytes = 0
        self._vectors = Column(np.float32, dimension)
        self._has_vector, self._states = Column(np.bool_), Column(np.bool_)
        self._times = {
            name: Column(np.int64)
            for name in (
                *("valid_from", "valid_to", "known_from", "known_to", "first_created_at", "last_accessed"),
                *("contested_valid_to", "contested_known_to"),
            )
        }
        self._numbers = {name: Column(np.float64) for name in ("importance", "confidence", "strength", "decay_rate")}
        self._words = {name: Words() for name in _WORD_COLUMNS}
        self._tags, self._entities = Members(), Members()

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def nbytes(self) -> int:
        """An estimate of the memory used by the table."""
        postings = self._texts.postings * POSTING_BYTES
        return self._vectors.nbytes + len(self.facts) * FACT_BYTES + self._text_bytes + postings

    # Changes

    def reserve(self, rows: int) -> None:
        """Make room for the vectors of this number of rows."""
        self._vectors.reserve(rows)

    def put(self, columns: Sequence[Any]) -> None:
        """Add or replace a version, from the columns of `resident.load_facts`."""
        (stored, times, subject_id, object_id), search_text, bounds, vector = columns
        stored = with_lists(stored, subject_id, object_id)
        properties = {sys.intern(name): value for name, value in stored.items()}  # else each row has its own names
        search_text, uuid = search_text or "", properties["uuid"]
        fact = ResidentFact(
            uuid=uuid,
            memory_id=properties["memory_id"],
            content=properties["fact"],
            context=search_text[:MAX_CONTEXT],
            type=properties["type"],
            tags=properties["tags"],
            message_ids=[message_key(properties["group_id"], key) for key in properties["message_ids"]],
            entity_ids=properties["entity_ids"],
            trust_kind=properties["trusted_as"] or properties["source_kind"],
            properties=properties,
            times=times,
            ends=(subject_id, object_id),
            search_text=search_text,
            rank=(-properties["importance"], -bounds[2], uuid),
        )
        row = self._rows.setdefault(uuid, len(self.facts))
        if row == len(self.facts):
            self._append(fact)
        else:
            self._replace(row, fact)
        self._fill(row, fact, bounds, vector)
        self._link(row, fact)

    def _append(self, fact: ResidentFact) -> None:
        self.facts.append(fact)
        self._texts.append(*fact.texts)
        self._text_bytes += fact.text_bytes
        for column in (self._vectors, self._has_vector, self._states, *self._times.values(), *self._numbers.values()):
            column.append(0)
        for words in self._words.values():
            words.column.append(0)

    def _replace(self, row: int, fact: ResidentFact) -> None:
        old = self.facts[row]
        self._unlink(row, old)
        self.facts[row] = fact
        self._texts.replace(row, old.texts, fact.texts)
        self._text_bytes += fact.text_bytes - old.text_bytes

    def _fill(self, row: int, fact: ResidentFact, bounds: Sequence[int], vector: Any) -> None:
        properties = fact.properties
        self._has_vector.set(row, vector is not None)
        self._states.set(row, properties["type"] != MemoryType.PROFILE)
        self._vectors.set(row, unit_vector(vector, self._dimension))
        for name, value in zip(("valid_from", "valid_to", "known_from", "known_to"), bounds, strict=True):
            self._times[name].set(row, value)
        created, accessed = fact.times[_CREATED], fact.times[_ACCESSED]
        self._times["first_created_at"].set(row, created)
        self._times["last_accessed"].set(row, created if accessed is None else accessed)
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
            "trust_kind": fact.trust_kind,
            "speaker": properties["speaker"],
            "agent": properties["actor"],
            "session_id": properties["session_id"],
        }
        for name, words in self._words.items():
            words.column.set(row, words.code(values[name]))

    def _link(self, row: int, fact: ResidentFact) -> None:
        subject_id, object_id = fact.ends
        self._by_memory[fact.memory_id][row] = None
        self._outgoing[subject_id][row] = None
        self._incoming[object_id][row] = None
        if fact.type == MemoryType.PROFILE:
            self._profiles[subject_id][row] = None
        self._tags.replace(row, (), fact.tags)
        self._entities.replace(row, (), fact.entity_ids)

    def _unlink(self, row: int, fact: ResidentFact) -> None:
        subject_id, object_id = fact.ends
        self._outgoing[subject_id].pop(row)
        self._incoming[object_id].pop(row)
        if fact.type == MemoryType.PROFILE:
            self._profiles[subject_id].pop(row)
        self._tags.replace(row, fact.tags, ())
        self._entities.replace(row, fact.entity_ids, ())

    # Reads

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

    def mask_of_attributes(self, filters: FactFilters) -> Mask:
        """Return which rows pass every filter except the times, as the fragment `matches_filters` does."""
        given = filters.attribute_params
        mask = self._matches_types(given["types"]) if given["types"] else self._states.values.copy()
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

    def has_profile(self, entity_id: str) -> bool:
        """Return whether a profile of an entity was ever written."""
        return bool(self._profiles.get(entity_id))

    def get(self, uuid: str) -> ResidentFact | None:
        """Return a version by its uuid."""
        row = self._rows.get(uuid)
        return None if row is None else self.facts[row]

    def believed(self, memory_id: str) -> ResidentFact | None:
        """Return the latest version of a memory that was not deleted."""
        versions = (self.facts[row] for row in self._by_memory.get(memory_id, ()))
        return next((fact for fact in versions if fact.times[_EXPIRED] is None), None)

    def outgoing(self, entity_id: str) -> Collection[int]:
        """Return the rows of all versions with an entity as subject."""
        return self._outgoing.get(entity_id, ())

    def incoming(self, entity_id: str) -> Collection[int]:
        """Return the rows of all versions with an entity as object, or as subject if they have no object."""
        return self._incoming.get(entity_id, ())

    def cosines(self, vector: NDArray[np.float32], rows: Rows | slice = slice(None)) -> Scores:
        """Return the cosines of all or some rows with a vector of length 1; a row without a vector has NaN."""
        return np.where(self._has_vector.values[rows], cosines(self._vectors.values[rows], vector), np.nan)

    def word_scores(self, words: Sequence[str]) -> Scores:
        """Return the full-text score of each row; a row without any of the words scores 0."""
        return self._texts.scores(words)

    def number(self, name: str) -> NDArray[Any]:
        """Return a column of numbers, or of times in microseconds since 1970."""
        return (self._numbers.get(name) or self._times[name]).values


def _ends_of_contested(properties: Mapping[str, Any], times: Sequence[int | None]) -> tuple[int, int]:
    """Return the valid and known ends that a contested version would have; 0 for other versions."""
    if properties["status"] != MemoryStatus.CONTESTED:
        return 0, 0
    ends = [end for end in (times[_INVALID], times[_EXPIRES]) if end is not None]
    expired = times[_EXPIRED]
    return min(ends, default=FOREVER), FOREVER if expired is None else expired


class FactTables:
    """The facts of several groups as one table, with the rows of each group after the previous group's."""

    def __init__(self, tables: Sequence[FactTable]) -> None:
        self._tables = tables
        self._starts = [0, *accumulate(map(len, tables))]
        self.facts = tables[0].facts if len(tables) == 1 else [*chain.from_iterable(table.facts for table in tables)]

    def join(self, read: Callable[[FactTable], NDArray[Any]]) -> NDArray[Any]:
        """Return a column of all groups."""
        return read(self._tables[0]) if len(self._tables) == 1 else np.concatenate([*map(read, self._tables)])

    def numbers(self, rows: Rows) -> FactNumbers:
        """Return the numeric data of some rows for ranking."""
        importance, strength, decay_rate, *times = (
            self.join(methodcaller("number", name))[rows] for name in FactNumbers._fields
        )
        return FactNumbers(importance, strength, decay_rate, *(time // 1000 for time in times))

    def cosines(self, vector: NDArray[np.float32], rows: Rows) -> Scores:
        """Return the cosines of some rows with a vector of length 1."""
        found = np.empty(len(rows))
        for table, start, end in zip(self._tables, self._starts, self._starts[1:], strict=False):
            inside = (start <= rows) & (rows < end)
            found[inside] = table.cosines(vector, rows[inside] - start)
        return found

    def outgoing(self, entity_id: str) -> Collection[int]:
        """Return the rows of all versions with an entity as subject."""
        return self._find(FactTable.outgoing, entity_id)

    def incoming(self, entity_id: str) -> Collection[int]:
        """Return the rows of all versions with an entity as object."""
        return self._find(FactTable.incoming, entity_id)

    def _find(self, find: Callable[[FactTable, str], Collection[int]], entity_id: str) -> Collection[int]:
        if len(self._tables) == 1:
            return find(self._tables[0], entity_id)
        return [
            start + row
            for table, start in zip(self._tables, self._starts, strict=False)
            for row in find(table, entity_id)
        ]
