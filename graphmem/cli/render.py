"""Tables for people: what the answers of the service look like on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from graphmem.resources import cypher_root

if TYPE_CHECKING:
    from graphmem.cli.checks import Check
    from graphmem.domain.api_key import ApiKey
    from graphmem.domain.consolidation_models import ConsolidationRun, RollbackResult
    from graphmem.domain.export import ErasureResult, ImportResult
    from graphmem.domain.job import Job
    from graphmem.domain.memory import Memory, MemoryVersion, SaveResult
    from graphmem.domain.search_models import LookupResponse, MessageHit, SearchHit
    from graphmem.domain.session import Session
    from graphmem.embedded import ServerInfo

Renderable = Table | Text


def make_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table in the house style."""
    drawn = Table(title=title, title_justify="left", title_style="bold", header_style="bold", expand=False)
    for column in columns:
        narrow = column in ("id", "run", "when", "since", "until", "score", "version")
        drawn.add_column(column, no_wrap=narrow, overflow="fold")
    return drawn


def add_row(drawn: Table, *cells: object) -> None:
    """Add a row of plain values; what users said is never read as markup."""
    drawn.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in cells))


def format_time(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """Return a time as its day in a zone, with the hour where it has one."""
    if moment is None:
        return "–"
    moment = moment.astimezone(zone)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def format_validity(memory: Memory, zone: tzinfo = UTC) -> str:
    """Return when a memory holds in the world."""
    if memory.valid_at is None and memory.invalid_at is None:
        return ""
    return f"{format_time(memory.valid_at, zone)} → {format_time(memory.invalid_at, zone)}"


def save_results(results: Iterable[SaveResult]) -> Table:
    """Draw what became of the statements of a save."""
    drawn = make_table("did", "memory", "statement", "holds", "why")
    for result in results:
        memory = result.memory
        cells = (memory.id, memory.content, format_validity(memory)) if memory else ("", "", "")
        add_row(drawn, result.action, *cells, result.reason)
    return drawn


def search_hits(results: Sequence[SearchHit]) -> Renderable:
    """Draw memories found, the best first."""
    if not results:
        return Text("Nothing is known about that.")
    explained = any(hit.explain for hit in results)
    drawn = make_table("score", "memory", "statement", "type", "holds", *(["because"] if explained else []))
    for hit in results:
        because = [_explain_ranks(hit)] if explained else []
        add_row(
            drawn,
            f"{hit.score:.4f}",
            hit.memory.id,
            hit.memory.content,
            hit.memory.type,
            format_validity(hit.memory),
            *because,
        )
    return drawn


def _explain_ranks(hit: SearchHit) -> str:
    if hit.explain is None:
        return ""
    channels = {"meaning": hit.explain.semantic, "words": hit.explain.keyword, "neighbourhood": hit.explain.graph}
    ranks = [f"{name} #{found.rank}" for name, found in channels.items() if found]
    return ", ".join([*ranks, f"decay {hit.explain.decay:.2f}"])


def message_hits(found: Sequence[MessageHit]) -> Renderable:
    """Draw messages found, the best first."""
    if not found:
        return Text("No message matches.")
    drawn = make_table("score", "when", "who", "message")
    for hit in found:
        add_row(
            drawn,
            f"{hit.score:.4f}",
            format_time(hit.message.timestamp),
            hit.message.name or hit.message.role,
            hit.message.content,
        )
    return drawn


def lookup_answer(answer: LookupResponse) -> list[Renderable]:
    """Draw each entity named with what is known about it."""
    if not answer.entities:
        return [Text("No known entity is named there.")]
    drawn: list[Renderable] = []
    for found in answer.entities:
        aliases = f", also {', '.join(found.entity.aliases)}" if found.entity.aliases else ""
        one = make_table(
            "memory", "statement", "type", "holds", title=f"{found.entity.name} ({found.entity.type}{aliases})"
        )
        for memory in found.memories:
            add_row(one, memory.id, memory.content, memory.type, format_validity(memory))
        drawn.append(one)
    return drawn


def history(rows: Iterable[MemoryVersion]) -> Table:
    """Draw the versions of a memory, oldest first."""
    drawn = make_table("version", "statement", "holds", "known", "status", "ended because")
    for each in rows:
        known = f"{format_time(each.created_at)} → {format_time(each.expired_at)}"
        because = f"{each.ended_reason or ''}{f' (by {each.ended_by})' if each.ended_by else ''}"
        add_row(drawn, each.version, each.content, format_validity(each), known, each.status, because)
    return drawn


def name_value_pairs(values: Mapping[str, object]) -> Table:
    """Draw names and their values."""
    drawn = Table(show_header=False, box=None)
    for name, value in values.items():
        add_row(drawn, name.replace("_", " "), value)
    return drawn


def browser_access(info: ServerInfo) -> Table:
    """Draw how to get into Neo4j Browser."""
    told = {"open": info.browser_url, "user": info.user, "password in": info.password_file, "bolt": info.uri}
    return name_value_pairs({**told, "queries and style in": cypher_root() / "explore"})


def keys(found: Sequence[ApiKey]) -> Renderable:
    """Draw keys without their secrets."""
    if not found:
        return Text("There are no keys.")
    drawn = make_table("id", "name", "role", "users", "created")
    for key in found:
        add_row(
            drawn,
            key.id,
            key.name,
            key.role,
            "all" if key.users is None else ", ".join(key.users),
            format_time(key.created_at),
        )
    return drawn


def checks(found: Sequence[Check]) -> Table:
    """Draw the parts that were looked at."""
    drawn = make_table("part", "", "found", "to fix it")
    colours = {"ok": "green", "note": "yellow", "broken": "red"}
    for check in found:
        add_row(drawn, check.part, Text(check.verdict, style=colours[check.verdict]), check.detail, check.fix)
    return drawn


def jobs(found: Sequence[Job]) -> Renderable:
    """Draw the jobs of an ingestion, one session a row."""
    if not found:
        return Text("Every message was known already; nothing was stored or extracted again.")
    drawn = make_table("session", "job", "status", "did", "model calls", "why")
    for job in found:
        did = Counter(str(action.get("action", "")) for action in job.actions)
        shown = ", ".join(f"{count} {action}" for action, count in did.items())
        add_row(drawn, job.session_id, job.id, job.status, shown, job.receipt.llm_calls, job.error or job.reason)
    return drawn


def sessions(found: Sequence[Session]) -> Renderable:
    """Draw sessions, the latest first."""
    if not found:
        return Text("There are no sessions.")
    drawn = make_table("session", "title", "messages", "since", "until", "summary")
    for each in found:
        add_row(
            drawn,
            each.session_id,
            each.title,
            each.message_count,
            format_time(each.created_at),
            format_time(each.ended_at),
            each.summary,
        )
    return drawn


def runs(found: Sequence[ConsolidationRun]) -> Renderable:
    """Draw consolidation runs, the latest first."""
    if not found:
        return Text("There are no consolidation runs.")
    drawn = make_table("run", "when", "user", "trigger", "status", "done", "refused", "changes", "why")
    for run in found:
        numbers = (run.executed, run.refused, run.change_count)
        add_row(
            drawn,
            run.id,
            format_time(run.created_at),
            run.user_id or "all",
            run.trigger,
            _status(run),
            *numbers,
            run.reason,
        )
    return drawn


def _status(run: ConsolidationRun) -> str:
    return f"{run.status} (dry run)" if run.dry_run else str(run.status)


def run(found: ConsolidationRun) -> list[Renderable]:
    """Draw one run: itself, what was proposed, how many things it changed."""
    proposed = make_table("proposal", "of", "became", "why")
    for judged in found.proposals:
        given = judged.proposal.model_dump(exclude={"action", "reason"}, exclude_defaults=True)
        of = "; ".join(f"{name} {_join_values(value)}" for name, value in given.items())
        add_row(proposed, judged.proposal.action, of, judged.verdict, judged.reason or judged.proposal.reason)
    return [runs([found]), proposed] if found.proposals else [runs([found])]


def _join_values(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def rollback(done: RollbackResult) -> list[Renderable]:
    """Draw what a rollback restored, and what it overwrote."""
    told = Text(f"Run {done.run_id} is {done.status}: {done.restored} things are as they were.")
    if not done.conflicts:
        return [told]
    drawn = make_table("kind", "id", "fields", "detail", title="Written to since")
    for each in done.conflicts:
        add_row(drawn, each.kind, each.id, ", ".join(each.fields), each.detail)
    return [told, drawn]


def import_result(done: ImportResult) -> Table:
    """Draw what an import brought in."""
    counts = {**done.imported, **{f"{kind}, there already": count for kind, count in done.unchanged.items()}}
    if done.format != "graphmem":
        return name_value_pairs({**counts, "not taken": len(done.refused)})
    return name_value_pairs(
        {**counts, "ids changed": len(done.ids), "vectors": "made anew" if done.vectors_remade else "kept"}
    )


def forget_result(done: ErasureResult) -> Table:
    """Draw what was erased of a user."""
    return name_value_pairs({**done.erased, "residue": done.residue})
