"""Records: memories in a lean form for people to read and edit, and importing them.

New records are saved, edited ones become new versions of their memories.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import Fact, ImportProvenance
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import FIXED_ASSOCIATIONS_REASON
from graphmem.memories.memory import (
    DEFAULT_PREDICATES,
    MAX_ASSOCIATIONS,
    MAX_CONTENT_LENGTH,
    MemoryIn,
    MemoryPatch,
    Scope,
)
from graphmem.memories.service import MemoryService
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput, NotFound
from graphmem.runtime.field_types import Id, NonBlankText, StorableText, UnitInterval, name_key
from graphmem.runtime.progress import ProgressCounter
from graphmem.runtime.validation import validate_input
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import StatedKind
from graphmem.user_data.export_schema import JSON_SCHEMA_DIALECT
from graphmem.user_data.foreign import ImportedEnd, ImportedTime, to_invalid_input
from graphmem.user_data.models import (
    DocumentPath,
    ElementId,
    ImportedStatement,
    ImportFormat,
    ImportResult,
    ParsedStatements,
    RejectedEntry,
)

RECORDS_FORMAT: Final = "graphmem-records"
"""The value of `format` in a document of records."""

RECORD_SCHEMA_VERSION = "1.0"
"""Version of the record format."""

EVERYWHERE = "global"
"""The domain of a record that applies in every conversation."""

_DEFAULTS = {name: MemoryIn.model_fields[name].default for name in ("confidence", "importance")}


def _format_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


_AS_TEXT = PlainSerializer(_format_time, when_used="json", return_type=str)

_AS_SCHEMA = WithJsonSchema({"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]})

StartTime = Annotated[ImportedTime, _AS_TEXT, _AS_SCHEMA]
"""A time with an offset, or a date, which means its first moment in UTC."""

EndTime = Annotated[ImportedEnd, _AS_TEXT, _AS_SCHEMA]
"""A time with an offset, or a date, which is included: it means the date's end in UTC."""


def _check_schema_version(version: str) -> str:
    if version != RECORD_SCHEMA_VERSION:
        raise ValueError(f"is not {RECORD_SCHEMA_VERSION}: upgrade graphmem to import records of a later version")
    return version


RecordSchemaVersion = Annotated[str, AfterValidator(_check_schema_version)]
"""The format version of a record."""


def _check_scope(scope: Scope) -> Scope:
    if scope is Scope.GLOBAL:
        raise ValueError("must be profile, domain or episodic: records are those of one user")
    return scope


UserScope = Annotated[Scope, AfterValidator(_check_scope)]
"""The scope of a single user's memory."""


class RecordEntity(BaseModel):
    """A person, place or thing that a record names."""

    model_config = ConfigDict(extra="forbid")

    name: NonBlankText
    type: StorableText | None = None


class RecordMetadata(BaseModel):
    """What is known about a record; keys of the caller's own are kept as they are."""

    model_config = ConfigDict(extra="allow")

    importance_score: UnitInterval | None = None
    confidence: UnitInterval | None = None
    context: Id | None = Field(None, description="The session that it was learned in.")
    relations: list[Id] | None = Field(None, max_length=MAX_ASSOCIATIONS, description="Ids of related records.")
    valid_from: StartTime | None = None
    valid_until: EndTime | None = Field(None, validation_alias=AliasChoices("valid_until", "valid_to"))
    superseded_by: Id | None = Field(None, description="Id of the record that replaced it.")

    @property
    def custom(self) -> dict[str, Any]:
        """Keys that are not graphmem's, such as `source`, `ingested_from` and `notes`."""
        return dict(self.model_extra or {})


_METADATA_KEYS = frozenset({*RecordMetadata.model_fields, "valid_to", "source", "ingested_from", "notes"})
"""Metadata keys that are also accepted at the top level of a record."""


def _add_flat_metadata(schema: dict[str, Any]) -> None:
    """Add the metadata keys accepted at the top level of a record to its JSON Schema."""
    known = RecordMetadata.model_json_schema()["properties"]
    known["valid_to"] = known["valid_until"]
    schema["properties"] |= {key: known.get(key, {}) for key in sorted(_METADATA_KEYS)}


