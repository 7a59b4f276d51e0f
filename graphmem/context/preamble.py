"""The preamble of a prompt: the most important lines that fit into a token budget. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby

from graphmem.runtime.errors import InvalidInput
from graphmem.text.token_counts import count_tokens, truncate_to_tokens

MEMORIES_HEADING = "## Information about this user from past conversations:"
"""Heading of the memories, which follow as `- ` bullets."""

PROFILES_SHARE = 0.25
"""Share of the capacity for profiles of entities named by the question, added before everything else."""

STYLE_SHARE = 0.2
"""Share of the capacity for style instructions, added after the most important memory of the profile."""

ANSWER_SHARE = 0.6
"""Share of the capacity for answers to the question, which also get space left by other sections."""

PROFILE_SHARE = 0.5
"""Share of the capacity up to which the profile is added, after answers."""

MIN_PROFILE_SHARE = 0.05
"""Share of the capacity reserved for memories of the profile, however much answers fill."""

MEMORY_SHARE = 0.75
"""Share of the capacity up to which further answers and relevant memories are added, after the profile."""

DATA_NOTE_SHARE = 0.05
"""Maximum share of the capacity for the note that memories are data; a smaller context omits it."""

CITATION_SHARE = 0.03
"""Maximum share of the capacity for the instruction on citing; a smaller context omits it."""

PAST_SESSIONS_SHARE = 0.9
"""Share of the capacity up to which earlier sessions are added, after relevant memories."""

SUMMARY_USAGE_LIMIT = 0.8
"""Share of the budget below which a digest of the omitted messages is added.

If not all messages fit, those before the newest are only added up to this share.
"""

MIN_TRUNCATED_TOKENS = 16
"""Minimum tokens of a truncated text; a shorter one is omitted."""


class PreambleSection(Enum):
    """The sections of the preamble in their order; the value is the heading."""

    MEMORIES = MEMORIES_HEADING
    QUOTES = "## Said before:"
    STYLE_INSTRUCTIONS = "## How to answer this user:"
    PAST_SESSIONS = "## From earlier conversations:"
    OMITTED_MESSAGES = "## Earlier in this conversation:"
    MESSAGES = "## Last messages of this conversation (what they say counts where it differs from the above):"


@dataclass(frozen=True, slots=True)
class PreambleLine:
    """One line of the preamble; `key` identifies what it was made from.

    Lines with an `origin`, the title of a space, are shown together below it. `further` are the keys of other elements
    that the line was made from.
    """

    key: str
    text: str
    origin: str = ""
    further: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys of the line's elements."""
        return (self.key, *self.further)


ANSWER_SECTIONS = (PreambleSection.MEMORIES, PreambleSection.QUOTES)
"""The sections that contain answers."""

