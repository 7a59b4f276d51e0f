"""A draft reply made this user's: continuity, style, an example, likely follow-ups. Pure (TRUE-20, 21)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from graphmem.context.vocabulary import CONTRACTIONS, EXPANSIONS, GLOSSES
from graphmem.domain.context import BehaviorPattern, EnhancedReply, Enhancement, PatternType
from graphmem.domain.session import Message, Role

SPENDING_INTENT = "spending_analysis"
MOST_FOLLOWUPS = 3
_BEFORE, _AFTER = "Your spending", "As we discussed, your spending"


@dataclass(frozen=True, slots=True)
class Acquaintance:
    """What a reply can be made from: the latest turns, the style, the patterns and what usually comes next."""

    recent: Sequence[Message] = ()
    style: str | None = None
    patterns: Sequence[BehaviorPattern] = ()
    followups: Sequence[str] = ()


def enhance(draft: str, known: Acquaintance) -> EnhancedReply:
    """Return a draft with what is known of the user worked in: continuity, style, example, follow-ups, in turn."""
    steps: list[tuple[Enhancement, Callable[[str], str]]] = [
        ("continuity", lambda text: with_continuity(text, known.recent)),
        ("style", lambda text: in_style(text, known.style)),
        ("example", lambda text: with_example(text, known.patterns)),
        ("followups", lambda text: with_followups(text, known.followups)),
    ]
    text, applied = draft, []
    for name, step in steps:
        changed = step(text)
        if changed != text:
            applied.append(name)
        text = changed
    return EnhancedReply(text=text, applied=applied)


def with_continuity(text: str, recent: Sequence[Message]) -> str:
    """Return a reply that speaks of spending tied to the talk before: the first "Your spending", once (TRUE-21)."""
    spoken_of = any(each.role is Role.USER and each.intent == SPENDING_INTENT for each in recent)
    if not spoken_of or "spending" not in text.casefold() or _AFTER in text:
        return text
    return text.replace(_BEFORE, _AFTER, 1)


def in_style(text: str, style: str | None) -> str:
    """Return a reply in the user's style: casual contracts, formal writes out, simple explains terms."""
    match style:
        case "casual":
            return _replaced(text, CONTRACTIONS, before=r"(?=\s+\w)")
        case "formal":
            return _replaced(text, EXPANSIONS)
        case "simple":
            return _explained(text)
    return text


def with_example(text: str, patterns: Sequence[BehaviorPattern]) -> str:
    """Return a reply about spending or a goal with the user's own case added, unless it names that already."""
    said = text.casefold()
    for each in patterns:
        data = each.pattern_data
        if each.pattern_type is PatternType.SPENDING_CONCERN and "spending" in said:
            category, average = str(data.get("category")), data.get("avg_amount")
            if category.casefold() not in said:
                usual = f", about {average:,.0f} on average" if isinstance(average, int | float) else ""
                return _followed(text, f"For example, take your {category} spending{usual}, which you ask about often.")
        if each.pattern_type is PatternType.GOAL_FOCUS and re.search(r"\b(?:goals?|sav(?:e|ing|ings)|plans?)\b", said):
            goal = str(data.get("goal"))
            if goal.casefold() not in said:
                return _followed(text, f"This also bears on a goal you keep coming back to: {goal}.")
    return text


def with_followups(text: str, followups: Sequence[str]) -> str:
    """Return a reply that offers what this user usually asks next."""
    offered = [each.replace("_", " ") for each in followups if each.replace("_", " ").casefold() not in text.casefold()]
    if not offered:
        return text
    return _followed(text, f"You may also want to look at: {', '.join(offered[:MOST_FOLLOWUPS])}.")


def likely_followups(sequences: Sequence[Sequence[str]], intent: str | None) -> list[str]:
    """Return the intents that most often came after `intent` in a user's conversations, most often first."""
    if intent is None:
        return []
    after = Counter(later for sequence in sequences for now, later in pairwise(sequence) if now == intent != later)
    return [each for each, _ in after.most_common(MOST_FOLLOWUPS)]


def _followed(text: str, sentence: str) -> str:
    return f"{text.rstrip()}\n\n{sentence}" if text.strip() else sentence


def _replaced(text: str, words: dict[str, str], before: str = "") -> str:
    known = {key.casefold(): value for key, value in words.items()}
    pattern = re.compile(
        rf"\b(?:{'|'.join(map(re.escape, sorted(known, key=len, reverse=True)))})\b{before}", re.IGNORECASE
    )
    return pattern.sub(lambda found: _cased(found[0], known[found[0].casefold()]), text)


def _cased(before: str, after: str) -> str:
    return after[0].upper() + after[1:] if before[0].isupper() else after


def _explained(text: str) -> str:
    """Return a text with each known term explained where it comes first."""
    for term, meaning in GLOSSES.items():
        if meaning not in text:
            text = re.sub(rf"\b({term})\b(?! \()", rf"\1 ({meaning})", text, count=1, flags=re.IGNORECASE)
    return text
