"""Which candidates rest on text that addresses the assistant, or claims to speak for the user. Pure.

The model says of every candidate that rests on a line which is not the user's own word whether the words inform or
address, and quotes them. What follows from it is decided here, by the lines, the quotes and the types alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmem.conversations.session import MessageRole, TextOrigin
from graphmem.ingestion.llm_schemas import Addressee, Candidate, Screening, Speech
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.memories.memory import MemoryType
from graphmem.models.prompts import indent_continuations
from graphmem.text.quoting import find_words

UNANSWERED = "the model did not say whether it informs or addresses the assistant"
"""Why a statement without a screening is not saved."""

UNQUOTED = "the model quotes words for it that stand in none of its messages"
"""Why a statement whose screening cannot be checked is not saved."""

ADDRESSES_ASSISTANT = "it addresses the assistant instead of informing"
"""Why a statement that wants something of the assistant is not saved."""

PART_OF_ADDRESS = "its words are part of a text that addresses the assistant"
"""Why a statement is not saved that shares its words with one that addresses the assistant."""

SPEAKS_FOR_USER = "it says what the user likes, wants or does, and only a text of others says so"
"""Why a statement about the user's preferences or habits is not saved."""

TAKES_BACK = "only the user takes back what was said"
"""Why a text of others deletes nothing."""

_PERSONAL_TYPES = frozenset({MemoryType.PREFERENCE, MemoryType.BEHAVIORAL_PATTERN, MemoryType.INFERRED_INTEREST})
"""Types of statements that only the user makes about the user."""

_DESCRIPTIONS = {
    TextOrigin.TOOL: "the result of a tool",
    TextOrigin.DOCUMENT: "a part of a document",
    TextOrigin.WEB: "a web page",
    TextOrigin.ASSISTANT: "said by the assistant",
    TextOrigin.SYSTEM: "said by the system",
}


@dataclass(frozen=True, slots=True)
class Catch:
    """Why a candidate is not saved, with the words that show it; `is_kept` says that an admin may look at it."""

    reason: str
    quote: str = ""
    is_kept: bool = True


def is_of_member(line: TranscriptLine) -> bool:
    """Return whether a member of a space said a line."""
    return line.author is not None and line.role is MessageRole.USER and line.origin is TextOrigin.USER


def find_foreign_lines(lines: Iterable[TranscriptLine]) -> list[TranscriptLine]:
    """Return the lines that are not the user's own word, those of the assistant among them.

    A conversation of the user and the assistant alone has none: what is kept of it rests on what the user says.
    """
    foreign = [line for line in lines if line.origin is not TextOrigin.USER or is_of_member(line)]
    return foreign if any(line.origin is not TextOrigin.ASSISTANT for line in foreign) else []


def render_foreign_lines(lines: Iterable[TranscriptLine]) -> str:
    """Return one entry for each line that is not the user's own word: its number, and whose text it is."""
    return "\n".join(f"[{line.number}] {_describe(line)}" for line in find_foreign_lines(lines))


def _describe(line: TranscriptLine) -> str:
    if is_of_member(line):
        return f"said by {indent_continuations(line.speaker or 'somebody')}, a member of the space"
    return _DESCRIPTIONS[line.origin]


def find_catches(
    candidates: Sequence[Candidate],
    lines: Sequence[TranscriptLine],
    screenings: Mapping[int, Screening],
    is_about_user: Callable[[Candidate], bool],
) -> dict[int, Catch]:
    """Return the candidates that are not saved, by index; `screenings` are the model's answers by index."""
    foreign = {line.number: line for line in find_foreign_lines(lines)}
    numbers = {line.number for line in lines}
    if not foreign:
        return {}
    catches: dict[int, Catch] = {}
    sources_of: dict[int, list[TranscriptLine]] = {}
    for index, candidate in enumerate(candidates):
        sources = [foreign[number] for number in candidate.messages if number in foreign]
        if not sources:
            continue
        sources_of[index] = sources
        has_own_line = any(number in numbers and number not in foreign for number in candidate.messages)
        is_claim = not has_own_line and not any(map(is_of_member, sources))
        catch = _check_screening(screenings.get(index), sources)
        if catch is None and is_claim and candidate.retracts:
            catch = Catch(TAKES_BACK, is_kept=False)
        if catch is None and is_claim and candidate.type in _PERSONAL_TYPES and is_about_user(candidate):
            catch = Catch(SPEAKS_FOR_USER, screenings[index].quote)
        if catch:
            catches[index] = catch
    addressing = [catch.quote for catch in catches.values() if catch.reason == ADDRESSES_ASSISTANT]
    for index in sources_of:
        quote = screenings[index].quote if index in screenings else ""
        if index not in catches and any(_shares_words(quote, other) for other in addressing):
            catches[index] = Catch(PART_OF_ADDRESS, quote)
    return catches


def _check_screening(screening: Screening | None, sources: Sequence[TranscriptLine]) -> Catch | None:
    """Return why the words that a candidate rests on are no memory, or None."""
    if screening is None:
        return Catch(UNANSWERED)
    if not any(find_words(screening.quote, line.text) for line in sources):
        return Catch(UNQUOTED)
    if screening.speech is Speech.ADDRESSES and screening.addressee in (Addressee.ASSISTANT, None):
        return Catch(ADDRESSES_ASSISTANT, screening.quote)
    return None


def _shares_words(quote: str, other: str) -> bool:
    return find_words(quote, other) is not None or find_words(other, quote) is not None
