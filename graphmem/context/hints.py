"""How to answer this user: what is known of them, and phrases prepared from it. Pure (CASH-18, QUINN-38…43)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.context.enhance import likely_followups
from graphmem.context.preferences import USED_FROM, instruction, value_of
from graphmem.context.relevance import CLEAR_MATCH, likeness
from graphmem.context.summary import clipped
from graphmem.context.vocabulary import CLOSE_TO_HEART, NAMED, NAMING, POINTERS, SOLUTION, TRIED
from graphmem.domain.context import (
    ContextRequest,
    KnowledgeHint,
    PastSolution,
    PatternType,
    PersonalizationHints,
    PreferenceType,
    RelatedSession,
)
from graphmem.domain.memory import Memory, MemoryType
from graphmem.domain.recall import SearchHit
from graphmem.domain.text import normalise
from graphmem.store.context_rows import PastSession, Standing

MOST = 3
"""So many phrases of a kind are prepared."""

PHRASE_CHARACTERS = 200
TOPIC_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Told:
    """What a context holds beside what stands: memories told, hits that fit, other sessions, memories left out."""

    memories: Sequence[Memory]
    hits: Sequence[SearchHit]
    related: Sequence[RelatedSession]
    left_out: Sequence[Memory]
    earlier: bool


def hints(request: ContextRequest, standing: Standing, told: Told) -> PersonalizationHints:
    """Return what a reply to the request can take up."""
    preferences = standing.preferences
    name = _name(request, standing)
    last = last_session(standing)
    topic = topic_of(last) if last else None
    intent = request.intent or next((each.intent for each in reversed(standing.messages) if each.intent), None)
    return PersonalizationHints(
        name=name,
        greeting=_greeting(name, topic) if last and not standing.messages else None,
        last_topic=topic,
        language=value_of(preferences, PreferenceType.COMMUNICATION, "language"),
        communication_style=value_of(preferences, PreferenceType.COMMUNICATION, "style"),
        detail_level=value_of(preferences, PreferenceType.DETAIL_LEVEL, "level"),
        visualization=value_of(preferences, PreferenceType.VISUALIZATION, "format"),
        topics=[
            str(each.preference_value.get("topic"))
            for each in preferences
            if each.preference_type is PreferenceType.TOPICS and each.confidence_score >= USED_FROM
        ],
        goals=goals(request, standing),
        instructions=instructions(standing) + _citing(told.memories),
        continuity=_continuity(told),
        personal_touches=_personal_touches(request, told),
        open_loops=[each.content for each in told.memories if each.type in (MemoryType.OPEN_LOOP, MemoryType.PLAN)][
            :MOST
        ],
        past_solutions=_past_solutions(told.hits),
        likely_followups=likely_followups(
            [each.intents for each in standing.sessions] + _this_session(standing), intent
        ),
        left_out=[each.content for each in told.left_out],
        knowledge=KnowledgeHint(
            sufficient=any(likeness(each) >= CLEAR_MATCH for each in told.hits), pointers=_pointers(told.memories)
        ),
    )


def instructions(standing: Standing) -> list[str]:
    """Return how to answer, from what was learned."""
    return [sentence for each in standing.preferences if (sentence := instruction(each))]


def goals(request: ContextRequest, standing: Standing) -> list[str]:
    """Return what the user is after: as the caller says, and as patterns show."""
    given = request.profile_pack.get("goals")
    told = [str(each) for each in given] if isinstance(given, list) else []
    kept = [
        str(each.pattern_data.get("goal")) for each in standing.patterns if each.pattern_type is PatternType.GOAL_FOCUS
    ]
    return list({normalise(each): each for each in [*told, *kept] if each.strip()}.values())


def last_session(standing: Standing) -> PastSession | None:
    """Return the user's latest other session."""
    return standing.sessions[0] if standing.sessions else None


def topic_of(session: PastSession) -> str | None:
    """Return what a session was about in a few words."""
    if session.title:
        return clipped(session.title, TOPIC_CHARACTERS)
    if session.topic_tags:
        return session.topic_tags[0].replace("_", " ").replace("-", " ").lower()
    if session.intents:
        return session.intents[-1].replace("_", " ")
    if session.summary:
        return clipped(re.split(r"(?<=[.!?])\s", session.summary)[0], TOPIC_CHARACTERS)
    return None


def dated(moment: datetime) -> str:
    """Return a date as it is told in phrases and sources."""
    return f"{moment:%Y-%m-%d}"


def _name(request: ContextRequest, standing: Standing) -> str | None:
    given: Any = request.profile_pack.get("name")
    if isinstance(given, str) and given.strip():
        return given.strip()
    for memory in standing.profile:
        if memory.subject.name != standing.own_name:
            continue
        if memory.predicate in NAMING and memory.object:
            return memory.object.name
        if found := NAMED.search(memory.content):
            return found[1]
    return standing.speaker


def _greeting(name: str | None, topic: str | None) -> str:
    hello = f"Welcome back, {name}!" if name else "Welcome back!"
    return f"{hello} Last time we talked about {topic}." if topic else hello


def _citing(memories: Sequence[Memory]) -> list[str]:
    return ["Where an answer rests on something remembered, say so in passing."] if memories else []


def _continuity(told: Told) -> list[str]:
    """Return phrases that take up an earlier talk or a memory of clear bearing, with dates."""
    phrases = []
    for each in told.related[:MOST] if told.earlier else ():
        about = f" about {clipped(each.title, TOPIC_CHARACTERS)}" if each.title else ""
        phrases.append(
            f"As we discussed on {dated(each.started_at)}{about}: {clipped(each.summary, PHRASE_CHARACTERS)}"
        )
    for hit in told.hits:
        if likeness(hit) >= CLEAR_MATCH:
            phrases.append(f"As you mentioned before ({dated(hit.memory.created_at)}): {hit.memory.content}")
    return [clipped(each, PHRASE_CHARACTERS + TOPIC_CHARACTERS) for each in phrases[:MOST]]


def _personal_touches(request: ContextRequest, told: Told) -> list[str]:
    """Return what is close to the user's heart, when the moment is one for it: small talk, no task, no question."""
    small_talk = request.intent is None and request.domain is None and "?" not in request.question
    if not small_talk:
        return []
    near = [
        each.content
        for each in told.memories
        if any(entity.type in CLOSE_TO_HEART and entity.id != each.subject.id for entity in each.entities)
        or each.subject.type in CLOSE_TO_HEART - {"Person"}
    ]
    return near[:MOST]


def _past_solutions(hits: Iterable[SearchHit]) -> list[PastSolution]:
    return [
        PastSolution(
            memory_id=each.memory.id,
            content=each.memory.content,
            said_at=each.memory.valid_at or each.memory.created_at,
            tried=TRIED.search(each.memory.content) is not None,
        )
        for each in hits
        if each.memory.type is MemoryType.RECOMMENDATION
        or (
            likeness(each) >= CLEAR_MATCH
            and (SOLUTION.search(each.memory.content) or TRIED.search(each.memory.content))
        )
    ][:MOST]


def _pointers(memories: Iterable[Memory]) -> list[str]:
    """Return what memories name as lying outside of memory: an article, a ticket, an address."""
    found = [
        f"{each}"
        for memory in memories
        for key, value in memory.metadata.items()
        if key.casefold() in POINTERS
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, str | int)
    ]
    return list(dict.fromkeys(found))


def _this_session(standing: Standing) -> list[tuple[str, ...]]:
    return [tuple(standing.session.intent_sequence)] if standing.session else []
