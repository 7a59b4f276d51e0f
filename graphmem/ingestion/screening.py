"""Screening: candidates that address the assistant instead of informing are not saved. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.answers import (
    Addressee,
    Candidate,
    Screening,
    Speech,
)
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.memories.new_memory import PERSONAL_TYPES, SPEAKS_FOR_USER
from graphmem.models.language_model import indent_continuations
from graphmem.text.tokenising import find_words

UNANSWERED = "the model did not say whether it informs or addresses the assistant"
"""Why a statement without a screening is not saved."""

UNQUOTED = "the model quotes words for it that stand in none of its messages"
"""Why a statement whose screening cannot be checked is not saved."""

ADDRESSES_ASSISTANT = "it addresses the assistant instead of informing"
"""Why a statement that makes a request to the assistant is not saved."""

PART_OF_ADDRESS = "its words are part of a text that addresses the assistant"
"""Why a statement that shares its words with one addressing the assistant is not saved."""

TAKES_BACK = "only users retract their own statements"
"""Why third-party text deletes nothing."""

_DESCRIPTIONS = {
    "tool": "the result of a tool",
    "document": "a part of a document",
    "web": "a web page",
    "assistant": "said by the assistant",
    "operator": "said by the system",
}


@dataclass(frozen=True, slots=True)
class Catch:
    """Why a candidate is not saved, with the words that show it and the ids of their messages.

    `is_kept` means that an admin may release it; a candidate that would take a memory back is always refused.
    """

    reason: str
    quote: str = ""
    message_ids: tuple[str, ...] = ()
    is_kept: bool = True


def is_of_member(line: TranscriptLine) -> bool:
    """Return whether a line is by a member of a space."""
    return line.author is not None and line.role is MessageRole.USER and line.origin == "user"


def find_foreign_lines(lines: Iterable[TranscriptLine]) -> list[TranscriptLine]:
    """Return the lines that are not by the user, including the assistant's.

    A conversation of only the user and the assistant has none: its memories are taken from the user's words.
    """
    foreign = [line for line in lines if line.origin != "user" or is_of_member(line)]
    return foreign if any(line.origin != "assistant" for line in foreign) else []


def render_foreign_lines(lines: Iterable[TranscriptLine]) -> str:
    """Return an entry for each line not by the user: its number and source."""
    return "\n".join(f"[{line.number}] {_describe(line)}" for line in find_foreign_lines(lines))


def _describe(line: TranscriptLine) -> str:
    if is_of_member(line):
        return f"said by {indent_continuations(line.speaker or 'somebody')}, a member of the space"
    return _DESCRIPTIONS[line.origin]


@dataclass(frozen=True, slots=True)
class _ForeignCandidate:
    """A candidate from lines not by the user; `quoted` are the lines that contain its source words.

    `is_claim` means that neither the user nor a member of the space is among its speakers.
    """

    candidate: Candidate
    screening: Screening | None
    quoted: Sequence[TranscriptLine]
    is_claim: bool
    is_about_user: bool

    @property
    def quote(self) -> str:
        """The words it is taken from, or empty if none of its lines contains them."""
        return self.screening.quote if self.screening and self.quoted else ""

    def find_reason(self) -> str | None:
        """Return why it is not saved, if the reason is in its own words."""
        if self.screening is None:
            return UNANSWERED
        if not self.quoted:
            return UNQUOTED
        if self.screening.speech is Speech.ADDRESSES and self.screening.addressee in (Addressee.ASSISTANT, None):
            return ADDRESSES_ASSISTANT
        if self.is_claim and self.candidate.retracts:
            return TAKES_BACK
        if self.is_claim and self.is_about_user and self.candidate.type in PERSONAL_TYPES:
            return SPEAKS_FOR_USER
        return None


def find_catches(
    candidates: Sequence[Candidate],
    lines: Sequence[TranscriptLine],
    screenings: Mapping[int, Screening],
    is_about_user: Callable[[Candidate], bool],
) -> dict[int, Catch]:
    """Return the candidates not to save, by index; `screenings` are the model's answers by index."""
    foreign = {line.number: line for line in find_foreign_lines(lines)}
    own = {line.number for line in lines} - foreign.keys()
    screened: dict[int, _ForeignCandidate] = {}
    for index, candidate in enumerate(candidates):
        sources = [foreign[number] for number in candidate.messages if number in foreign]
        if not sources:
            continue
        screening = screenings.get(index)
        quoted = [line for line in sources if screening and find_words(screening.quote, line.text)]
        is_claim = own.isdisjoint(candidate.messages) and not any(map(is_of_member, sources))
        screened[index] = _ForeignCandidate(candidate, screening, quoted, is_claim, is_about_user(candidate))
    reasons = {index: one.find_reason() for index, one in screened.items()}
    addressing = [screened[index].quote for index, reason in reasons.items() if reason == ADDRESSES_ASSISTANT]
    catches: dict[int, Catch] = {}
    for index, one in screened.items():
        reason = reasons[index]
        if reason is None and any(_shares_words(one.quote, other) for other in addressing):
            reason = PART_OF_ADDRESS
        if reason:
            message_ids = tuple(dict.fromkeys(line.message_id for line in one.quoted))
            catches[index] = Catch(reason, one.quote, message_ids, is_kept=not one.candidate.retracts)
    return catches


def _shares_words(quote: str, other: str) -> bool:
    return find_words(quote, other) is not None or find_words(other, quote) is not None
