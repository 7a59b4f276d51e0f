"""The facts and messages that answer a question, as lines in the order in which they fill a budget. Pure.

Facts come first: those that fit, with the other members of slots that several of them share, then a message after every
few facts, because a message may say something that became no fact. Near but unlikely answers fill the remaining budget.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heapify, heappop, heappush, nlargest
from itertools import chain as flatten
from operator import itemgetter
from typing import TypeVar

from graphmem.context import cues
from graphmem.context.conversation_summary import to_single_line
from graphmem.context.hints import format_date, last_said_at
from graphmem.context.preamble import AnswerLine, PreambleLine
from graphmem.context.relevance import (
    MIN_STATED_WORDS,
    ExcerptWords,
    content_words,
    is_statement,
    says_words,
)
from graphmem.conversations.session import Message, MessageRole
from graphmem.memories.entity import EntityProfile
from graphmem.memories.memory import DEFAULT_PREDICATES, PENDING_TYPES, Memory, MemoryType, Scope
from graphmem.runtime.times import EPOCH, from_micros
from graphmem.search.bm25 import rarity
from graphmem.search.chains import find_chain
from graphmem.search.models import FIT_SCORE, MessageHit, SearchHit
from graphmem.tenants.owners import MessageName
from graphmem.text.text_cache import cache_by_text
from graphmem.text.time_expressions import find_time_ranges, names_year
from graphmem.text.word_lists import WESTERN_LANGUAGES

MIN_FIT = 0.1
"""Minimum score for a memory that may answer a question in other words."""

MIN_FACTS, MAX_FACTS = 4, 8
"""Bounds for the number of facts before the first message, which is otherwise the number of those that fit."""

FACTS_PER_MESSAGE = 3
"""Number of facts between two messages."""

MIN_SIMILARITY = 0.25
"""Minimum cosine similarity for a message that shares any word with a question to be relevant."""

CLEAR_SIMILARITY = 0.4
"""Minimum cosine similarity for a message that shares no word with a question to be relevant."""

MIN_SHARED_WORDS = 0.5
"""Share of a question's words at which a message is relevant, however similar it is."""

MAX_REPEATED_WORDS = 0.8
"""Share of a line's content words in an earlier line at which it counts as a repetition."""

READ_AS_SMALL_TALK = "small_talk"
"""The intent that extraction gives to a message that is only a reaction."""

MIN_DETAIL = 0.5
"""Share of a message's content words missing from its facts at which the message is quoted as well."""

ABOUT_TOPIC = 0.05
"""Score bonus of a fact about the entity that the question is about."""

VAGUENESS = 0.2
"""Score penalty of a summary, which names many topics but states little about any."""

SAME_SOURCE = 0.1
"""Score penalty of a fact if better ones were taken from the same messages."""

MAX_TOPIC_FACTS = 10
"""Number of best facts used to find a question's topic if no fact states any other word of the question."""

TOPIC_FACTS = 3
"""Number of facts stating most of a question that are used to find the entity it is about."""

SHARED_TOPIC = 0.5
"""Share of the topic's matching content above which another entity is a topic too."""

COMPARED_FACTS = 30
"""Number of nearest facts used to determine whether a question prefers any of them."""

MIN_EQUAL_FACTS, EQUAL_SCORES = 10, 0.1
"""If this many of the best facts have scores within this difference, the question prefers none of them."""

MIN_COMMON = 0.5
"""Share of the nearest facts that state a word at which the word no longer distinguishes them."""

MAX_SLOT_MEMBERS = 12
"""Maximum slot members added to the best facts, nearest to the question first."""

_ECHO_WORDS = content_words(" ".join(cues.ECHO))

HitT = TypeVar("HitT", SearchHit, MessageHit)

SUMMARIES = frozenset({MemoryType.CONVERSATION_SUMMARY, MemoryType.CONVERSATION_TOPIC})
"""Types of memories about the topics of conversations."""


@dataclass(frozen=True, slots=True)
class SlotMembers:
    """Facts of the same slot, shown in one line by their objects."""

    members: Sequence[SearchHit]


