"""The services' results as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from graphmem.domain.short_ids import shorten_id

if TYPE_CHECKING:
    from graphmem.cli.doctor_checks import Check
    from graphmem.domain.api_key import ApiKey
    from graphmem.domain.changes import MemoryChange
    from graphmem.domain.consolidation_models import ConsolidationRun, RollbackResult
    from graphmem.domain.context_models import PersonalizationHints
    from graphmem.domain.entity import Entity
    from graphmem.domain.erasure import ErasureResult
    from graphmem.domain.import_result import ImportResult
    from graphmem.domain.job import Job
    from graphmem.domain.learned_preferences import LearnedIntent
    from graphmem.domain.memory import Memory, MemoryVersion, SaveResult
    from graphmem.domain.search_models import LookupResponse, MessageHit, SearchHit, UserProfile
    from graphmem.domain.session import Session
    from graphmem.domain.user import UserSummary
    from graphmem.domain.webhooks import Webhook

Renderable = Table | Text

UNWRAPPED_COLUMNS = frozenset({"id", "run", "memory", "job", "score", "version", "type"})
"""Columns whose cells are never wrapped."""

NAME_COLUMNS = frozenset({"user", "session"})
"""Columns of ids that callers choose: their cells are wrapped only when one is very long."""

MAX_WHOLE_WORD_CHARS = 24
"""Longest word, in characters, that no column breaks as long as the terminal has 80 columns."""


def make_table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table in the style that all commands share, without vertical lines, to save columns."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in columns:
        table.add_column(
            column,
            no_wrap=column in UNWRAPPED_COLUMNS | NAME_COLUMNS,
            overflow="fold",
            min_width=_longest_word_chars(column),
        )
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row of plain values; markup in them is shown as it is, and columns get wide enough for their words."""
    texts = [cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in cells]
    for column, text in zip(table.columns, texts, strict=False):
        column.min_width = max(column.min_width or 0, _longest_word_chars(text.plain))
        if column.header in NAME_COLUMNS and len(text) > MAX_WHOLE_WORD_CHARS:
            column.no_wrap = False
    table.add_row(*texts)


def _longest_word_chars(text: str) -> int:
    return min(MAX_WHOLE_WORD_CHARS, max(map(len, text.split()), default=0))


def format_time(moment: datetime | None, zone: tzinfo = UTC) -> str:
    """Return a time in a zone as its date, followed by the time of day unless that is midnight."""
    if moment is None:
        return "–"
    moment = moment.astimezone(zone)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def format_validity(memory: Memory, zone: tzinfo = UTC) -> str:
    """Return the valid time of a memory, empty when both ends are open."""
    if memory.valid_at is None and memory.invalid_at is None:
        return ""
    return f"{format_time(memory.valid_at, zone)} → {format_time(memory.invalid_at, zone)}"


def format_entity(entity: Entity) -> str:
    """Return an entity's name with its type and aliases."""
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    return f"{entity.name} ({entity.type}{aliases})"


def save_results(results: Iterable[SaveResult]) -> Table:
    """Return the results of a save."""
    table = make_table("action", "memory", "statement", "valid", "reason")
    for result in results:
        memory = result.memory
        cells = (shorten_id(memory.id), memory.content, format_validity(memory)) if memory else ("", "", "")
        add_row(table, result.action, *cells, result.reason)
    return table


def search_hits(hits: Sequence[SearchHit]) -> Renderable:
    """Return the memories found, best first."""
    if not hits:
        return Text("No matching memory.")
    is_explained = any(hit.explain for hit in hits)
    table = make_table("score", "memory", "statement", "type", "valid", *(["ranks"] if is_explained else []))
    for hit in hits:
        memory = hit.memory
        ranks = [_format_ranks(hit)] if is_explained else []
        add_row(
            table,
            f"{hit.score:.4f}",
            shorten_id(memory.id),
            memory.content,
            memory.type,
            format_validity(memory),
            *ranks,
        )
    return table


def _format_ranks(hit: SearchHit) -> str:
    if hit.explain is None:
        return ""
    channels = {"meaning": hit.explain.semantic, "keywords": hit.explain.keyword, "graph": hit.explain.graph}
    ranks = [f"{name} #{channel.rank}" for name, channel in channels.items() if channel]
    return ", ".join([*ranks, f"decay {hit.explain.decay:.2f}"])


def message_hits(hits: Sequence[MessageHit]) -> Renderable:
    """Return the messages found, best first."""
    if not hits:
        return Text("No matching message.")
    table = make_table("score", "when", "who", "message")
    for hit in hits:
        message = hit.message
        sender = message.name or message.role
        add_row(table, f"{hit.score:.4f}", format_time(message.timestamp), sender, message.content)
    return table


