"""Evidence: ranks the messages that support an answer, by what they say and by the facts taken from them. Pure.

A message has features of its own: its BM25 score and its similarity to the question. From the facts that were taken
from it, it gets their best BM25 score, their best similarity to the question, and their best similarity to the focus of
the question. Features count by value and by reciprocal rank. A message whose speaker the question names counts more,
and so does one of the user: a long reply repeats the words of a question without stating anything of the user. The
neighbours of a message support it. For an overview those at the start of a session count more, where topics come up.
For a question about a past time, facts that start later support their messages by half.
The weights were fitted to labelled conversations and checked on others: see `quality/retrieval-experiments.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import mul

from graphmem.conversations.session import MessageRole
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.fit import bm25_scores
from graphmem.search.models import Evidence, MessageContent
from graphmem.tenants.owners import split_message_key
from graphmem.text.names import name_words
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import split_words, tokenize
from graphmem.text.word_lists import load_words

RANK_K = 20
"""Constant `k` of the reciprocal ranks `k / (k + rank)`; fitted with the weights."""

NEIGHBOUR_REACH = 2
"""How far from a message its neighbours are; the influence of the next but one is half that of the next."""

OPENING_LENGTH = 20
"""Number of messages after which a session's opening counts a third (1 / e) of what its first message counts."""

LATER_SUPPORT = 0.5
"""Share of its support that a fact lends its messages if it starts after the past time that the question names."""

EVIDENCE_PER_RESULT = 5
"""Most messages of evidence for each result that a search asks for."""


@dataclass(frozen=True, slots=True)
class FactSupport:
    """How far a fact supports an answer: its similarity to the question and to the question's focus.

    `is_later` says that it starts after the past time that the question names.
    """

    fact: FactCandidate
    similarity: float
    focus_similarity: float
    is_later: bool = False


@dataclass(frozen=True, slots=True)
class MessageText:
    """A candidate message; `message_id` is its key, `speaker_named` says whether the question names its speaker.

    Positions begin with 1.
    """

    message_id: str
    text: str
    similarity: float
    speaker_named: bool
    by_user: bool
    session_id: str
    position: int


FEATURE_WEIGHTS: Mapping[str, float] = {
    "fact_words": 3.5,
    "fact_words_rank": 0.6,
    "fact_meaning": 0.1,
    "fact_meaning_rank": 2.3,
    "fact_focus_rank": 0.9,
    "words": 0.8,
    "meaning": 0.2,
    "meaning_rank": 0.7,
    "neighbours": 1.0,
    "speaker_named": 2.5,
    "by_user": 0.6,
    "opening": 1.0,
}
"""Fitted weights of the features of a message; names of reciprocal ranks end in `_rank`."""

OWN_FEATURES = ("words", "meaning", "meaning_rank")
"""Features of what a message says, by which it supports its neighbours."""


def describe_facts(
    facts: Iterable[FactCandidate], similarities: Mapping[str, Sequence[float]], past: TimeRange | None = None
) -> list[FactSupport]:
    """Return facts as candidates; `similarities`, by uuid, are those to the question and to its focus.

    `past` is the past time that the question names.
    """
    described = []
    for fact in facts:
        similarity, focus_similarity = similarities.get(fact.uuid, (0.0, 0.0))
        is_later = past is not None and fact.valid_from >= past.end
        described.append(FactSupport(fact, similarity, focus_similarity, is_later))
    return described


def describe_messages(
    question: str, messages: Iterable[MessageContent], similarities: Mapping[str, float]
) -> list[MessageText]:
    """Return messages as candidates; `similarities` are those to the question, by message id."""
    question_words = frozenset(name_words(question))
    return [
        MessageText(
            message_id=message.message_id,
            text=message.content,
            similarity=similarities.get(message.message_id, 0.0),
            speaker_named=not question_words.isdisjoint(name_words(message.speaker or "")),
            by_user=message.role == MessageRole.USER,
            session_id=message.session_id,
            position=message.position,
        )
        for message in messages
    ]


def _message_features(
    question: str,
    facts: Sequence[FactSupport],
    messages: Sequence[MessageText],
    languages: tuple[str, ...],
    *,
    is_overview: bool,
) -> dict[str, Sequence[float]]:
    """Return the features of all messages, by the names of `FEATURE_WEIGHTS`."""
    question_tokens = tokenize(question, languages)
    indexes = {message.message_id: index for index, message in enumerate(messages)}
    fact_tokens = [support.fact.text.tokens(languages).all for support in facts]
    by_words = _share_of_max(bm25_scores(question_tokens, fact_tokens))
    weights = [LATER_SUPPORT if support.is_later else 1.0 for support in facts]
    fact_words, fact_meaning, fact_focus = (
        _best_fact_scores(list(map(mul, weights, scores)), facts, indexes)
        for scores in (
            by_words,
            [support.similarity for support in facts],
            [support.focus_similarity for support in facts],
        )
    )
    meaning = [message.similarity for message in messages]
    features: dict[str, Sequence[float]] = {
        "fact_words": fact_words,
        "fact_words_rank": _reciprocal_ranks(fact_words),
        "fact_meaning": fact_meaning,
        "fact_meaning_rank": _reciprocal_ranks(fact_meaning),
        "fact_focus_rank": _reciprocal_ranks(fact_focus),
        "words": _share_of_max(
            bm25_scores(question_tokens, [tokenize(message.text, languages) for message in messages])
        ),
        "meaning": meaning,
        "meaning_rank": _reciprocal_ranks(meaning),
        "speaker_named": [float(message.speaker_named) for message in messages],
        "by_user": [float(message.by_user) for message in messages],
    }
    own = _weighted_means({name: features[name] for name in OWN_FEATURES})
    features["neighbours"] = _neighbour_means(own, messages)
    if is_overview:
        features["opening"] = [math.exp((1 - message.position) / OPENING_LENGTH) for message in messages]
    return features