def order_answers(
    facts: Sequence[SearchHit],
    messages: Sequence[MessageHit],
    words: ExcerptWords,
    chain: Sequence[SearchHit] = (),
    *,
    is_overview: bool = False,
) -> Iterator[SearchHit | SlotMembers | MessageHit]:
    """Yield facts and the messages between them, those that may answer a question before all others.

    Both are given best first; `words` are the question's words. The facts of a `chain` come first, in its order. Facts
    in a slot shared by several of the best facts follow these together, like the items of a list. For an overview, and
    if the question only names a topic, the best hits of each session come before the second best of any.
    """
    names_topic = names_only_a_topic(facts, words)
    least = min(MIN_FIT, facts[0].score - EQUAL_SCORES) if names_topic else MIN_FIT
    near = _rank(facts, find_topics(facts, words), least)
    if is_overview or names_topic:
        messages = spread(messages, lambda hit: hit.message.session_id)
        equal = near if is_overview else [hit for hit in near if hit.score >= facts[0].score - EQUAL_SCORES]
        near = [*spread(equal, lambda hit: hit.memory.source.session_id), *_without(near, equal)]
    further = _without(near, chain)
    fitting = [hit for hit in further if hit.score >= FIT_SCORE][:MAX_FACTS]
    fitting += _without(further, fitting)[: max(0, MIN_FACTS - len(fitting))]
    fitting = [*chain, *fitting]
    lists = find_slots(fitting, facts)
    listed = [hit for slot in lists for hit in slot.members]
    others = _without(further, [*fitting, *listed])
    statements = [hit for hit in messages if is_statement(hit.message)]
    telling = [hit for hit in statements if says_something(hit, words)]
    untold = [*_remaining(statements, telling), *_remaining(messages, statements)]
    yield from fitting
    yield from lists
    yield from _interleave(others, telling)
    yield from _interleave(_without(facts, [*near, *listed, *chain]), untold)


def _rank(facts: Sequence[SearchHit], topics: Set[str], least: float) -> list[SearchHit]:
    """Return the facts with at least a score of `least`, by score adjusted for their topic and what they add."""

    def worth(hit: SearchHit) -> float:
        about = ABOUT_TOPIC if hit.memory.subject.id in topics else 0.0
        return hit.score + about - (VAGUENESS if hit.memory.type in SUMMARIES else 0.0)

    waiting = [(-worth(hit), place, True) for place, hit in enumerate(facts) if hit.score >= least]
    heapify(waiting)
    ranked: list[SearchHit] = []
    told: set[MessageName] = set()
    while waiting:
        cost, place, is_new = heappop(waiting)
        hit = facts[place]
        sources = {(hit.memory.space, message_id) for message_id in hit.memory.source.message_ids}
        if is_new and sources and sources <= told:
            heappush(waiting, (cost + SAME_SOURCE, place, False))
            continue
        told |= sources
        ranked.append(hit)
    return ranked


def spread(hits: Sequence[HitT], session_of: Callable[[HitT], str | None]) -> list[HitT]:
    """Return hits with the first of each session before the second of any; hits without a session keep their place."""
    taken: Counter[str] = Counter()
    rounds: list[int] = []
    for hit in hits:
        session = session_of(hit)
        rounds.append(taken[session] if session else 0)
        taken[session or ""] += 1
    return [hit for _, hit in sorted(zip(rounds, hits, strict=True), key=itemgetter(0))]


def limit_memories(
    hits: Iterable[SearchHit | SlotMembers | MessageHit], limit: int
) -> Iterator[SearchHit | SlotMembers | MessageHit]:
    """Yield all messages and memories of the profile, and at most `limit` other memories."""
    for hit in hits:
        if isinstance(hit, SlotMembers):
            others = [member for member in hit.members if is_counted(member)][: max(0, limit)]
            limit -= len(others)
            yield SlotMembers([member for member in hit.members if not is_counted(member) or member in others])
            continue
        if is_counted(hit):
            limit -= 1
            if limit < 0:
                continue
        yield hit


def restates(text: str, withdrawn: Sequence[Set[str]]) -> bool:
    """Return whether a reply repeats a withdrawn text: all of its content words, or few others."""
    words = content_words(text) - _ECHO_WORDS
    return any(told and (told <= words or len(words & told) >= MAX_REPEATED_WORDS * len(words)) for told in withdrawn)


def adds_detail(text: str, facts: Iterable[str]) -> bool:
    """Return whether a message contains much that its facts leave out."""
    words = content_words(text)
    told = frozenset(flatten.from_iterable(map(content_words, facts)))
    return len(words - told) >= max(MIN_STATED_WORDS, MIN_DETAIL * len(words))


def is_counted(hit: SearchHit | MessageHit) -> bool:
    """Return whether a hit counts towards the requested number of memories, which excludes the profile."""
    return isinstance(hit, SearchHit) and hit.memory.scope is not Scope.PROFILE


