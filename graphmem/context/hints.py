"""How to answer this user: what is known of them, and phrases prepared from it. Pure (CASH-18, QUINN-38…43)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.context.conversation_summary import truncate_at_word
from graphmem.context.cue_patterns import (
    NAME_PREDICATES,
    NAME_STATEMENT,
    PERSONAL_TYPES,
    POINTER_KEYS,
    SOLUTION_CUES,
    TRIED_CUES,
)
from graphmem.context.preferences import MIN_USED_CONFIDENCE, confident_value, preference_instruction
from graphmem.context.relevance import CLEAR_MATCH_SCORE, semantic_score
from graphmem.context.reply_enhancement import predict_followups
from graphmem.domain.context_models import (
    ContextRequest,
    KnowledgeHint,
    PastSolution,
    PatternType,
    PersonalizationHints,
    PreferenceType,
    RelatedSession,
)
from graphmem.domain.memory import Memory, MemoryType
from graphmem.domain.search_models import SearchHit
from graphmem.store.context_mapping import ContextSnapshot, PastSession
from graphmem.text.normalising import normalise

MAX_PHRASES = 3
"""So many phrases of a kind are prepared."""

PHRASE_CHARACTERS = 200
TOPIC_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class HintSources:
    """What a context holds beside what stands: memories told, hits that fit, other sessions, memories left out."""

    memories: Sequence[Memory]
    hits: Sequence[SearchHit]
    related: Sequence[RelatedSession]
    left_out: Sequence[Memory]
    refers_to_past: bool


def build_hints(request: ContextRequest, snapshot: ContextSnapshot, sources: HintSources) -> PersonalizationHints:
    """Return what a reply to the request can take up."""
    preferences = snapshot.preferences
    name = _user_name(request, snapshot)
    last = latest_past_session(snapshot)
    topic = session_topic(last) if last else None
    intent = request.intent or next((each.intent for each in reversed(snapshot.messages) if each.intent), None)
    return PersonalizationHints(
        name=name,
        greeting=_greeting(name, topic) if last and not snapshot.messages else None,
        last_topic=topic,
        language=confident_value(preferences, PreferenceType.COMMUNICATION, "language"),
        communication_style=confident_value(preferences, PreferenceType.COMMUNICATION, "style"),
        detail_level=confident_value(preferences, PreferenceType.DETAIL_LEVEL, "level"),
        visualization=confident_value(preferences, PreferenceType.VISUALIZATION, "format"),
        topics=[
            str(each.preference_value.get("topic"))
            for each in preferences
            if each.preference_type is PreferenceType.TOPICS and each.confidence_score >= MIN_USED_CONFIDENCE
        ],
        goals=collect_goals(request, snapshot),
        instructions=style_instructions(snapshot) + _citation_instructions(sources.memories),
        continuity=_continuity_phrases(sources),
        personal_touches=_personal_touches(request, sources),
        open_loops=[each.content for each in sources.memories if each.type in (MemoryType.OPEN_LOOP, MemoryType.PLAN)][
            :MAX_PHRASES
        ],
        past_solutions=_past_solutions(sources.hits),
        likely_followups=predict_followups(
            [each.intents for each in snapshot.sessions] + _current_session_intents(snapshot), intent
        ),
        left_out=[each.content for each in sources.left_out],
        knowledge=KnowledgeHint(
            sufficient=any(semantic_score(each) >= CLEAR_MATCH_SCORE for each in sources.hits),
            pointers=_external_pointers(sources.memories),
        ),
    )


def style_instructions(snapshot: ContextSnapshot) -> list[str]:
    """Return how to answer, from what was learned."""
    return [sentence for each in snapshot.preferences if (sentence := preference_instruction(each))]


def collect_goals(request: ContextRequest, snapshot: ContextSnapshot) -> list[str]:
    """Return what the user is after: as the caller says, and as patterns show."""
    given = request.profile_pack.get("goals")
    told = [str(each) for each in given] if isinstance(given, list) else []
    kept = [
        str(each.pattern_data.get("goal")) for each in snapshot.patterns if each.pattern_type is PatternType.GOAL_FOCUS
    ]
    return list({normalise(each): each for each in [*told, *kept] if each.strip()}.values())


def latest_past_session(snapshot: ContextSnapshot) -> PastSession | None:
    """Return the user's latest other session."""
    return snapshot.sessions[0] if snapshot.sessions else None


