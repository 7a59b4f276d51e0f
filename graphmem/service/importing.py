"""What other memories and chat logs bring, through the same guards as everything that is saved or said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graphmem.domain.export import Imported
from graphmem.domain.formats.chat import read_chat
from graphmem.domain.formats.document import Format
from graphmem.domain.formats.graphiti import read_graphiti
from graphmem.domain.formats.mem0 import read_mem0
from graphmem.domain.formats.told import Brought, Refused, Statements
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job
from graphmem.domain.memory import Action, SaveResult
from graphmem.domain.progress import Progress, Tally
from graphmem.domain.times import Clock
from graphmem.ingestion.saving import Saving
from graphmem.service.messages import Conversations


class Arrivals:
    """Takes documents of other formats; each batch is written whole, and bringing a document again adds nothing."""

    def __init__(self, saving: Saving, messages: Conversations, clock: Clock, batch: int) -> None:
        self._saving = saving
        self._messages = messages
        self._clock = clock
        self._batch = batch

    async def bring(
        self, owner: Owner, form: Format, document: Any, *, actor: str | None, progress: Progress
    ) -> Imported:
        """Take what a document of a format holds; raise InvalidInput where it has not that form."""
        if form is Format.OPENAI:
            return await self._hear(owner, document, progress)
        if form is Format.MEM0:
            statements = await asyncio.to_thread(read_mem0, document, owner.user_id)
        else:
            statements = await asyncio.to_thread(read_graphiti, document)
        return await self._save(owner, form, statements, actor, progress)

    async def _save(
        self, owner: Owner, form: Format, statements: Statements, actor: str | None, progress: Progress
    ) -> Imported:
        now = self._clock()
        ready = [each for each in statements.taken if not _ahead(each, now)]
        done = Imported(format=form, imported={"memories": 0}, unchanged={"memories": 0})
        done.refused = [*statements.refused, *(_refused(each, AHEAD) for each in statements.taken if _ahead(each, now))]
        tally = Tally(progress, len(ready))
        for start in range(0, len(ready), self._batch):
            part = ready[start : start + self._batch]
            results = await self._saving.save(
                owner,
                [each.memory for each in part],
                actor=actor,
                kind=form.value,
                told=[each.told for each in part],
            )
            _count(done, part, results)
            tally.add(len(part))
        done.refused.sort(key=lambda each: [str(part).zfill(9) for part in each.loc])
        return done

    async def _hear(self, owner: Owner, document: Any, progress: Progress) -> Imported:
        talks = await asyncio.to_thread(read_chat, document)
        total, new = sum(len(batch.messages) for batch in talks.batches), 0
        tally = Tally(progress, total)
        jobs: dict[str, None] = {}
        for batch in talks.batches:
            accepted = await self._messages.add(owner, batch)
            assert not isinstance(accepted, Job), "nothing here waits for a job"
            new += len(accepted.new_ids)
            if accepted.job_id:
                jobs[accepted.job_id] = None
            tally.add(len(batch.messages))
        return Imported(
            format=Format.OPENAI,
            imported={"messages": new},
            unchanged={"messages": total - new},
            refused=talks.refused,
            jobs=list(jobs),
        )


AHEAD = "a time at which it was known lies in the future"


def _ahead(brought: Brought, now: datetime) -> bool:
    told = brought.told
    return any(moment > now for moment in (told.created_at, told.updated_at, told.expired_at) if moment)


def _refused(brought: Brought, reason: str) -> Refused:
    return Refused(loc=list(brought.place), id=brought.id, reason=reason)


def _count(done: Imported, brought: Sequence[Brought], results: Sequence[SaveResult]) -> None:
    """Add the results of one batch to the answer."""
    for each, result in zip(brought, results, strict=True):
        if result.memory is None:
            done.refused.append(_refused(each, result.reason or "it cannot be saved"))
            continue
        done.ids[each.id] = result.memory.id
        (done.imported if result.action is Action.INSERT else done.unchanged)["memories"] += 1
