"""The output of the quickstart for the sample user: memories kept, retired and rejected, answers, and next steps."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from graphmem import sample
from graphmem.app.bootstrap import Services
from graphmem.cli.command import Verbatim
from graphmem.cli.tables import Renderable, add_row, format_time, make_table
from graphmem.cli.views import format_entity, format_validity
from graphmem.ingestion.jobs import EXTRACTION_JOB
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.entity import Entity
from graphmem.memories.filters import ListFilters, SortOrder
from graphmem.memories.memory import Memory, MemoryStatus
from graphmem.neo4j.embedded.home import read_query
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.times import utc_now
from graphmem.sample import SampleQuestion
from graphmem.search.models import SearchQuery
from graphmem.secrets.scanner import find_secrets
from graphmem.tenants.owners import Owner

if TYPE_CHECKING:
    from rich.table import Table

_SEARCH_LIMIT = 3


_LOOKUP_LIMIT = 6


MAX_JOBS = 200
"""Most jobs read of the sample."""


_PAGE_SIZE = 200


@dataclass(frozen=True)
class KeptMemory:
    """A current memory and the user's message that it is based on."""

    memory: Memory
    quote: str


@dataclass(frozen=True)
class RetiredMemory:
    """A memory that is no longer current, its replacement (None: it was retracted) and the reason."""

    memory: Memory
    replaced_by: Memory | None
    reason: str | None


@dataclass(frozen=True)
class RejectedContent:
    """A reason for keeping nothing, its number of occurrences, and the messages or sessions concerned."""

    reason: str
    count: int
    locations: list[str]


@dataclass(frozen=True)
class DemoAnswer:
    """A question and the memories found, by entity for a lookup; for a search, the entity is None."""

    question: SampleQuestion
    known_as_of: datetime | None
    found: list[tuple[Entity | None, list[Memory]]]


@dataclass(frozen=True)
class QuickstartReport:
    """The output of the quickstart."""

    kept: list[KeptMemory]
    retired: list[RetiredMemory]
    rejected: list[RejectedContent]
    answers: list[DemoAnswer]


async def collect_report(services: Services, owner: Owner) -> QuickstartReport:
    """Read the data that the quickstart shows, without counting retrievals."""
    messages = {message["id"]: message for message in sample.load_messages()}
    everything = await _list_all(services, owner)
    jobs = await extraction_jobs(services, owner)
    current = await _list_all(services, owner, current=True)
    return QuickstartReport(
        kept=[KeptMemory(memory, _last_user_quote(memory, messages)) for memory in current],
        retired=await _retired_memories(services, owner, everything, jobs),
        rejected=_rejected_content(messages.values(), jobs),
        answers=[await ask_question(services, owner, question) for question in sample.load_questions()],
    )


async def extraction_jobs(services: Services, owner: Owner) -> list[Job]:
    """Return the extraction jobs of the user's messages, newest first."""
    return await services.jobs.list(owner.group_id, EXTRACTION_JOB, limit=MAX_JOBS)


async def _list_all(services: Services, owner: Owner, *, current: bool = False) -> list[Memory]:
    memories: list[Memory] = []
    cursor = None
    while True:
        filters = ListFilters(
            include_superseded=not current, sort=SortOrder.CREATED_AT, limit=_PAGE_SIZE, cursor=cursor
        )
        page = await services.memories.page(owner, filters)
        memories += page.items
        cursor = page.next_cursor
        if cursor is None:
            return memories


def _last_user_quote(memory: Memory, messages: Mapping[str, Mapping[str, str]]) -> str:
    """Return the last message of the user that a memory is based on."""
    sources = [messages[message_id] for message_id in memory.source.message_ids if message_id in messages]
    quotes = [message["content"] for message in sources if message["role"] == "user"]
    return quotes[-1] if quotes else ""


async def _retired_memories(
    services: Services, owner: Owner, everything: Sequence[Memory], jobs: Sequence[Job]
) -> list[RetiredMemory]:
    by_id = {memory.id: memory for memory in everything}
    retired = []
    now = utc_now()
    for memory in everything:
        if memory.status is MemoryStatus.SUPERSEDED or (memory.invalid_at and memory.invalid_at <= now):
            versions = await services.memories.history(owner, memory.id)
            replacement = by_id.get(memory.superseded_by or "")
            retired.append(RetiredMemory(memory, replacement, versions[-1].ended_reason))
    for action in (action for job in jobs for action in job.actions if action.get("action") == "delete"):
        deleted = await services.memories.get(owner, action["memory_id"])
        retired.append(RetiredMemory(deleted, None, action.get("reason")))
    return retired


def _rejected_content(messages: Iterable[Mapping[str, str]], jobs: Sequence[Job]) -> list[RejectedContent]:
    """Return the secrets in the messages by class, then extraction's reasons for keeping nothing."""
    locations: dict[str, list[str]] = {}
    for message in messages:
        for finding in find_secrets(message["content"]):
            reason = f"a secret ({finding.cls.replace('_', ' ')}): in no memory and no prompt"
            locations.setdefault(reason, []).append(message["id"])
    for job in reversed(jobs):
        session = job.session_id or job.id
        if job.status is JobStatus.SKIPPED:
            locations.setdefault(f"nothing worth keeping: {job.reason}", []).append(session)
        for action in job.actions:
            if action.get("action") == "refuse":
                locations.setdefault(str(action.get("reason")), []).append(session)
    return [RejectedContent(reason, len(where), list(dict.fromkeys(where))) for reason, where in locations.items()]