class Record(BaseModel):
    """One memory."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_add_flat_metadata)

    id: ElementId | None = None
    user_id: str | None = None
    domain: NonBlankText | None = Field(None, description="`global` or none: it applies everywhere.")
    type: NonBlankText = "fact"
    content: Annotated[NonBlankText, Field(max_length=MAX_CONTENT_LENGTH)] | dict[str, Any]
    tags: list[StorableText] = Field(default_factory=list)
    metadata: RecordMetadata = Field(default_factory=RecordMetadata)
    scope: UserScope | None = None
    subject: RecordEntity | None = Field(None, description="Absent: the user.")
    predicate: str | None = None
    object: RecordEntity | None = None
    entities: list[RecordEntity] = Field(default_factory=list)
    single_valued: bool = False
    immutable: bool = False
    active: bool = True
    expiration_date: EndTime | None = None
    created_at: StartTime | None = None
    updated_at: StartTime | None = None
    version: Annotated[int, Field(ge=1)] | Annotated[StorableText, Field(max_length=255)] | None = None
    """The number of the memory's version, or a name of your own for it, which is kept in the metadata."""
    schema_version: RecordSchemaVersion = RECORD_SCHEMA_VERSION

    @model_validator(mode="before")
    @classmethod
    def _read_flat_metadata(cls, data: Any) -> Any:
        """Accept metadata keys at the top level of a record."""
        if not isinstance(data, Mapping):
            return data
        fields = dict(data)
        flat = {name: fields.pop(name) for name in _METADATA_KEYS & fields.keys()}
        if flat and isinstance(fields.get("metadata", {}), Mapping):
            fields["metadata"] = {**flat, **fields.get("metadata", {})}
        return fields

    @property
    def given_fields(self) -> frozenset[str]:
        """The fields of `MemoryPatch` for which the record has a value."""
        names = {"content"}
        names |= {_PATCHED_BY[name] for name in self.model_fields_set if name in _PATCHED_BY}
        names |= {_PATCHED_BY[name] for name in self.metadata.model_fields_set if name in _PATCHED_BY}
        names |= {"metadata"} if isinstance(self.version, str) else set()
        return frozenset(names)

    def to_memory_fields(self) -> dict[str, Any]:
        """Return the fields of the record's `MemoryIn`."""
        metadata = self.metadata
        withdrawn_at = None if metadata.superseded_by is None else self.updated_at or self.created_at
        fields: dict[str, Any] = {
            "content": self.content,
            "type": self.type,
            "tags": self.tags,
            "domain": None if self.domain == EVERYWHERE else self.domain,
            "scope": self.scope,
            "subject": self.subject and self.subject.model_dump(),
            "predicate": self.predicate,
            "object": self.object and self.object.model_dump(),
            "entities": [entity.model_dump() for entity in self.entities],
            "single_valued": self.single_valued,
            "immutable": self.immutable,
            "expires_at": self.expiration_date,
            "importance": metadata.importance_score,
            "confidence": metadata.confidence,
            "valid_at": metadata.valid_from,
            "invalid_at": metadata.valid_until or withdrawn_at,
            "metadata": metadata.custom | ({"version": self.version} if isinstance(self.version, str) else {}),
            "source": {"session_id": metadata.context} if metadata.context else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


_PATCHED_BY = {
    "type": "type",
    "tags": "tags",
    "domain": "domain",
    "expiration_date": "expires_at",
    "metadata": "metadata",
    "importance_score": "importance",
    "valid_from": "valid_at",
    "valid_until": "invalid_at",
    "relations": "associations",
}
"""The memory field that each record field changes, except confidence, which graphmem raises by itself."""


class _AnyRecords(BaseModel):
    """A document of records, each validated separately."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["graphmem-records"] = RECORDS_FORMAT
    schema_version: RecordSchemaVersion = RECORD_SCHEMA_VERSION
    user_id: str | None = None
    records: list[Any]


class RecordDocument(_AnyRecords):
    """Records of one user."""

    records: list[Record]


def record_from_fact(fact: Fact, refs: Mapping[str, EntityRef], own_entity_ids: Sequence[str]) -> dict[str, Any]:
    """Return a fact as a record, without fields at their default.

    `refs` are the entities it refers to by id, `own_entity_ids` the ids of the entity that stands for the user.
    """
    default_scope = Scope.DOMAIN if fact.domain else Scope.PROFILE
    others = [refs[key] for key in fact.entity_ids if key in refs and key not in (fact.subject_id, fact.object_id)]
    named_version = fact.metadata.get("version")
    version = named_version if isinstance(named_version, str) else fact.version
    metadata: dict[str, Any] = {
        **{key: value for key, value in fact.metadata.items() if not (key == "version" and value == version)},
        "importance_score": None if fact.importance == _DEFAULTS["importance"] else fact.importance,
        "confidence": None if fact.confidence == _DEFAULTS["confidence"] else fact.confidence,
        "context": fact.session_id,
        "relations": list(fact.associations) or None,
        "valid_from": fact.valid_at,
        "valid_until": fact.invalid_at,
    }
    record = Record.model_construct(
        id=fact.memory_id,
        domain=fact.domain or EVERYWHERE,
        type=fact.subtype or fact.type.value,
        content=fact.content_data or fact.content,
        tags=list(fact.tags),
        metadata=RecordMetadata.model_construct(**{key: value for key, value in metadata.items() if value is not None}),
        scope=None if fact.scope is default_scope else fact.scope,
        subject=None if fact.subject_id in own_entity_ids else _to_record_entity(refs[fact.subject_id]),
        predicate=None if fact.predicate == DEFAULT_PREDICATES[fact.type] else fact.predicate,
        object=_object_of(fact, refs, own_entity_ids),
        entities=[_to_record_entity(ref) for ref in others if ref.id not in own_entity_ids],
        single_valued=fact.single_valued,
        immutable=fact.immutable,
        active=True,
        expiration_date=fact.expires_at,
        created_at=fact.first_created_at,
        updated_at=fact.updated_at,
        version=version,
    )
    return record.model_dump(mode="json", exclude_defaults=True)


def _object_of(fact: Fact, refs: Mapping[str, EntityRef], own_entity_ids: Sequence[str]) -> RecordEntity | None:
    """Return the object of a fact; for the user's own entity, under the id by which an import recognises it."""
    if fact.object_id is None:
        return None
    ref = _to_record_entity(refs[fact.object_id])
    if fact.object_id not in own_entity_ids:
        return ref
    return RecordEntity.model_construct(name=Owner.from_group_id(fact.group_id).entity_name, type=ref.type)


def _to_record_entity(ref: EntityRef) -> RecordEntity:
    return RecordEntity.model_construct(name=ref.name, type=ref.type)


@dataclass(slots=True)
class ParsedRecords:
    """The statements of a document, and their records by id."""

    statements: ParsedStatements = field(default_factory=lambda: ParsedStatements("records"))
    records: dict[str, Record] = field(default_factory=dict)


def parse_records(document: Any, user_id: str) -> ParsedRecords:
    """Return the records of a document for one user; raise InvalidInput for another format.

    If the document has several users, other users' records are rejected. A record without an id gets one derived from
    its content, so that importing again finds it. An entity named like the document's user becomes the importing user.
    """
    parsed = ParsedRecords()
    exported_id = document.get("user_id") if isinstance(document, Mapping) and "records" in document else None
    records = list(_list_records(document, parsed.statements))
    parsed.statements.refuse_if_malformed(unless=bool(records))
    users = {record.user_id for _, record in records if record.user_id is not None}
    for path, record in records:
        record_id = record.id or _derive_id(record)
        if len(users) > 1 and record.user_id not in (None, user_id):
            parsed.statements.reject(path, record_id, "it belongs to another user")
            continue
        record = _with_self_entity(record, record.user_id or exported_id, user_id)
        parsed.records.setdefault(record_id, record)
        parsed.statements.add(path, record_id, _provenance_of(record, record_id), record.to_memory_fields())
    return parsed


def _list_records(document: Any, statements: ParsedStatements) -> Iterator[tuple[DocumentPath, Record]]:
    """Yield the records of a document or a list, or a single record."""
    path: DocumentPath = () if isinstance(document, list) else ("records",)
    entries = document
    if isinstance(document, Mapping) and "records" in document:
        try:
            entries = _AnyRecords.model_validate(document).records
        except ValidationError as error:
            raise to_invalid_input(error, (), "a document of records") from None
    elif not isinstance(document, list):
        if (record := statements.parse((), Record, document)) is not None:
            yield (), record
        return
    for index, entry in enumerate(entries):
        if (record := statements.parse((*path, index), Record, entry)) is not None:
            yield (*path, index), record


def _with_self_entity(record: Record, exported_id: str | None, user_id: str) -> Record:
    """Return a record with the entities named `exported_id` renamed to the importing user."""
    if exported_id is None:
        return record
    key = name_key(exported_id)

    def rename(entity: RecordEntity | None) -> RecordEntity | None:
        return entity.model_copy(update={"name": user_id}) if entity and name_key(entity.name) == key else entity

    entities = [renamed for entity in record.entities if (renamed := rename(entity))]
    return record.model_copy(
        update={"subject": rename(record.subject), "object": rename(record.object), "entities": entities}
    )


def _provenance_of(record: Record, record_id: str) -> ImportProvenance:
    """Return the known times of a record; an inactive record without a replacement was withdrawn."""
    updated = record.updated_at or record.created_at
    is_withdrawn = not record.active and record.metadata.superseded_by is None
    return ImportProvenance(
        f"{ImportFormat.RECORDS}:{record_id}",
        record.created_at,
        record.updated_at,
        updated if is_withdrawn else None,
        memory_id=record.id,
        superseded_by=record.metadata.superseded_by,
    )


def _derive_id(record: Record) -> str:
    content = json.dumps(record.content, sort_keys=True, ensure_ascii=False)
    return "record-" + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def records_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of importable records: a document, one record or a list of records.

    YAML has the same structure.
    """
    schema = TypeAdapter(RecordDocument | Record | list[Record]).json_schema()
    return {"$schema": JSON_SCHEMA_DIALECT, "title": "Records", **schema}


UNKNOWN_RELATION_REASON = "it names a related record that is neither in the document nor known"
"""Why a relation is rejected."""


class RecordImporter:
    """Updates a user's memories to match their records."""

    def __init__(self, facts: FactStore, memories: MemoryService) -> None:
        self._facts = facts
        self._memories = memories

    async def find_existing(self, owner: Owner, parsed: ParsedRecords) -> dict[str, Fact]:
        """Return the latest versions of the user's existing memories by record id."""
        ids = [statement.id for statement in parsed.statements.accepted]
        return await self._facts.find_latest(owner, ids)

    async def with_free_ids(self, owner: Owner, statements: Sequence[ImportedStatement]) -> list[ImportedStatement]:
        """Return new statements without requests for ids of global memories, which all users of the tenant read."""
        taken = await self._facts.find_latest(owner.tenant_global, [statement.id for statement in statements])
        return [
            replace(statement, provenance=replace(statement.provenance, memory_id=None))
            if statement.id in taken
            else statement
            for statement in statements
        ]

    async def update(
        self,
        owner: Owner,
        statements: Sequence[ImportedStatement],
        parsed: ParsedRecords,
        existing: Mapping[str, Fact],
        result: ImportResult,
        *,
        actor: str | None,
        kind: StatedKind | None,
        counter: ProgressCounter,
    ) -> None:
        """Update existing memories to match their records, each in a new version.

        A memory whose record is inactive is deleted. Memories of a source more trusted than `kind` stay: the edit
        becomes a contested memory next to it, and a deletion is refused.
        """
        imported = Counter({"versions": 0})
        for statement in statements:
            fact, record = existing[statement.id], parsed.records[statement.id]
            result.ids[statement.id] = fact.memory_id
            try:
                written = await self._update_one(owner, statement.memory, record, fact, actor, kind)
            except (Conflict, Forbidden, InvalidInput, NotFound) as error:
                result.refused.append(_rejected(statement, error.detail))
            else:
                if written is None:
                    result.unchanged["memories"] += 1
                else:
                    imported[written] += 1
            counter.add(1)
        result.imported |= imported

    async def _update_one(
        self,
        owner: Owner,
        memory: MemoryIn,
        record: Record,
        fact: Fact,
        actor: str | None,
        kind: StatedKind | None,
    ) -> Literal["versions", "deletions", "contested"] | None:
        """Update a memory to match its record; return the kind of write, if any."""
        if fact.expired_at is not None:
            if record.active and record.metadata.superseded_by is None:
                raise Conflict(f"The memory was {fact.end_status}: give the record another id to save it again.")
            return None
        is_replaced = record.metadata.superseded_by is not None
        if is_replaced and fact.superseded_by is None:
            raise Conflict("An import cannot replace a memory: save the replacing one with `supersedes`.")
        is_deleted = not record.active and not is_replaced
        changes = find_changes(record, memory, fact)
        if not changes and not is_deleted:
            return None
        if _is_stale(record, fact):
            raise Conflict(f"It has changed since the export, to version {fact.version}: export it again.")
        if is_deleted:
            await self._memories.delete(owner, fact.memory_id, actor=actor, kind=kind)
            return "deletions"
        patch = validate_input(MemoryPatch, changes)
        changed = await self._memories.patch(
            owner, fact.memory_id, patch, if_version=fact.version, actor=actor, kind=kind
        )
        return "contested" if changed.id != fact.memory_id else "versions"

    async def relate(
        self,
        owner: Owner,
        statements: Sequence[ImportedStatement],
        parsed: ParsedRecords,
        existing: Mapping[str, Fact],
        result: ImportResult,
        kind: StatedKind | None = None,
    ) -> None:
        """Associate the saved memories of active records with their related ones.

        An immutable memory keeps the relations it was imported with; memories of a source more trusted than `kind` also
        keep theirs.
        """
        deleted = {key for key, record in parsed.records.items() if not record.active}
        related: dict[str, list[str]] = {}
        for statement in statements:
            memory_id = result.ids.get(statement.id)
            relations = [key for key in parsed.records[statement.id].metadata.relations or () if key not in deleted]
            if relations and memory_id is not None and statement.id not in deleted:
                related[memory_id] = [result.ids.get(key, key) for key in relations]
        new = {memory_id for key, memory_id in result.ids.items() if key not in existing}
        problems = await self._facts.associate(owner, related, new, kind)
        reasons = dict.fromkeys(problems.unknown, UNKNOWN_RELATION_REASON)
        reasons |= dict.fromkeys(problems.fixed, FIXED_ASSOCIATIONS_REASON)
        by_memory = {result.ids.get(statement.id): statement for statement in statements}
        result.refused += [
            RejectedEntry(
                loc=[*by_memory[memory_id].path, "metadata", "relations"],
                id=by_memory[memory_id].id,
                reason=reason,
            )
            for memory_id, reason in reasons.items()
        ]


def _is_stale(record: Record, fact: Fact) -> bool:
    """Return whether a memory has changed since its record was exported.

    A version later than the memory's comes from another database or was numbered by hand; version names are ignored.
    """
    if record.version is None or isinstance(record.version, str) or record.version == fact.version:
        return False
    if record.version < fact.version:
        return True
    return fact.version > 1 and record.updated_at is not None and record.updated_at < fact.updated_at


def find_changes(record: Record, memory: MemoryIn, fact: Fact) -> dict[str, Any]:
    """Return the fields of a `MemoryPatch` by which a record differs from its memory.

    `memory` is the record's statement. Relations are compared and written separately.
    """
    hidden = {key: value for key, value in fact.metadata.items() if key in RecordMetadata.model_fields}
    shown = {key: value for key, value in fact.metadata.items() if key not in hidden}
    stored = {
        "content": fact.content_data or fact.content,
        "type": fact.subtype or fact.type.value,
        "tags": list(fact.tags),
        "domain": fact.domain,
        "importance": fact.importance,
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        "expires_at": fact.expires_at,
        "metadata": shown,
    }
    stated = {name: getattr(memory, name) for name in stored} | {
        "content": memory.content_data or memory.content,
        "type": memory.subtype,
    }
    if "metadata" not in record.model_fields_set:  # only the name of its version is given
        stated["metadata"] = shown | memory.metadata
    changes: dict[str, Any] = {
        name: stated[name]
        for name in sorted(record.given_fields & stored.keys())
        if not _is_same(name, stated[name], stored[name])
    }
    if "metadata" in changes:
        changes["metadata"] = {**hidden, **changes["metadata"]}
    return changes


def _is_same(name: str, stated: Any, stored: Any) -> bool:
    if name == "type":
        return stated is None or stated.lower() == stored.lower()
    return bool(stated == stored)


def _rejected(statement: ImportedStatement, reason: str) -> RejectedEntry:
    return RejectedEntry(loc=list(statement.path), id=statement.id, reason=reason)
