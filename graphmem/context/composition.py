"""Composition of a context from a snapshot and the hits of a question. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TypedDict

from graphmem.context import conversation_summary
from graphmem.context.answer_lines import (
    count_chosen,
    limit_memories,
    memory_bullets,
    order_answers,
    quote_line,
    repeats_question,
    without_repetitions,
)
from graphmem.context.conversation_summary import to_single_line, truncate_at_word
from graphmem.context.hints import (
    CITATION_INSTRUCTION,
    HintSources,
    build_hints,
    collect_goals,
    format_date,
    style_instructions,
)
from graphmem.context.models import (
    ContextRequest,
    ContextResponse,
    ContextSnapshot,
    RelatedSession,
)
from graphmem.context.preamble import AnswerLine, PreambleContent, PreambleLine, PreambleSection, pack_preamble
from graphmem.context.relevance import ExcerptWords, JustSaid, is_in_scope, match_domains, semantic_score
from graphmem.conversations.session import MessageRole
from graphmem.memories.memory import Memory, MemoryType, Scope
from graphmem.memories.new_memory import is_temporary_state
from graphmem.search.models import FIT_SCORE, MessageHit, SearchHit
from graphmem.tenants.profiles import ProductProfile

MAX_UNREAD_MESSAGES = 5
"""User messages, not yet read by extraction, that may contradict a memory; the latest are taken."""

MIN_QUOTE_TOKENS, MAX_QUOTE_TOKENS = 60, 100
"""Bounds of the tokens of a message that a context quotes at most."""

QUOTES_PER_BUDGET = 8
"""Quotes of the longest length that would fill the budget, within these bounds."""

MAX_SUMMARIES = 3
"""Summaries of earlier conversations that a context has whatever is asked; the latest ones."""

SESSION_SUMMARY_CHARACTERS = 2_000
"""Characters of an earlier session's summary in the preamble at most."""


