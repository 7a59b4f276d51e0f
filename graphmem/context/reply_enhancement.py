"""Enhancement of a draft reply: continuity, style, an example, likely follow-ups. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.context import cues
from graphmem.context.behavior_patterns import BehaviorPattern
from graphmem.context.followups import likely_followups
from graphmem.context.hints import format_date
from graphmem.context.learned_preferences import PreferenceType
from graphmem.context.models import (
    ContextSnapshot,
    EnhancedReply,
    EnhancementStep,
    RelatedSession,
)
from graphmem.context.preferences import confident_value
from graphmem.conversations.session import Message, MessageRole
from graphmem.tenants.pattern_type import PatternType
from graphmem.tenants.profiles import ConcernRule, ContinuityPhrase, ProductProfile

AS_DISCUSSED = "As we discussed"
"""How a reply opens that continues an earlier session."""


@dataclass(frozen=True, slots=True)
class ReplyEvidence:
    """What a reply rests on: when its memories and messages were said, other sources, and the session it continues."""

    said_at: Sequence[datetime] = ()
    external: Sequence[str] = ()
    past_session: RelatedSession | None = None


def enhance_reply(
    draft: str, snapshot: ContextSnapshot, profile: ProductProfile, evidence: ReplyEvidence | None = None
) -> EnhancedReply:
    """Return a draft adapted to the user: continuity, style, example, follow-ups and sources, in this order."""
    evidence = evidence or ReplyEvidence()
    questions = [message for message in snapshot.messages if message.role is MessageRole.USER]
    intent = next((question.intent for question in reversed(questions) if question.intent), None)
    style = confident_value(snapshot.preferences, PreferenceType.COMMUNICATION, "style")
    steps: list[tuple[EnhancementStep, Callable[[str], str]]] = [
        (
            "continuity",
            lambda text: add_opening(add_continuity(text, questions, profile.continuity), evidence.past_session),
        ),
        ("style", lambda text: apply_style(text, style, profile.glossary)),
        ("example", lambda text: add_example(text, snapshot.patterns, profile)),
        ("followups", lambda text: add_followups(text, likely_followups(snapshot, intent))),
        ("sources", lambda text: add_sources(text, evidence)),
    ]
    text, applied = draft, []
    for name, step in steps:
        changed = step(text)
        if changed != text:
            applied.append(name)
        text = changed
    return EnhancedReply(text=text, applied=applied)


def add_continuity(text: str, questions: Sequence[Message], phrases: Sequence[ContinuityPhrase]) -> str:
    """Return a reply with the first occurrence of each phrase tied to the conversation, unless one is tied already."""
    intents = {question.intent for question in questions}
    for rule in phrases:
        if rule.intent in intents and rule.continued not in text:
            text = text.replace(rule.phrase, rule.continued, 1)
    return text


def add_opening(text: str, past_session: RelatedSession | None) -> str:
    """Return a reply that opens with the earlier session which the question refers to, unless it does already."""
    if past_session is None or text.startswith(AS_DISCUSSED):
        return text
    about = f" ({past_session.title})" if past_session.title else ""
    return f"{AS_DISCUSSED} on {format_date(past_session.started_at)}{about}:\n\n{text}"


def add_sources(text: str, evidence: ReplyEvidence) -> str:
    """Return a reply that says what it rests on: first what the user said, with its dates, then other sources."""
    dates = sorted({format_date(said_at) for said_at in evidence.said_at})
    said = [f"This rests on what you told me on {' and '.join(dates)}."] if dates else []
    others = [f"Sources: {', '.join(evidence.external)}."] if evidence.external else []
    return _append_paragraph(text, " ".join([*said, *others])) if said or others else text


def apply_style(text: str, style: str | None, glossary: Mapping[str, str]) -> str:
    """Return a reply in the user's style: casual contracts, formal writes out, simple explains terms."""
    match style:
        case "casual":
            return _replace_words(text, cues.CONTRACTIONS, before=r"(?=\s+\w)")
        case "formal":
            return _replace_words(text, cues.EXPANSIONS)
        case "simple":
            return _explain_terms(text, glossary)
    return text


def add_example(text: str, patterns: Sequence[BehaviorPattern], profile: ProductProfile) -> str:
    """Return a reply with an example from the user's concerns or goals, unless it names that already."""
    concerns = {rule.pattern_type: rule for rule in profile.concerns}
    for pattern in patterns:
        if rule := concerns.get(pattern.pattern_type):
            example = _concern_example(text, pattern, rule)
        elif pattern.pattern_type is PatternType.GOAL_FOCUS:
            example = _goal_example(text, pattern, profile)
        else:
            example = None
        if example:
            return _append_paragraph(text, example)
    return text


def add_followups(text: str, followups: Sequence[str]) -> str:
    """Return a reply that offers the likely next questions which it does not mention."""
    labels = [followup.replace("_", " ") for followup in followups]
    offered = [label for label in labels if label.casefold() not in text.casefold()]
    return _append_paragraph(text, f"You may also want to look at: {', '.join(offered)}.") if offered else text


def _concern_example(text: str, pattern: BehaviorPattern, rule: ConcernRule) -> str | None:
    category, amount = str(pattern.pattern_data.get("category")), pattern.pattern_data.get("avg_amount")
    if rule.topic not in text.casefold() or category.casefold() in text.casefold():
        return None
    average = rule.average.format(amount=f"{amount:,.0f}") if isinstance(amount, int | float) else ""
    return rule.example.format(name=category, average=average)


def _goal_example(text: str, pattern: BehaviorPattern, profile: ProductProfile) -> str | None:
    goal = str(pattern.pattern_data.get("goal"))
    if not profile.goal_pattern.search(text) or goal.casefold() in text.casefold():
        return None
    return f"This also bears on a goal you keep coming back to: {goal}."


def _append_paragraph(text: str, sentence: str) -> str:
    return f"{text.rstrip()}\n\n{sentence}" if text.strip() else sentence


def _replace_words(text: str, replacements: Mapping[str, str], before: str = "") -> str:
    known = {word.casefold(): replacement for word, replacement in replacements.items()}
    alternatives = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    return re.sub(
        rf"\b(?:{alternatives})\b{before}",
        lambda match: _match_case(match[0], known[match[0].casefold()]),
        text,
        flags=re.IGNORECASE,
    )


def _match_case(before: str, after: str) -> str:
    return after[0].upper() + after[1:] if before[0].isupper() else after


def _explain_terms(text: str, glossary: Mapping[str, str]) -> str:
    """Return a text with the first occurrence of each known term explained in parentheses."""
    for term, meaning in glossary.items():
        if meaning not in text:
            text = re.sub(rf"\b({term})\b(?! \()", rf"\1 ({meaning})", text, count=1, flags=re.IGNORECASE)
    return text
