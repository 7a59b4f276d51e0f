"""A fact: one version of a memory, stored on an edge between two entities, with its conversions. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, get_type_hints

from graphmem.memories.entity import EntityRef
from graphmem.memories.memory import (
    DEFAULT_PREDICATES,
    MAX_SOURCE_MESSAGES,
    SCOPES_WITHOUT_DOMAIN,
    Memory,
    MemoryPatch,
    MemorySource,
    MemoryStatus,
    MemoryType,
    MemoryVersion,
    Scope,
    tagged_domain,
)
from graphmem.runtime.field_types import content_hash, deduplicate, to_json
from graphmem.runtime.times import MAX_TIME, MIN_TIME, interval_contains, parse_times
from graphmem.tenants.owners import Owner, group_key
from graphmem.tenants.trust import SourceKind
from graphmem.text.folding import FOLDED_TEXT, join_folded_words

DECAY_RATES: dict[MemoryType, float] = {
    MemoryType.FACT: 0.01,
    MemoryType.PREFERENCE: 0.01,
    MemoryType.BEHAVIORAL_PATTERN: 0.02,
    MemoryType.PLAN: 0.03,
    MemoryType.RECOMMENDATION: 0.03,
    MemoryType.INFERRED_INTEREST: 0.03,
    MemoryType.OPEN_LOOP: 0.03,
    MemoryType.PROFILE: 0.01,
    MemoryType.CONVERSATION_TOPIC: 0.04,
    MemoryType.CONVERSATION_SUMMARY: 0.04,
    MemoryType.FEELING: 0.05,
}
"""Decay rate of strength by memory type, per day; 0.01 halves strength in 69 days, 0.05 in 14."""

INITIAL_STRENGTH = 0.5
"""Strength of a new memory."""

STRENGTH_STEP = 0.05
"""Strength added by one retrieval."""

MAX_STRENGTH = 1.0
"""Maximum strength."""

CONFIDENCE_STEP = 0.02
"""Confidence added by one retrieval."""

MAX_CONFIDENCE = 0.99
"""Maximum confidence that retrievals lead to; a caller may state more."""

IMPORTANCE_PERIOD_DAYS = 30
"""Days without a retrieval after which maintenance lowers importance once."""

IMPORTANCE_FACTOR = 0.9
"""Share of its importance that a memory keeps after one period without a retrieval."""

MIN_IMPORTANCE = 0.05
"""Importance below which maintenance does not lower a memory."""


def decayed_strength(strength: float, decay_rate: float, idle_days: float) -> float:
    """Return `strength · exp(−decay_rate · idle_days)`; never more than `strength`."""
    return strength * math.exp(-decay_rate * max(0.0, idle_days))


def decayed_importance(importance: float, periods: int) -> float:
    """Return the importance after a number of periods of 30 days without a retrieval."""
    return min(importance, max(MIN_IMPORTANCE, importance * IMPORTANCE_FACTOR**periods))


def apply_reinforcement(strength: float, confidence: float, times: int = 1) -> tuple[float, float]:
    """Return strength and confidence after `times` retrievals; a confidence above the maximum is unchanged."""
    new_strength = min(MAX_STRENGTH, strength + STRENGTH_STEP * times)
    new_confidence = max(confidence, min(MAX_CONFIDENCE, confidence + CONFIDENCE_STEP * times))
    return new_strength, new_confidence


@dataclass(frozen=True, slots=True)
class RetrievalCount:
    """Number of retrievals of a memory, and the time of the latest."""

    times: int
    at: datetime

    def plus(self, other: RetrievalCount) -> RetrievalCount:
        """Return the sum of both counts."""
        return RetrievalCount(self.times + other.times, max(self.at, other.at))


TYPE_PREDICATES = frozenset(DEFAULT_PREDICATES.values())
"""The default predicates of statements that name none."""

MAX_SEARCH_TEXT = 20_000
"""Maximum characters of a fact's search text when repetitions and merges extend it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of a memory; its fields are the properties of its edge and of its export.

    Valid time is `[valid_at, invalid_at)`, known time `[created_at, expired_at)`; None is open. A `retired` version was
    merged or reverted: it is never valid but stays readable by id. `claimed_invalid_at` is the end stated by the
    writer, which a reverted supersession restores. A contested version is neither believed nor valid; `contests` are
    the memories that it contradicts, kept after resolution. `derived_from` are the memories that a profile was written
    from.
    """

    uuid: str
    memory_id: str
    version: int
    group_id: str
    subject_id: str
    predicate: str
    content: str
    content_hash: str
    type: MemoryType
    scope: Scope
    created_at: datetime
    first_created_at: datetime
    updated_at: datetime
    decay_rate: float
    subtype: str | None = None
    content_data: dict[str, Any] | None = None
    object_id: str | None = None
    entity_ids: tuple[str, ...] = ()
    domain: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float = 0.9
    importance: float = 0.5
    strength: float = 0.5
    access_count: int = 0
    last_accessed_at: datetime | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    claimed_invalid_at: datetime | None = None
    expired_at: datetime | None = None
    expires_at: datetime | None = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    retired: bool = False
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    contests: tuple[str, ...] = ()
    associations: tuple[str, ...] = ()
    derived_from: tuple[str, ...] | None = None
    source_kind: SourceKind = "user"
    trusted_as: SourceKind | None = None
    source_quote: str | None = None
    speaker: str | None = None
    session_id: str | None = None
    message_ids: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    immutable: bool = False
    single_valued: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    active_hash: str | None = None
    search_text: str = ""
    end_status: MemoryStatus | None = None
    ended_reason: str | None = None
    ended_by: str | None = None
    ended_actor: str | None = None
    actor: str | None = None

    @property
    def is_global(self) -> bool:
        """Whether the memory belongs to the tenant rather than to a user."""
        return not Owner.from_group_id(self.group_id).user_id

    @property
    def is_contested(self) -> bool:
        """Whether it contradicts another memory and nobody has resolved that."""
        return self.status is MemoryStatus.CONTESTED

    @property
    def trust_kind(self) -> SourceKind:
        """The source kind whose trust it has."""
        return self.trusted_as or self.source_kind

    @property
    def valid_from(self) -> datetime:
        """The start of the valid interval, never null."""
        return self.valid_at or MIN_TIME

    @property
    def valid_to(self) -> datetime:
        """The end of the valid interval, never null; a memory past `expires_at` is not valid either."""
        if self.is_contested:
            return MIN_TIME
        if self.retired:
            return self.valid_from
        return max(self.valid_from, min(self.invalid_at or MAX_TIME, self.expires_at or MAX_TIME))

    @property
    def shown_invalid_at(self) -> datetime | None:
        """The end of the valid time shown to callers; a retired version, never valid, ends where it starts."""
        return self.valid_at or self.created_at if self.retired else self.invalid_at

    @property
    def shown_expired_at(self) -> datetime | None:
        """The end of the known time shown to callers; a retired version is no longer believed."""
        return self.expired_at or self.created_at if self.retired else self.expired_at

    @property
    def known_to(self) -> datetime:
        """The end of the known interval, never null; a contested version is never believed."""
        return self.created_at if self.is_contested else self.expired_at or MAX_TIME

    @property
    def effective_start(self) -> datetime:
        """The start by which single-valued facts are ordered.

        If unknown, it is the time of the first version, or the earliest time if the fact had ended by then.
        """
        if self.valid_at:
            return self.valid_at
        return self.first_created_at if self.valid_to > self.first_created_at else MIN_TIME

    @property
    def is_never_valid(self) -> bool:
        """Whether the valid interval is empty."""
        return self.valid_from >= self.valid_to

    @property
    def end_ids(self) -> tuple[str, ...]:
        """The ids of its subject and, if any, its object."""
        return end_ids(self.subject_id, self.object_id)

    @property
    def mentioned_ids(self) -> set[str]:
        """The ids of the entities that the fact mentions besides its subject and object."""
        return set(self.entity_ids) - {self.subject_id, self.object_id}

    @property
    def dedup_key(self) -> str:
        """A key shared by statements with the same content, subject, predicate and object."""
        return dedup_key(self.content_hash, self.subject_id, self.predicate, self.object_id)

    def repeats(self, known: Fact) -> bool:
        """Return whether it states the same as `known`: the same content and subject, with nothing added.

        A missing predicate and object default to those of `known`.
        """
        return (
            (self.content_hash, self.subject_id) == (known.content_hash, known.subject_id)
            and (self.predicate in TYPE_PREDICATES or self.predicate == known.predicate)
            and self.object_id in (None, known.object_id)
        )

    def is_valid_at(self, instant: datetime) -> bool:
        """Return whether the fact is valid at `instant`."""
        return interval_contains(self.valid_from, self.valid_to, instant)

    def overlaps(self, other: Fact) -> bool:
        """Return whether both facts are ever valid together."""
        return max(self.valid_from, other.valid_from) < min(self.valid_to, other.valid_to)

    def with_active_hash(self, now: datetime) -> Fact:
        """Return the fact with `active_hash` set if it is current at `now`, and cleared otherwise."""
        current = self.expired_at is None and self.is_valid_at(now)
        active_hash = self.dedup_key if current else None
        return self if self.active_hash == active_hash else replace(self, active_hash=active_hash)

    def strength_at(self, now: datetime) -> float:
        """Return the strength at `now`, decayed since the last access or else since the first version."""
        idle = now - (self.last_accessed_at or self.first_created_at)
        return decayed_strength(self.strength, self.decay_rate, idle / timedelta(days=1))

    def status_at(self, now: datetime) -> MemoryStatus:
        """Return the status at `now`; a supersession applies from its valid time on."""
        if self.end_status is not None:
            return self.end_status
        if self.status is MemoryStatus.SUPERSEDED and not self.retired and self.valid_to > now:
            return MemoryStatus.ACTIVE
        return self.status


def dedup_key(content_hash: str, subject_id: str, predicate: str, object_id: str | None) -> str:
    """Return the key of a statement, as in `Fact.dedup_key`.

    A predicate that only repeats the type is ignored, so that a different type does not make a different statement.
    """
    named = "" if predicate in TYPE_PREDICATES else predicate
    return f"{content_hash}:{subject_id}:{named}:{object_id or subject_id}"


def end_ids(subject_id: str, object_id: str | None) -> tuple[str, ...]:
    """Return the ids of the subject and the object, or one id if they are the same or there is no object."""
    return (subject_id, object_id) if object_id and object_id != subject_id else (subject_id,)


def join_sources(*sources: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct ids of source messages, at most the latest `MAX_SOURCE_MESSAGES`."""
    return tuple(deduplicate(chain.from_iterable(sources))[-MAX_SOURCE_MESSAGES:])