async def ask_question(services: Services, owner: Owner, question: SampleQuestion) -> DemoAnswer:
    """Answer a question by lookup or search, as of the times that it names."""
    known_as_of = await known_time_after(services, owner, question.known_after) if question.known_after else None
    if question.by == "entity":
        response = await services.retrieval.lookup(owner, question.text, _LOOKUP_LIMIT, reinforce=False)
        return DemoAnswer(question, None, [(match.entity, match.memories) for match in response.entities])
    query = SearchQuery(
        query=question.text,
        limit=_SEARCH_LIMIT,
        valid_as_of=question.valid_as_of,
        known_as_of=known_as_of,
        cut=question.cut,
        reinforce=False,
    )
    hits = (await services.retrieval.search(owner, query)).results
    return DemoAnswer(question, known_as_of, [(None, [hit.memory for hit in hits])])


async def known_time_after(services: Services, owner: Owner, session_id: str) -> datetime | None:
    """Return the last moment before the next session's messages were extracted; None if there is none."""
    order = list(dict.fromkeys(message["session_id"] for message in sample.load_messages()))
    for following in order[order.index(session_id) + 1 :]:
        page = await services.messages.list_messages(owner, following, PageQuery(limit=_PAGE_SIZE))
        extracted = [message.extracted_at for message in page.items if message.extracted_at]
        if extracted:
            return min(extracted) - timedelta(microseconds=1)
    return None


SAMPLE_TIME_ZONE = ZoneInfo("Europe/Berlin")
"""The time zone of the sample's user."""


_MAX_QUOTE_CHARS = 90


_NEXT_STEPS = """\
{graphmem} add --user you "I moved to Lisbon in May."
{graphmem} search --user you "Where do I live?"
export OPENAI_API_KEY=…   # or OPENAI_BASE_URL for any compatible server
{graphmem} ingest --user you conversation.jsonl   # one {{"role": "user", "content": "…"}} a line
{graphmem} serve    # the HTTP API, with its documentation at /docs
{graphmem} doctor   # when something does not work
"""


def render_report(report: QuickstartReport) -> list[Renderable]:
    """Return the sample user's memories and the answers to the questions."""
    tables = [_kept_table(report.kept), _retired_table(report.retired), _rejected_table(report.rejected)]
    return [*tables, _heading("Answers"), *map(_render_answer, report.answers)]


def next_steps(access: Mapping[str, object], owner: Owner, *, is_embedded: bool) -> list[Renderable]:
    """Return how to open the graph in Neo4j Browser, with two queries to paste, and suggested next commands."""
    graphmem = _command_name()
    return [
        _heading("Look at the graph in Neo4j Browser"),
        _verbatim(f"{graphmem} db browser --user {owner.user_id}   # opens it with a query; paste the password\n"),
        *[_verbatim(f"{name}: {value}") for name, value in access.items() if name != "open"],
        Text("  Two queries to paste there:\n"),
        _verbatim(read_query("people", owner.group_id)),
        _verbatim(read_query("memory_history", owner.group_id)),
        *([Text(f"  Neo4j runs until `{graphmem} db stop`.")] if is_embedded else []),
        _heading("Go on with your own data"),
        _verbatim(_NEXT_STEPS.format(graphmem=graphmem)),
    ]


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _kept_table(kept: Sequence[KeptMemory]) -> Table:
    title = f"\nKept: {len(kept)} current memories"
    table = make_table("statement", "type", "valid", "because she said", title=title)
    for entry in kept:
        memory = entry.memory
        quote = textwrap.shorten(entry.quote, _MAX_QUOTE_CHARS, placeholder=" …")
        add_row(table, memory.content, memory.type, format_validity(memory, SAMPLE_TIME_ZONE), quote)
    return table


def _retired_table(retired: Sequence[RetiredMemory]) -> Table:
    title = f"\nSuperseded, ended or retracted: {len(retired)}, all still in history"
    table = make_table("statement", "valid", "replaced by", "reason", title=title)
    for entry in retired:
        replacement = entry.replaced_by.content if entry.replaced_by else "–"
        validity = format_validity(entry.memory, SAMPLE_TIME_ZONE)
        add_row(table, entry.memory.content, validity, replacement, entry.reason)
    return table


def _rejected_table(rejected: Sequence[RejectedContent]) -> Table:
    table = make_table("reason", "times", "where", title="\nRefused or skipped")
    for entry in rejected:
        add_row(table, entry.reason, entry.count, ", ".join(entry.locations))
    return table


def _render_answer(answer: DemoAnswer) -> Padding:
    question = answer.question
    heading = Text(question.text, style="bold")
    if question.valid_as_of:
        heading.append(f"  as of {format_time(question.valid_as_of, SAMPLE_TIME_ZONE)}")
    if question.known_after:
        heading.append(f"  as known after the session {question.known_after}")
    results: list[Text] = []
    for entity, memories in answer.found:
        if entity:
            results.append(Text(f"  {format_entity(entity)}"))
        for memory in memories:
            validity = format_validity(memory, SAMPLE_TIME_ZONE)
            results.append(Text(f"  • {memory.content}").append(f"  [{validity}]" if validity else "", style="dim"))
    results = results or [Text("  No matching memory.")]
    lines = [heading, Text(f"  {question.shows}", style="dim"), *results]
    return Padding(Group(*lines), (0, 0, 1, 0), expand=False)


def _verbatim(text: str) -> Verbatim:
    """Return text to copy, indented."""
    return Verbatim(textwrap.indent(text, "  "))


def _command_name() -> str:
    """Return the command that calls graphmem from the current folder."""
    return "graphmem" if shutil.which("graphmem") else os.path.relpath(sys.argv[0])
