"""Composition of a context from a snapshot and the hits of a question. Pure."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TypedDict

from graphmem.context import conversation_summary
from graphmem.context.answer_lines import (
    SlotMembers,
    StatedTexts,
    adds_detail,
    as_doubted,
    count_chosen,
    find_chain_of_hits,
    is_read_as_small_talk,
    limit_memories,
    may_be_quoted,
    memory_bullets,
    order_answers,
    profile_bullet,
    quote_line,
    repeats_question,
    restates,
    slot_bullet,
    with_rivals,
)
from graphmem.context.conversation_summary import to_single_line, truncate_at_word
from graphmem.context.hints import (
    CITATION_INSTRUCTION,
    DATA_INSTRUCTION,
    HintSources,
    NamedMemories,
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
    Surroundings,
)
from graphmem.context.preamble import (
    AnswerLine,
    PackedPreamble,
    PreambleContent,
    PreambleLine,
    PreambleSection,
    ProfileLine,
    count_line_tokens,
    pack_preamble,
)
from graphmem.context.relevance import (
    CHARACTERS_PER_TOKEN,
    ExcerptWords,
    JustSaid,
    content_words,
    is_in_scope,
    is_of_domain,
    match_domains,
    semantic_score,
    states_something,
)
from graphmem.conversations.session import Message, MessageRole
from graphmem.memories.entity import EntityProfile
from graphmem.memories.memory import Memory, MemoryStatus, MemoryType, Scope
from graphmem.search.evidence import overview_topic
from graphmem.search.models import FIT_SCORE, MessageHit, SearchHit
from graphmem.tenants.owners import MessageName
from graphmem.tenants.profiles import ProductRules
from graphmem.tenants.trust import DEFAULT_ORDER, TrustOrder
from graphmem.text.normalising import normalise
from graphmem.text.word_lists import WESTERN_LANGUAGES

MAX_UNREAD_MESSAGES = 5
"""Maximum number of latest user messages, not yet read by extraction, that may contradict a memory."""

MIN_QUOTE_TOKENS, MAX_QUOTE_TOKENS = 60, 100
"""Bounds of the maximum tokens of a quoted message."""

QUOTES_PER_BUDGET = 8
"""Number of maximum-length quotes that would fill the budget, within these bounds."""

SPARE_LINES = 1.5
"""Tokens of lines prepared per token of budget: a later line may fit where a long one does not."""

MAX_SUMMARIES = 3
"""Maximum summaries of earlier conversations that every context has; the latest ones."""

SESSION_SUMMARY_CHARACTERS = 2_000
"""Maximum characters in the preamble of an earlier session's summary."""


class _ConversationLines(TypedDict, total=False):
    """The fields of `PreambleContent` about the messages of the session."""

    messages: Sequence[PreambleLine]
    summarize_omitted: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message in a context, and the line that shows it or a part of it."""

    message: Message
    line: PreambleLine


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A context, with its memories that answer the question and its messages.

    The messages are the latest of the session and those that answer the question. `trust_order` is the tenant's.
    """

    context: ContextResponse
    recalled: Sequence[Memory]
    messages: Sequence[ShownMessage] = ()
    trust_order: TrustOrder = DEFAULT_ORDER


