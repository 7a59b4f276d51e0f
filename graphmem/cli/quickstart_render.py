"""What the quickstart prints: tables, answers, the way into Neo4j Browser and the way on."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graphmem.cli.quickstart_demo import DemoAnswer, KeptMemory, QuickstartReport, RejectedContent, RetiredMemory
from graphmem.cli.render import add_row, format_time, format_validity, make_table
from graphmem.domain.identity import Owner
from graphmem.resources import cypher_root

if TYPE_CHECKING:
    from graphmem.embedded import ServerInfo
    from graphmem.settings import Settings

Block = Table | Text | Group | Padding

SAMPLE_TIME_ZONE = ZoneInfo("Europe/Berlin")
"""The time zone the sample's user lives in."""

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
    """Draw everything there is to see."""
    tables = [_kept_table(report.kept), _retired_table(report.retired), _rejected_table(report.rejected)]
    return [*tables, heading("Answers"), *map(_render_answer, report.answers)]


def heading(text: str) -> Text:
    """Return a line that begins a part."""
    return Text(f"\n{text}", style="bold")


def _kept_table(kept: Sequence[KeptMemory]) -> Table:
    drawn = make_table("statement", "type", "holds", "because she said", title=f"\nKept: {len(kept)} current memories")
    for each in kept:
        quote = textwrap.shorten(each.quote, _MAX_QUOTE_CHARS, placeholder=" …")
        add_row(drawn, each.memory.content, each.memory.type, format_validity(each.memory, SAMPLE_TIME_ZONE), quote)
    return drawn


def _retired_table(ended: Sequence[RetiredMemory]) -> Table:
    title = f"\nSuperseded or taken back: {len(ended)}, all still in history"
    drawn = make_table("statement", "held", "now", "why", title=title)
    for each in ended:
        add_row(
            drawn,
            each.memory.content,
            format_validity(each.memory, SAMPLE_TIME_ZONE),
            each.replaced_by.content if each.replaced_by else "–",
            each.reason,
        )
    return drawn


def _rejected_table(refused: Sequence[RejectedContent]) -> Table:
    drawn = make_table("what", "times", "where", title="\nRefused or passed over")
    for each in refused:
        add_row(drawn, each.reason, each.count, ", ".join(each.locations))
    return drawn


def _render_answer(answer: DemoAnswer) -> Padding:
    question = answer.question
    asked = Text(question.text, style="bold")
    if question.valid_as_of:
        asked.append(f"  as of {format_time(question.valid_as_of, SAMPLE_TIME_ZONE)}")
    if question.known_after:
        asked.append(f"  as it was known after the session {question.known_after}")
    lines: list[Text] = [asked, Text(f"  {question.shows}", style="dim")]
    for entity, memories in answer.found:
        if entity:
            also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
            lines.append(Text(f"  {entity.name} ({entity.type}{also})"))
        for memory in memories:
            held = (
                f"  [{format_validity(memory, SAMPLE_TIME_ZONE)}]" if format_validity(memory, SAMPLE_TIME_ZONE) else ""
            )
            lines.append(Text(f"  • {memory.content}").append(held, style="dim"))
    if len(lines) == 2:
        lines.append(Text("  Nothing is known about that."))
    return Padding(Group(*lines), (0, 0, 1, 0), expand=False)


def browser_access(settings: Settings, info: ServerInfo | None) -> dict[str, object]:
    """Return how to get into the graph: the embedded one's Browser, or the address of the one configured."""
    if info is None:
        return {"bolt": settings.neo4j_uri, "user": settings.neo4j_user}
    return {"open": info.browser_url, "user": info.user, "password in": str(info.password_file), "bolt": info.uri}


def next_steps(settings: Settings, info: ServerInfo | None, owner: Owner, report: QuickstartReport) -> list[Block]:
    """Draw the way into Neo4j Browser with two ready queries, and how to go on."""
    example = next(
        (each.memory.id for each in report.retired if each.replaced_by), report.kept[0].memory.id if report.kept else ""
    )
    params = {"group_id": owner.group_id, "memory_id": example}
    return [
        heading("Look at the graph in Neo4j Browser"),
        *[Text(f"  {name}: {value}") for name, value in browser_access(settings, info).items()],
        Text("  Paste the first line, then a query:"),
        _verbatim(f"\n:params {_cypher_map(params)}\n"),
        _verbatim(read_explore_query("people")),
        _verbatim(read_explore_query("history")),
        *([] if info is None else [Text(f"  Neo4j stays up until `{_command_name()} db stop`.")]),
        heading("Go on with your own"),
        _verbatim(_NEXT_STEPS.format(graphmem=_command_name())),
    ]


def _verbatim(text: str) -> Text:
    """Return text that is to be copied: no line of it is broken."""
    return Text(textwrap.indent(text, "  "), no_wrap=True, overflow="ignore")


def _command_name() -> str:
    """Return how this command is called from here."""
    return "graphmem" if shutil.which("graphmem") else os.path.relpath(sys.argv[0])


def read_explore_query(name: str) -> str:
    """Return a query of `cypher/explore/` without the comments above it, save the first sentence."""
    lines = (cypher_root() / "explore" / f"{name}.cypher").read_text("utf-8").splitlines()
    told = [line for line in lines if line.startswith("//")]
    return "\n".join([told[0].split(". Set")[0] + ".", *(line for line in lines if not line.startswith("//")), ""])


def _cypher_map(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in values.items()) + "}"
