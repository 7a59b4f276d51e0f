"""What a command found of a user, as tables for a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.text import Text

from graphmem.cli.tables import add_row, make_table
from graphmem.runtime.short_ids import shorten_id

if TYPE_CHECKING:
    from rich.table import Table

    from graphmem.ask.models import AskResponse
    from graphmem.changes.models import MemoryChange
    from graphmem.consolidation.models import UserContradiction
    from graphmem.context.models import (
        BehaviorPattern,
        ContextItem,
        LearnedIntent,
        LearnedPreference,
        PersonalizationHints,
    )
    from graphmem.conversations.session import Message, Session, SessionArchive
    from graphmem.memories.entity import Entity, EntityRef
    from graphmem.memories.memory import Memory, MemoryVersion, SaveResult
    from graphmem.runtime.paging import Page
    from graphmem.search.models import (
        LookupResponse,
        MessageHit,
        SearchHit,
        UserProfile,
    )
    from graphmem.tenants.owners import UserSummary


Renderable: TypeAlias = "Table | Text"


def format_time(moment: datetime | None, zone: tzinfo | None = None) -> str:
    """Return a time in a zone (None: that of this machine) as its date, and its time of day unless that is midnight."""
    if moment is None:
        return "–"
    moment = moment.astimezone(zone)
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def format_validity(memory: Memory, zone: tzinfo | None = None) -> str:
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


def related_hints(user: str, results: Iterable[SaveResult]) -> list[Renderable]:
    """Return how to see the memories that saved statements may contradict."""
    ids = [related for result in results for related in result.related]
    commands = [f"graphmem history {shorten_id(related)} --user {shlex.quote(user)}" for related in ids]
    return [Text(f"It may contradict: {command}", no_wrap=True) for command in commands]


def undo_hints(user: str, results: Iterable[SaveResult]) -> list[Renderable]:
    """Return the commands that undo the replacements of a save."""
    ids = [replaced for result in results for replaced in result.superseded]
    commands = [f"graphmem revert {shorten_id(replaced)} --user {shlex.quote(user)}" for replaced in ids]
    return [Text(f"To undo the replacement: {command}", no_wrap=True) for command in commands]


def answer(response: AskResponse) -> list[Renderable]:
    """Return an answer from memory and its citations."""
    if response.answer is None:
        return [Text("Memory has no answer to this.")]
    is_shared = any(citation.space for citation in response.citations)
    table = make_table("source", "id", "since", *(["space"] if is_shared else []), "words")
    for citation in response.citations:
        kind, id = ("memory", citation.memory_id) if citation.memory_id else ("message", citation.message_id)
        cells = (kind, shorten_id(id or ""), format_time(citation.valid_at))
        add_row(table, *cells, *([citation.space or ""] if is_shared else []), citation.quote)
    return [Text(response.answer), table]


def search_hits(hits: Sequence[SearchHit]) -> Renderable:
    """Return the memories found, best first."""
    if not hits:
        return Text("No matching memory.")
    is_explained, is_shared = any(hit.explain for hit in hits), any(hit.memory.space for hit in hits)
    further = [*(["space"] if is_shared else []), *(["ranks"] if is_explained else [])]
    table = make_table("score", "memory", "statement", "type", "valid", *further)
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
            *([memory.space or ""] if is_shared else []),
            *ranks,
        )
    return table


def _format_ranks(hit: SearchHit) -> str:
    if hit.explain is None:
        return ""
    channels = {"meaning": hit.explain.semantic, "keywords": hit.explain.keyword, "graph": hit.explain.graph}
    ranks = [f"{name} #{channel.rank}" for name, channel in channels.items() if channel]
    return ", ".join([*ranks, f"decay {hit.explain.decay:.2f}"])


def memories(listed: Sequence[Memory]) -> Renderable:
    """Return memories in the order given."""
    if not listed:
        return Text("There are no such memories.")
    is_shared = any(memory.space for memory in listed)
    table = make_table("memory", "statement", "type", "valid", "status", *(["space"] if is_shared else []))
    for memory in listed:
        cells = [shorten_id(memory.id), memory.content, memory.type, format_validity(memory), memory.status]
        add_row(table, *cells, *([memory.space or ""] if is_shared else []))
    return table


def memory(shown: Memory) -> Table:
    """Return the fields of one memory that say something."""
    domain = f", {shown.domain}" if shown.domain else ""
    fields = {
        "id": shown.id,
        "version": shown.version,
        "statement": shown.content,
        "type": shown.subtype or shown.type,
        "status": shown.status,
        "contests": ", ".join(map(shorten_id, shown.contests)) if shown.status == "contested" else "",
        "said by": f"{shown.source.kind} ({shown.source.speaker})" if shown.source.speaker else shown.source.kind,
        "subject": _format_reference(shown.subject),
        "predicate": f"{shown.predicate}, one at a time" if shown.single_valued else shown.predicate,
        "object": _format_reference(shown.object),
        "valid": format_validity(shown),
        "known": f"{format_time(shown.created_at)} → {format_time(shown.expired_at)}",
        "expires": format_time(shown.expires_at) if shown.expires_at else "",
        "confidence": f"{shown.confidence:.2f}",
        "importance": f"{shown.importance:.2f}",
        "tags": ", ".join(shown.tags),
        "scope": f"{shown.scope}{domain}",
        "replaced by": shorten_id(shown.superseded_by or ""),
        "replaces": ", ".join(map(shorten_id, shown.supersedes)),
        "source": ", ".join(filter(None, (shown.source.kind, shown.source.session_id, *shown.source.message_ids))),
        "quote": shown.source.quote,
        "metadata": json.dumps(shown.metadata, ensure_ascii=False) if shown.metadata else "",
        "immutable": "yes" if shown.immutable else "",
    }
    table = make_table("field", "details", has_header=False)
    for name, value in fields.items():
        if value:
            add_row(table, name, value)
    return table


def _format_reference(entity: EntityRef | None) -> str:
    return f"{entity.name} ({entity.type})" if entity else ""


def entities(listed: Sequence[Entity]) -> Renderable:
    """Return entities in the order given."""
    if not listed:
        return Text("There are no such entities.")
    table = make_table("name", "type", "memories", "aliases", "summary")
    for entity in listed:
        add_row(table, entity.name, entity.type, entity.memory_count, ", ".join(entity.aliases), entity.summary)
    return table


def messages(listed: Sequence[Message]) -> Renderable:
    """Return the messages of a session, oldest first."""
    if not listed:
        return Text("There are no messages in this session.")
    table = make_table("when", "who", "message")
    for message in listed:
        add_row(table, format_time(message.timestamp), message.name or message.role, message.content)
    return table


def next_page(page: Page[Any]) -> list[Renderable]:
    """Return how to list what follows a page, nothing when it is the last one."""
    return [Text(f"There is more: --cursor {page.next_cursor}", no_wrap=True)] if page.next_cursor else []


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
            importance = f"{memory.importance:.2f}"
            add_row(table, "✓" if memory.id in core else "", shorten_id(memory.id), memory.content, importance)
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
    """Return what is known about each entity found: its profile, and a table of memories."""
    if not response.entities:
        return [Text("No matching entity.")]
    tables: list[Renderable] = []
    for match in response.entities:
        if match.profile:
            tables.append(Text(match.profile.content))
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
    table = make_table("when", "change", "memory", "statement", "valid", "why", "who")
    for change in changes:
        memory_id = shorten_id(change.memory_id)
        statement, validity = (change.memory.content, format_validity(change.memory)) if change.memory else ("", "")
        who = shorten_id(change.actor or "")
        add_row(table, format_time(change.at), change.kind, memory_id, statement, validity, change.reason, who)
    return table


def sessions(listed: Sequence[Session]) -> Renderable:
    """Return sessions, the latest first."""
    if not listed:
        return Text("There are no sessions.")
    table = make_table("session", "messages", "when", "about")
    for session in listed:
        until = f" → {format_time(session.ended_at)}" if session.ended_at else ""
        about = "\n".join(text for text in (session.title, session.summary) if text)
        add_row(table, session.session_id, session.message_count, format_time(session.created_at) + until, about)
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


def context_items(items: Sequence[ContextItem]) -> Renderable:
    """Return context items with when each expires."""
    if not items:
        return Text("There are no context items.")
    table = make_table("id", "type", "key", "value", "relevance", "session", "expires")
    for item in items:
        value = item.context_value if isinstance(item.context_value, str) else _as_text(item.context_value)
        expires = format_time(item.expires_at)
        relevance = f"{item.relevance_score:.2f}"
        cells = (item.context_type, item.context_key, value, relevance, item.session_id or "all", expires)
        add_row(table, shorten_id(item.id), *cells)
    return table


def preferences(learned: Sequence[LearnedPreference]) -> Renderable:
    """Return learned preferences, the most confident first."""
    if not learned:
        return Text("No learned preferences.")
    table = make_table("type", "key", "value", "confidence", "seen", "last seen")
    for preference in learned:
        confidence, seen = f"{preference.confidence_score:.2f}", format_time(preference.last_observed)
        value = _as_text(preference.preference_value)
        kind = preference.preference_type.value
        add_row(table, kind, preference.preference_key, value, confidence, preference.frequency, seen)
    return table


def patterns(detected: Sequence[BehaviorPattern]) -> Renderable:
    """Return behavioural patterns, the most confident first."""
    if not detected:
        return Text("No behavioural patterns.")
    table = make_table("type", "pattern", "confidence", "messages", "since", "last")
    for pattern in detected:
        times = (format_time(pattern.first_detected), format_time(pattern.last_detected))
        description, confidence = pattern.pattern_description, f"{pattern.confidence_score:.2f}"
        add_row(table, pattern.pattern_type, description, confidence, pattern.occurrence_count, *times)
    return table


def contradictions(reported: Sequence[UserContradiction]) -> Renderable:
    """Return contradictions with the run that reported each."""
    if not reported:
        return Text("No contradictions were reported.")
    table = make_table("memories", "reason", "run", "reported")
    for contradiction in reported:
        ids = ", ".join(map(shorten_id, contradiction.memory_ids))
        run = shorten_id(contradiction.run_id) if contradiction.run_id else "contested"
        reported_at = format_time(contradiction.reported_at)
        add_row(table, ids, contradiction.reason, run, reported_at)
    return table


def archives(stored: Sequence[SessionArchive]) -> Renderable:
    """Return the summaries that replaced old messages, the oldest first."""
    if not stored:
        return Text("No messages of this session are archived.")
    table = make_table("since", "until", "messages", "summary")
    for archive in stored:
        times = (format_time(archive.started_at), format_time(archive.ended_at))
        add_row(table, *times, archive.message_count, archive.summary)
    return table


def _as_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