@dataclass(frozen=True, slots=True)
class ContextMaterial:
    """The material for a context; `quotes` are messages that may be relevant to the question.

    `now` is the valid time of the context. `titles` are the titles of the readable spaces, by id; `profiles` are those
    of entities that the question names; `trust_order` is the tenant's; `other_domains` are domains that the question
    clearly does not belong to; `is_leisure` means that it is about free time. `unclear_homes` are names that the user
    gives to a home and that may be no place; `wish_scores` are the similarities of memories to the question's wish for
    something else, by id.
    """

    snapshot: ContextSnapshot
    hits: Sequence[SearchHit]
    quotes: Sequence[MessageHit]
    surroundings: Surroundings
    refers_to_past: bool
    now: datetime
    titles: Mapping[str, str] = field(default_factory=dict)
    profiles: Sequence[EntityProfile] = ()
    trust_order: TrustOrder = DEFAULT_ORDER
    other_domains: frozenset[str] = frozenset()
    is_leisure: bool = False
    unclear_homes: frozenset[str] = frozenset()
    wish_scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The preamble, its memories and profiles, and the hits among the memories.

    `named` are the memories named by hints, `left_out` those that the user contradicts.
    """

    preamble: PackedPreamble
    memories: Sequence[Memory]
    recalled: Sequence[SearchHit]
    named: NamedMemories
    left_out: Sequence[Memory]
    profiles: Sequence[EntityProfile] = ()


def select_quotes(
    request: ContextRequest,
    snapshot: ContextSnapshot,
    hits: Sequence[MessageHit],
    profile: ProductRules,
    *,
    has_memories: bool,
) -> list[MessageHit]:
    """Return the messages found that state something and are not already in the context.

    If nothing states anything and the context has no memories or messages either, return the messages that ask, greet
    or thank, except the question itself.
    """
    if not request.top:
        return []
    asked, repeated = content_words(request.question_text), normalise(request.question_text)
    present = {(message.space, message.id) for message in snapshot.messages}
    said = [
        hit
        for hit in hits
        if (hit.message.space, hit.message.id) not in present and not profile.temporary_states.are_met_by(hit.content)
    ]
    stating = [hit for hit in said if may_be_quoted(hit.message) and not repeats_question(hit, asked)]
    if stating or present or has_memories:
        return stating
    return [hit for hit in said if normalise(hit.content) != repeated and not is_read_as_small_talk(hit.message)]


def pack_context(request: ContextRequest, material: ContextMaterial, profile: ProductRules) -> PackedContext:
    """Return the content of a request's context; raise InvalidInput if the question alone exceeds the budget."""
    snapshot, surroundings = material.snapshot, material.surroundings
    candidates: dict[str, Memory] = {}
    for memory in (*(hit.memory for hit in material.hits), *snapshot.profile):
        candidates.setdefault(memory.id, memory)
    contradicted, doubted = _select_contradicted(request, material, candidates)
    contradicted_ids = {memory.id for memory in contradicted}
    domains = match_domains(request.question_text, request.requested_domains, material.hits)
    believed = [hit for hit in material.hits if hit.memory.id not in contradicted_ids]
    asks_or_states = not request.question_text.rstrip().endswith("!") or states_something(request.question_text)
    unsure = [
        hit
        for hit in believed
        if not domains
        and asks_or_states
        and is_of_domain(hit.memory)
        and hit.memory.domain not in material.other_domains
    ]
    profile_memories = [
        memory
        for memory in _base_layer(snapshot, request.session_id)
        if memory.id not in contradicted_ids and (not is_of_domain(memory) or memory.domain in domains)
    ]
    fitting = [
        hit
        for hit in believed
        if is_in_scope(hit.memory, domains, request.session_id, refers_to_past=material.refers_to_past)
    ]
    if not (fitting or unsure or profile_memories or material.quotes or snapshot.messages):
        fitting = [hit for hit in believed if not is_of_domain(hit.memory)]  # of other sessions, for want of others
    bullets = memory_bullets(
        [*(hit.memory for hit in (*fitting, *unsure)), *profile_memories],
        surroundings.said_at if request.sources else None,
        material.titles,
        material.now,
    )
    for hit, rivals in _find_rivals(material, fitting):
        candidates |= {rival.id: rival for rival in rivals}
        bullets[hit.memory.id] = with_rivals(bullets[hit.memory.id], rivals)
    for memory in doubted:
        if memory.id in bullets:
            bullets[memory.id] = as_doubted(bullets[memory.id])
    answers = _answer_lines(request, material, fitting, unsure, contradicted, bullets)
    content = PreambleContent(
        profiles=[
            ProfileLine(profile_bullet(profile, material.titles), profile.memory_ids)
            for profile in material.profiles
            if contradicted_ids.isdisjoint(profile.memory_ids)
        ],
        answers=answers,
        profile=[bullets[memory.id] for memory in profile_memories],
        relevant=[bullets[hit.memory.id] for hit in fitting],
        unsure=[bullets[hit.memory.id] for hit in sorted(unsure, key=semantic_score, reverse=True)],
        top=max(0, request.top - count_chosen(answers, fitting)),
        style_instructions=_style_lines(request, snapshot, profile),
        data_note=PreambleLine("data", DATA_INSTRUCTION),
        citation=PreambleLine("citation", CITATION_INSTRUCTION) if request.sources else None,
        past_sessions=map(_past_session_line, surroundings.sessions) if material.refers_to_past else (),
        **_conversation_lines(request, snapshot),
    )
    preamble = pack_preamble(request.question_text, content, request.token_budget)
    included_ids = set(preamble.memory_keys)
    recalled = [hit for hit in (*fitting, *unsure) if hit.memory.id in included_ids]
    return PackedContext(
        preamble=preamble,
        memories=[candidates[key] for key in preamble.memory_keys],
        recalled=recalled,
        named=NamedMemories.select(request.question_text, [hit for hit in recalled if hit.memory.space is None]),
        left_out=contradicted,
        profiles=[profile for profile in material.profiles if profile.id in set(preamble.profile_keys)],
    )