def session_topic(session: PastSession) -> str | None:
    """Return what a session was about in a few words."""
    if session.title:
        return truncate_at_word(session.title, TOPIC_CHARACTERS)
    if session.topic_tags:
        return session.topic_tags[0].replace("_", " ").replace("-", " ").lower()
    if session.intents:
        return session.intents[-1].replace("_", " ")
    if session.summary:
        return truncate_at_word(re.split(r"(?<=[.!?])\s", session.summary)[0], TOPIC_CHARACTERS)
    return None


def format_date(date: datetime) -> str:
    """Return a date as it is told in phrases and sources."""
    return f"{date:%Y-%m-%d}"


def _user_name(request: ContextRequest, snapshot: ContextSnapshot) -> str | None:
    given: Any = request.profile_pack.get("name")
    if isinstance(given, str) and given.strip():
        return given.strip()
    for memory in snapshot.profile:
        if memory.subject.name != snapshot.user_entity_name:
            continue
        if memory.predicate in NAME_PREDICATES and memory.object:
            return memory.object.name
        if found := NAME_STATEMENT.search(memory.content):
            return found[1]
    return snapshot.speaker


def _greeting(name: str | None, topic: str | None) -> str:
    hello = f"Welcome back, {name}!" if name else "Welcome back!"
    return f"{hello} Last time we talked about {topic}." if topic else hello


def _citation_instructions(memories: Sequence[Memory]) -> list[str]:
    return ["Where an answer rests on something remembered, say so in passing."] if memories else []


def _continuity_phrases(sources: HintSources) -> list[str]:
    """Return phrases that take up an earlier talk or a memory of clear bearing, with dates."""
    phrases = []
    for each in sources.related[:MAX_PHRASES] if sources.refers_to_past else ():
        about = f" about {truncate_at_word(each.title, TOPIC_CHARACTERS)}" if each.title else ""
        phrases.append(
            f"As we discussed on {format_date(each.started_at)}{about}: {truncate_at_word(each.summary, PHRASE_CHARACTERS)}"
        )
    for hit in sources.hits:
        if semantic_score(hit) >= CLEAR_MATCH_SCORE:
            phrases.append(f"As you mentioned before ({format_date(hit.memory.created_at)}): {hit.memory.content}")
    return [truncate_at_word(each, PHRASE_CHARACTERS + TOPIC_CHARACTERS) for each in phrases[:MAX_PHRASES]]


def _personal_touches(request: ContextRequest, sources: HintSources) -> list[str]:
    """Return what is close to the user's heart, when the moment is one for it: small talk, no task, no question."""
    small_talk = request.intent is None and request.domain is None and "?" not in request.question
    if not small_talk:
        return []
    near = [
        each.content
        for each in sources.memories
        if any(entity.type in PERSONAL_TYPES and entity.id != each.subject.id for entity in each.entities)
        or each.subject.type in PERSONAL_TYPES - {"Person"}
    ]
    return near[:MAX_PHRASES]


def _past_solutions(hits: Iterable[SearchHit]) -> list[PastSolution]:
    return [
        PastSolution(
            memory_id=each.memory.id,
            content=each.memory.content,
            said_at=each.memory.valid_at or each.memory.created_at,
            tried=TRIED_CUES.search(each.memory.content) is not None,
        )
        for each in hits
        if each.memory.type is MemoryType.RECOMMENDATION
        or (
            semantic_score(each) >= CLEAR_MATCH_SCORE
            and (SOLUTION_CUES.search(each.memory.content) or TRIED_CUES.search(each.memory.content))
        )
    ][:MAX_PHRASES]


def _external_pointers(memories: Iterable[Memory]) -> list[str]:
    """Return what memories name as lying outside of memory: an article, a ticket, an address."""
    found = [
        f"{each}"
        for memory in memories
        for key, value in memory.metadata.items()
        if key.casefold() in POINTER_KEYS
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, str | int)
    ]
    return list(dict.fromkeys(found))


def _current_session_intents(snapshot: ContextSnapshot) -> list[tuple[str, ...]]:
    return [tuple(snapshot.session.intent_sequence)] if snapshot.session else []