def hints(found: PersonalizationHints) -> list[Renderable]:
    """Return the hints for a reply that have something to say."""
    rows = [
        ("greeting", found.greeting),
        *(("goal", goal) for goal in found.goals),
        *(("open", loop) for loop in found.open_loops),
        *((fix.outcome.value, fix.content) for fix in found.past_solutions),
        *(("as said", phrase) for phrase in found.continuity),
        *(("see also", pointer) for pointer in found.knowledge.pointers),
        *(("query", query) for query in found.successful_queries),
    ]
    table = make_table("hint", "text")
    for kind, text in rows:
        if text:
            add_row(table, kind, text)
    return [table] if table.row_count else []


def profile(found: UserProfile) -> list[Renderable]:
    """Return one table for each type of memory in a profile; core memories are marked."""
    core = {memory.id for memory in found.core}
    tables: list[Renderable] = []
    for kind, memories in found.memories.items():
        table = make_table("core", "id", "statement", "importance", title=kind.value)
        for memory in memories:
            add_row(table, "✓" if memory.id in core else "", memory.id, memory.content, f"{memory.importance:.2f}")
        tables.append(table)
    return tables or [Text("The profile is empty.")]


def intents(learned: Sequence[LearnedIntent]) -> Renderable:
    """Return the learned intents, the best understood first."""
    if not learned:
        return Text("No learned intents.")
    table = make_table("intent", "confidence", "liked", "disliked", "queries")
    for intent in learned:
        queries = "\n".join(intent.successful_queries)
        add_row(table, intent.intent, f"{intent.confidence_score:.2f}", intent.positive, intent.negative, queries)
    return table


def lookup_response(response: LookupResponse) -> list[Renderable]:
    """Return one table for each entity found, with what is known about it."""
    if not response.entities:
        return [Text("No matching entity.")]
    tables: list[Renderable] = []
    for match in response.entities:
        table = make_table("memory", "statement", "type", "valid", title=format_entity(match.entity))
        for memory in match.memories:
            add_row(table, shorten_id(memory.id), memory.content, memory.type, format_validity(memory))
        tables.append(table)
    return tables


def history(versions: Iterable[MemoryVersion]) -> Table:
    """Return the versions of a memory, oldest first."""
    table = make_table("version", "statement", "valid", "known", "status", "why it ended")
    for version in versions:
        known = f"{format_time(version.created_at)} → {format_time(version.expired_at)}"
        ended = f"{version.ended_reason or ''}{f' (by {shorten_id(version.ended_by)})' if version.ended_by else ''}"
        add_row(table, version.version, version.content, format_validity(version), known, version.status, ended)
    return table


def memory_changes(changes: Iterable[MemoryChange]) -> Table:
    """Return what changed between two times, oldest first."""
    table = make_table("when", "change", "statement", "valid", "why", "who")
    for change in changes:
        statement, validity = (
            (change.memory.content, format_validity(change.memory)) if change.memory else (change.memory_id, "")
        )
        add_row(
            table, format_time(change.at), change.kind, statement, validity, change.reason or "", change.actor or ""
        )
    return table


def name_value_pairs(values: Mapping[str, object]) -> Table:
    """Return names and their values."""
    table = Table(show_header=False, box=None)
    for name, value in values.items():
        add_row(table, name.replace("_", " "), value)
    return table


def keys(api_keys: Sequence[ApiKey]) -> Renderable:
    """Return API keys without their secrets."""
    if not api_keys:
        return Text("There are no keys.")
    table = make_table("id", "name", "role", "users", "created")
    for key in api_keys:
        users = "all" if key.users is None else ", ".join(key.users)
        add_row(table, shorten_id(key.id), key.name, key.role, users, format_time(key.created_at))
    return table


def webhooks(listed: Sequence[Webhook]) -> Renderable:
    """Return webhooks and how their deliveries go."""
    if not listed:
        return Text("There are no webhooks.")
    table = make_table("id", "address", "users", "kinds", "status", "last delivery", "last error")
    for webhook in listed:
        users = "all" if webhook.users is None else ", ".join(webhook.users)
        kinds = "all" if webhook.kinds is None else ", ".join(webhook.kinds)
        error = webhook.disabled_reason or webhook.last_error or ""
        delivered = format_time(webhook.last_delivered_at)
        add_row(table, shorten_id(webhook.id), webhook.url, users, kinds, webhook.status, delivered, error)
    return table