def _find_rivals(material: ContextMaterial, hits: Sequence[SearchHit]) -> Iterator[tuple[SearchHit, list[Memory]]]:
    """Yield the hits that answer the question but are contested by equally trusted sources, with what contests them."""
    order = material.trust_order
    for hit in hits if material.snapshot.contested else ():
        trusted = hit.memory.source.trust_kind
        rivals = [
            rival
            for rival in material.snapshot.contested
            if hit.memory.id in rival.contests and order.passes(rival.source.trust_kind, trusted)
        ]
        if rivals and hit.score >= FIT_SCORE:
            yield hit, rivals


def complete_context(
    request: ContextRequest, material: ContextMaterial, packed: PackedContext, said_at: Mapping[MessageName, datetime]
) -> BuiltContext:
    """Return the context for the packed content; `said_at` are the times when messages were said."""
    snapshot, related = material.snapshot, material.surroundings.sessions
    hint_sources = HintSources(
        [  # hints are about the user, and assume nothing that is contested
            memory for memory in packed.memories if memory.space is None and memory.status is not MemoryStatus.CONTESTED
        ],
        packed.named,
        related,
        packed.left_out,
        material.refers_to_past,
        said_at,
        material.is_leisure,
        material.trust_order,
    )
    context = ContextResponse(
        context_id=str(uuid.uuid4()),
        preamble=packed.preamble.preamble,
        token_count=packed.preamble.token_count,
        conversation_summary=conversation_summary.build_conversation_summary(
            snapshot.session, snapshot.statistics, snapshot.messages
        ),
        recent_messages=conversation_summary.build_recent_messages(snapshot.messages)
        if request.recent_messages
        else [],
        active_contexts=list(snapshot.items),
        user_preferences=list(snapshot.preferences),
        behavioral_patterns=list(snapshot.patterns),
        related_sessions=list(related),
        personalization_hints=build_hints(request, snapshot, hint_sources),
        memories=list(packed.memories),
        profiles=list(packed.profiles),
    )
    answering = [hit.memory for hit in packed.recalled if hit.score >= FIT_SCORE]
    return BuiltContext(context, answering[: request.top], _shown_messages(material, packed), material.trust_order)


def _shown_messages(material: ContextMaterial, packed: PackedContext) -> list[ShownMessage]:
    messages = {
        message.key: message for message in (*material.snapshot.messages, *(hit.message for hit in material.quotes))
    }
    lines = (*packed.preamble.messages, *packed.preamble.quotes)
    return [ShownMessage(messages[line.key], line) for line in lines]