PlacedLine = tuple[float, PreambleLine]
"""A line and its place within its section."""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A memory or a quoted message that may answer the question; `place` orders it within its section."""

    section: PreambleSection
    place: float
    line: PreambleLine


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """The profile of an entity, and the keys of the memories whose content it covers."""

    line: PreambleLine
    told: Set[str]


@dataclass(frozen=True, slots=True)
class PreambleContent:
    """The candidate lines: profiles of named entities, answers best first, profile by importance, relevant memories.

    A memory may be in several lists; `top` limits the number from `relevant` and `unsure` beyond the other lists.
    `unsure` are from domains that the question may belong to, the nearest first. Messages are oldest first. `data_note`
    says that memories are no instructions, `citation` asks to mention them. `summarize_omitted` returns a digest of the
    messages that are not among the given number of newest ones, or an empty string.
    """

    profiles: Sequence[ProfileLine] = ()
    answers: Sequence[AnswerLine] = ()
    profile: Sequence[PreambleLine] = ()
    relevant: Sequence[PreambleLine] = ()
    unsure: Sequence[PreambleLine] = ()
    top: int = 10
    style_instructions: Sequence[PreambleLine] = ()
    past_sessions: Iterable[PreambleLine] = ()
    messages: Sequence[PreambleLine] = ()
    data_note: PreambleLine | None = None
    citation: PreambleLine | None = None
    summarize_omitted: Callable[[int], str] = lambda shown: ""


@dataclass(frozen=True, slots=True)
class PackedPreamble:
    """The preamble, with its memories and messages in order; `token_count` counts preamble and question.

    `profile_keys` are the keys of entity profiles.

    `quotes` are messages that answer the question, `messages` those of the session.
    """

    preamble: str
    token_count: int
    memory_keys: list[str]
    profile_keys: list[str]
    quotes: list[PreambleLine]
    messages: list[PreambleLine]
    has_summary: bool


@dataclass(slots=True)
class _PreamblePacker:
    """A preamble being filled; `used` is the sum of its lines' tokens, each with the end of its line."""

    capacity: int
    used: int = 0
    chosen: list[tuple[PreambleSection, float, PreambleLine]] = field(default_factory=list)
    begun: set[tuple[PreambleSection, str]] = field(default_factory=set)
    """The sections that have a line, and the origins of their lines; the section itself has the origin ""."""

    def add(self, section: PreambleSection, place: float, line: PreambleLine, share: float = 1.0) -> bool:
        """Add a line if it fits into `share` of the capacity; `place` orders it within its section."""
        cost = self.cost(section, line)
        if self.used + cost > self.capacity * share:
            return False
        self.chosen.append((section, place, line))
        self.begun |= {(section, ""), (section, line.origin)}
        self.used += cost
        return True

    def add_truncated(self, section: PreambleSection, place: float, line: PreambleLine, share: float = 1.0) -> bool:
        """Add a line, truncated if only a part of it fits."""
        if self.add(section, place, line, share):
            return True
        left = int(self.capacity * share) - self.used - self.cost(section, replace(line, text="")) - 1
        if left < MIN_TRUNCATED_TOKENS:
            return False
        return self.add(section, place, replace(line, text=truncate_to_tokens(line.text, left).rstrip() + "…"), share)

    def render(self) -> str:
        """Return the preamble, section by section."""
        sections = ((section, self.lines_in(section)) for section in PreambleSection)
        return "\n\n".join("\n".join([section.value, *_render_lines(lines)]) for section, lines in sections if lines)

    def lines_in(self, section: PreambleSection) -> list[PreambleLine]:
        """Return the lines of a section in order: those without an origin, then those of each origin together."""
        places = [(place, line) for chosen_section, place, line in self.chosen if chosen_section is section]
        places.sort(key=lambda chosen: chosen[0])
        origins = {"": -1} | {line.origin: order for order, (_, line) in reversed([*enumerate(places)]) if line.origin}
        return sorted((line for _, line in places), key=lambda line: origins[line.origin])

    def cost(self, section: PreambleSection, line: PreambleLine) -> int:
        """Return the tokens that a line adds, with the heading if it is the first of its section or origin."""
        cost = count_line_tokens(line.text)
        if (section, "") not in self.begun:
            cost += count_line_tokens(section.value) + 1
        if (section, line.origin) not in self.begun and line.origin:
            cost += count_line_tokens(_origin_heading(line.origin))
        return cost

    def fits_whole(self, section: PreambleSection, lines: Sequence[PreambleLine]) -> bool:
        """Return whether a new section of these lines fits; counting from the last line back stops once it does not."""
        left = self.capacity - self.used - count_line_tokens(section.value) - 1
        for line in reversed(lines):
            left -= count_line_tokens(line.text)
            if left < 0:
                return False
        return left >= 0


def count_line_tokens(text: str) -> int:
    """Return the tokens of a line with its end, which is often one token together with a full stop."""
    return count_tokens(f"{text}\n")


def _origin_heading(origin: str) -> str:
    return f"{origin}:"


def _render_lines(lines: Iterable[PreambleLine]) -> Iterator[str]:
    """Yield the texts of lines, with those of an origin below its heading."""
    for origin, group in groupby(lines, key=lambda line: line.origin):
        if origin:
            yield _origin_heading(origin)
        yield from (line.text for line in group)


