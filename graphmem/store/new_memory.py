"""Statements on their way in: what a caller said, as the first version of a memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphmem.domain.decay import DECAY_RATES
from graphmem.domain.entity import EntityIn, EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.formats.provenance import ImportProvenance
from graphmem.domain.identity import Owner
from graphmem.domain.memory import FEELING_EXPIRY_DAYS, MemoryIn, MemoryType, Scope
from graphmem.domain.text import content_hash, name_key
from graphmem.store.driver import Row

INITIAL_STRENGTH = 0.5
Vector = list[float]

_IMPORT_NAMESPACE = uuid.UUID("6f8b3c1e-52a7-4d0e-9b57-1c4a60d2e9f3")
"""Namespace of the ids of memories that come from other memories."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A statement ready to be saved: its vector is computed, its source is known; `reason` is why it supersedes.

    One of another memory has been `provenance` there.
    """

    memory: MemoryIn
    vector: Vector
    source_kind: str = "api"
    reason: str = "superseded"
    provenance: ImportProvenance | None = None

    def memory_id(self, owner: Owner) -> str:
        """Return an id for its memory: a new one, or that which the same statement of the other memory always gets."""
        if self.provenance is None:
            return str(uuid.uuid4())
        return str(uuid.uuid5(_IMPORT_NAMESPACE, f"{owner.group_id} {self.provenance.key}"))


def collect_entities(statements: Iterable[NewMemory]) -> list[EntityIn]:
    """Return every entity that statements name."""
    found: list[EntityIn] = []
    for statement in statements:
        memory = statement.memory
        found.extend(each for each in (memory.subject, memory.object, *memory.entities) if each)
    return found


def first_version(
    owner: Owner, statement: NewMemory, known: Mapping[str, EntityRef], texts: Mapping[str, Row], now: datetime
) -> Fact:
    """Return the first version of a statement's memory."""
    memory = statement.memory
    subject = known[name_key(memory.subject.name)] if memory.subject else known[""]
    target = known[name_key(memory.object.name)] if memory.object else None
    others = [known[name_key(each.name)] for each in memory.entities]
    entities = {ref.id: ref for ref in [subject, *([target] if target else []), *others]}
    message_ids = memory.source.message_ids if memory.source else []
    sources = [texts[key] for key in message_ids if key in texts]
    expires_at = memory.expires_at
    if expires_at is None and memory.type is MemoryType.FEELING:
        expires_at = max(now, memory.valid_at or now) + timedelta(days=FEELING_EXPIRY_DAYS)
    return Fact(
        uuid=str(uuid.uuid4()),
        memory_id=statement.memory_id(owner),
        version=1,
        group_id=owner.group_id,
        subject_id=subject.id,
        object_id=target.id if target else None,
        entity_ids=tuple(entities),
        predicate=memory.predicate or "",
        content=memory.content,
        content_hash=content_hash(memory.content),
        type=memory.type,
        scope=memory.scope or Scope.PROFILE,
        domain=memory.domain,
        tags=tuple(memory.tags),
        confidence=memory.confidence,
        importance=memory.importance,
        strength=INITIAL_STRENGTH,
        decay_rate=DECAY_RATES[memory.type],
        valid_at=memory.valid_at,
        invalid_at=memory.invalid_at,
        claimed_invalid_at=memory.invalid_at,
        created_at=now,
        first_created_at=now,
        updated_at=now,
        expires_at=expires_at,
        source_kind=statement.source_kind,
        session_id=(memory.source.session_id if memory.source else None)
        or (sources[0]["session_id"] if sources else None),
        message_ids=tuple(message_ids),
        episodes=tuple(row["uuid"] for row in sources),
        immutable=memory.immutable,
        single_valued=memory.single_valued,
        metadata=memory.metadata,
        search_text=_build_search_text(memory, entities.values(), sources),
    )


def _build_search_text(memory: MemoryIn, entities: Iterable[EntityRef], sources: Iterable[Row]) -> str:
    """Return what full text finds a fact by beside its own words.

    These are its relation, its entities, its tags and the messages it rests on: a question may use any of their words,
    also where the statement is in another language.
    """
    words = [(memory.predicate or "").replace("_", " ").lower(), *(ref.name for ref in entities)]
    words += [tag.replace("_", " ").replace("-", " ") for tag in memory.tags]
    return "\n".join([" ".join(words), *(row["content"] for row in sources)])
