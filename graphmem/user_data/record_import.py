"""Importing records: new ones are saved, edited ones become new versions of the memories that they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import FIXED_ASSOCIATIONS_REASON
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.memories.service import MemoryService
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput, NotFound
from graphmem.runtime.progress import ProgressCounter
from graphmem.runtime.validation import validate_input
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import StatedKind
from graphmem.user_data.models import ImportedStatement, ImportResult, RejectedEntry
from graphmem.user_data.records import ParsedRecords, Record, RecordMetadata

UNKNOWN_RELATION_REASON = "it names a related record that is neither in the document nor known"
"""Why a relation is rejected."""


class RecordImporter:
    """Brings the memories of a user to what their records say."""

    def __init__(self, facts: FactStore, memories: MemoryService) -> None:
        self._facts = facts
        self._memories = memories

    async def find_existing(self, owner: Owner, parsed: ParsedRecords) -> dict[str, Fact]:
        """Return, by the id of their record, the latest versions of the memories that the user has already."""
        ids = [statement.id for statement in parsed.statements.accepted]
        return await self._facts.find_latest(owner, ids)

    async def with_free_ids(self, owner: Owner, statements: Sequence[ImportedStatement]) -> list[ImportedStatement]:
        """Return new statements that do not ask for the id of a memory which all users of the tenant read."""
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
        """Give memories that the user has already what their records say, each in a version of its own.

        One whose record is no longer active is deleted. What a memory of a more trusted source than `kind` says stays:
        the edit becomes a contested memory beside it, and a deletion is refused.
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
        """Bring one memory to what its record says; return what was written, if anything."""
        if fact.expired_at is not None:
            if record.active and record.metadata.superseded_by is None:
                raise Conflict(f"The memory was {fact.end_status}: give the record another id to save it again.")
            return None
        is_replaced = record.metadata.superseded_by is not None
        if is_replaced and fact.superseded_by is None:
            raise Conflict("An import replaces no memory: save the one that replaces it with `supersedes`.")
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
    ) -> None:
        """Associate the saved memories of active records with those that they name as related.

        The relations of an immutable memory are those that it was imported with.
        """
        deleted = {key for key, record in parsed.records.items() if not record.active}
        related: dict[str, list[str]] = {}
        for statement in statements:
            memory_id = result.ids.get(statement.id)
            relations = [key for key in parsed.records[statement.id].metadata.relations or () if key not in deleted]
            if relations and memory_id is not None and statement.id not in deleted:
                related[memory_id] = [result.ids.get(key, key) for key in relations]
        new = {memory_id for key, memory_id in result.ids.items() if key not in existing}
        problems = await self._facts.associate(owner, related, new)
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

    A version that the memory does not have yet is that of another database, or was numbered by hand.
    """
    if record.version is None or record.version == fact.version:
        return False
    if record.version < fact.version:
        return True
    return fact.version > 1 and record.updated_at is not None and record.updated_at < fact.updated_at


def find_changes(record: Record, memory: MemoryIn, fact: Fact) -> dict[str, Any]:
    """Return the fields of a `MemoryPatch` by which a record differs from the memory it came from.

    `memory` is the statement that the record describes. Relations are compared and written by themselves.
    """
    hidden = {key: value for key, value in fact.metadata.items() if key in RecordMetadata.model_fields}
    stored = {
        "content": fact.content_data or fact.content,
        "type": fact.subtype or fact.type.value,
        "tags": list(fact.tags),
        "domain": fact.domain,
        "importance": fact.importance,
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        "expires_at": fact.expires_at,
        "metadata": {key: value for key, value in fact.metadata.items() if key not in hidden},
    }
    stated = {name: getattr(memory, name) for name in stored} | {
        "content": memory.content_data or memory.content,
        "type": memory.subtype,
    }
    changes = {
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