def _conversation_lines(request: ContextRequest, snapshot: ContextSnapshot) -> _ConversationLines:
    """Return the session's messages and the digest of those that do not fit, unless the caller has them."""
    if not request.recent_messages:
        return {}
    return {
        "messages": conversation_summary.message_lines(snapshot.messages),
        "summarize_omitted": lambda shown: conversation_summary.summarize_omitted_messages(
            snapshot.session, snapshot.statistics, snapshot.messages, shown
        ),
    }


def _base_layer(snapshot: ContextSnapshot, session_id: str | None) -> list[Memory]:
    """Return the memories in every context: the user's most important ones, the tenant's, then all others.

    Memories of spaces come last.

    Of conversation summaries, only the latest are included, without the one of this session, whose messages say more.
    """
    own = [memory for memory in snapshot.profile if memory.scope is not Scope.GLOBAL and memory.space is None]
    summaries = sorted(
        (memory for memory in own if memory.type is MemoryType.CONVERSATION_SUMMARY), key=attrgetter("created_at")
    )
    kept = [memory.id for memory in summaries if not session_id or memory.source.session_id != session_id]
    left_out = {memory.id for memory in summaries} - set(kept[-MAX_SUMMARIES:])
    own = [memory for memory in own if memory.id not in left_out]
    of_tenant = [memory for memory in snapshot.profile if memory.scope is Scope.GLOBAL]
    of_spaces = [
        memory
        for memory in snapshot.profile
        if memory.space is not None and memory.type is not MemoryType.CONVERSATION_SUMMARY
    ]
    return [*own[:1], *of_tenant, *own[1:], *of_spaces]


def unread_statements(snapshot: ContextSnapshot) -> list[str]:
    """Return what the user said last in the session that extraction has not read yet."""
    unread = (
        message.content
        for message in snapshot.messages
        if message.role is MessageRole.USER and message.extracted_at is None
    )
    return list(unread)[-MAX_UNREAD_MESSAGES:]