def rank_messages(
    question: str,
    facts: Sequence[FactSupport],
    messages: Sequence[MessageText],
    languages: tuple[str, ...] = ("en",),
    *,
    is_overview: bool = False,
) -> list[Evidence]:
    """Return the messages that support an answer, best first, each with the memories that were taken from it.

    A score of 1 would be that of a message which is best by every feature.
    """
    via: dict[str, list[str]] = {}
    for support in facts:
        for message_id in support.fact.message_ids:
            via.setdefault(message_id, []).append(support.fact.memory_id)
    scores = _weighted_means(_message_features(question, facts, messages, languages, is_overview=is_overview))
    scored = [
        Evidence(message_id=message.message_id, score=max(0.0, score), via=via.get(message.message_id, []))
        for message, score in zip(messages, scores, strict=True)
    ]
    return sorted(scored, key=lambda evidence: -evidence.score)


def _weighted_means(features: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the mean of the features of each message, by `FEATURE_WEIGHTS`."""
    weights = [FEATURE_WEIGHTS[name] for name in features]
    return [sum(map(mul, weights, values)) / sum(weights) for values in zip(*features.values(), strict=True)]


def _neighbour_means(scores: Sequence[float], messages: Sequence[MessageText]) -> list[float]:
    """Return the mean score of the messages around each one in its session; those that are no candidates have none."""
    by_place = {
        (*_session_of(message), message.position): score for message, score in zip(messages, scores, strict=True)
    }
    influences = {step: 0.5 ** (abs(step) - 1) for step in range(-NEIGHBOUR_REACH, NEIGHBOUR_REACH + 1) if step}
    total = sum(influences.values())
    return [
        sum(
            influence * by_place.get((*_session_of(message), message.position + step), 0.0)
            for step, influence in influences.items()
        )
        / total
        for message in messages
    ]


def _session_of(message: MessageText) -> tuple[str, str]:
    """Return the space of a message, if any, and its session, whose id is unique in a group only."""
    return split_message_key(message.message_id)[0], message.session_id


def _share_of_max(scores: Sequence[float]) -> Sequence[float]:
    highest = max(scores, default=0.0)
    return [score / highest for score in scores] if highest > 0 else scores


def _best_fact_scores(scores: Sequence[float], facts: Sequence[FactSupport], indexes: Mapping[str, int]) -> list[float]:
    """Return for each message, by its index, the best score of the facts that were taken from it."""
    best = [0.0] * len(indexes)
    for score, support in zip(scores, facts, strict=True):
        for message_id in support.fact.message_ids:
            if (index := indexes.get(message_id)) is not None and score > best[index]:
                best[index] = score
    return best


def _reciprocal_ranks(scores: Sequence[float]) -> list[float]:
    """Return `k / (k + rank)` of each score; equal scores share the better rank, and a score of 0 or less gets 0."""
    ranks: dict[float, int] = {}
    for rank, score in enumerate(sorted(scores, reverse=True), start=1):
        ranks.setdefault(score, rank)
    return [RANK_K / (RANK_K + ranks[score]) if score > 0 else 0.0 for score in scores]


def overview_topic(question: str, languages: Sequence[str] = ("en",)) -> str | None:
    """Return the topic of a question that asks for an overview, None if the question asks for something else.

    "Can you list the order in which I brought up different aspects of my app throughout our conversations?" is about
    an app, and most like messages that list and order. A question without a topic is its own topic.
    """
    if not _overview_pattern(tuple(languages)).search(question):
        return None
    words = load_words(*languages)
    asking = words.overview_words | words.topicless_words | words.stop_words | words.numbers.keys()
    topic = [word for word in split_words(question) if word.casefold() not in asking]
    return " ".join(topic) or question


@cache
def _overview_pattern(languages: tuple[str, ...]) -> re.Pattern[str]:
    phrases = sorted(load_words(*languages).overview_phrases)
    alternatives = "|".join(map(re.escape, phrases))
    return re.compile(rf"\b(?:{alternatives})\b" if phrases else r"(?!)", re.IGNORECASE)
