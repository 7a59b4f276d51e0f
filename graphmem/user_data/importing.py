"""Importing documents: graphmem's exports unchanged, other formats through the checks of a save."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.conversations.session import MessagesIn
from graphmem.ingestion.service import MessageService
from graphmem.jobs.job import Job
from graphmem.memories.declarations import DeclaredTypeService
from graphmem.memories.declared_types import UndeclaredType
from graphmem.memories.entity import EntityIn
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import ImportProvenance
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MAX_CONTENT_LENGTH, MemoryIn, SaveAction, SaveResult
from graphmem.memories.new_memory import find_doubt
from graphmem.memories.writer import MemoryWriter
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Forbidden, InvalidInput
from graphmem.runtime.field_types import name_key
from graphmem.runtime.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import SourceKind, StatedKind, parse_order
from graphmem.user_data.claims import Importer
from graphmem.user_data.export_import import ExportImporter
from graphmem.user_data.export_reader import begins_as_export
from graphmem.user_data.foreign import parse_chat_log, parse_document, parse_mem0
from graphmem.user_data.graphiti import NodeDetails, ParsedGraph, parse_graphiti
from graphmem.user_data.models import ImportedStatement, ImportFormat, ImportResult, ParsedStatements, RejectedEntry
from graphmem.user_data.records import ParsedRecords, RecordImporter, parse_records

DESCRIBED_AT_ONCE = 1_000
"""Entities described per query."""

FUTURE_TIME_REASON = "a known time is in the future"
"""Why a statement with a known time after now is rejected."""


@dataclass(frozen=True, slots=True)
class _Import:
    """An import: its owner, the key used, its kind of source, and the member of a space."""

    owner: Owner
    actor: str | None
    kind: StatedKind | None
    member: str | None
    progress: ProgressCallback


class ImportService:
    """Imports documents; importing a document again adds nothing."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        exports: ExportImporter,
        memory_writer: MemoryWriter,
        messages: MessageService,
        declared_types: DeclaredTypeService,
        records: RecordImporter,
        entities: EntityStore,
        clock: Clock,
        *,
        max_entries: int,
        max_memories_per_save: int,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._exports = exports
        self._memory_writer = memory_writer
        self._messages = messages
        self._declared_types = declared_types
        self._records = records
        self._entities = entities
        self._clock = clock
        self._max_entries = max_entries
        self._max_memories_per_save = max_memories_per_save

    async def import_(
        self,
        owner: Owner,
        raw: bytes,
        *,
        source_format: ImportFormat = ImportFormat.AUTO,
        actor: str | None = None,
        kind: StatedKind | None = None,
        member: str | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a document; raise InvalidInput unless it has the format `source_format`, with `auto` any known one.

        `kind` is the import's kind of source; None may change anything and keeps the document's sources. `member` is
        the importing member of a space. Raises Forbidden for an export of graphmem unless `kind` is None or the user.
        """
        is_export = source_format is ImportFormat.AUTO and begins_as_export(raw)
        if is_export or source_format is ImportFormat.GRAPHMEM:
            importer = await self._find_importer(owner, actor, kind, member)
            return await self._exports.import_document(owner, raw, importer=importer, progress=progress)
        source_format, document = await asyncio.to_thread(parse_document, raw, source_format)
        return await self.import_parsed(
            owner, source_format, document, actor=actor, kind=kind, member=member, progress=progress
        )

    async def _find_importer(
        self, owner: Owner, actor: str | None, kind: StatedKind | None, member: str | None
    ) -> Importer | None:
        """Return the importer of a graphmem export; None for an admin, who restores it unchanged."""
        _refuse_export_by(kind)
        if kind is None:
            return None
        stored = await self._graph.fetch("trust.find", tenant=owner.tenant)
        order = parse_order(stored[0]["trust"]["order"] if stored else None)
        rows = await self._graph.fetch("spaces.list_spaces", group_ids=[owner.group_id]) if owner.is_space else []
        users = {name_key(user) for row in rows for user, _, _ in row["members"] if user}
        return Importer(actor, kind, order, self._clock(), member, frozenset(users - {name_key(member or "")}))

    async def import_parsed(
        self,
        owner: Owner,
        source_format: ImportFormat,
        document: Any,
        *,
        actor: str | None = None,
        kind: StatedKind | None = None,
        member: str | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a parsed document; raise InvalidInput for another format or too many entries."""
        task = _Import(owner, actor, kind, member, progress)
        match source_format:
            case ImportFormat.GRAPHMEM:
                importer = await self._find_importer(owner, actor, kind, member)
                return await self._exports.import_value(owner, document, importer=importer, progress=progress)
            case ImportFormat.CHAT:
                return await self._import_chat(task, document)
            case ImportFormat.RECORDS:
                records = await asyncio.to_thread(parse_records, document, owner.entity_name)
                return await self._import_records(task, records)
            case ImportFormat.MEM0:
                statements = await asyncio.to_thread(parse_mem0, document, owner.entity_name)
                return await self._import_statements(task, source_format, statements)
            case _:
                graph = await asyncio.to_thread(parse_graphiti, document)
                return await self._import_graph(task, graph)

    async def _import_statements(
        self, task: _Import, source_format: ImportFormat, statements: ParsedStatements
    ) -> ImportResult:
        """Save statements in batches, each all or nothing."""
        ready, result = await self._check_statements(task.owner, source_format, statements)
        await self._save_statements(task, ready, result, ProgressCounter(task.progress, len(ready)))
        return _sorted(result)

    async def _import_graph(self, task: _Import, graph: ParsedGraph) -> ImportResult:
        """Store a graph's episodes, save the facts that rest on them, and describe its entities."""
        messages = sum(len(batch.messages) for batch in graph.batches)
        ready, result = await self._check_statements(task.owner, ImportFormat.GRAPHITI, graph.statements, messages)
        counter = ProgressCounter(task.progress, messages + len(ready))
        if messages:
            new, _ = await self._add_messages(task, graph.batches, counter)
            result.imported["messages"], result.unchanged["messages"] = new, messages - new
        await self._save_statements(task, ready, result, counter)
        await self._describe_entities(task, graph.details, result)
        return _sorted(result)

    async def _describe_entities(self, task: _Import, details: Sequence[NodeDetails], result: ImportResult) -> None:
        """Set summaries and attributes of entities; report those with others from a more trusted source."""
        owner, kind = task.owner, _kind_of(task)
        allowed: dict[str, NodeDetails] = {}
        for entity in details:
            if refused := self._memory_writer.refused_classes(owner, [entity.summary, entity.attributes]):
                result.refused.append(_rejected_details(entity, f"holds a secret: {', '.join(refused)}"))
            elif doubt := _find_doubt(entity, kind, owner):
                result.refused.append(_rejected_details(entity, doubt))
            else:
                allowed[entity.id] = entity
        given = [(name_key(entity.name), entity.summary.strip(), entity.attributes) for entity in allowed.values()]

        async def work(transaction: Transaction) -> list[bool]:
            now = await self._facts.lock_user(transaction, owner)
            parts = [given[start : start + DESCRIBED_AT_ONCE] for start in range(0, len(given), DESCRIBED_AT_ONCE)]
            return [
                done
                for part in parts
                for done in await self._entities.describe(transaction, owner, part, kind, now, task.member)
            ]

        done = await self._graph.write(work) if given else []
        described = {entity_id for entity_id, is_done in zip(allowed, done, strict=True) if is_done}
        result.refused += [
            _rejected_details(
                entity, "the entity is not stored, has another summary or other attributes, or is the user or a member"
            )
            for entity in allowed.values()
            if entity.id not in described
        ]

    async def _import_records(self, task: _Import, parsed: ParsedRecords) -> ImportResult:
        """Save new records, change the memories whose records were edited, and relate them."""
        owner = task.owner
        ready, result = await self._check_statements(owner, ImportFormat.RECORDS, parsed.statements)
        existing = await self._records.find_existing(owner, parsed)
        counter = ProgressCounter(task.progress, len(ready))
        new = [statement for statement in ready if statement.id not in existing]
        free = await self._records.with_free_ids(owner, new)
        await self._save_statements(task, free, result, counter)
        known = [statement for statement in ready if statement.id in existing]
        await self._records.update(
            owner, known, parsed, existing, result, actor=task.actor, kind=task.kind, counter=counter
        )
        await self._records.relate(owner, ready, parsed, existing, result, task.kind)
        return _sorted(result)

    async def _check_statements(
        self, owner: Owner, source_format: ImportFormat, statements: ParsedStatements, others: int = 0
    ) -> tuple[list[ImportedStatement], ImportResult]:
        """Return the statements that can be saved, and the result so far, which lists the others.

        `others` is the number of other entries in the document.
        """
        self._check_count(len(statements.accepted) + len(statements.rejected) + others)
        now = self._clock()
        result = ImportResult(
            format=source_format, imported={"memories": 0}, unchanged={"memories": 0}, refused=statements.rejected
        )
        resolved = await self._declared_types.resolve(owner, [statement.memory for statement in statements.accepted])
        ready: list[ImportedStatement] = []
        for statement, memory in zip(statements.accepted, resolved, strict=True):
            if isinstance(memory, UndeclaredType):
                result.refused.append(_rejected_entry(statement, f"{'.'.join(map(str, memory.path))}: {memory}"))
            elif _is_in_future(statement, now):
                result.refused.append(_rejected_entry(statement, FUTURE_TIME_REASON))
            else:
                ready.append(replace(statement, memory=memory))
        return ready, result

    async def _save_statements(
        self, task: _Import, ready: Sequence[ImportedStatement], result: ImportResult, counter: ProgressCounter
    ) -> None:
        for start in range(0, len(ready), self._max_memories_per_save):
            batch = ready[start : start + self._max_memories_per_save]
            saved = await self._memory_writer.save(
                task.owner,
                [statement.memory for statement in batch],
                actor=task.actor,
                kind=_kind_of(task),
                provenance=[_known_by(task, statement) for statement in batch],
            )
            _add_results(result, batch, saved)
            counter.add(len(batch))

    async def _import_chat(self, task: _Import, document: Any) -> ImportResult:
        """Store the messages of a chat log and queue their extraction, as if sent."""
        chat_log = await asyncio.to_thread(parse_chat_log, document)
        total = sum(len(batch.messages) for batch in chat_log.batches)
        self._check_count(total + len(chat_log.rejected))
        new, jobs = await self._add_messages(task, chat_log.batches, ProgressCounter(task.progress, total))
        return ImportResult(
            format=ImportFormat.CHAT,
            imported={"messages": new},
            unchanged={"messages": total - new},
            refused=chat_log.rejected,
            jobs=jobs,
        )

    async def _add_messages(
        self, task: _Import, batches: Sequence[MessagesIn], counter: ProgressCounter
    ) -> tuple[int, list[str]]:
        """Store messages; return the number of new ones, and their extraction jobs."""
        new, jobs = 0, dict[str, None]()
        for batch in batches:
            accepted = await self._messages.add(task.owner, batch, author=task.member, sent_as=task.kind or "user")
            assert not isinstance(accepted, Job), "a batch without `wait` is accepted at once"
            new += len(accepted.new_ids)
            if accepted.job_id:
                jobs[accepted.job_id] = None
            counter.add(len(batch.messages))
        return new, list(jobs)

    def _check_count(self, entries: int) -> None:
        if entries > self._max_entries:
            raise InvalidInput(
                f"The import has {entries} entries and GRAPHMEM_MAX_IMPORT_ENTRIES allows {self._max_entries}."
            )


def _kind_of(task: _Import) -> SourceKind:
    """Return the source of imported statements: `import`, or the key's source if it is less trusted."""
    return "import" if task.kind in (None, "user", "operator") else task.kind


def _find_doubt(entity: NodeDetails, kind: SourceKind, owner: Owner) -> str | None:
    """Return why an entity's summary from a source of others' text is not set; None if it is."""
    if not entity.summary.strip():
        return None
    stated = MemoryIn(content=entity.summary[:MAX_CONTENT_LENGTH], subject=EntityIn(name=entity.name))
    return find_doubt(stated, kind, owner.entity_name)


def _known_by(task: _Import, statement: ImportedStatement) -> ImportProvenance:
    """Return a statement's history: the document's for an admin and the user; for others, it begins now.

    In a space, all members share the history, so none of them may date it back.
    """
    history = statement.provenance
    is_own = task.kind is None or (task.kind in ("user", "operator") and task.member is None)
    return history if is_own else replace(history, created_at=None, updated_at=None)


def _is_in_future(statement: ImportedStatement, now: datetime) -> bool:
    provenance = statement.provenance
    return any(time > now for time in (provenance.created_at, provenance.updated_at, provenance.expired_at) if time)


def _refuse_export_by(kind: StatedKind | None) -> None:
    if kind not in (None, "user"):
        raise Forbidden(
            f"This key speaks as {kind}, and an export of graphmem contains statements of every source: import it with "
            "another key."
        )


def _rejected_details(entity: NodeDetails, reason: str) -> RejectedEntry:
    return RejectedEntry(loc=list(entity.path), id=entity.id, reason=reason)


def _sorted(result: ImportResult) -> ImportResult:
    """Return a result with its refused entries in document order."""
    result.refused.sort(key=lambda entry: [str(part).zfill(9) for part in entry.loc])
    return result


def _rejected_entry(statement: ImportedStatement, reason: str) -> RejectedEntry:
    return RejectedEntry(loc=list(statement.path), id=statement.id, reason=reason)


def _add_results(result: ImportResult, batch: Sequence[ImportedStatement], saved: Sequence[SaveResult]) -> None:
    """Add the results of a batch of statements."""
    for statement, save in zip(batch, saved, strict=True):
        if save.memory is None:
            result.refused.append(_rejected_entry(statement, save.reason or "it cannot be saved"))
            continue
        result.ids[statement.id] = save.memory.id
        if save.action is SaveAction.CONTEST:
            result.imported["contested"] = result.imported.get("contested", 0) + 1
        else:
            (result.imported if save.action is SaveAction.INSERT else result.unchanged)["memories"] += 1
        if save.ignored:
            result.refused.append(_rejected_entry(statement, save.reason or "it is known already"))
