"""The numbered sources shown to a model for a question, and the check of its quotes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.ask.models import Citation, SourceQuote
from graphmem.context.answer_lines import source_note
from graphmem.context.conversation_summary import to_single_line
from graphmem.context.hints import format_date
from graphmem.context.preamble import PreambleLine
from graphmem.context.relevance import content_words
from graphmem.conversations.session import Message
from graphmem.memories.memory import Memory, MemoryStatus
from graphmem.models.language_model import indent_continuations
from graphmem.text.normalising import fold
from graphmem.text.tokenising import find_words

_WORD = re.compile(r"\w+")

SourceKey = tuple[str | None, str | None, str | None]
"""A space, and the id of a memory or of a message."""


@dataclass(frozen=True, slots=True)
class Source:
    """A memory or a message as the prompt shows it: `shown` is its line, `text` its full content."""

    shown: str
    text: str
    at: datetime
    citation: Citation

    @classmethod
    def of_memory(cls, memory: Memory, user_entity_name: str, titles: Mapping[str, str]) -> Source:
        """Return a memory as a source, with its valid dates or the day of its first version.

        A memory about the user's own entity says so, since its text may name the user; text of others names its origin;
        a contested memory says so. A memory of a space has the space's title, from `titles` by space id.
        """
        start = format_date(memory.valid_at) if memory.valid_at else ""
        end = f"until {format_date(memory.invalid_at)}" if memory.invalid_at else ""
        held = f"{start} {end}".strip() or f"noted {format_date(memory.created_at)}"
        doubt = "contested, it is not known whether it holds" if memory.status is MemoryStatus.CONTESTED else ""
        noted = "".join(f", {note}" for note in (source_note(memory), doubt) if note)
        about = "about the user, " if memory.subject.name == user_entity_name else ""
        shown = f"memory ({_origin(memory.space, titles)}{about}{held}{noted}): {indent_continuations(memory.content)}"
        citation = Citation(memory_id=memory.id, quote="", valid_at=memory.valid_at, space=memory.space)
        return cls(shown, memory.content, memory.valid_at or memory.created_at, citation)

    @classmethod
    def of_message(cls, message: Message, line: PreambleLine, user_id: str, titles: Mapping[str, str]) -> Source:
        """Return a message as a source; `line` has its speaker and the part of it that a context shows.

        A message of a space has the space's title, and says so if the user speaks there under their id.
        """
        day = format_date(message.timestamp)
        said = line.text if line.text.startswith(day) else f"{day}, {line.text}"
        kind = "message"
        if message.space is not None:
            by = "by the user, " if message.name == message.user_id == user_id else ""
            kind = f"message ({f'{_origin(message.space, titles)}{by}'.removesuffix(', ')})"
        citation = Citation(message_id=message.id, quote="", valid_at=message.timestamp, space=message.space)
        return cls(f"{kind}, {said}", message.content, message.timestamp, citation)

    @property
    def key(self) -> SourceKey:
        """What identifies the source: message ids are unique only within a user or a space."""
        return self.citation.space, self.citation.memory_id, self.citation.message_id


def _origin(space: str | None, titles: Mapping[str, str]) -> str:
    return "" if space is None else f"in {to_single_line(titles.get(space, space))}, "


@dataclass(frozen=True, slots=True)
class ShownSources:
    """The sources shown so far; a source's number is its position, from 1."""

    sources: Sequence[Source] = ()

    def extended(self, found: Iterable[Source]) -> ShownSources:
        """Return these sources followed by the new ones, oldest first."""
        known = {source.key for source in self.sources}
        added = {source.key: source for source in found if source.key not in known}
        ordered = sorted(added.values(), key=lambda source: (source.at, source.shown))
        return ShownSources([*self.sources, *ordered])

    def render(self) -> str:
        """Return the lines of the prompt."""
        return "\n".join(f"[{number}] {source.shown}" for number, source in enumerate(self.sources, 1))

    def check(self, quotes: Iterable[SourceQuote]) -> list[Citation]:
        """Return a citation for each quote that occurs in the source it names, each once, in the model's order."""
        found: dict[tuple[int, str], Citation] = {}
        for quote in quotes:
            if not 0 < quote.source <= len(self.sources):
                continue
            source = self.sources[quote.source - 1]
            words = find_quote(quote.quote, source.text)
            if words is not None and find_quote(quote.quote, source.shown) is not None:
                found.setdefault((quote.source, words), source.citation.model_copy(update={"quote": words}))
        return list(found.values())


def find_quote(quote: str, text: str) -> str | None:
    """Return the words of a text that a quote repeats, as the text spells them; None if the text lacks them.

    Case, width and separators between words are ignored. A quote without content words or numbers matches nothing.
    """
    words = _WORD.findall(fold(quote).text)
    if not (content_words(quote) or any(word.isnumeric() for word in words)):
        return None
    span = find_words(quote, text)
    return None if span is None else text[slice(*span)]
