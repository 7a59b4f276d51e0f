"""The output of the quickstart: memories, answers, access to Neo4j Browser and next steps."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from graphmem.cli.quickstart_demo import DemoAnswer, KeptMemory, QuickstartReport, RejectedContent, RetiredMemory
from graphmem.cli.render import format_entity, format_time, format_validity
from graphmem.cli.tables import TextTable, add_row, make_table
from graphmem.neo4j.embedded.neo4j_browser import read_query
from graphmem.tenants.owners import Owner

Block = TextTable | Text | Group | Padding

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


def render_report(report: QuickstartReport) -> list[Block]:
    """Return the memories of the sample's user and the answers to the questions."""
    tables = [_kept_table(report.kept), _retired_table(report.retired), _rejected_table(report.rejected)]
    return [*tables, _heading("Answers"), *map(_render_answer, report.answers)]


def next_steps(access: Mapping[str, object], owner: Owner, *, is_embedded: bool) -> list[Block]:
    """Return how to open the graph in Neo4j Browser, with two queries to paste, and what to try next."""
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


def _kept_table(kept: Sequence[KeptMemory]) -> TextTable:
    title = f"\nKept: {len(kept)} current memories"
    table = make_table("statement", "type", "valid", "because she said", title=title)
    for entry in kept:
        memory = entry.memory
        quote = textwrap.shorten(entry.quote, _MAX_QUOTE_CHARS, placeholder=" …")
        add_row(table, memory.content, memory.type, format_validity(memory, SAMPLE_TIME_ZONE), quote)
    return table


def _retired_table(retired: Sequence[RetiredMemory]) -> TextTable:
    title = f"\nSuperseded, ended or retracted: {len(retired)}, all still in history"
    table = make_table("statement", "valid", "replaced by", "reason", title=title)
    for entry in retired:
        replacement = entry.replaced_by.content if entry.replaced_by else "–"
        validity = format_validity(entry.memory, SAMPLE_TIME_ZONE)
        add_row(table, entry.memory.content, validity, replacement, entry.reason)
    return table


def _rejected_table(rejected: Sequence[RejectedContent]) -> TextTable:
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


def _verbatim(text: str) -> Text:
    """Return text to copy: its lines are not broken."""
    return Text(textwrap.indent(text, "  "), no_wrap=True)


def _command_name() -> str:
    """Return how to call this command from the current folder."""
    return "graphmem" if shutil.which("graphmem") else os.path.relpath(sys.argv[0])