def count_chosen(lines: Sequence[AnswerLine], hits: Sequence[SearchHit]) -> int:
    """Return the number of lines with memories that count towards the limit of a request."""
    counted = {hit.memory.id for hit in hits if is_counted(hit)}
    return sum(key in counted for answer in lines for key in answer.line.keys)


class StatedTexts:
    """The content words of lines, for finding lines that mostly repeat an earlier one."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._stated: list[int] = []

    def add(self, text: str) -> bool:
        """Add a text unless it mostly repeats an earlier one; return whether it was added."""
        words = content_words(text)
        stated = 0
        for word in words:
            stated |= 1 << self._bits.setdefault(word, len(self._bits))
        repeated = MAX_REPEATED_WORDS * len(words)
        if words:
            for earlier in self._stated:
                if (stated & earlier).bit_count() >= repeated:
                    return False
        self._stated.append(stated)
        return True


def says_something(hit: MessageHit, words: ExcerptWords) -> bool:
    """Return whether a message may be relevant to a question with these words."""
    if hit.cosine >= CLEAR_SIMILARITY:
        return True
    shared = words.count_in(hit.message.content)
    return shared > 0 and (hit.cosine >= MIN_SIMILARITY or shared >= MIN_SHARED_WORDS * words.count)


def may_be_quoted(message: Message) -> bool:
    """Return whether a message is more than a question or exclamation, judging by its form.

    Messages that extraction took for small talk are not quoted.
    """
    return not is_read_as_small_talk(message) and (is_statement(message) or _is_fragment(message))


def is_read_as_small_talk(message: Message) -> bool:
    """Return whether extraction took a message for small talk, which later contexts leave out."""
    return message.intent == READ_AS_SMALL_TALK and message.extracted_at is not None


def _is_fragment(message: Message) -> bool:
    """Return whether a user message is a few words that may answer a question or be a greeting: "Coeliac, sadly"."""
    return message.role is MessageRole.USER and says_words(message.content)


def repeats_question(hit: MessageHit, asked: Set[str]) -> bool:
    """Return whether a message says little more than a question with these content words.

    It is an earlier question, or its echo in a reply.
    """
    words = content_words(hit.message.content)
    if hit.message.role is MessageRole.ASSISTANT:
        words -= _ECHO_WORDS
    return len(words & asked) >= MAX_REPEATED_WORDS * len(words)


def find_topics(facts: Sequence[SearchHit], words: ExcerptWords) -> frozenset[str]:
    """Return the ids of the entities a question is about: of those it names, the one with most matching facts.

    The question may also name the person something was said to, but facts about that person state little else of it. If
    no fact states any of the question, the topic is the entity with most of the best facts.
    """
    named = {hit.memory.subject.id: words.find_in(hit.memory.subject.name) for hit in facts}
    naming = frozenset[int]().union(*named.values())
    told = [(hit.memory.subject.id, stated_words(hit, words) - naming) for hit in facts]
    counts = Counter(flatten.from_iterable(stated for _, stated in told))
    weights = {word: rarity(len(facts), count) for word, count in counts.items()}
    worth: dict[str, list[float]] = defaultdict(list)
    for subject, stated in told:
        if named[subject]:
            worth[subject].append(sum(weights[word] for word in stated))
    totals: Mapping[str, float] = {subject: sum(nlargest(TOPIC_FACTS, values)) for subject, values in worth.items()}
    if not any(totals.values()):
        totals = Counter(hit.memory.subject.id for hit in facts[:MAX_TOPIC_FACTS] if named[hit.memory.subject.id])
    most = max(totals.values(), default=0.0)
    return frozenset(subject for subject, total in totals.items() if total > SHARED_TOPIC * most)


def names_only_a_topic(facts: Sequence[SearchHit], words: ExcerptWords) -> bool:
    """Return whether a question names one thing and nothing that distinguishes the facts about it.

    This includes overview questions in any language: "What do you know about Mara?" The question's words that the
    nearest facts state are in many of these facts, and are a single word or the name of one entity; and many facts fit
    equally well.
    """
    nearest = facts[:COMPARED_FACTS]
    if len(nearest) < MIN_EQUAL_FACTS or nearest[0].score - nearest[MIN_EQUAL_FACTS - 1].score > EQUAL_SCORES:
        return False
    stating = Counter(flatten.from_iterable(stated_words(hit, words) for hit in nearest))
    if any(count < MIN_COMMON * len(nearest) for count in stating.values()):
        return False
    names = {entity.name for hit in nearest for entity in hit.memory.entities}
    return len(stating) <= 1 or any(stating.keys() <= words.find_in(name) for name in names)


def stated_words(hit: SearchHit, words: ExcerptWords) -> frozenset[int]:
    """Return the indexes of a question's words that a fact states in its text or predicate."""
    return words.find_in(f"{hit.content} {hit.memory.predicate.replace('_', ' ')}")