def changes_of_patch(patch: MemoryPatch) -> dict[str, Any]:
    """Return the fact attributes that a patch sets, by name; domain and scope change together."""
    given = patch.model_fields_set - {"associations", "content_data", "subtype"}
    changes = {name: getattr(patch, name) for name in given}
    if patch.tags is not None:
        changes["tags"] = tuple(patch.tags)
    if patch.type is not None:
        changes["subtype"] = patch.subtype
    if patch.content is not None:
        changes["content_hash"] = content_hash(patch.content)
        changes["content_data"] = patch.content_data
    tagged = None if patch.scope in SCOPES_WITHOUT_DOMAIN else tagged_domain(patch.tags or [])
    if tagged and "domain" not in patch.model_fields_set:
        changes["domain"] = tagged
    if patch.scope is None and "domain" in changes:
        changes["scope"] = Scope.DOMAIN if changes["domain"] else Scope.PROFILE
    elif patch.scope in SCOPES_WITHOUT_DOMAIN:
        changes["domain"] = None
    return changes


@dataclass(frozen=True, slots=True)
class ImportProvenance:
    """The id and known time of a statement in another memory; None means unknown, or open.

    `key` identifies the statement, so that importing it again changes nothing. `memory_id` is the id for its memory,
    and `superseded_by` the id of the memory that replaced it.
    """

    key: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expired_at: datetime | None = None
    memory_id: str | None = None
    superseded_by: str | None = None