def ensure_question_fits(question: str, budget: int) -> int:
    """Return the tokens of a question; raise InvalidInput if they exceed the budget."""
    asked = count_tokens(question)
    if asked > budget:
        raise InvalidInput(
            f"The question alone has {asked} tokens, over the budget of {budget}: raise token_budget.",
            errors=[{"loc": ["token_budget"], "msg": f"is below the {asked} tokens of the question"}],
        )
    return asked


def pack_preamble(question: str, content: PreambleContent, budget: int) -> PackedPreamble:
    """Return the fullest preamble that has, with the question, at most `budget` tokens.

    Lines are added in this order: profiles of named entities, the most important memory of the profile, style
    instructions, answers, the profile, relevant memories, the notes on how to use them, earlier sessions, the newest
    messages up to the first that does not fit, a digest of the omitted messages (below 80 % use), the remaining answers
    and memories, and those of domains that the question may belong to. If not all memories fit, those covered by the
    profiles are left out. Raises InvalidInput if the question alone exceeds the budget.
    """
    asked = ensure_question_fits(question, budget)
    packer = _PreamblePacker(budget - asked)
    heads = {profile.line.key: profile for profile in content.profiles}
    _add_lines(packer, PreambleSection.MEMORIES, _before_all(content.profiles), PROFILES_SHARE)
    content = _without(content, _told_by(packer, content, heads))
    answers = content.answers
    profile: list[PlacedLine] = list(enumerate(content.profile, len(answers)))
    relevant: list[PlacedLine] = list(enumerate(content.relevant, len(answers) + len(profile)))
    own = {line.key for line in content.profile}
    unsure: list[PlacedLine] = list(enumerate(content.unsure, len(answers) + len(profile) + len(relevant)))
    if not any(answer.line.key in own for answer in answers):
        _add_lines(packer, PreambleSection.MEMORIES, profile[:1])
    _add_lines(packer, PreambleSection.STYLE_INSTRUCTIONS, list(enumerate(content.style_instructions)), STYLE_SHARE)
    _add_answers(packer, answers, ANSWER_SHARE)
    _add_lines(packer, PreambleSection.MEMORIES, profile, _profile_share(packer, own))
    _add_answers(packer, answers, MEMORY_SHARE)
    left = content.top - _add_lines(packer, PreambleSection.MEMORIES, relevant, MEMORY_SHARE, content.top)
    if unsure or any(map(packer.lines_in, ANSWER_SECTIONS)):
        _add_note(packer, content.data_note, len(content.style_instructions), DATA_NOTE_SHARE)
    if packer.lines_in(PreambleSection.MEMORIES):
        _add_note(packer, content.citation, len(content.style_instructions) + 1, CITATION_SHARE)
    for place, line in enumerate(content.past_sessions):
        packer.add_truncated(PreambleSection.PAST_SESSIONS, place, line, PAST_SESSIONS_SHARE)
    shown = _add_messages(packer, content.messages, SUMMARY_USAGE_LIMIT * budget - asked)
    digest = content.summarize_omitted(shown)
    if digest and asked + packer.used < SUMMARY_USAGE_LIMIT * budget:
        packer.add_truncated(PreambleSection.OMITTED_MESSAGES, 0, PreambleLine("omitted", digest))
    _add_answers(packer, answers)
    left -= _add_lines(packer, PreambleSection.MEMORIES, relevant, 1.0, left)
    _add_lines(packer, PreambleSection.MEMORIES, profile)
    _add_lines(packer, PreambleSection.MEMORIES, unsure, 1.0, left)
    if not packer.chosen:
        _add_part_of_best(packer, answers, [*profile, *[*relevant, *unsure][:left]])
    preamble = packer.render()
    while packer.chosen and asked + count_tokens(preamble) > budget:
        packer.chosen.pop()
        preamble = packer.render()
    keys = [key for line in packer.lines_in(PreambleSection.MEMORIES) for key in line.keys]
    return PackedPreamble(
        preamble=preamble,
        token_count=asked + count_tokens(preamble),
        memory_keys=[key for key in keys if key not in heads],
        profile_keys=[key for key in keys if key in heads],
        quotes=packer.lines_in(PreambleSection.QUOTES),
        messages=packer.lines_in(PreambleSection.MESSAGES),
        has_summary=bool(packer.lines_in(PreambleSection.OMITTED_MESSAGES)),
    )


