"""The window put before the model: what matters most first, all of it within a number of tokens. Pure (TRUE-12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graphmem.domain.tokens import count_tokens, truncate_to_tokens
from graphmem.errors import InvalidInput

MEMORIES_HEADING = "## Information about this user from past conversations:"
"""What the memories stand under, one `- ` bullet each (CASH-17)."""

PROFILE_SHARE = 0.5
"""So much of the room goes to the profile before anything else is looked at; what is left at the end goes to it too."""

STYLE_SHARE = 0.6
MEMORY_SHARE = 0.75
PAST_SESSIONS_SHARE = 0.9
"""Up to these parts of the room, filled in this order: how to answer, memories by relevance, earlier conversations."""

SUMMARY_USAGE_LIMIT = 0.8
"""A summary of the messages left out is added while less of the budget than this is used; where they do not all fit,
the older ones leave that much to it."""

MIN_TRUNCATED_TOKENS = 16
"""A text is cut to fit only where at least so many tokens of it remain."""


class PreambleSection(Enum):
    """The parts of the preamble in their order; the value is the heading."""

    MEMORIES = MEMORIES_HEADING
    STYLE_INSTRUCTIONS = "## How to answer this user:"
    PAST_SESSIONS = "## From earlier conversations:"
    OMITTED_MESSAGES = "## Earlier in this conversation:"
    MESSAGES = "## Last messages of this conversation (what they say counts where it differs from the above):"


@dataclass(frozen=True, slots=True)
class PreambleLine:
    """One line of the preamble; `key` tells what it was made from."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class PreambleContent:
    """What could be told: profile by importance, relevant memories by relevance, messages oldest first.

    A memory may be in both lists; `top` is how many of `relevant` are told beside those of the profile.
    `summarize_omitted` tells the messages that remain when only so many of the newest are shown; empty when there are none.
    """

    profile: Sequence[PreambleLine] = ()
    relevant: Sequence[PreambleLine] = ()
    top: int = 10
    style_instructions: Sequence[PreambleLine] = ()
    past_sessions: Sequence[PreambleLine] = ()
    messages: Sequence[PreambleLine] = ()
    summarize_omitted: Callable[[int], str] = lambda shown: ""


@dataclass(frozen=True, slots=True)
class PackedPreamble:
    """The preamble and what it holds: keys in the order told; `token_count` is that of preamble and question."""

    preamble: str
    token_count: int
    memory_keys: list[str]
    message_keys: list[str]
    has_summary: bool


@dataclass(slots=True)
class _PreamblePacker:
    """A preamble being filled; `used` never falls short of its tokens by more than joining lines can add."""

    capacity: int
    used: int = 0
    chosen: list[tuple[PreambleSection, int, PreambleLine]] = field(default_factory=list)

    def add(self, section: PreambleSection, place: int, line: PreambleLine, share: float = 1.0) -> bool:
        """Take a line when it fits into `share` of the capacity; `place` orders it within its section."""
        cost = self._cost(section, line)
        if self.used + cost > self.capacity * share:
            return False
        self.chosen.append((section, place, line))
        self.used += cost
        return True

    def add_truncated(self, section: PreambleSection, place: int, line: PreambleLine, share: float = 1.0) -> bool:
        """Take a line, cut where only a part of it fits."""
        if self.add(section, place, line, share):
            return True
        left = int(self.capacity * share) - self.used - self._cost(section, PreambleLine("", "")) - 1
        if left < MIN_TRUNCATED_TOKENS:
            return False
        return self.add(
            section, place, PreambleLine(line.key, truncate_to_tokens(line.text, left).rstrip() + "…"), share
        )

    def render(self) -> str:
        """Return the preamble, section by section."""
        return "\n\n".join(
            "\n".join([section.value, *(line.text for line in self.lines_in(section))])
            for section in PreambleSection
            if any(each is section for each, _, _ in self.chosen)
        )

    def lines_in(self, section: PreambleSection) -> list[PreambleLine]:
        """Return the lines of a section in order."""
        return [
            line for _, line in sorted(((p, x) for s, p, x in self.chosen if s is section), key=lambda each: each[0])
        ]

    def _cost(self, section: PreambleSection, line: PreambleLine) -> int:
        opened = any(each is section for each, _, _ in self.chosen)
        return count_tokens(line.text) + 1 + (0 if opened else count_tokens(section.value) + 2)