# Facts as properties of edges, as rows of queries and as memories

_STORED_AS = {"content": "fact", "predicate": "name"}
"""Property names that differ from the attribute names."""

_ENDS_OF_THE_EDGE = {"subject_id", "object_id"}


@dataclass(frozen=True, slots=True)
class FactField:
    """One attribute of `Fact` that is stored as a property of its edge; the type decides how."""

    name: str
    type: Any

    @property
    def property_name(self) -> str:
        """The name of the edge's property."""
        return _STORED_AS.get(self.name, self.name)

    @property
    def is_time(self) -> bool:
        """Whether the field is a time; queries return times separately from the other properties, as numbers."""
        return self.type in (datetime, datetime | None)


FACT_FIELDS = tuple(
    FactField(name, type) for name, type in get_type_hints(Fact).items() if name not in _ENDS_OF_THE_EDGE
)
"""Every field of `Fact` except `subject_id` and `object_id`, the ends of its edge."""

TIME_FIELDS = tuple(field.name for field in FACT_FIELDS if field.is_time)
"""The times of a version in the order of the fragment `fact_times`."""

SHADOW_PROPERTIES = ("valid_from", "valid_to", "known_from", "known_to", "profile_of", FOLDED_TEXT)
"""Properties that repeat others for an index: interval bounds without null, a profile's entity, and words."""