def checks(results: Sequence[Check]) -> Table:
    """Return the results of checks."""
    table = make_table("check", "", "result", "to fix it")
    colours = {"ok": "green", "note": "yellow", "broken": "red"}
    for check in results:
        add_row(table, check.part, Text(check.verdict, style=colours[check.verdict]), check.detail, check.fix)
    return table


def jobs(finished: Sequence[Job]) -> Renderable:
    """Return the extraction jobs of an ingestion."""
    if not finished:
        return Text("All messages were known already: nothing was stored or extracted.")
    table = make_table("session", "job", "status", "actions", "model calls", "reason")
    for job in finished:
        counts = Counter(str(action.get("action", "")) for action in job.actions)
        actions = ", ".join(f"{count} {action}" for action, count in counts.items())
        add_row(
            table,
            job.session_id,
            shorten_id(job.id),
            job.status,
            actions,
            job.receipt.llm_calls,
            job.error or job.reason,
        )
    return table


def sessions(listed: Sequence[Session]) -> Renderable:
    """Return sessions, the latest first."""
    if not listed:
        return Text("There are no sessions.")
    table = make_table("session", "title", "messages", "since", "until", "summary")
    for session in listed:
        times = (format_time(session.created_at), format_time(session.ended_at))
        add_row(table, session.session_id, session.title, session.message_count, *times, session.summary)
    return table


def users(listed: Sequence[UserSummary]) -> Renderable:
    """Return users by id."""
    if not listed:
        return Text("There are no such users.")
    table = make_table("user", "memories", "sessions", "since", "last write")
    for user in listed:
        times = (format_time(user.created_at), format_time(user.last_write_at))
        add_row(table, user.user_id, user.memory_count, user.session_count, *times)
    return table


def runs(listed: Sequence[ConsolidationRun]) -> Renderable:
    """Return consolidation runs, the latest first."""
    if not listed:
        return Text("There are no consolidation runs.")
    table = make_table("run", "when", "user", "status", "done", "reason")
    for run in listed:
        status = f"{run.trigger}, {run.status}{', dry run' if run.dry_run else ''}".replace("_", " ")
        done = f"{run.executed} executed, {run.refused} refused, {run.change_count} changes"
        user = run.user_id or "all"
        add_row(table, shorten_id(run.id), format_time(run.created_at), user, status, done, run.reason)
    return table


def run(shown: ConsolidationRun) -> list[Renderable]:
    """Return one run with its proposals and their verdicts, and the contradictions that it reports."""
    shown_parts: list[Renderable] = [runs([shown])]
    if shown.proposals:
        shown_parts.append(_proposals(shown))
    if shown.contradictions:
        table = make_table("memories", "reason", title="Contradictions to be decided by a person")
        for reported in shown.contradictions:
            add_row(table, ", ".join(reported.memory_ids), reported.reason)
        shown_parts.append(table)
    return shown_parts


def _proposals(shown: ConsolidationRun) -> Table:
    table = make_table("proposal", "of", "verdict", "reason")
    for reviewed in shown.proposals:
        proposal = reviewed.proposal
        fields = proposal.model_dump(exclude={"action", "reason"}, exclude_defaults=True)
        of = "; ".join(f"{name} {_join_values(value)}" for name, value in fields.items())
        add_row(table, proposal.action, of, reviewed.verdict, reviewed.reason or proposal.reason)
    return table


def _join_values(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def rollback(result: RollbackResult) -> list[Renderable]:
    """Return what a rollback undid, and which later writes it overwrote."""
    changes = "1 change" if result.restored == 1 else f"{result.restored} changes"
    sentence = Text(f"Run {result.run_id} is {result.status}: {changes} undone.")
    if not result.conflicts:
        return [sentence]
    table = make_table("kind", "id", "fields", "detail", title="Later writes that were overwritten")
    for conflict in result.conflicts:
        add_row(table, conflict.kind, conflict.id, ", ".join(conflict.fields), conflict.detail)
    return [sentence, table]


def import_result(result: ImportResult) -> Table:
    """Return what an import stored."""
    counts = {**result.imported, **{f"{kind}, known already": count for kind, count in result.unchanged.items()}}
    if result.format != "graphmem":
        return name_value_pairs({**counts, "not imported": len(result.refused)})
    vectors = "recomputed" if result.vectors_remade else "imported"
    return name_value_pairs({**counts, "ids changed": len(result.ids), "vectors": vectors})


def erasure_result(result: ErasureResult) -> Table:
    """Return what was erased of a user."""
    return name_value_pairs({**result.erased, "residue": result.residue})