def ensure_question_fits(question: str, budget: int) -> int:
    """Return how many tokens a question has; raise InvalidInput when these alone are more than the budget."""
    asked = count_tokens(question)
    if asked > budget:
        raise InvalidInput(
            f"The question alone has {asked} tokens, over the budget of {budget}: raise token_budget.",
            errors=[{"loc": ["token_budget"], "msg": f"is below the {asked} tokens of the question"}],
        )
    return asked


def pack_preamble(question: str, content: PreambleContent, budget: int) -> PackedPreamble:
    """Return the fullest window that fits: never above `budget` tokens together with the question, which is always in.

    Order of claims: profile, how to answer, relevant memories, earlier conversations, newest messages up to the first
    that does not fit, a summary of the messages left out (below 80 % use), then what is left of the memories.
    Raises InvalidInput when the question alone has more tokens than the budget.
    """
    asked = ensure_question_fits(question, budget)
    packer = _PreamblePacker(budget - asked)
    profile = list(enumerate(content.profile))
    relevant = list(enumerate(content.relevant, len(profile)))
    _add_lines(packer, PreambleSection.MEMORIES, profile[:1])
    _add_lines(packer, PreambleSection.MEMORIES, profile, PROFILE_SHARE)
    _add_lines(packer, PreambleSection.STYLE_INSTRUCTIONS, list(enumerate(content.style_instructions)), STYLE_SHARE)
    left = content.top - _add_lines(packer, PreambleSection.MEMORIES, relevant, MEMORY_SHARE, content.top)
    for place, talk in enumerate(content.past_sessions):
        packer.add_truncated(PreambleSection.PAST_SESSIONS, place, talk, PAST_SESSIONS_SHARE)
    shown = _add_messages(packer, content.messages, SUMMARY_USAGE_LIMIT * budget - asked)
    if (told := content.summarize_omitted(shown)) and asked + packer.used < SUMMARY_USAGE_LIMIT * budget:
        packer.add_truncated(PreambleSection.OMITTED_MESSAGES, 0, PreambleLine("rest", told))
    _add_lines(packer, PreambleSection.MEMORIES, profile)
    _add_lines(packer, PreambleSection.MEMORIES, relevant, 1.0, left)
    preamble = packer.render()
    while packer.chosen and asked + count_tokens(preamble) > budget:
        packer.chosen.pop()
        preamble = packer.render()
    return PackedPreamble(
        preamble=preamble,
        token_count=asked + count_tokens(preamble),
        memory_keys=[line.key for line in packer.lines_in(PreambleSection.MEMORIES)],
        message_keys=[line.key for line in packer.lines_in(PreambleSection.MESSAGES)],
        has_summary=bool(packer.lines_in(PreambleSection.OMITTED_MESSAGES)),
    )


def _add_lines(
    packer: _PreamblePacker,
    section: PreambleSection,
    lines: Sequence[tuple[int, PreambleLine]],
    share: float = 1.0,
    limit: int | None = None,
) -> int:
    """Take up to `limit` lines that fit and are not there yet, stepping over the others; return how many were taken."""
    there = {line.key for each, _, line in packer.chosen if each is section}
    taken = 0
    for place, line in lines:
        if taken == limit:
            break
        if line.key not in there and packer.add(section, place, line, share):
            there.add(line.key)
            taken += 1
    return taken


def _add_messages(packer: _PreamblePacker, messages: Sequence[PreambleLine], token_limit: float) -> int:
    """Take messages from the newest back to the first that does not fit and return how many there are.

    Where not all fit, those behind the newest leave the room above `token_limit` tokens to a summary. A newest message too
    long for the room is cut rather than lost.
    """
    whole = sum(count_tokens(line.text) + 1 for line in messages) + count_tokens(PreambleSection.MESSAGES.value) + 2
    share = 1.0 if packer.used + whole <= packer.capacity else token_limit / max(1, packer.capacity)
    shown = 0
    for place in range(len(messages) - 1, -1, -1):
        line = messages[place]
        taken = (
            packer.add(PreambleSection.MESSAGES, place, line, share)
            if shown
            else packer.add_truncated(PreambleSection.MESSAGES, place, line)
        )
        if not taken:
            break
        shown += 1
    return shown
