"""Which memories fit a question: by domain, by session, and not contradicted by what the user just said. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmem.context import cues
from graphmem.memories.memory import Memory, MemoryType, Scope
from graphmem.search.models import SearchHit
from graphmem.text.normalising import normalise
from graphmem.text.tokenising import split_words, stem, stem_prefix
from graphmem.text.word_lists import WESTERN_LANGUAGES, load_words

CLEAR_MATCH_SCORE = 0.65
"""Least cosine similarity, as (1 + cos) / 2, at which a memory means the same as the question."""

TOPIC_SCORE = 0.59
"""Least score at which a question may be about the domain of a memory; greetings and small talk stay below 0.58."""

TOPIC_LEAD = 0.05
"""How much higher it is at least than that of every other domain, and than that of unrelated texts, which is 0.5."""

SAME_TOPIC_SCORE = 0.6
"""Least semantic score at which a memory is about the topic to which a question wants an alternative."""

MIN_ROOT_LENGTH = 4
"""Fewest letters with which a word and a domain must begin alike."""

MAX_SUFFIX_LENGTH = 4
"""Most letters by which one of them may be longer, as "cooking" is than "cook"."""

_WORDS = load_words(*WESTERN_LANGUAGES)
_STOP_WORDS = _WORDS.stop_words | _WORDS.topicless_words


def content_words(text: str) -> list[str]:
    """Return the distinct stems of the words that tell what a text is about, in order."""
    return list(dict.fromkeys(map(stem, _find_content_words(text))))


def content_word_prefixes(text: str) -> list[str]:
    """Return the letters with which the forms of each content word of a text begin, distinct and in order."""
    return list(dict.fromkeys(map(stem_prefix, _find_content_words(text))))


def refers_to_past_session(question: str) -> bool:
    """Return whether a question refers to an earlier conversation."""
    return cues.PAST_SESSION.search(question) is not None


def find_ticket_ids(question: str) -> list[str]:
    """Return the ids of tickets that a question refers to, in lower case: 1234 for "issue #1234"."""
    matches = cues.TICKET.finditer(question)
    return list(dict.fromkeys((match["marked"] or match["named"]).lower() for match in matches))


def match_domains(question: str, requested: str | None, hits: Iterable[SearchHit]) -> set[str]:
    """Return the domains a question belongs to: the requested one, else those it names and that of its clear topic.

    The clear topic is the domain of the nearest domain memory with a score of at least `CLEAR_MATCH_SCORE`, or of at
    least `TOPIC_SCORE` if no memory of another domain is nearly as near.
    """
    if requested is not None:
        return {requested}
    words = split_words(normalise(question))
    domains: set[str] = set()
    nearest: dict[str, float] = {}
    for hit in hits:
        domain = hit.memory.domain
        if domain is None or hit.memory.scope is not Scope.DOMAIN:
            continue
        if all(any(_begin_alike(part, word) for word in words) for part in split_words(normalise(domain))):
            domains.add(domain)
        nearest[domain] = max(nearest.get(domain, 0.0), semantic_score(hit))
    (best, score), (_, next_score) = sorted([*nearest.items(), ("", 0.0), ("", 0.0)], key=lambda pair: -pair[1])[:2]
    is_clear = score >= CLEAR_MATCH_SCORE or (score >= TOPIC_SCORE and score - max(next_score, 0.5) >= TOPIC_LEAD)
    return domains | ({best} if is_clear else set())


def semantic_score(hit: SearchHit) -> float:
    """Return the semantic score of a hit, 0 if the semantic channel did not find it."""
    return hit.explain.semantic.score if hit.explain and hit.explain.semantic else 0.0


def is_in_scope(memory: Memory, domains: set[str], session_id: str | None, *, refers_to_past: bool) -> bool:
    """Return whether a memory's scope covers a question of these domains in this session.

    An episodic memory covers its own session, and any session if the question refers to a past one.
    """
    if memory.scope is Scope.DOMAIN:
        return memory.domain is None or memory.domain in domains
    if memory.scope is Scope.EPISODIC:
        return refers_to_past or memory.source.session_id in (None, session_id)
    return True


class JustSaid:
    """What the user says in a question and in recent statements, as far as words show that it contradicts memories."""

    def __init__(self, question: str, recent_statements: Sequence[str] = ()) -> None:
        self._question_words = set(content_words(question))
        self._wants_change = cues.CHANGE.search(question) is not None
        self._abandoned = [words for text in (question, *recent_statements) for words in _extract_abandoned(text)]

    def contradicts(self, memory: Memory, semantic_score: float) -> bool:
        """Return whether the user has just contradicted a memory; the score is that of the memory for the question.

        Either the question or a statement abandons what the memory is about ("no longer X", "from X to Y", "Y instead
        of X"). Or the question asks for an alternative ("Y this time"), and the memory is a preference or
        single-valued, is about the same topic, and names something that the question does not.
        """
        is_changeable = memory.type is MemoryType.PREFERENCE or memory.single_valued
        may_change = self._wants_change and is_changeable and semantic_score >= SAME_TOPIC_SCORE
        if not self._abandoned and not may_change:
            return False
        content = set(content_words(memory.content))
        if memory.object:
            content |= set(content_words(memory.object.name))
        if any(abandoned <= content for abandoned in self._abandoned):
            return True
        return may_change and not content - set(content_words(memory.subject.name)) <= self._question_words


def _find_content_words(text: str) -> list[str]:
    return [word for word in split_words(normalise(text)) if _STOP_WORDS.isdisjoint((word, stem(word)))]


def _begin_alike(first: str, second: str) -> bool:
    """Return whether two words are equal, or one is the other with a suffix ("cook", "cooking")."""
    short, long = sorted((first, second), key=len)
    return first == second or (
        len(short) >= MIN_ROOT_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH and long.startswith(short)
    )


def _extract_abandoned(text: str) -> list[set[str]]:
    matches = (match for pattern in cues.ABANDONED for match in pattern.finditer(text))
    return [words for match in matches if (words := set(content_words(match["thing"])))]
