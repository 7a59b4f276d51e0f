"""What was learned of a user and the summaries of sessions, as tables for a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from graphmem.cli.render import Renderable, format_time
from graphmem.cli.tables import add_row, make_table
from graphmem.memories.short_ids import shorten_id

if TYPE_CHECKING:
    from graphmem.consolidation.models import UserContradiction
    from graphmem.context.behavior_patterns import BehaviorPattern
    from graphmem.context.learned_preferences import LearnedPreference
    from graphmem.context.models import ContextItem
    from graphmem.conversations.session import SessionArchive


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
        run, reported_at = shorten_id(contradiction.run_id), format_time(contradiction.reported_at)
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
