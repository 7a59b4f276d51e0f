"""Which messages support an answer: one order from what facts and the messages themselves say.

A message inherits from the facts that rest on it: the best of their scores by words, by meaning of the question and by
meaning of its focus. To that come its own scores by words and by meaning. Scores count by their size and by their
reciprocal ranks; a message said by somebody the question names counts more. The weights were fitted to whether a
message is evidence and checked on conversations left out: `docs/retrieval.md` tells how.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmem.domain.search_models import Evidence
from graphmem.retrieval.bm25 import bm25_scores
from graphmem.text.tokenising import tokenize

RANK_K = 20
"""Constant of the reciprocal ranks `k / (k + rank)`."""


@dataclass(frozen=True, slots=True)
class FactText:
    """A candidate fact: its words, its similarity to the question and to the question's focus, its messages."""

    memory_id: str
    text: str
    similarity: float
    focus_similarity: float
    message_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class MessageText:
    """A candidate message; `speaker_named` tells whether the question names its speaker."""

    message_id: str
    text: str
    similarity: float
    speaker_named: bool


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """What each feature adds to a message's score; `…_rank` are those of reciprocal ranks."""

    fact_words: float
    fact_words_rank: float
    fact_meaning: float
    fact_meaning_rank: float
    fact_focus_rank: float
    words: float
    meaning: float
    meaning_rank: float
    speaker_named: float


FITTED_WEIGHTS = EvidenceWeights(
    fact_words=3.5,
    fact_words_rank=0.6,
    fact_meaning=0.1,
    fact_meaning_rank=2.3,
    fact_focus_rank=0.9,
    words=1.1,
    meaning=0.2,
    meaning_rank=0.7,
    speaker_named=2.5,
)


def message_features(
    question: str, facts: Sequence[FactText], messages: Sequence[MessageText], languages: tuple[str, ...] = ("en",)
) -> list[dict[str, float]]:
    """Return the features of each message under the names of `EvidenceWeights`."""
    question_tokens = tokenize(question, languages)
    own = {message.message_id: index for index, message in enumerate(messages)}
    by_words = _share_of_max(bm25_scores(question_tokens, [tokenize(fact.text, languages) for fact in facts]))
    fact_words = _best_fact_scores(by_words, facts, own)
    fact_meaning = _best_fact_scores([fact.similarity for fact in facts], facts, own)
    meaning = [message.similarity for message in messages]
    columns = {
        "fact_words": fact_words,
        "fact_words_rank": _reciprocal_ranks(fact_words),
        "fact_meaning": fact_meaning,
        "fact_meaning_rank": _reciprocal_ranks(fact_meaning),
        "fact_focus_rank": _reciprocal_ranks(_best_fact_scores([fact.focus_similarity for fact in facts], facts, own)),
        "words": _share_of_max(
            bm25_scores(question_tokens, [tokenize(message.text, languages) for message in messages])
        ),
        "meaning": meaning,
        "meaning_rank": _reciprocal_ranks(meaning),
        "speaker_named": [float(message.speaker_named) for message in messages],
    }
    return [{name: column[index] for name, column in columns.items()} for index in range(len(messages))]


def rank_messages(
    question: str,
    facts: Sequence[FactText],
    messages: Sequence[MessageText],
    weights: EvidenceWeights = FITTED_WEIGHTS,
    languages: tuple[str, ...] = ("en",),
) -> list[Evidence]:
    """Return the messages that support an answer, the best first, each with the memories that lead to it.

    Scores lie in (0, 1): the share of what a message could have that is best by every feature.
    """
    via: dict[str, list[str]] = {}
    for fact in facts:
        for message_id in fact.message_ids:
            via.setdefault(message_id, []).append(fact.memory_id)
    by_name = {name: getattr(weights, name) for name in EvidenceWeights.__slots__}
    most = sum(by_name.values())
    scored = [
        Evidence(
            message_id=message.message_id,
            score=max(0.0, sum(by_name[name] * value for name, value in row.items()) / most),
            via=via.get(message.message_id, []),
        )
        for message, row in zip(messages, message_features(question, facts, messages, languages), strict=True)
    ]
    return sorted(scored, key=lambda each: -each.score)


def _share_of_max(scores: Iterable[float]) -> list[float]:
    listed = list(scores)
    most = max(listed, default=0.0)
    return [score / most for score in listed] if most > 0 else listed


def _best_fact_scores(scores: Sequence[float], facts: Sequence[FactText], own: Mapping[str, int]) -> list[float]:
    best = [0.0] * len(own)
    for score, fact in zip(scores, facts, strict=True):
        for message_id in fact.message_ids:
            if (index := own.get(message_id)) is not None and score > best[index]:
                best[index] = score
    return best


def _reciprocal_ranks(scores: Sequence[float]) -> list[float]:
    """Return `k / (k + rank)` of each score, equal scores sharing the better rank; nothing for a score of 0 or less."""
    places: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores, reverse=True), start=1):
        places.setdefault(score, rank)
    return [RANK_K / (RANK_K + places[score]) if score > 0 else 0.0 for score in scores]
