"""What the quickstart shows of the sample's user: kept, superseded, refused, and answers to questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphmem import sample
from graphmem.bootstrap import GraphMemory
from graphmem.domain.entity import Entity
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job, JobStatus
from graphmem.domain.listing import ListFilters, SortOrder
from graphmem.domain.memory import Memory, MemoryStatus
from graphmem.domain.search_models import SearchQuery
from graphmem.domain.secrets import find_secrets
from graphmem.ingestion.job_kinds import EXTRACTION_JOB
from graphmem.sample import SampleQuestion

_SEARCH_LIMIT = 3
_LOOKUP_LIMIT = 6
_MAX_JOBS = 200


@dataclass(frozen=True)
class KeptMemory:
    """A current memory and what was said that it rests on."""

    memory: Memory
    quote: str


@dataclass(frozen=True)
class RetiredMemory:
    """A memory that no longer holds: what stands for it now (None: it was taken back) and why."""

    memory: Memory
    replaced_by: Memory | None
    reason: str | None


@dataclass(frozen=True)
class RejectedContent:
    """What was not kept: a class of secret or a reason, and where it was said."""

    reason: str
    count: int
    locations: list[str]


@dataclass(frozen=True)
class DemoAnswer:
    """A question, the times it was asked for, and the memories found; `entity` where it was asked by entity."""

    question: SampleQuestion
    known_as_of: datetime | None
    found: list[tuple[Entity | None, list[Memory]]]


@dataclass(frozen=True)
class QuickstartReport:
    """All there is to see."""

    kept: list[KeptMemory]
    retired: list[RetiredMemory]
    rejected: list[RejectedContent]
    answers: list[DemoAnswer]


async def collect_report(memory: GraphMemory, owner: Owner) -> QuickstartReport:
    """Look at everything once; nothing is counted as a retrieval."""
    said = {message["id"]: message for message in sample.load_messages()}
    everything = await _list_all(memory, owner)
    jobs = await extraction_jobs(memory, owner)
    current = await _list_all(memory, owner, current=True)
    return QuickstartReport(
        kept=[KeptMemory(each, _last_user_quote(each, said)) for each in current],
        retired=await _retired_memories(memory, owner, everything, jobs),
        rejected=_rejected_content(said.values(), jobs),
        answers=[await ask_question(memory, owner, question) for question in sample.load_questions()],
    )


async def extraction_jobs(memory: GraphMemory, owner: Owner) -> list[Job]:
    """Return the jobs that read the user's messages, the newest first."""
    return [job for job in await memory.jobs.list(owner, limit=_MAX_JOBS) if job.kind == EXTRACTION_JOB.name]


async def _list_all(memory: GraphMemory, owner: Owner, *, current: bool = False) -> list[Memory]:
    found: list[Memory] = []
    cursor = None
    while True:
        filters = ListFilters(include_superseded=not current, sort=SortOrder.CREATED_AT, limit=200, cursor=cursor)
        page = await memory.memories.page(owner, filters)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _last_user_quote(memory: Memory, said: Mapping[str, Mapping[str, str]]) -> str:
    """Return what the user said last of what a memory rests on."""
    own = [said[each]["content"] for each in memory.source.message_ids if each in said and said[each]["role"] == "user"]
    return own[-1] if own else ""


async def _retired_memories(
    memory: GraphMemory, owner: Owner, everything: Sequence[Memory], jobs: Sequence[Job]
) -> list[RetiredMemory]:
    by_id = {each.id: each for each in everything}
    ended = []
    for each in everything:
        if each.status is MemoryStatus.SUPERSEDED:
            rows = await memory.memories.history(owner, each.id)
            ended.append(RetiredMemory(each, by_id.get(each.superseded_by or ""), rows[-1].ended_reason))
    for action in (action for job in jobs for action in job.actions if action.get("action") == "delete"):
        ended.append(RetiredMemory(await memory.memories.get(owner, action["memory_id"]), None, action.get("reason")))
    return ended


def _rejected_content(said: Iterable[Mapping[str, str]], jobs: Sequence[Job]) -> list[RejectedContent]:
    """Return the secrets that were said, by class, then what was refused or passed over, by reason."""
    places: dict[str, list[str]] = {}
    for message in said:
        for finding in find_secrets(message["content"]):
            what = f"a secret ({finding.cls.replace('_', ' ')}): in no memory and no prompt"
            places.setdefault(what, []).append(message["id"])
    for job in reversed(jobs):
        session = job.session_id or job.id
        if job.status is JobStatus.SKIPPED:
            places.setdefault(f"nothing worth keeping: {job.reason}", []).append(session)
        for action in job.actions:
            if action.get("action") == "refuse":
                places.setdefault(str(action.get("reason")), []).append(session)
    return [RejectedContent(what, len(where), list(dict.fromkeys(where))) for what, where in places.items()]


async def ask_question(memory: GraphMemory, owner: Owner, question: SampleQuestion) -> DemoAnswer:
    """Ask one question as it wants to be asked."""
    known_as_of = await known_time_after(memory, owner, question.known_after) if question.known_after else None
    if question.by == "entity":
        answer = await memory.retrieval.lookup(owner, question.text, _LOOKUP_LIMIT)
        return DemoAnswer(question, None, [(each.entity, each.memories) for each in answer.entities])
    query = SearchQuery(
        query=question.text,
        limit=_SEARCH_LIMIT,
        valid_as_of=question.valid_as_of,
        known_as_of=known_as_of,
        reinforce=False,
    )
    hits = (await memory.retrieval.search(owner, query)).results
    return DemoAnswer(question, known_as_of, [(None, [hit.memory for hit in hits])])


async def known_time_after(memory: GraphMemory, owner: Owner, session_id: str) -> datetime | None:
    """Return the last moment at which nothing of the session that follows one was known yet."""
    order = list(dict.fromkeys(message["session_id"] for message in sample.load_messages()))
    for following in order[order.index(session_id) + 1 :]:
        page = await memory.messages.list_messages(owner, following, limit=200)
        read = [message.extracted_at for message in page.items if message.extracted_at]
        if read:
            return min(read) - timedelta(microseconds=1)
    return None