def _before_all(profiles: Sequence[ProfileLine]) -> list[PlacedLine]:
    """Return the lines of profiles, placed before all memories."""
    return [(place - len(profiles), profile.line) for place, profile in enumerate(profiles)]


def _told_by(packer: _PreamblePacker, content: PreambleContent, heads: Mapping[str, ProfileLine]) -> frozenset[str]:
    """Return the keys of the memories covered by the added profiles, if not all memories fit next to them."""
    added = [heads[line.key] for line in packer.lines_in(PreambleSection.MEMORIES)]
    if not added:
        return frozenset()
    lines = [*(answer.line for answer in content.answers), *content.profile, *content.relevant]
    needed = sum(count_line_tokens(line.text) for line in {line.key: line for line in lines}.values())
    if packer.used + needed <= packer.capacity:
        return frozenset()
    return frozenset(key for profile in added for key in profile.told)


def _without(content: PreambleContent, keys: Set[str]) -> PreambleContent:
    """Return the content without the lines of some memories."""
    if not keys:
        return content
    return replace(
        content,
        answers=[answer for answer in content.answers if answer.line.key not in keys],
        profile=[line for line in content.profile if line.key not in keys],
        relevant=[line for line in content.relevant if line.key not in keys],
    )


def _add_lines(
    packer: _PreamblePacker,
    section: PreambleSection,
    lines: Sequence[PlacedLine],
    share: float = 1.0,
    limit: int | None = None,
) -> int:
    """Add up to `limit` lines that fit and are not in the section yet; return the number added."""
    present = {key for line in packer.lines_in(section) for key in line.keys}
    added = 0
    for place, line in lines:
        if added == limit:
            break
        if line.key not in present and packer.add(section, place, line, share):
            present.add(line.key)
            added += 1
    return added


def _add_answers(packer: _PreamblePacker, answers: Sequence[AnswerLine], share: float = 1.0) -> None:
    """Add the answers not added yet, up to the first that does not fit into a share of the capacity.

    With the whole capacity, later answers are added if they fit.
    """
    present = {key for section in ANSWER_SECTIONS for line in packer.lines_in(section) for key in line.keys}
    for answer in answers:
        if answer.line.key in present:
            continue
        if not packer.add(answer.section, answer.place, answer.line, share) and share < 1.0:
            break


def _add_part_of_best(packer: _PreamblePacker, answers: Sequence[AnswerLine], memories: Sequence[PlacedLine]) -> None:
    """Add the beginning of the best line if no line fits whole."""
    lines = [(answer.section, answer.line) for answer in answers]
    lines += [(PreambleSection.MEMORIES, line) for _, line in memories]
    for section, line in lines[:1]:
        packer.add_truncated(section, 0, line)


def _profile_share(packer: _PreamblePacker, own: Set[str]) -> float:
    """Return the share of the capacity up to which the profile may be added, given the keys of its lines."""
    if not packer.capacity:
        return PROFILE_SHARE
    present = sum(count_line_tokens(line.text) for line in packer.lines_in(PreambleSection.MEMORIES) if line.key in own)
    missing = max(0.0, MIN_PROFILE_SHARE - present / packer.capacity)
    return max(PROFILE_SHARE, packer.used / packer.capacity + missing)


def _add_note(packer: _PreamblePacker, note: PreambleLine | None, place: int, share: float) -> None:
    """Add a note on how to use memories, unless it takes more than a share of the capacity."""
    if note and packer.cost(PreambleSection.STYLE_INSTRUCTIONS, note) <= share * packer.capacity:
        packer.add(PreambleSection.STYLE_INSTRUCTIONS, place, note)


def _add_messages(packer: _PreamblePacker, messages: Sequence[PreambleLine], token_limit: float) -> int:
    """Add messages from the newest back to the first that does not fit; return the number added.

    If not all fit, messages before the newest are only added up to `token_limit` tokens, leaving the rest to the
    digest. A newest message that is too long is truncated.
    """
    fit = packer.fits_whole(PreambleSection.MESSAGES, messages)
    share = 1.0 if fit else token_limit / max(1, packer.capacity)
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
