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

from graphmem.cli.render import day, row, span, table
from graphmem.cli.tour import Answer, Ended, Kept, Refused, Tour
from graphmem.domain.identity import Owner
from graphmem.resources import cypher_root

if TYPE_CHECKING:
    from graphmem.embedded import ServerInfo
    from graphmem.settings import Settings

Drawn = Table | Text | Group | Padding

ZONE = ZoneInfo("Europe/Berlin")
"""The time zone the sample's user lives in."""

_WIDEST_QUOTE = 90
_WAY_ON = """\
{graphmem} add --user you "I moved to Lisbon in May."
{graphmem} search --user you "Where do I live?"
export OPENAI_API_KEY=…   # or OPENAI_BASE_URL for any compatible server
{graphmem} ingest --user you conversation.jsonl   # one {{"role": "user", "content": "…"}} a line
{graphmem} serve    # the HTTP API, with its documentation at /docs
{graphmem} doctor   # when something does not work
"""


def tour(seen: Tour) -> list[Drawn]:
    """Draw everything there is to see."""
    tables = [_kept(seen.kept), _ended(seen.ended), _refused(seen.refused)]
    return [*tables, heading("Answers"), *map(_answer, seen.answers)]


def heading(text: str) -> Text:
    """Return a line that begins a part."""
    return Text(f"\n{text}", style="bold")


def _kept(kept: Sequence[Kept]) -> Table:
    drawn = table("statement", "type", "holds", "because she said", title=f"\nKept: {len(kept)} current memories")
    for each in kept:
        quote = textwrap.shorten(each.said, _WIDEST_QUOTE, placeholder=" …")
        row(drawn, each.memory.content, each.memory.type, span(each.memory, ZONE), quote)
    return drawn


def _ended(ended: Sequence[Ended]) -> Table:
    title = f"\nSuperseded or taken back: {len(ended)}, all still in history"
    drawn = table("statement", "held", "now", "why", title=title)
    for each in ended:
        row(drawn, each.memory.content, span(each.memory, ZONE), each.by.content if each.by else "–", each.reason)
    return drawn


def _refused(refused: Sequence[Refused]) -> Table:
    drawn = table("what", "times", "where", title="\nRefused or passed over")
    for each in refused:
        row(drawn, each.what, each.times, ", ".join(each.where))
    return drawn


def _answer(answer: Answer) -> Padding:
    question = answer.question
    asked = Text(question.text, style="bold")
    if question.valid_as_of:
        asked.append(f"  as of {day(question.valid_as_of, ZONE)}")
    if question.known_after:
        asked.append(f"  as it was known after the session {question.known_after}")
    lines: list[Text] = [asked, Text(f"  {question.shows}", style="dim")]
    for entity, memories in answer.found:
        if entity:
            also = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
            lines.append(Text(f"  {entity.name} ({entity.type}{also})"))
        for memory in memories:
            held = f"  [{span(memory, ZONE)}]" if span(memory, ZONE) else ""
            lines.append(Text(f"  • {memory.content}").append(held, style="dim"))
    if len(lines) == 2:
        lines.append(Text("  Nothing is known about that."))
    return Padding(Group(*lines), (0, 0, 1, 0), expand=False)


def entrance(settings: Settings, info: ServerInfo | None) -> dict[str, object]:
    """Return how to get into the graph: the embedded one's Browser, or the address of the one configured."""
    if info is None:
        return {"bolt": settings.neo4j_uri, "user": settings.neo4j_user}
    return {"open": info.browser_url, "user": info.user, "password in": str(info.password_file), "bolt": info.uri}


def farewell(settings: Settings, info: ServerInfo | None, owner: Owner, seen: Tour) -> list[Drawn]:
    """Draw the way into Neo4j Browser with two ready queries, and how to go on."""
    example = next((each.memory.id for each in seen.ended if each.by), seen.kept[0].memory.id if seen.kept else "")
    params = {"group_id": owner.group_id, "memory_id": example}
    return [
        heading("Look at the graph in Neo4j Browser"),
        *[Text(f"  {name}: {value}") for name, value in entrance(settings, info).items()],
        Text("  Paste the first line, then a query:"),
        _verbatim(f"\n:params {_cypher_map(params)}\n"),
        _verbatim(explore("people")),
        _verbatim(explore("history")),
        *([] if info is None else [Text(f"  Neo4j stays up until `{_called()} db stop`.")]),
        heading("Go on with your own"),
        _verbatim(_WAY_ON.format(graphmem=_called())),
    ]


def _verbatim(text: str) -> Text:
    """Return text that is to be copied: no line of it is broken."""
    return Text(textwrap.indent(text, "  "), no_wrap=True, overflow="ignore")


def _called() -> str:
    """Return how this command is called from here."""
    return "graphmem" if shutil.which("graphmem") else os.path.relpath(sys.argv[0])


def explore(name: str) -> str:
    """Return a query of `cypher/explore/` without the comments above it, save the first sentence."""
    lines = (cypher_root() / "explore" / f"{name}.cypher").read_text("utf-8").splitlines()
    told = [line for line in lines if line.startswith("//")]
    return "\n".join([told[0].split(". Set")[0] + ".", *(line for line in lines if not line.startswith("//")), ""])


def _cypher_map(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in values.items()) + "}"
