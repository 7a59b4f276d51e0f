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
from graphmem.domain.listing import ListFilters, Sort
from graphmem.domain.memory import Memory, Status
from graphmem.domain.recall import SearchQuery
from graphmem.domain.secrets import find_secrets
from graphmem.ingestion.pipeline import JOB as EXTRACTION
from graphmem.sample import Question

_BEST = 3
_AT_ENTITY = 6
_MOST_JOBS = 200


@dataclass(frozen=True)
class Kept:
    """A current memory and what was said that it rests on."""

    memory: Memory
    said: str


@dataclass(frozen=True)
class Ended:
    """A memory that no longer holds: what stands for it now (None: it was taken back) and why."""

    memory: Memory
    by: Memory | None
    reason: str | None


@dataclass(frozen=True)
class Refused:
    """What was not kept: a class of secret or a reason, and where it was said."""

    what: str
    times: int
    where: list[str]


@dataclass(frozen=True)
class Answer:
    """A question, the times it was asked for, and the memories found; `entity` where it was asked by entity."""

    question: Question
    known_as_of: datetime | None
    found: list[tuple[Entity | None, list[Memory]]]


@dataclass(frozen=True)
class Tour:
    """All there is to see."""

    kept: list[Kept]
    ended: list[Ended]
    refused: list[Refused]
    answers: list[Answer]


async def take_tour(memory: GraphMemory, owner: Owner) -> Tour:
    """Look at everything once; nothing is counted as a retrieval."""
    said = {message["id"]: message for message in sample.messages()}
    everything = await _all(memory, owner)
    jobs = await readings(memory, owner)
    current = await _all(memory, owner, current=True)
    return Tour(
        kept=[Kept(each, _quote(each, said)) for each in current],
        ended=await _ended(memory, owner, everything, jobs),
        refused=_refused(said.values(), jobs),
        answers=[await ask(memory, owner, question) for question in sample.questions()],
    )


async def readings(memory: GraphMemory, owner: Owner) -> list[Job]:
    """Return the jobs that read the user's messages, the newest first."""
    return [job for job in await memory.jobs.list(owner, limit=_MOST_JOBS) if job.kind == EXTRACTION]


async def _all(memory: GraphMemory, owner: Owner, *, current: bool = False) -> list[Memory]:
    found: list[Memory] = []
    cursor = None
    while True:
        filters = ListFilters(include_superseded=not current, sort=Sort.CREATED_AT, limit=200, cursor=cursor)
        page = await memory.memories.page(owner, filters)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _quote(memory: Memory, said: Mapping[str, Mapping[str, str]]) -> str:
    """Return what the user said last of what a memory rests on."""
    own = [said[each]["content"] for each in memory.source.message_ids if each in said and said[each]["role"] == "user"]
    return own[-1] if own else ""


async def _ended(memory: GraphMemory, owner: Owner, everything: Sequence[Memory], jobs: Sequence[Job]) -> list[Ended]:
    by_id = {each.id: each for each in everything}
    ended = []
    for each in everything:
        if each.status is Status.SUPERSEDED:
            rows = await memory.memories.history(owner, each.id)
            ended.append(Ended(each, by_id.get(each.superseded_by or ""), rows[-1].ended_reason))
    for action in (action for job in jobs for action in job.actions if action.get("action") == "delete"):
        ended.append(Ended(await memory.memories.get(owner, action["memory_id"]), None, action.get("reason")))
    return ended


def _refused(said: Iterable[Mapping[str, str]], jobs: Sequence[Job]) -> list[Refused]:
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
    return [Refused(what, len(where), list(dict.fromkeys(where))) for what, where in places.items()]


async def ask(memory: GraphMemory, owner: Owner, question: Question) -> Answer:
    """Ask one question as it wants to be asked."""
    known_as_of = await known_moment(memory, owner, question.known_after) if question.known_after else None
    if question.by == "entity":
        answer = await memory.retrieval.lookup(owner, question.text, _AT_ENTITY)
        return Answer(question, None, [(each.entity, each.memories) for each in answer.entities])
    query = SearchQuery(
        query=question.text,
        limit=_BEST,
        valid_as_of=question.valid_as_of,
        known_as_of=known_as_of,
        reinforce=False,
    )
    hits = (await memory.retrieval.search(owner, query)).results
    return Answer(question, known_as_of, [(None, [hit.memory for hit in hits])])


async def known_moment(memory: GraphMemory, owner: Owner, session_id: str) -> datetime | None:
    """Return the last moment at which nothing of the session that follows one was known yet."""
    order = list(dict.fromkeys(message["session_id"] for message in sample.messages()))
    for following in order[order.index(session_id) + 1 :]:
        page = await memory.messages.messages(owner, following, limit=200)
        read = [message.extracted_at for message in page.items if message.extracted_at]
        if read:
            return min(read) - timedelta(microseconds=1)
    return None
