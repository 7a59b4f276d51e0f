"""The details that a repeated statement adds to the memory it repeats. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.memories.fact import (
    MAX_CONFIDENCE,
    MAX_SEARCH_TEXT,
    Fact,
    apply_reinforcement,
    join_sources,
)
from graphmem.memories.memory import MemoryType
from graphmem.memories.timeline import find_rival
from graphmem.runtime.field_types import deduplicate
from graphmem.tenants.trust import Effect, TrustOrder


@dataclass(frozen=True, slots=True)
class NewDetails:
    """The details of a repetition that its memory lacks.

    `changes` are the attributes of the memory's next version; `taken` and `ignored` are the names of the fields that
    are and are not taken over.
    """

    changes: Mapping[str, Any]
    taken: tuple[str, ...]
    ignored: tuple[str, ...]


def find_new_fields(known: Fact, draft: Fact, given: Collection[str]) -> tuple[str, ...]:
    """Return the given fields in which a draft differs from a memory, including its text."""
    changed = ("content",) if draft.content != known.content else ()
    return (*changed, *(name for name in _differences(known, draft) if name in given and name not in changed))


def _differences(known: Fact, draft: Fact) -> dict[str, dict[str, Any]]:
    """Return the attributes to change where a draft differs from a memory, by field of a save.

    There are no attributes for fields that only a correction of the memory changes, and for its place.
    """
    metadata = {**known.metadata, **draft.metadata}
    tags = tuple(deduplicate([*known.tags, *draft.tags]))
    entity_ids = tuple(deduplicate([*known.entity_ids, *draft.entity_ids]))
    subtype = None if draft.subtype == draft.type.value else draft.subtype
    has_other_type = draft.type is not known.type or (subtype is not None and subtype != known.subtype)
    candidates: dict[str, tuple[bool, dict[str, Any]]] = {
        "type": (has_other_type, {"type": draft.type, "subtype": draft.subtype}),
        "content": (draft.content_data not in (None, known.content_data), {"content_data": draft.content_data}),
        "metadata": (metadata != known.metadata, {"metadata": metadata}),
        "tags": (tags != known.tags, {"tags": tags}),
        "valid_at": (draft.valid_at not in (None, known.valid_at), {"valid_at": draft.valid_at}),
        "invalid_at": (
            draft.invalid_at not in (None, known.invalid_at),
            {"invalid_at": draft.invalid_at, "claimed_invalid_at": draft.invalid_at},
        ),
        "expires_at": (draft.expires_at not in (None, known.expires_at), {"expires_at": draft.expires_at}),
        "entities": (entity_ids != known.entity_ids, {"entity_ids": entity_ids}),
        "source": _new_session(known, draft),
        "scope": (draft.scope is not known.scope, {}),
        "domain": (draft.domain not in (None, known.domain), {}),
        "single_valued": (draft.single_valued and not known.single_valued, {}),
        "immutable": (draft.immutable and not known.immutable, {}),
    }
    return {name: changes for name, (is_new, changes) in candidates.items() if is_new}


def _new_session(known: Fact, draft: Fact) -> tuple[bool, dict[str, Any]]:
    """Return whether a draft names a session that its memory loses, and the session if the memory has none yet.

    The messages of another session become the memory's messages too, and lead to their session.
    """
    if known.session_id is None:
        return draft.session_id is not None, {"session_id": draft.session_id}
    return draft.session_id not in (None, known.session_id) and not draft.message_ids, {}


def find_new_details(
    known: Fact, draft: Fact, given: Collection[str], now: datetime, others: Iterable[Fact], *, is_fixed: bool
) -> NewDetails:
    """Return the details of a repetition that a memory does not have yet.

    Tags, entities and metadata are added to the memory's. Times are taken over if none were known and the memory stays
    valid for as long as it has been known; other times need a correction by patch. Nothing is added to a profile, nor
    to a memory that `is_fixed` for the repetition's source because it is immutable or from a more trusted source.
    `others` are the memories that the changed one must fit.
    """
    new = {name: change for name, change in _differences(known, draft).items() if name in given}
    # A repetition never weakens a memory: only a correction does.
    lower = (name for name in ("confidence", "importance") if getattr(draft, name) < getattr(known, name))
    new |= {name: {} for name in lower if name in given}
    if is_fixed or known.type is MemoryType.PROFILE:
        return NewDetails({}, (), tuple(new))
    dated = replace(known, valid_at=draft.valid_at or known.valid_at, invalid_at=draft.invalid_at)
    starts_in_time = dated.valid_from <= known.first_created_at and dated.is_valid_at(now)
    is_undated = all(getattr(known, name) is None for name in ("valid_at", "invalid_at") if name in new)
    refused = {name for name, change in new.items() if not change}
    if not (is_undated and starts_in_time):
        refused |= {"valid_at", "invalid_at"}
    if "expires_at" in new and find_rival(replace(known, expires_at=draft.expires_at), others, known):
        refused.add("expires_at")
    taken = {name: change for name, change in new.items() if name not in refused}
    return NewDetails(
        {attribute: value for change in taken.values() for attribute, value in change.items()},
        tuple(taken),
        tuple(name for name in new if name in refused),
    )


def reinforced(known: Fact, draft: Fact, now: datetime, order: TrustOrder) -> Fact:
    """Return a memory strengthened by a statement that repeats it, with the statement's sources and trust.

    A less trusted statement counts only like a retrieval: its weight, words and messages are not added. A memory
    repeated by a more trusted source is immutable only if that source says so.
    """
    if not order.permits(Effect.OUTRANK, draft.trust_kind, known.trust_kind):
        strength, confidence = apply_reinforcement(known.strength_at(now), known.confidence)
        confidence = known.confidence if known.immutable else confidence
        return replace(known, strength=strength, last_accessed_at=now, confidence=confidence, updated_at=now)
    stated = max(known.confidence, min(draft.confidence, MAX_CONFIDENCE))
    strength, confidence = apply_reinforcement(known.strength_at(now), stated)
    if not order.permits(Effect.QUOTE_AS, known.trust_kind, draft.trust_kind):
        known = replace(
            known,
            source_kind=draft.source_kind,
            trusted_as=draft.trusted_as,
            speaker=draft.speaker or known.speaker,
            immutable=draft.immutable and not known.is_contested,
        )
    return replace(
        known,
        strength=strength,
        last_accessed_at=now,
        confidence=confidence,
        importance=max(known.importance, draft.importance),
        message_ids=join_sources(known.message_ids, draft.message_ids),
        episodes=join_sources(known.episodes, draft.episodes),
        search_text=_append_text(known.search_text, draft.search_text),
        updated_at=now,
    )


def _append_text(known: str, further: str) -> str:
    if further in known or len(known) + len(further) >= MAX_SEARCH_TEXT:
        return known
    return f"{known} {further}"
