"""Sessions of users whose model answers over everything that its prompts list, while others change the memories."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import parse_proposals
from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.entity import EntityIn
from graphmem.memories.listing import ListFilters
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.runtime.errors import GraphmemError
from graphmem.tenants.owners import Owner
from torture.findings import Findings
from torture.fuzz_answers import HostileModel
from torture.prompted_answers import CONTENTS, answer_extraction, answer_reconciliation

SESSIONS_PER_USER = 8
"""Sessions after which the next user begins."""

UNEXPECTED = "an unexpected error"
"""How the reason of a statement that a bug dropped begins."""


class PromptedModel(HostileModel):
    """A server of a model whose answers fit their schema; `meddle` runs before each second call is answered."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.meddle: Callable[[], None] = lambda: None

    def answer(self, schema: str, prompt: str) -> str:
        """Return the next answer, over what the prompt lists and some things that it does not."""
        if schema == "Reconciliation":
            self.meddle()
        with self._lock:
            make = answer_reconciliation if schema == "Reconciliation" else answer_extraction
            self.last_answer = json.dumps(make(prompt, self._chance))
            return self.last_answer


async def play_sessions(
    services: Services, tenant: str, sessions: int, model: PromptedModel, findings: Findings, seed: int = 0
) -> None:
    """Extract sessions one after the other; no job may fail, and no error may be one that nobody expected."""
    chance, loop = random.Random(seed), asyncio.get_running_loop()
    owner = Owner(tenant, "")
    for number in range(sessions):
        if number % SESSIONS_PER_USER == 0:
            owner = Owner(tenant, f"user-{uuid.uuid4().hex}")
        model.meddle = lambda owner=owner: _wait(_change_memories(services, owner, chance), loop)  # type: ignore[misc]
        findings.count_case()
        turns: list[Any] = [
            {"role": "user", "content": f"{number}: {text}", "name": "Ada"} for text in chance.sample(CONTENTS, 2)
        ]
        done = await services.messages.add(owner, MessagesIn(session_id=f"s{number}", messages=turns, wait=True))
        if isinstance(done, Job):
            _check(done, model, findings)
        await _consolidate(services, owner, chance)


def _check(job: Job, model: PromptedModel, findings: Findings) -> None:
    if job.status is JobStatus.FAILED or not job.status.is_final:
        error = job.error or job.reason or ""
        findings.add(f"job: {error.partition(':')[0]}", f"{error[:300]} ← {model.last_answer[:1500]}")
    for action in job.actions:
        if UNEXPECTED in (action.get("reason") or ""):
            findings.add("dropped candidate", f"{action} ← {model.last_answer[:1500]}")


def _wait(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(work, loop).result(30)


async def _current(services: Services, owner: Owner) -> list[Memory]:
    return (await services.memories.page(owner, ListFilters.model_validate({"limit": 100}))).items


async def _change_memories(services: Services, owner: Owner, chance: random.Random) -> None:
    """Delete, erase, rewrite, end and add memories between the two calls of a window."""
    for memory in chance.sample(known := await _current(services, owner), min(2, len(known))):
        with suppress(GraphmemError):
            match chance.randrange(5):
                case 0:
                    await services.memories.delete(owner, memory.id)
                case 1:
                    await services.forgetting.erase_memory(owner, memory.id)
                case 2:
                    await services.memories.patch(owner, memory.id, MemoryPatch(content=chance.choice(CONTENTS)))
                case 3:
                    await services.memories.save(owner, [MemoryIn(content="It ended", supersedes=[memory.id])])
                case _:
                    name = chance.choice(["Ada", "Paul", "Calvin", "Paul (boss)", "Lund"])
                    value = EntityIn(name=chance.choice(["Rome", "Oslo"]), type="Place")
                    saved = MemoryIn(
                        content=f"{name} lives in {value.name}",
                        subject=EntityIn(name=name, aliases=[f"{name}ie"]),
                        predicate="LIVES_IN",
                        object=value,
                        single_valued=True,
                        immutable=chance.random() < 0.5,
                    )
                    await services.memories.save(owner, [saved])


async def _consolidate(services: Services, owner: Owner, chance: random.Random) -> None:
    """Merge two memories, or link two entities, by a run that an admin proposes."""
    known = await _current(services, owner)
    if len(known) < 2 or chance.random() < 0.6:
        return
    first, second = chance.sample(known, 2)
    proposals: list[dict[str, Any]] = [
        {"action": "MERGE", "memory_ids": [first.id, second.id], "content": f"{first.content}; {second.content}"},
        {
            "action": "LINK_ENTITIES",
            "keep_id": first.subject.id,
            "merge_id": second.subject.id,
            "evidence": [first.id],
        },
    ]
    with suppress(GraphmemError, ValueError):
        await services.consolidations.start(
            owner.tenant, user_id=owner.user_id, wait=True, proposals=parse_proposals([chance.choice(proposals)])
        )
