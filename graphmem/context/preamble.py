"""The preamble of a prompt: the most important lines that fit into a token budget. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graphmem.domain.token_counts import count_tokens, truncate_to_tokens
from graphmem.errors import InvalidInput

MEMORIES_HEADING = "## Information about this user from past conversations:"
"""Heading of the memories, which follow as `- ` bullets."""

PROFILE_SHARE = 0.5
"""Share of the capacity that the profile may fill first; what other sections leave goes to it at the end."""

STYLE_SHARE = 0.6
"""Share of the capacity up to which style instructions are added, after the profile."""

MEMORY_SHARE = 0.75
"""Share of the capacity up to which relevant memories are added, after style instructions."""

PAST_SESSIONS_SHARE = 0.9
"""Share of the capacity up to which earlier sessions are added, after relevant memories."""

SUMMARY_USAGE_LIMIT = 0.8
"""Share of the budget below which a digest of the omitted messages is added.

Where not all messages fit, those before the newest are added up to this share only.
"""

MIN_TRUNCATED_TOKENS = 16
"""Tokens that a truncated text must keep; a shorter one is omitted."""


class PreambleSection(Enum):
    """The sections of the preamble in their order; the value is the heading."""

    MEMORIES = MEMORIES_HEADING
    STYLE_INSTRUCTIONS = "## How to answer this user:"
    PAST_SESSIONS = "## From earlier conversations:"
    OMITTED_MESSAGES = "## Earlier in this conversation:"
    MESSAGES = "## Last messages of this conversation (what they say counts where it differs from the above):"


@dataclass(frozen=True, slots=True)
class PreambleLine:
    """One line of the preamble; `key` identifies what it was made from."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class PreambleContent:
    """The candidate lines: profile by importance, relevant memories by relevance, messages oldest first.

    A memory may be in both lists; `top` limits those of `relevant` that the profile has not contributed.
    `summarize_omitted` returns a digest of the messages that are not among so many of the newest, empty for none.
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
    """The preamble and the keys of its lines in order; `token_count` counts preamble and question."""

    preamble: str
    token_count: int
    memory_keys: list[str]
    message_keys: list[str]
    has_summary: bool


@dataclass(slots=True)
class _PreamblePacker:
    """A preamble being filled; `used` is the sum of its lines' tokens, which joining them may exceed slightly."""

    capacity: int
    used: int = 0
    chosen: list[tuple[PreambleSection, int, PreambleLine]] = field(default_factory=list)

    def add(self, section: PreambleSection, place: int, line: PreambleLine, share: float = 1.0) -> bool:
        """Add a line when it fits into `share` of the capacity; `place` orders it within its section."""
        cost = self._cost(section, line)
        if self.used + cost > self.capacity * share:
            return False
        self.chosen.append((section, place, line))
        self.used += cost
        return True

    def add_truncated(self, section: PreambleSection, place: int, line: PreambleLine, share: float = 1.0) -> bool:
        """Add a line, truncated where only a part of it fits."""
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
            if self._has(section)
        )

    def lines_in(self, section: PreambleSection) -> list[PreambleLine]:
        """Return the lines of a section in order."""
        places = [(place, line) for chosen_section, place, line in self.chosen if chosen_section is section]
        return [line for _, line in sorted(places, key=lambda chosen: chosen[0])]

    def _cost(self, section: PreambleSection, line: PreambleLine) -> int:
        heading_cost = 0 if self._has(section) else count_tokens(section.value) + 2
        return count_tokens(line.text) + 1 + heading_cost

    def _has(self, section: PreambleSection) -> bool:
        return any(chosen_section is section for chosen_section, _, _ in self.chosen)


def ensure_question_fits(question: str, budget: int) -> int:
    """Return the tokens of a question; raise InvalidInput when they exceed the budget."""
    asked = count_tokens(question)
    if asked > budget:
        raise InvalidInput(
            f"The question alone has {asked} tokens, over the budget of {budget}: raise token_budget.",
            errors=[{"loc": ["token_budget"], "msg": f"is below the {asked} tokens of the question"}],
        )
    return asked


def pack_preamble(question: str, content: PreambleContent, budget: int) -> PackedPreamble:
    """Return the fullest preamble that has, with the question, at most `budget` tokens.

    Lines are added in this order: profile, style instructions, relevant memories, earlier sessions, the newest messages
    up to the first that does not fit, a digest of the omitted messages (below 80 % use), the remaining memories.
    Raises InvalidInput when the question alone exceeds the budget.
    """
    asked = ensure_question_fits(question, budget)
    packer = _PreamblePacker(budget - asked)
    profile = list(enumerate(content.profile))
    relevant = list(enumerate(content.relevant, len(profile)))
    _add_lines(packer, PreambleSection.MEMORIES, profile[:1])
    _add_lines(packer, PreambleSection.MEMORIES, profile, PROFILE_SHARE)
    _add_lines(packer, PreambleSection.STYLE_INSTRUCTIONS, list(enumerate(content.style_instructions)), STYLE_SHARE)
    left = content.top - _add_lines(packer, PreambleSection.MEMORIES, relevant, MEMORY_SHARE, content.top)
    for place, line in enumerate(content.past_sessions):
        packer.add_truncated(PreambleSection.PAST_SESSIONS, place, line, PAST_SESSIONS_SHARE)
    shown = _add_messages(packer, content.messages, SUMMARY_USAGE_LIMIT * budget - asked)
    digest = content.summarize_omitted(shown)
    if digest and asked + packer.used < SUMMARY_USAGE_LIMIT * budget:
        packer.add_truncated(PreambleSection.OMITTED_MESSAGES, 0, PreambleLine("omitted", digest))
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
    """Add up to `limit` lines that fit and are not in the section yet; return how many were added."""
    present = {line.key for line in packer.lines_in(section)}
    added = 0
    for place, line in lines:
        if added == limit:
            break
        if line.key not in present and packer.add(section, place, line, share):
            present.add(line.key)
            added += 1
    return added


def _add_messages(packer: _PreamblePacker, messages: Sequence[PreambleLine], token_limit: float) -> int:
    """Add messages from the newest back to the first that does not fit; return how many were added.

    Where not all fit, messages before the newest are added up to `token_limit` tokens only, which leaves the rest to
    the digest. A newest message that is too long is truncated.
    """
    whole = sum(count_tokens(line.text) + 1 for line in messages) + count_tokens(PreambleSection.MESSAGES.value) + 2
    share = 1.0 if packer.used + whole <= packer.capacity else token_limit / max(1, packer.capacity)
    shown = 0
    for place in range(len(messages) - 1, -1, -1):
        line = messages[place]
        is_added = (
            packer.add(PreambleSection.MESSAGES, place, line, share)
            if shown
            else packer.add_truncated(PreambleSection.MESSAGES, place, line)
        )
        if not is_added:
            break
        shown += 1
    return shown