class _ConversationLines(TypedDict, total=False):
    """The fields of `PreambleContent` about the messages of the session."""

    messages: Sequence[PreambleLine]
    summarize_omitted: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A context, the memories in it that answer the question, and the ids of the messages that it quotes."""

    context: ContextResponse
    recalled: Sequence[Memory]
    quoted: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ContextMaterial:
    """What a context is composed from.

    `messages` were found for the question; `quotable` are the texts of those that may be quoted, `message_times` when
    messages were said, both by id.
    """

    snapshot: ContextSnapshot
    hits: Sequence[SearchHit]
    related: Sequence[RelatedSession]
    message_times: Mapping[str, datetime]
    refers_to_past: bool
    messages: Sequence[MessageHit] = ()
    quotable: Mapping[str, str] = field(default_factory=dict)


def compose_context(request: ContextRequest, material: ContextMaterial, profile: ProductProfile) -> BuiltContext:
    """Return the context for a request; raise InvalidInput when the question alone exceeds the budget."""
    snapshot = material.snapshot
    candidates = {memory.id: memory for memory in [*(hit.memory for hit in material.hits), *snapshot.profile]}
    contradicted = _select_contradicted(request, material, candidates)
    contradicted_ids = {memory.id for memory in contradicted}
    domains = match_domains(request.question_text, request.requested_domains, material.hits)
    fitting = [
        hit
        for hit in material.hits
        if hit.memory.id not in contradicted_ids
        and is_in_scope(hit.memory, domains, request.session_id, refers_to_past=material.refers_to_past)
    ]
    profile_memories = [
        memory for memory in _base_layer(snapshot, request.session_id) if memory.id not in contradicted_ids
    ]
    said_at = material.message_times if request.sources else None
    answers = _answer_lines(request, material, fitting, contradicted, profile)
    content = PreambleContent(
        answers=answers,
        profile=memory_bullets(profile_memories, said_at),
        relevant=memory_bullets([hit.memory for hit in fitting], said_at),
        top=max(0, request.top - count_chosen(answers, fitting)),
        style_instructions=_style_lines(request, snapshot, profile),
        citation=PreambleLine("citation", CITATION_INSTRUCTION),
        past_sessions=[_past_session_line(session) for session in material.related] if material.refers_to_past else [],
        **_conversation_lines(request, snapshot),
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
        recent_messages=conversation_summary.build_recent_messages(snapshot.messages)
        if request.recent_messages
        else [],
        active_contexts=list(snapshot.items),
        user_preferences=list(snapshot.preferences),
        behavioral_patterns=list(snapshot.patterns),
        related_sessions=list(material.related),
        personalization_hints=build_hints(request, snapshot, hint_sources),
        memories=memories,
    )
    answering = [hit.memory for hit in recalled if hit.score >= FIT_SCORE]
    return BuiltContext(context, answering[: request.top], packed.quote_keys)


def _conversation_lines(request: ContextRequest, snapshot: ContextSnapshot) -> _ConversationLines:
    """Return the messages of the session and the digest of those that do not fit, unless the caller has them."""
    if not request.recent_messages:
        return {}
    return {
        "messages": conversation_summary.message_lines(snapshot.messages),
        "summarize_omitted": lambda shown: conversation_summary.summarize_omitted_messages(
            snapshot.session, snapshot.statistics, snapshot.messages, shown
        ),
    }


def _base_layer(snapshot: ContextSnapshot, session_id: str | None) -> list[Memory]:
    """Return the memories that every context has: the most important of the user, those of the tenant, the others.

    Of summaries of conversations these are the latest, without that of the session, whose messages say more.
    """
    own = [memory for memory in snapshot.profile if memory.scope is not Scope.GLOBAL]
    summaries = sorted(
        (memory for memory in own if memory.type is MemoryType.CONVERSATION_SUMMARY), key=attrgetter("created_at")
    )
    kept = [memory.id for memory in summaries if not session_id or memory.source.session_id != session_id]
    left_out = {memory.id for memory in summaries} - set(kept[-MAX_SUMMARIES:])
    own = [memory for memory in own if memory.id not in left_out]
    of_tenant = [memory for memory in snapshot.profile if memory.scope is Scope.GLOBAL]
    return [*own[:1], *of_tenant, *own[1:]]


def _select_contradicted(
    request: ContextRequest, material: ContextMaterial, candidates: Mapping[str, Memory]
) -> list[Memory]:
    scores = {hit.memory.id: semantic_score(hit) for hit in material.hits}
    unread = [
        message.content
        for message in material.snapshot.messages
        if message.role is MessageRole.USER and message.extracted_at is None
    ][-MAX_UNREAD_MESSAGES:]
    said = JustSaid(request.question_text, unread)
    return [memory for memory in candidates.values() if said.contradicts(memory, scores.get(memory.id, 0.0))]


def _answer_lines(
    request: ContextRequest,
    material: ContextMaterial,
    fitting: Sequence[SearchHit],
    contradicted: Sequence[Memory],
    profile: ProductProfile,
) -> list[AnswerLine]:
    """Return the facts and parts of messages that may answer the question, best first, as many as may fit."""
    if request.question is None or not request.top:
        return []
    words = ExcerptWords(request.question)
    excluded = {message.id for message in material.snapshot.messages}
    excluded.update(key for memory in contradicted for key in memory.source.message_ids)
    summaries = " ".join(session.summary for session in material.related) if material.refers_to_past else ""
    messages = [
        hit
        for hit in material.messages
        if hit.message.id in material.quotable.keys() - excluded
        and to_single_line(hit.content) not in summaries
        and not repeats_question(hit, request.question)
        and not is_temporary_state(hit.content, profile.temporary_states)
    ]
    quote_limit = max(MIN_QUOTE_TOKENS, min(MAX_QUOTE_TOKENS, request.token_budget // QUOTES_PER_BUDGET))
    said_at = material.message_times if request.sources else None
    lines: list[tuple[str, AnswerLine]] = []
    for hit in limit_memories(order_answers(words, fitting, messages), request.top):
        if isinstance(hit, SearchHit):
            (line,) = memory_bullets([hit.memory], said_at)
            lines.append((hit.content, AnswerLine(PreambleSection.MEMORIES, len(lines), line)))
        else:
            text = words.excerpt(material.quotable[hit.message.id], quote_limit)
            place = hit.message.timestamp.timestamp()
            lines.append((text, AnswerLine(PreambleSection.QUOTES, place, quote_line(hit.message, text))))
    return without_repetitions(lines)


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