def find_chain_of_hits(facts: Sequence[SearchHit], words: ExcerptWords, user_id: str | None) -> list[SearchHit]:
    """Return the facts of the chain that covers most of a question with these words, in order, or none.

    It starts at an entity that the question names, or at the user. A fact about only one entity has its other entities
    as ends.
    """
    ends = [
        [fact.memory.subject, *([fact.memory.object] if fact.memory.object else fact.memory.entities)] for fact in facts
    ]
    names = {ref.id: ref.name for joined in ends for ref in joined}
    named = {key for key, name in names.items() if 0 < len(content_words(name)) <= words.count_in(name)}
    naming = frozenset[int]().union(*(words.find_in(names[key]) for key in named))
    stated = [stated_words(fact, words) - naming for fact in facts]
    rows = find_chain(
        [[ref.id for ref in joined] for joined in ends],
        [sum(1 << word for word in found) for found in stated],
        [fact.explain.similarity if fact.explain else 0.0 for fact in facts],
        named | ({user_id} if user_id else set()),
        sum(1 << word for word in range(1, words.count + 1) if word not in naming),
    )
    return [facts[row] for row in rows]


def find_slots(best: Sequence[SearchHit], facts: Sequence[SearchHit]) -> list[SlotMembers]:
    """Return the other facts of each slot that several of the best facts share.

    A slot is a subject with a predicate or, across subjects, a predicate with the object's type.
    """
    chosen = {hit.memory.id for hit in best}
    slots: list[SlotMembers] = []
    for slot_of in (_relation_of, _kind_of):
        shared = Counter(slot for hit in best if (slot := slot_of(hit.memory)))
        for slot in [slot for slot, count in shared.items() if count > 1]:
            members = [
                hit
                for hit in facts
                if hit.memory.object and hit.memory.id not in chosen and slot_of(hit.memory) == slot
            ][:MAX_SLOT_MEMBERS]
            if len(members) > 1:
                slots.append(SlotMembers(members))
                chosen.update(hit.memory.id for hit in members)
    return slots


def _relation_of(memory: Memory) -> tuple[str, ...] | None:
    return (memory.subject.id, memory.predicate) if _has_relation(memory) else None


def _kind_of(memory: Memory) -> tuple[str, ...] | None:
    return (memory.predicate, memory.object.type) if memory.object and _has_relation(memory) else None


def _has_relation(memory: Memory) -> bool:
    """Return whether a memory's predicate says more than that something was stated or talked about."""
    return memory.type not in SUMMARIES and memory.predicate != DEFAULT_PREDICATES[MemoryType.FACT]


def _without(hits: Sequence[SearchHit], chosen: Sequence[SearchHit]) -> list[SearchHit]:
    chosen_ids = {hit.memory.id for hit in chosen}
    return [hit for hit in hits if hit.memory.id not in chosen_ids]


def _remaining(messages: Sequence[MessageHit], taken: Sequence[MessageHit]) -> list[MessageHit]:
    keys = {hit.message.key for hit in taken}
    return [hit for hit in messages if hit.message.key not in keys]


def _interleave(facts: Sequence[SearchHit], messages: Iterable[MessageHit]) -> Iterator[SearchHit | MessageHit]:
    """Yield a message, then some facts, then a message, and so on, until both are used up."""
    taken = 0
    for message in messages:
        yield message
        yield from facts[taken : taken + FACTS_PER_MESSAGE]
        taken += FACTS_PER_MESSAGE
    yield from facts[taken:]


def memory_bullets(
    memories: Iterable[Memory],
    said_at: Mapping[MessageName, datetime] | None,
    titles: Mapping[str, str],
    now: datetime,
) -> dict[str, PreambleLine]:
    """Return one `- ` bullet per memory, by id, with when it held unless its text says so.

    A plan whose day has passed at `now` says so.

    With `said_at`, the times of messages, a bullet also says when and in which session the memory was said. The origin
    of a memory of a space is the space's title, from `titles` by space id.
    """
    return {
        key: PreambleLine(
            key, f"- {to_single_line(memory.content)}{_notes(memory, said_at, now)}", _origin(memory.space, titles)
        )
        for key, memory in {memory.id: memory for memory in memories}.items()
    }