VECTOR_PROPERTY = "fact_embedding"
"""The property that holds the statement's vector."""

NEXT_VECTOR_PROPERTY = "next_vector"
"""The property of facts, entities and messages for their vector of the next model during re-embedding."""

_ENCODERS: dict[Any, Callable[[Any], Any]] = {
    tuple[str, ...]: lambda items: list(items) or None,  # an empty list would take 128 bytes
    tuple[str, ...] | None: lambda items: list(items) if items else None,
    dict[str, Any]: to_json,
    dict[str, Any] | None: lambda value: to_json(value) if value else None,
    MemoryType: lambda kind: kind.value,
    Scope: lambda scope: scope.value,
    MemoryStatus: lambda status: status.value,
    MemoryStatus | None: lambda status: status.value if status else None,
}
"""Conversions from attribute to property, by type; other types are stored unchanged."""

_DECODERS: dict[Any, Callable[[Any], Any]] = {
    tuple[str, ...]: lambda items: tuple(items or ()),
    tuple[str, ...] | None: lambda items: tuple(items) if items else None,
    dict[str, Any]: lambda text: json.loads(text or "{}"),
    dict[str, Any] | None: lambda text: json.loads(text) if text else None,
    MemoryType: MemoryType,
    Scope: Scope,
    MemoryStatus: lambda status: MemoryStatus(status) if status else None,
    MemoryStatus | None: lambda status: MemoryStatus(status) if status else None,
}
"""Conversions from property to attribute, by type; other types are read unchanged."""

_ENCODED_FIELDS = tuple((field.name, field.property_name, _ENCODERS.get(field.type)) for field in FACT_FIELDS)
_DECODED_FIELDS = tuple((field.name, field.property_name, _DECODERS.get(field.type)) for field in FACT_FIELDS)
"""Attribute, property and conversion of each field, computed once: a search maps some 350 fields."""

LIST_PROPERTIES = tuple(field.property_name for field in FACT_FIELDS if field.type == tuple[str, ...])
"""Lists that every version has; an empty one is not stored."""

_COPIED_TO_MEMORY = tuple(
    field.name for field in FACT_FIELDS if field.name in Memory.model_fields and field.name != "status"
)
"""Attributes that a memory has under the same name and with the same value."""


def fact_to_properties(fact: Fact) -> dict[str, Any]:
    """Return all properties of a fact's edge except its vector; absent ones are None, so that setting them clears.

    Empty lists are absent, except Graphiti's, and so are a fact's entities if they are just its subject and object.
    """
    properties = {
        property_name: encode(getattr(fact, name)) if encode else getattr(fact, name)
        for name, property_name, encode in _ENCODED_FIELDS
    }
    return properties | {
        "entity_ids": None if fact.entity_ids == fact.end_ids else properties["entity_ids"],
        "episodes": list(fact.episodes),
        "group_key": group_key(fact.group_id),
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "known_from": fact.created_at,
        "known_to": fact.known_to,
        "profile_of": profile_of(fact),
        FOLDED_TEXT: join_folded_words(fact.content, fact.search_text),
    }


