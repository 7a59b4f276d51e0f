"""Which facts and messages answer a question, as lines in the order in which they fill a budget. Pure.

Facts come first: those that fit, then a message after every few others, because a message may say what no fact was made
of. Summaries of conversations come last: they name many topics and state little of any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from itertools import chain

from graphmem.context import cues
from graphmem.context.conversation_summary import to_single_line
from graphmem.context.hints import format_date, last_said_at
from graphmem.context.preamble import AnswerLine, PreambleLine
from graphmem.context.relevance import ExcerptWords, content_words
from graphmem.conversations.session import Message, MessageRole
from graphmem.memories.entity_profile import EntityProfile
from graphmem.memories.memory import Memory, MemoryType, Scope
from graphmem.search.models import FIT_SCORE, MessageHit, SearchHit
from graphmem.tenants.owners import MessageName
from graphmem.text.time_expressions import names_year

MIN_FIT = 0.1
"""Score from which a memory may answer a question in other words."""

MIN_FACTS, MAX_FACTS = 4, 8
"""Facts before the first message: those that fit, but no fewer and no more than these."""

FACTS_PER_MESSAGE = 2
"""Facts between two messages."""

MIN_SIMILARITY = 0.25
"""Cosine similarity from which a message with any word of a question may say something about it."""

CLEAR_SIMILARITY = 0.4
"""Cosine similarity from which a message may say something about a question without a word of it."""

MIN_SHARED_WORDS = 0.5
"""Share of the words of a question from which a message may say something about it, however similar it is."""

MAX_REPEATED_WORDS = 0.8
"""Share of the content words of a line that an earlier line has, from which it repeats that one."""

_ECHO_WORDS = content_words(" ".join(cues.ECHO))

SUMMARIES = frozenset({MemoryType.CONVERSATION_SUMMARY, MemoryType.CONVERSATION_TOPIC})
"""Types of memories that say what was talked about."""


def order_answers(facts: Sequence[SearchHit], messages: Iterable[MessageHit]) -> Iterator[SearchHit | MessageHit]:
    """Yield the facts that may answer a question, and messages between them; both are given best first."""
    relevant = [hit for hit in facts if hit.score >= MIN_FIT]
    stating = [hit for hit in relevant if hit.memory.type not in SUMMARIES]
    fitting = [hit for hit in stating if hit.score >= FIT_SCORE][:MAX_FACTS]
    fitting += _without(stating, fitting)[: max(0, MIN_FACTS - len(fitting))]
    fitting += _same_relation(fitting, stating)
    others = _without(stating, fitting)
    others += [hit for hit in relevant if hit.memory.type in SUMMARIES]
    yield from fitting
    yield from _interleave(others, messages)


def limit_memories(hits: Iterable[SearchHit | MessageHit], limit: int) -> Iterator[SearchHit | MessageHit]:
    """Yield messages, memories of the profile, and of the other memories so many."""
    for hit in hits:
        if is_counted(hit):
            limit -= 1
            if limit < 0:
                continue
        yield hit


def is_counted(hit: SearchHit | MessageHit) -> bool:
    """Return whether a hit counts towards the memories that a request wants beside those of the profile."""
    return isinstance(hit, SearchHit) and hit.memory.scope is not Scope.PROFILE


def count_chosen(lines: Sequence[AnswerLine], hits: Sequence[SearchHit]) -> int:
    """Return how many of the lines are memories that count towards the limit of a request."""
    counted = {hit.memory.id for hit in hits if is_counted(hit)}
    return sum(answer.line.key in counted for answer in lines)


def without_repetitions(texts: Iterable[tuple[str, AnswerLine]]) -> list[AnswerLine]:
    """Return lines without those whose text repeats most of an earlier one."""
    kept: list[AnswerLine] = []
    lines_by_word: dict[str, list[int]] = defaultdict(list)
    for text, answer in texts:
        words = content_words(text)
        shared = Counter(chain.from_iterable(lines_by_word.get(word, ()) for word in words))
        if words and max(shared.values(), default=0) >= MAX_REPEATED_WORDS * len(words):
            continue
        for word in words:
            lines_by_word[word].append(len(kept))
        kept.append(answer)
    return kept


def says_something(hit: MessageHit, words: ExcerptWords) -> bool:
    """Return whether a message may say something about a question with these words."""
    if hit.cosine >= CLEAR_SIMILARITY:
        return True
    shared = words.count_in(hit.message.content)
    return shared > 0 and (hit.cosine >= MIN_SIMILARITY or shared >= MIN_SHARED_WORDS * words.count)


def repeats_question(hit: MessageHit, asked: Set[str]) -> bool:
    """Return whether a message says hardly more than a question with these content words.

    It is an earlier question, or the echo of one in a reply.
    """
    words = content_words(hit.message.content)
    if hit.message.role is MessageRole.ASSISTANT:
        words -= _ECHO_WORDS
    return len(words & asked) >= MAX_REPEATED_WORDS * len(words)


def _same_relation(fitting: Sequence[SearchHit], stating: Sequence[SearchHit]) -> list[SearchHit]:
    """Return the other facts with a subject and a predicate that several fitting facts share: the items of a list."""
    keys = Counter((hit.memory.subject.id, hit.memory.predicate) for hit in fitting)
    return [hit for hit in _without(stating, fitting) if keys[hit.memory.subject.id, hit.memory.predicate] > 1]


def _without(hits: Sequence[SearchHit], chosen: Sequence[SearchHit]) -> list[SearchHit]:
    chosen_ids = {hit.memory.id for hit in chosen}
    return [hit for hit in hits if hit.memory.id not in chosen_ids]


def _interleave(facts: Sequence[SearchHit], messages: Iterable[MessageHit]) -> Iterator[SearchHit | MessageHit]:
    """Yield a message, then some facts, then a message, and so on, until there are none of both."""
    taken = 0
    for message in messages:
        yield message
        yield from facts[taken : taken + FACTS_PER_MESSAGE]
        taken += FACTS_PER_MESSAGE
    yield from facts[taken:]


def memory_bullets(
    memories: Iterable[Memory], said_at: Mapping[MessageName, datetime] | None, titles: Mapping[str, str]
) -> dict[str, PreambleLine]:
    """Return one `- ` bullet for each memory, by its id, with when it held where its text does not say it.

    With `said_at`, the times of messages, a bullet also says when and in which session the memory was said. The
    origin of one of a space is its title, of `titles` by the ids of spaces.
    """
    return {
        key: PreambleLine(
            key, f"- {to_single_line(memory.content)}{_notes(memory, said_at)}", _origin(memory.space, titles)
        )
        for key, memory in {memory.id: memory for memory in memories}.items()
    }


def profile_bullet(profile: EntityProfile, titles: Mapping[str, str]) -> PreambleLine:
    """Return a profile as one `- ` bullet, whose key is the id of the profile; `titles` are those of spaces, by id."""
    return PreambleLine(profile.id, f"- {to_single_line(profile.content)}", _origin(profile.space, titles))


def quote_line(message: Message, text: str, titles: Mapping[str, str]) -> PreambleLine:
    """Return a part of a message with its day and its speaker; one of a space has the space's title as its origin."""
    line = f"{format_date(message.timestamp)}, {to_single_line(message.said_by)}: {text}"
    return PreambleLine(message.key, line, _origin(message.space, titles))


def _origin(space: str | None, titles: Mapping[str, str]) -> str:
    return "" if space is None else to_single_line(titles.get(space, space))


def _notes(memory: Memory, said_at: Mapping[MessageName, datetime] | None) -> str:
    notes = [note for note in (_validity(memory), _source(memory, said_at) if said_at is not None else "") if note]
    return f" ({', '.join(notes)})" if notes else ""


def _validity(memory: Memory) -> str:
    """Return the days between which a memory holds, empty where its text names a year or nothing is known."""
    if names_year(memory.content):
        return ""
    start = format_date(memory.valid_at) if memory.valid_at else ""
    end = f"until {format_date(memory.invalid_at)}" if memory.invalid_at else ""
    return f"{start} {end}".strip()


def _source(memory: Memory, said_at: Mapping[MessageName, datetime]) -> str:
    last = last_said_at(memory, said_at)
    when = f"said on {format_date(last)}" if last else f"noted on {format_date(memory.created_at)}"
    return f"{when}, session {memory.source.session_id}" if memory.source.session_id else when
