"""A draft reply made this user's: continuity, style, an example, likely follow-ups. Pure (TRUE-20, 21)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphmem.context.cue_patterns import CONTRACTIONS, EXPANSIONS, GLOSSARY
from graphmem.domain.context_models import BehaviorPattern, EnhancedReply, EnhancementStep, PatternType
from graphmem.domain.session import Message, MessageRole

SPENDING_INTENT = "spending_analysis"
MAX_FOLLOWUPS = 3
_SPENDING_PHRASE, _CONTINUED_SPENDING_PHRASE = "Your spending", "As we discussed, your spending"


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What a reply can be made from: the latest turns, the style, the patterns and what usually comes next."""

    recent: Sequence[Message] = ()
    style: str | None = None
    patterns: Sequence[BehaviorPattern] = ()
    followups: Sequence[str] = ()


def enhance_reply(draft: str, context: ReplyContext) -> EnhancedReply:
    """Return a draft with what is known of the user worked in: continuity, style, example, follow-ups, in turn."""
    steps: list[tuple[EnhancementStep, Callable[[str], str]]] = [
        ("continuity", lambda text: add_continuity(text, context.recent)),
        ("style", lambda text: apply_style(text, context.style)),
        ("example", lambda text: add_example(text, context.patterns)),
        ("followups", lambda text: add_followups(text, context.followups)),
    ]
    text, applied = draft, []
    for name, step in steps:
        changed = step(text)
        if changed != text:
            applied.append(name)
        text = changed
    return EnhancedReply(text=text, applied=applied)


def add_continuity(text: str, recent: Sequence[Message]) -> str:
    """Return a reply that speaks of spending tied to the talk before: the first "Your spending", once (TRUE-21)."""
    spoken_of = any(each.role is MessageRole.USER and each.intent == SPENDING_INTENT for each in recent)
    if not spoken_of or "spending" not in text.casefold() or _CONTINUED_SPENDING_PHRASE in text:
        return text
    return text.replace(_SPENDING_PHRASE, _CONTINUED_SPENDING_PHRASE, 1)


def apply_style(text: str, style: str | None) -> str:
    """Return a reply in the user's style: casual contracts, formal writes out, simple explains terms."""
    match style:
        case "casual":
            return _replace_words(text, CONTRACTIONS, before=r"(?=\s+\w)")
        case "formal":
            return _replace_words(text, EXPANSIONS)
        case "simple":
            return _explain_terms(text)
    return text


def add_example(text: str, patterns: Sequence[BehaviorPattern]) -> str:
    """Return a reply about spending or a goal with the user's own case added, unless it names that already."""
    said = text.casefold()
    for each in patterns:
        data = each.pattern_data
        if each.pattern_type is PatternType.SPENDING_CONCERN and "spending" in said:
            category, average = str(data.get("category")), data.get("avg_amount")
            if category.casefold() not in said:
                usual = f", about {average:,.0f} on average" if isinstance(average, int | float) else ""
                return _append_paragraph(
                    text, f"For example, take your {category} spending{usual}, which you ask about often."
                )
        if each.pattern_type is PatternType.GOAL_FOCUS and re.search(r"\b(?:goals?|sav(?:e|ing|ings)|plans?)\b", said):
            goal = str(data.get("goal"))
            if goal.casefold() not in said:
                return _append_paragraph(text, f"This also bears on a goal you keep coming back to: {goal}.")
    return text


def add_followups(text: str, followups: Sequence[str]) -> str:
    """Return a reply that offers what this user usually asks next."""
    offered = [each.replace("_", " ") for each in followups if each.replace("_", " ").casefold() not in text.casefold()]
    if not offered:
        return text
    return _append_paragraph(text, f"You may also want to look at: {', '.join(offered[:MAX_FOLLOWUPS])}.")


def predict_followups(sequences: Sequence[Sequence[str]], intent: str | None) -> list[str]:
    """Return the intents that most often came after `intent` in a user's conversations, most often first."""
    if intent is None:
        return []
    after = Counter(later for sequence in sequences for now, later in pairwise(sequence) if now == intent != later)
    return [each for each, _ in after.most_common(MAX_FOLLOWUPS)]


def _append_paragraph(text: str, sentence: str) -> str:
    return f"{text.rstrip()}\n\n{sentence}" if text.strip() else sentence


def _replace_words(text: str, words: dict[str, str], before: str = "") -> str:
    known = {key.casefold(): value for key, value in words.items()}
    pattern = re.compile(
        rf"\b(?:{'|'.join(map(re.escape, sorted(known, key=len, reverse=True)))})\b{before}", re.IGNORECASE
    )
    return pattern.sub(lambda found: _match_case(found[0], known[found[0].casefold()]), text)


def _match_case(before: str, after: str) -> str:
    return after[0].upper() + after[1:] if before[0].isupper() else after


def _explain_terms(text: str) -> str:
    """Return a text with each known term explained where it comes first."""
    for term, meaning in GLOSSARY.items():
        if meaning not in text:
            text = re.sub(rf"\b({term})\b(?! \()", rf"\1 ({meaning})", text, count=1, flags=re.IGNORECASE)
    return text
