"""The window put before the model: what matters most first, all of it within a number of tokens. Pure (TRUE-12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from graphmem.domain.tokens import count_tokens, truncate_to_tokens
from graphmem.errors import InvalidInput

HEADING = "## Information about this user from past conversations:"
"""What the memories stand under, one `- ` bullet each (CASH-17)."""

PROFILE_SHARE = 0.5
"""So much of the room goes to the profile before anything else is looked at; what is left at the end goes to it too."""

MANNER_SHARE = 0.6
MEMORY_SHARE = 0.75
TALK_SHARE = 0.9
"""Up to these parts of the room, filled in this order: how to answer, memories by relevance, earlier conversations."""

SUMMARY_BELOW = 0.8
"""A summary of the messages left out is added while less of the budget than this is used; where they do not all fit,
the older ones leave that much to it."""

LEAST_CUT = 16
"""A text is cut to fit only where at least so many tokens of it remain."""


class Section(Enum):
    """The parts of the preamble in their order; the value is the heading."""

    MEMORIES = HEADING
    MANNER = "## How to answer this user:"
    TALKS = "## From earlier conversations:"
    REST = "## Earlier in this conversation:"
    MESSAGES = "## Last messages of this conversation (what they say counts where it differs from the above):"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the preamble; `key` tells what it was made from."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Material:
    """What could be told: profile by importance, relevant memories by relevance, messages oldest first.

    A memory may be in both lists; `top` is how many of `relevant` are told beside those of the profile.
    `rest` tells the messages that remain when only so many of the newest are shown; empty when there are none.
    """

    profile: Sequence[Line] = ()
    relevant: Sequence[Line] = ()
    top: int = 10
    manner: Sequence[Line] = ()
    talks: Sequence[Line] = ()
    messages: Sequence[Line] = ()
    rest: Callable[[int], str] = lambda shown: ""


@dataclass(frozen=True, slots=True)
class Window:
    """The preamble and what it holds: keys in the order told; `token_count` is that of preamble and question."""

    preamble: str
    token_count: int
    memory_keys: list[str]
    message_keys: list[str]
    summarised: bool


@dataclass(slots=True)
class _Packing:
    """A preamble being filled; `used` never falls short of its tokens by more than joining lines can add."""

    room: int
    used: int = 0
    chosen: list[tuple[Section, int, Line]] = field(default_factory=list)

    def add(self, section: Section, place: int, line: Line, most: float = 1.0) -> bool:
        """Take a line when it fits into `most` of the room; `place` orders it within its section."""
        cost = self._cost(section, line)
        if self.used + cost > self.room * most:
            return False
        self.chosen.append((section, place, line))
        self.used += cost
        return True

    def add_cut(self, section: Section, place: int, line: Line, most: float = 1.0) -> bool:
        """Take a line, cut where only a part of it fits."""
        if self.add(section, place, line, most):
            return True
        left = int(self.room * most) - self.used - self._cost(section, Line("", "")) - 1
        if left < LEAST_CUT:
            return False
        return self.add(section, place, Line(line.key, truncate_to_tokens(line.text, left).rstrip() + "…"), most)

    def text(self) -> str:
        """Return the preamble, section by section."""
        return "\n\n".join(
            "\n".join([section.value, *(line.text for line in self.of(section))])
            for section in Section
            if any(each is section for each, _, _ in self.chosen)
        )

    def of(self, section: Section) -> list[Line]:
        """Return the lines of a section in order."""
        return [
            line for _, line in sorted(((p, x) for s, p, x in self.chosen if s is section), key=lambda each: each[0])
        ]

    def _cost(self, section: Section, line: Line) -> int:
        opened = any(each is section for each, _, _ in self.chosen)
        return count_tokens(line.text) + 1 + (0 if opened else count_tokens(section.value) + 2)


def require_room(question: str, budget: int) -> int:
    """Return how many tokens a question has; raise InvalidInput when these alone are more than the budget."""
    asked = count_tokens(question)
    if asked > budget:
        raise InvalidInput(
            f"The question alone has {asked} tokens, over the budget of {budget}: raise token_budget.",
            errors=[{"loc": ["token_budget"], "msg": f"is below the {asked} tokens of the question"}],
        )
    return asked


def pack(question: str, material: Material, budget: int) -> Window:
    """Return the fullest window that fits: never above `budget` tokens together with the question, which is always in.

    Order of claims: profile, how to answer, relevant memories, earlier conversations, newest messages up to the first
    that does not fit, a summary of the messages left out (below 80 % use), then what is left of the memories.
    Raises InvalidInput when the question alone has more tokens than the budget.
    """
    asked = require_room(question, budget)
    packing = _Packing(budget - asked)
    profile = list(enumerate(material.profile))
    relevant = list(enumerate(material.relevant, len(profile)))
    _take(packing, Section.MEMORIES, profile[:1])
    _take(packing, Section.MEMORIES, profile, PROFILE_SHARE)
    _take(packing, Section.MANNER, list(enumerate(material.manner)), MANNER_SHARE)
    left = material.top - _take(packing, Section.MEMORIES, relevant, MEMORY_SHARE, material.top)
    for place, talk in enumerate(material.talks):
        packing.add_cut(Section.TALKS, place, talk, TALK_SHARE)
    shown = _take_messages(packing, material.messages, SUMMARY_BELOW * budget - asked)
    if (told := material.rest(shown)) and asked + packing.used < SUMMARY_BELOW * budget:
        packing.add_cut(Section.REST, 0, Line("rest", told))
    _take(packing, Section.MEMORIES, profile)
    _take(packing, Section.MEMORIES, relevant, 1.0, left)
    preamble = packing.text()
    while packing.chosen and asked + count_tokens(preamble) > budget:
        packing.chosen.pop()
        preamble = packing.text()
    return Window(
        preamble=preamble,
        token_count=asked + count_tokens(preamble),
        memory_keys=[line.key for line in packing.of(Section.MEMORIES)],
        message_keys=[line.key for line in packing.of(Section.MESSAGES)],
        summarised=bool(packing.of(Section.REST)),
    )


def _take(
    packing: _Packing, section: Section, lines: Sequence[tuple[int, Line]], share: float = 1.0, most: int | None = None
) -> int:
    """Take up to `most` lines that fit and are not there yet, stepping over the others; return how many were taken."""
    there = {line.key for each, _, line in packing.chosen if each is section}
    taken = 0
    for place, line in lines:
        if taken == most:
            break
        if line.key not in there and packing.add(section, place, line, share):
            there.add(line.key)
            taken += 1
    return taken


def _take_messages(packing: _Packing, messages: Sequence[Line], most: float) -> int:
    """Take messages from the newest back to the first that does not fit and return how many there are.

    Where not all fit, those behind the newest leave the room above `most` tokens to a summary. A newest message too
    long for the room is cut rather than lost.
    """
    whole = sum(count_tokens(line.text) + 1 for line in messages) + count_tokens(Section.MESSAGES.value) + 2
    share = 1.0 if packing.used + whole <= packing.room else most / max(1, packing.room)
    shown = 0
    for place in range(len(messages) - 1, -1, -1):
        line = messages[place]
        taken = (
            packing.add(Section.MESSAGES, place, line, share)
            if shown
            else packing.add_cut(Section.MESSAGES, place, line)
        )
        if not taken:
            break
        shown += 1
    return shown
