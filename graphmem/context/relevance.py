"""What fits the question: by domain and session, by fresh words against old ones, by talk of earlier talks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphmem.context.cue_patterns import ABANDONED_PATTERNS, CHANGE_CUES, CONTEXT_STOP_WORDS, PAST_SESSION_CUES
from graphmem.domain.memory import Memory, MemoryType, Scope
from graphmem.domain.search_models import SearchHit
from graphmem.domain.text import normalise

CLEAR_MATCH_SCORE = 0.65
"""Cosine similarity, as (1 + cos) / 2, from which a memory's meaning is that of the question."""

SAME_TOPIC_SCORE = 0.6
"""Likeness from which a memory is about the kind of thing a question wants something else of."""

MIN_STEM_LENGTH, MAX_SUFFIX_LENGTH = 4, 4
"""Words of one stem: so many letters in common at least, so many more at most."""

_WORD = re.compile(r"[^\W_]+", re.UNICODE)


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry its meaning, each once, in order, without a plural `s`."""
    words = (
        word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word for word in _WORD.findall(normalise(text))
    )
    return list(
        dict.fromkeys(word for word in words if word not in CONTEXT_STOP_WORDS and f"{word}s" not in CONTEXT_STOP_WORDS)
    )


def refers_to_past_session(question: str) -> bool:
    """Return whether a question refers to an earlier conversation (QUINN-37)."""
    return PAST_SESSION_CUES.search(question) is not None


def match_domains(question: str, requested: str | None, hits: Iterable[SearchHit]) -> set[str]:
    """Return the domains a question belongs to (QUINN-03): the one asked for, else those it names and its clear topic.

    The clear topic is the domain of the nearest domain memory whose meaning matches the question's.
    """
    if requested is not None:
        return {requested}
    words = _WORD.findall(normalise(question))
    fitting: set[str] = set()
    nearest: tuple[float, str] | None = None
    for hit in hits:
        domain = hit.memory.domain
        if domain is None or hit.memory.scope is not Scope.DOMAIN:
            continue
        if all(any(_shares_stem(part, word) for word in words) for part in _WORD.findall(normalise(domain))):
            fitting.add(domain)
        near = semantic_score(hit)
        if near >= CLEAR_MATCH_SCORE and (nearest is None or near > nearest[0]):
            nearest = (near, domain)
    return fitting | ({nearest[1]} if nearest else set())


def _shares_stem(first: str, second: str) -> bool:
    """Return whether two words are one, or one the other with an ending ("cook", "cooking")."""
    short, long = sorted((first, second), key=len)
    return first == second or (
        len(short) >= MIN_STEM_LENGTH and len(long) - len(short) <= MAX_SUFFIX_LENGTH and long.startswith(short)
    )


def semantic_score(hit: SearchHit) -> float:
    """Return how near a hit's meaning is to the question's, 0 where meaning did not find it."""
    return hit.explain.semantic.score if hit.explain and hit.explain.semantic else 0.0


def is_in_scope(memory: Memory, domains: set[str], session_id: str | None, *, refers_to_past: bool) -> bool:
    """Return whether a memory may be told here: a domain's within it, a session's there or when old talk is meant."""
    if memory.scope is Scope.DOMAIN:
        return memory.domain is None or memory.domain in domains
    if memory.scope is Scope.EPISODIC:
        return refers_to_past or memory.source.session_id in (None, session_id)
    return True


def is_contradicted(memory: Memory, semantic_score: float, question: str, recent_statements: Sequence[str]) -> bool:
    """Return whether the user's own words just now speak against a memory (QUINN-40), as far as words can tell.

    Either the question, or something said that memory has not read yet, gives up what the memory is about ("no longer
    X", "from X to Y", "Y instead of X"); or the question wants something else for once ("Y this time") where the
    memory is a preference or single-valued, means the same kind of thing, and names what the question does not.
    """
    told = set(content_words(memory.content))
    if memory.object:
        told |= set(content_words(memory.object.name))
    if any(left <= told for text in (question, *recent_statements) for left in _extract_abandoned(text)):
        return True
    changeable = memory.type is MemoryType.PREFERENCE or memory.single_valued
    if not changeable or semantic_score < SAME_TOPIC_SCORE or not CHANGE_CUES.search(question):
        return False
    own = set(content_words(memory.subject.name))
    return not told - own <= set(content_words(question))


def _extract_abandoned(text: str) -> list[set[str]]:
    found = (set(content_words(match["left"])) for pattern in ABANDONED_PATTERNS for match in pattern.finditer(text))
    return [words for words in found if words]