def with_rivals(bullet: PreambleLine, rivals: Sequence[Memory]) -> PreambleLine:
    """Return the bullet of a memory with the memories that contest it."""
    contents = "; ".join(to_single_line(rival.content) for rival in rivals)
    text = f"{bullet.text} (contested, it is not known which is right: {contents})"
    return replace(bullet, text=text, further=(*bullet.further, *(rival.id for rival in rivals)))


def as_doubted(bullet: PreambleLine) -> PreambleLine:
    """Return the bullet of a memory that the user may just have contradicted."""
    return replace(bullet, text=f"{bullet.text} (unless just said otherwise)")


def slot_bullet(members: Sequence[SearchHit], titles: Mapping[str, str], now: datetime) -> PreambleLine | None:
    """Return facts of one slot as one `- ` bullet: what they share, then what distinguishes each.

    They are in the order in which they began. Returns None without members.
    """
    memories = sorted((hit.memory for hit in members), key=lambda memory: memory.valid_at or memory.created_at)
    if not memories:
        return None
    first, *others = memories
    relation = first.predicate.replace("_", " ").lower()
    subjects = {memory.subject.name for memory in memories}
    shared = f"{first.subject.name}, also {relation}" if len(subjects) == 1 else f"also {relation}"
    items = "; ".join(_slot_item(memory, now, with_subject=len(subjects) > 1) for memory in memories)
    line = PreambleLine(first.id, f"- {to_single_line(f'{shared}: {items}')}", _origin(first.space, titles))
    return replace(line, further=tuple(memory.id for memory in others))


def _slot_item(memory: Memory, now: datetime, *, with_subject: bool) -> str:
    assert memory.object
    name = f"{memory.subject.name} – {memory.object.name}" if with_subject else memory.object.name
    start = format_date(memory.valid_at) if memory.valid_at else ""
    end = f"until {format_date(memory.invalid_at)}" if memory.invalid_at else ""
    notes = ", ".join(filter(None, (f"{start} {end}".strip(), plan_note(memory, now), source_note(memory))))
    return f"{name} ({notes})" if notes else name


def profile_bullet(profile: EntityProfile, titles: Mapping[str, str]) -> PreambleLine:
    """Return a profile as one `- ` bullet with the profile's id as key; `titles` are space titles by id."""
    return PreambleLine(profile.id, f"- {to_single_line(profile.content)}", _origin(profile.space, titles))


def quote_line(message: Message, text: str, titles: Mapping[str, str]) -> PreambleLine:
    """Return part of a message with its day and speaker; in a space, its origin is the space's title."""
    line = f"{format_date(message.timestamp)}, {to_single_line(message.said_by)}: {text}"
    return PreambleLine(message.key, line, _origin(message.space, titles))


def _origin(space: str | None, titles: Mapping[str, str]) -> str:
    return "" if space is None else to_single_line(titles.get(space, space))


def _notes(memory: Memory, said_at: Mapping[MessageName, datetime] | None, now: datetime) -> str:
    said = _source(memory, said_at) if said_at is not None else ""
    notes = [note for note in (_validity(memory), plan_note(memory, now), said, source_note(memory)) if note]
    return f" ({', '.join(notes)})" if notes else ""


def source_note(memory: Memory) -> str:
    """Return the origin of third-party text, or an empty string if strangers did not write it."""
    return f"from {memory.source.said_by}" if memory.source.is_of_others else ""


def plan_note(memory: Memory, now: datetime) -> str:
    """Return that a plan is over, if it names a day with its year that is after its creation and has passed."""
    if memory.type not in PENDING_TYPES or not names_year(memory.content):
        return ""
    made = memory.valid_at or memory.created_at
    ends = [end for end in _ends_of_named_days(memory.content) if end > made]
    return "was planned" if ends and max(ends) <= now else ""


@cache_by_text
def _ends_of_named_days(text: str) -> tuple[datetime, ...]:
    """Return the ends of the days, months and years that a text names."""
    return tuple(from_micros(1_000 * day.end) for day in find_time_ranges(text, EPOCH, WESTERN_LANGUAGES))


def _validity(memory: Memory) -> str:
    """Return the days between which a memory holds, or empty if its text names a year or nothing is known."""
    if names_year(memory.content):
        return ""
    start = format_date(memory.valid_at) if memory.valid_at else ""
    end = f"until {format_date(memory.invalid_at)}" if memory.invalid_at else ""
    return f"{start} {end}".strip()


def _source(memory: Memory, said_at: Mapping[MessageName, datetime]) -> str:
    last = last_said_at(memory, said_at)
    when = f"said on {format_date(last)}" if last else f"noted on {format_date(memory.created_at)}"
    return f"{when}, session {memory.source.session_id}" if memory.source.session_id else when