def profile_of(fact: Fact) -> str | None:
    """Return the id of the entity that a profile is about; None for other memories."""
    return fact.subject_id if fact.type is MemoryType.PROFILE else None


def fact_from_row(row: Mapping[str, Any]) -> Fact:
    """Return the fact of a row `{fact, times?, subject_id, object_id}`; without `times`, `fact` contains the times.

    Raises KeyError, TypeError or ValueError if a property is missing or has the wrong type.
    """
    stored: dict[str, Any] = row["fact"]
    if "times" in row:
        stored = {**stored, **parse_times(TIME_FIELDS, row["times"])}
    attributes: dict[str, Any] = {
        name: decode(stored.get(property_name)) if decode else stored.get(property_name)
        for name, property_name, decode in _DECODED_FIELDS
    }
    attributes["search_text"] = attributes["search_text"] or ""
    subject_id, object_id = row["subject_id"], row["object_id"]
    attributes["entity_ids"] = attributes["entity_ids"] or end_ids(subject_id, object_id)
    return Fact(**attributes, subject_id=subject_id, object_id=object_id if object_id != subject_id else None)


def with_lists(properties: Mapping[str, Any], subject_id: str, object_id: str) -> dict[str, Any]:
    """Return the properties of an edge, including the lists that are not stored."""
    lists = {name: properties.get(name) or [] for name in LIST_PROPERTIES}
    return {**properties, **lists, "entity_ids": lists["entity_ids"] or list(end_ids(subject_id, object_id))}


STRENGTH_DECIMALS = 4
"""Decimals of the strength shown to callers."""


def memory_from_fact(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> Memory:
    """Return a fact as a memory at `now`; `refs` holds the entities it refers to, by id."""
    return Memory(**_memory_attributes(fact, refs, now))


def memory_at(memory: Memory, fact: Fact, now: datetime) -> Memory:
    """Return a fact's memory, updated to `now`."""
    return memory.model_copy(update=_changing_attributes(fact, now))


def memory_from_columns(columns: Sequence[Any], now: datetime) -> Memory:
    """Return a memory from the value of the fragment `memory_columns`."""
    properties, times, subject_id, object_id, entities = columns
    refs = {key: EntityRef(id=key, name=name, type=entity_type) for key, name, entity_type in entities}
    row = {"fact": properties, "times": times, "subject_id": subject_id, "object_id": object_id}
    return memory_from_fact(fact_from_row(row), refs, now)


def memory_version_from_fact(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> MemoryVersion:
    """Return a fact as an entry of its memory's history."""
    return MemoryVersion(
        **_memory_attributes(fact, refs, now),
        ended_reason=fact.ended_reason,
        ended_by=fact.ended_by,
        actor=fact.actor,
    )


def _memory_attributes(fact: Fact, refs: Mapping[str, EntityRef], now: datetime) -> dict[str, Any]:
    owner = Owner.from_group_id(fact.group_id)
    return {
        **{name: getattr(fact, name) for name in _COPIED_TO_MEMORY},
        "invalid_at": fact.shown_invalid_at,
        "expired_at": fact.shown_expired_at,
        "id": fact.memory_id,
        "user_id": owner.own_user_id,
        "space": owner.space,
        "subject": refs[fact.subject_id],
        "object": refs[fact.object_id] if fact.object_id else None,
        "entities": [refs[entity_id] for entity_id in fact.entity_ids if entity_id in refs],
        **_changing_attributes(fact, now),
        "source": MemorySource(
            kind=fact.source_kind,
            trusted_as=fact.trusted_as,
            speaker=fact.speaker,
            session_id=fact.session_id,
            message_ids=list(fact.message_ids),
            quote=fact.source_quote,
        ),
    }


def _changing_attributes(fact: Fact, now: datetime) -> dict[str, Any]:
    """Return the attributes of a memory that depend on the time of reading."""
    return {"status": fact.status_at(now), "strength": round(fact.strength_at(now), STRENGTH_DECIMALS)}
