"""Sessions of users whose model answers over everything that its prompts list, while others change the memories."""

from __future__ import annotations

import asyncio
import json
import random
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from graphmem.app.bootstrap import Services
from graphmem.app.components import ConsolidationComponents
from graphmem.consolidation.models import ProposalVerdict, RunPhase, RunTrigger, parse_proposals
from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.entity import EntityIn
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.field_types import name_key
from graphmem.tenants.owners import Owner
from torture.findings import Findings
from torture.fuzz_answers import HostileModel
from torture.prompted_answers import (
    CONTENTS,
    Json,
    answer_extraction,
    answer_reconciliation,
    applicable_candidate,
    find_statement,
)

SESSIONS_PER_USER = 8
"""Sessions after which the next user begins."""


class PromptedModel(HostileModel):
    """A server of a model whose answers fit their schema; `meddle` runs before each second call is answered.

    Each first answer also states `applicable`, which the second does not call known: it can always be saved. A prompt
    without `marker` is of something else that the services do, such as a job that an earlier run has left: its
    conversation is skipped.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.meddle: Callable[[], None] = lambda: None
        self.applicable = "Ada keeps a note"
        self.marker = ""
        self.last_extraction: Json = {}

    def answer(self, schema: str, prompt: str) -> str:
        """Return the next answer, over what the prompt lists and some things that it does not."""
        if self.marker not in prompt:
            return json.dumps({"skip": True, "reason": "It is not of the session that is played."})
        if schema == "Reconciliation":
            self.meddle()
        with self._lock:
            if schema == "Reconciliation":
                answer = answer_reconciliation(prompt, self._chance)
                _keep(answer, find_statement(prompt, self.applicable))
            else:
                answer = self.last_extraction = answer_extraction(prompt, self._chance)
                answer["candidates"].append(applicable_candidate(self.applicable))
            self.last_answer = json.dumps(answer)
            return self.last_answer


def _keep(answer: Json, number: int | None) -> None:
    """Have an answer insert a statement that it ignores or takes for one that is known."""
    for decision in answer["decisions"]:
        if decision["new"] == number and decision["action"] in ("ignore", "reinforce"):
            decision["action"] = "insert"


async def play_sessions(
    services: Services, tenant: str, sessions: int, model: PromptedModel, findings: Findings, seed: int
) -> Counter[str]:
    """Extract sessions one after the other, and return how often each action was done, by its name.

    No job may fail, no error may be one that nobody expected, and of each answer everything is applied or refused with
    a reason. `merge` and `link` of the result also count what other writers made one between the two calls.
    """
    chance, loop = random.Random(seed), asyncio.get_running_loop()
    owner, done = Owner(tenant, ""), Counter[str]()
    for number in range(sessions):
        if number % SESSIONS_PER_USER == 0:
            owner = Owner(tenant, f"user-{uuid.uuid4().hex}")
        others = OtherWriters(services, owner, chance, findings, done)
        model.meddle = lambda others=others: _wait(others.change(), loop)
        model.applicable, model.marker = f"Ada keeps note {number}", uuid.uuid4().hex
        findings.count_case()
        turns: list[Any] = [
            {"role": "user", "content": f"{model.marker}: {text}", "name": "Ada"} for text in chance.sample(CONTENTS, 2)
        ]
        job = await services.messages.add(owner, MessagesIn(session_id=f"s{number}", messages=turns, wait=True))
        if isinstance(job, Job):
            _check(job, model, findings)
            _check_account(job, model, await _saved_contents(services, owner, job), findings)
            done.update(action["action"] for action in job.actions)
        else:
            findings.add("job: not waited for", repr(job)[:300])
    return done


def _check(job: Job, model: PromptedModel, findings: Findings) -> None:
    if job.status is JobStatus.FAILED or not job.status.is_final:
        error = job.error or job.reason or ""
        findings.add(f"job: {error.partition(':')[0]}", f"{error[:300]} ← {model.last_answer[:1500]}")


def _check_account(job: Job, model: PromptedModel, saved: set[str], findings: Findings) -> None:
    """Find statements of which a job says nothing, refusals without a reason, and the loss of what can be saved."""
    if job.status is not JobStatus.SUCCEEDED or model.last_extraction["skip"]:
        return
    told = {(name_key(one["content"]), one["retracts"]) for one in model.last_extraction["candidates"]}
    about_statements = [
        action for action in job.actions if action["action"] != "link" and action.get("type") not in ("answer", "names")
    ]
    example = f"{job.actions} ← {sorted(told)} ← {model.last_answer[:1500]}"
    if len(about_statements) < len(told):
        findings.add("unaccounted statement", example)
    if any(action["action"] == "refuse" and not action.get("reason") for action in job.actions):
        findings.add("refusal without a reason", example)
    if model.applicable not in saved:
        findings.add("lost statement", example)


def _wait(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(work, loop).result(30)


async def _saved_contents(services: Services, owner: Owner, job: Job) -> set[str]:
    """Return what the memories say that a job has saved; one that starts later is not current yet."""
    ids = [action["memory_id"] for action in job.actions if action["action"] in ("insert", "supersede", "reinforce")]
    return {(await services.memories.get(owner, memory_id)).content for memory_id in ids}


async def _current(services: Services, owner: Owner) -> list[Memory]:
    return (await services.memories.page(owner, ListFilters.model_validate({"limit": 100}))).items


class OtherWriters:
    """What others do with the memories of a user between the two calls of a window; `done` counts what they merged."""

    def __init__(
        self, services: Services, owner: Owner, chance: random.Random, findings: Findings, done: Counter[str]
    ) -> None:
        self._services = services
        self._owner = owner
        self._chance = chance
        self._findings = findings
        self._done = done
        self._consolidation = ConsolidationComponents.build(services.components)

    async def change(self) -> None:
        """Delete, erase, rewrite, end and add memories, and consolidate; any error but a refusal is a finding."""
        known = await _current(self._services, self._owner)
        changes = [self._change_memory(memory) for memory in self._chance.sample(known, min(2, len(known)))]
        for change in (*changes, self._consolidate()):
            try:
                await change
            except GraphmemError:
                continue
            except Exception as error:
                self._findings.add(f"other writer: {type(error).__name__}", traceback.format_exc()[-1500:])

    async def _change_memory(self, memory: Memory) -> None:
        services, owner, chance = self._services, self._owner, self._chance
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

    async def _consolidate(self) -> None:
        """Merge two memories, link two entities or give one an alias, and now and then roll that back.

        As in the night, the run is in no queue of the user; there it would wait for the job that it meddles with.
        """
        known = await _current(self._services, self._owner)
        proposals = _possible_proposals(known, self._chance)
        if not proposals or self._chance.random() < 0.4:
            return
        (proposal,) = parse_proposals([self._chance.choice(proposals)])
        runs, executor = self._consolidation.runs, self._consolidation.executor
        run_id, owner = str(uuid.uuid4()), self._owner
        reviewed = await executor.attach_versions(owner, [proposal], "admin")
        await runs.create(
            run_id,
            owner.tenant,
            owner,
            RunTrigger.CURATED,
            datetime.now(UTC),
            dry_run=False,
            actor="admin",
            proposals=reviewed,
            phase=RunPhase.ANALYSED,
        )
        result = await executor.execute(owner, run_id, reviewed, curated=True, actor="admin")
        if result.proposals[0].verdict is not ProposalVerdict.EXECUTED:
            return
        self._done[f"other writer: {proposal.action}"] += 1
        if self._chance.random() < 0.15:
            await self._services.consolidations.rollback(owner.tenant, run_id)


def _possible_proposals(known: list[Memory], chance: random.Random) -> list[Json]:
    """Return proposals over memories of one subject and over different entities, which an admin has verified."""
    entities = {entity.id: entity for memory in known for entity in (memory.subject, *memory.entities)}
    subjects = [memory.subject.id for memory in known]
    proposals: list[Json] = []
    if pairs := [memory for memory in known if subjects.count(memory.subject.id) > 1 and not memory.immutable]:
        first = chance.choice(pairs)
        same = [memory for memory in pairs if memory.subject.id == first.subject.id and memory.id != first.id]
        if same:
            second = chance.choice(same)
            content = f"{first.content}; {second.content}"
            ids = [first.id, second.id]
            proposals.append({"action": "MERGE", "memory_ids": ids, "content": content, "verified": True})
    if entities:
        keep = chance.choice(list(entities))
        same_type = [other.id for other in entities.values() if other.type == entities[keep].type and other.id != keep]
        if same_type:
            merge = chance.choice(same_type)
            proposals.append({"action": "LINK_ENTITIES", "keep_id": keep, "merge_id": merge, "verified": True})
        evidence = [memory.id for memory in known if memory.subject.id == keep]
        alias = chance.choice(["Paulie", "Cal", "Rome"])
        proposals.append({"action": "UPDATE_ENTITY", "entity_id": keep, "add_aliases": [alias], "evidence": evidence})
    return proposals
