"""What other memories and chat logs bring, through the same guards as everything that is saved or said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.domain.export import ImportResult
from graphmem.domain.formats.chat import parse_chat_log
from graphmem.domain.formats.document import ImportFormat
from graphmem.domain.formats.graphiti import parse_graphiti
from graphmem.domain.formats.mem0 import parse_mem0
from graphmem.domain.formats.provenance import ImportedStatement, ParsedStatements, RejectedEntry
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job
from graphmem.domain.memory import SaveAction, SaveResult
from graphmem.domain.progress import ProgressCallback, ProgressCounter
from graphmem.domain.times import Clock
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.service.messages import MessageService


class Importer:
    """Takes documents of other formats; each batch is written whole, and bringing a document again adds nothing."""

    def __init__(self, memory_writer: MemoryWriter, messages: MessageService, clock: Clock, batch_size: int) -> None:
        self._memory_writer = memory_writer
        self._messages = messages
        self._clock = clock
        self._batch_size = batch_size

    async def import_document(
        self, owner: Owner, source_format: ImportFormat, document: Any, *, actor: str | None, progress: ProgressCallback
    ) -> ImportResult:
        """Take what a document of a format holds; raise InvalidInput where it is not of that format."""
        if source_format is ImportFormat.OPENAI:
            return await self._import_chat(owner, document, progress)
        if source_format is ImportFormat.MEM0:
            statements = await asyncio.to_thread(parse_mem0, document, owner.user_id)
        else:
            statements = await asyncio.to_thread(parse_graphiti, document)
        return await self._import_statements(owner, source_format, statements, actor, progress)

    async def _import_statements(
        self,
        owner: Owner,
        source_format: ImportFormat,
        statements: ParsedStatements,
        actor: str | None,
        progress: ProgressCallback,
    ) -> ImportResult:
        now = self._clock()
        ready = [each for each in statements.accepted if not _is_in_future(each, now)]
        done = ImportResult(format=source_format, imported={"memories": 0}, unchanged={"memories": 0})
        done.refused = [
            *statements.rejected,
            *(_rejected_entry(each, FUTURE_TIME_REASON) for each in statements.accepted if _is_in_future(each, now)),
        ]
        tally = ProgressCounter(progress, len(ready))
        for start in range(0, len(ready), self._batch_size):
            part = ready[start : start + self._batch_size]
            results = await self._memory_writer.save(
                owner,
                [each.memory for each in part],
                actor=actor,
                kind=source_format.value,
                provenance=[each.provenance for each in part],
            )
            _add_results(done, part, results)
            tally.add(len(part))
        done.refused.sort(key=lambda each: [str(part).zfill(9) for part in each.loc])
        return done

    async def _import_chat(self, owner: Owner, document: Any, progress: ProgressCallback) -> ImportResult:
        chat_log = await asyncio.to_thread(parse_chat_log, document)
        total, new = sum(len(batch.messages) for batch in chat_log.batches), 0
        tally = ProgressCounter(progress, total)
        jobs: dict[str, None] = {}
        for batch in chat_log.batches:
            accepted = await self._messages.add(owner, batch)
            assert not isinstance(accepted, Job), "nothing here waits for a job"
            new += len(accepted.new_ids)
            if accepted.job_id:
                jobs[accepted.job_id] = None
            tally.add(len(batch.messages))
        return ImportResult(
            format=ImportFormat.OPENAI,
            imported={"messages": new},
            unchanged={"messages": total - new},
            refused=chat_log.rejected,
            jobs=list(jobs),
        )


FUTURE_TIME_REASON = "a time at which it was known lies in the future"


def _is_in_future(statement: ImportedStatement, now: datetime) -> bool:
    provenance = statement.provenance
    return any(
        moment > now for moment in (provenance.created_at, provenance.updated_at, provenance.expired_at) if moment
    )


def _rejected_entry(statement: ImportedStatement, reason: str) -> RejectedEntry:
    return RejectedEntry(loc=list(statement.path), id=statement.id, reason=reason)


def _add_results(done: ImportResult, statement: Sequence[ImportedStatement], results: Sequence[SaveResult]) -> None:
    """Add the results of one batch to the answer."""
    for each, result in zip(statement, results, strict=True):
        if result.memory is None:
            done.refused.append(_rejected_entry(each, result.reason or "it cannot be saved"))
            continue
        done.ids[each.id] = result.memory.id
        (done.imported if result.action is SaveAction.INSERT else done.unchanged)["memories"] += 1
