"""Composition of a context from a snapshot and the hits of a question. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.context import conversation_summary
from graphmem.context.conversation_summary import to_single_line, truncate_at_word
from graphmem.context.hints import (
    CITATION_INSTRUCTION,
    HintSources,
    build_hints,
    collect_goals,
    format_date,
    last_said_at,
    style_instructions,
)
from graphmem.context.preamble import PreambleContent, PreambleLine, pack_preamble
from graphmem.context.relevance import is_contradicted, is_in_scope, match_domains, semantic_score
from graphmem.domain.context_models import ContextRequest, ContextResponse, ContextSnapshot, RelatedSession
from graphmem.domain.memory import Memory
from graphmem.domain.profile import ProductProfile
from graphmem.domain.search_models import SearchHit
from graphmem.domain.session import MessageRole

MAX_UNREAD_MESSAGES = 5
"""User messages, not yet read by extraction, that may contradict a memory; the latest are taken."""

SESSION_SUMMARY_CHARACTERS = 2_000
"""Characters of an earlier session's summary in the preamble at most."""


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A context, and the memories in it that the question recalled."""

    context: ContextResponse
    recalled: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class ContextMaterial:
    """What a context is composed from; `message_times` are when messages were said, by id."""

    snapshot: ContextSnapshot
    hits: Sequence[SearchHit]
    related: Sequence[RelatedSession]
    message_times: Mapping[str, datetime]
    refers_to_past: bool


def compose_context(request: ContextRequest, material: ContextMaterial, profile: ProductProfile) -> BuiltContext:
    """Return the context for a request; raise InvalidInput when the question alone exceeds the budget."""
    snapshot = material.snapshot
    candidates = {memory.id: memory for memory in [*(hit.memory for hit in material.hits), *snapshot.profile]}
    contradicted = _select_contradicted(request, material, candidates)
    contradicted_ids = {memory.id for memory in contradicted}
    domains = match_domains(request.question_text, request.domain, material.hits)
    fitting = [
        hit
        for hit in material.hits
        if hit.memory.id not in contradicted_ids
        and is_in_scope(hit.memory, domains, request.session_id, refers_to_past=material.refers_to_past)
    ]
    profile_memories = [memory for memory in snapshot.profile if memory.id not in contradicted_ids]
    content = PreambleContent(
        profile=_memory_bullets(profile_memories, request, material.message_times),
        relevant=_memory_bullets([hit.memory for hit in fitting], request, material.message_times),
        top=request.top,
        style_instructions=[
            *_style_lines(request, snapshot, profile),
            *([PreambleLine("citation", CITATION_INSTRUCTION)] if profile_memories or fitting else []),
        ],
        past_sessions=[_past_session_line(session) for session in material.related] if material.refers_to_past else [],
        messages=conversation_summary.message_lines(snapshot.messages),
        summarize_omitted=lambda shown: conversation_summary.summarize_omitted_messages(
            snapshot.session, snapshot.statistics, snapshot.messages, shown
        ),
    )
    packed = pack_preamble(request.question_text, content, request.token_budget)
    memories = [candidates[key] for key in packed.memory_keys]
    included_ids = set(packed.memory_keys)
    recalled = [hit for hit in fitting if hit.memory.id in included_ids]
    hint_sources = HintSources(
        memories, recalled, material.related, contradicted, material.refers_to_past, material.message_times
    )
    context = ContextResponse(
        context_id=str(uuid.uuid4()),
        preamble=packed.preamble,
        token_count=packed.token_count,
        conversation_summary=conversation_summary.build_conversation_summary(
            snapshot.session, snapshot.statistics, snapshot.messages
        ),
        recent_messages=conversation_summary.build_recent_messages(snapshot.messages),
        active_contexts=list(snapshot.items),
        user_preferences=list(snapshot.preferences),
        behavioral_patterns=list(snapshot.patterns),
        related_sessions=list(material.related),
        personalization_hints=build_hints(request, snapshot, hint_sources),
        memories=memories,
    )
    return BuiltContext(context, [hit.memory for hit in recalled[: request.top]])


def _select_contradicted(
    request: ContextRequest, material: ContextMaterial, candidates: Mapping[str, Memory]
) -> list[Memory]:
    scores = {hit.memory.id: semantic_score(hit) for hit in material.hits}
    unread = [
        message.content
        for message in material.snapshot.messages
        if message.role is MessageRole.USER and message.extracted_at is None
    ][-MAX_UNREAD_MESSAGES:]
    return [
        memory
        for memory in candidates.values()
        if is_contradicted(memory, scores.get(memory.id, 0.0), request.question_text, unread)
    ]


def _memory_bullets(
    memories: Sequence[Memory], request: ContextRequest, message_times: Mapping[str, datetime]
) -> list[PreambleLine]:
    """Return one `- ` bullet for each memory, with its source and date where the request asks for them."""
    return [
        PreambleLine(
            memory.id,
            f"- {to_single_line(memory.content)}{_source_note(memory, message_times) if request.sources else ''}",
        )
        for memory in memories
    ]


def _source_note(memory: Memory, message_times: Mapping[str, datetime]) -> str:
    said_at = last_said_at(memory, message_times)
    when = f"said on {format_date(said_at)}" if said_at else f"noted on {format_date(memory.created_at)}"
    where = f", session {memory.source.session_id}" if memory.source.session_id else ""
    return f" ({when}{where})"


def _style_lines(request: ContextRequest, snapshot: ContextSnapshot, profile: ProductProfile) -> list[PreambleLine]:
    """Return how to answer, the user's goals, and the concerns of the profile."""
    goals = collect_goals(request, snapshot)
    concern_types = {rule.pattern_type for rule in profile.concerns}
    sentences = [
        *style_instructions(snapshot),
        *([f"The user's goals: {'; '.join(goals)}."] if goals else []),
        *(f"{pattern.pattern_description}." for pattern in snapshot.patterns if pattern.pattern_type in concern_types),
    ]
    return [PreambleLine(sentence, to_single_line(sentence)) for sentence in dict.fromkeys(sentences)]


def _past_session_line(session: RelatedSession) -> PreambleLine:
    title = f", {session.title}" if session.title else ""
    summary = truncate_at_word(session.summary, SESSION_SUMMARY_CHARACTERS)
    return PreambleLine(session.session_id, to_single_line(f"{format_date(session.started_at)}{title}: {summary}"))