def _select_contradicted(
    request: ContextRequest, material: ContextMaterial, candidates: Mapping[str, Memory]
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories that the user has just contradicted, and those possibly contradicted."""
    snapshot = material.snapshot
    said = JustSaid(
        snapshot.user_entity_name, request.question_text, unread_statements(snapshot), material.unclear_homes
    )
    scores = material.wish_scores
    nearest = max(scores, key=scores.__getitem__, default=None)  # a wish replaces one memory, not all similar ones
    contradicted, doubted = [], []
    for memory in candidates.values():
        score = scores[memory.id] if memory.id == nearest else 0.0
        if said.contradicts(memory, score):
            contradicted.append(memory)
        elif said.may_contradict(memory, score):
            doubted.append(memory)
    return contradicted, doubted


def _quote_limit(request: ContextRequest) -> int:
    """Return the maximum tokens of a quoted message."""
    return max(MIN_QUOTE_TOKENS, min(MAX_QUOTE_TOKENS, request.token_budget // QUOTES_PER_BUDGET))


def _quotes_without_question(request: ContextRequest, material: ContextMaterial) -> list[AnswerLine]:
    """Return the beginnings of the latest quotable messages, as no question says which words matter."""
    length = CHARACTERS_PER_TOKEN * _quote_limit(request)
    latest = sorted(_quotable_messages(material, []), key=lambda hit: hit.message.timestamp)[-request.top :]
    return [
        AnswerLine(
            PreambleSection.QUOTES,
            hit.message.timestamp.timestamp(),
            quote_line(hit.message, to_single_line(truncate_at_word(hit.content, length)), material.titles),
        )
        for hit in latest
    ]


def _answer_lines(
    request: ContextRequest,
    material: ContextMaterial,
    fitting: Sequence[SearchHit],
    unsure: Sequence[SearchHit],
    contradicted: Sequence[Memory],
    bullets: Mapping[str, PreambleLine],
) -> list[AnswerLine]:
    """Return the facts and message parts that may answer the question, best first, as many as may fit.

    `bullets` are the lines of the memories, by id; `unsure` are hits from domains that the question may belong to.
    """
    if not request.top:
        return []
    if request.question is None:
        return _quotes_without_question(request, material)
    words = ExcerptWords(request.question)
    shown_ids = {hit.memory.id for hit in (*fitting, *unsure)}
    elsewhere = [hit.memory for hit in material.hits if is_of_domain(hit.memory) and hit.memory.id not in shown_ids]
    messages = _quotable_messages(material, [*contradicted, *elsewhere])
    quote_limit = _quote_limit(request)
    lines: list[AnswerLine] = []
    stated = StatedTexts()
    left = SPARE_LINES * request.token_budget
    facts_by_message: dict[MessageName, list[str]] = defaultdict(list)
    detailed: list[MessageHit] = []

    def add(section: PreambleSection, place: float, line: PreambleLine) -> int:
        lines.append(AnswerLine(section, place, line))
        return count_line_tokens(line.text)

    def add_quote(hit: MessageHit) -> int:
        if not stated.add(hit.content):
            return 0
        line = quote_line(hit.message, words.excerpt(hit.content, quote_limit), material.titles)
        return add(PreambleSection.QUOTES, hit.message.timestamp.timestamp(), line)

    def add_facts(facts: Sequence[SearchHit], text: str, line: PreambleLine) -> int:
        for fact in facts:
            for message_id in fact.memory.source.message_ids:
                facts_by_message[fact.memory.space, message_id].append(fact.content)
        return add(PreambleSection.MEMORIES, len(lines), line) if stated.add(text) else 0

    ordered = order_answers(
        fitting,
        messages,
        words,
        find_chain_of_hits(fitting, words, _user_entity_id(material)),
        is_overview=overview_topic(request.question, WESTERN_LANGUAGES) is not None,
    )
    for hit in limit_memories(ordered, request.top):
        if left < 0:
            break
        if isinstance(hit, SearchHit):
            left -= add_facts([hit], hit.content, bullets[hit.memory.id])
        elif isinstance(hit, SlotMembers):
            if line := slot_bullet(hit.members, material.titles, material.now):
                left -= add_facts(hit.members, line.text, line)
        elif facts := facts_by_message.get((hit.message.space, hit.message.id)):
            if adds_detail(hit.content, facts):
                detailed.append(hit)
        else:
            left -= add_quote(hit)
    for hit in detailed:
        if left < 0:
            break
        left -= add_quote(hit)
    return lines


def _user_entity_id(material: ContextMaterial) -> str | None:
    """Return the id of the user's own entity, if a hit is about it."""
    name = material.snapshot.user_entity_name
    subjects = (hit.memory.subject for hit in material.hits if hit.memory.space is None)
    return next((subject.id for subject in subjects if subject.name == name), None)


def _quotable_messages(material: ContextMaterial, withheld: Sequence[Memory]) -> list[MessageHit]:
    """Return the messages that may be quoted, statements of the user before replies of the assistant.

    A message is not quoted if one of its memories is deleted, superseded or withheld; neither is a reply that restates
    such a memory, nor text that the summaries of earlier sessions contain. A memory is withheld if the user contradicts
    it or it is from another domain.
    """
    withdrawn_ids = {(memory.space, key) for memory in withheld for key in memory.source.message_ids}
    quotable = material.surroundings.quotable - withdrawn_ids
    names = [(hit.message.space, hit.message.id) for hit in material.quotes]
    withdrawn = [content_words(memory.content) - content_words(memory.subject.name) for memory in withheld]
    withdrawn += [
        content_words(hit.content) for hit, name in zip(material.quotes, names, strict=True) if name not in quotable
    ]
    sessions = material.surroundings.sessions if material.refers_to_past else ()
    summaries = " ".join(session.summary for session in sessions)
    kept = [
        hit
        for hit, name in zip(material.quotes, names, strict=True)
        if name in quotable
        and to_single_line(hit.content) not in summaries
        and not (hit.message.role is MessageRole.ASSISTANT and restates(hit.content, withdrawn))
    ]
    return sorted(kept, key=lambda hit: hit.message.role is MessageRole.ASSISTANT)


def _style_lines(request: ContextRequest, snapshot: ContextSnapshot, profile: ProductRules) -> list[PreambleLine]:
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
