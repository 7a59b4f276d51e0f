"""Evidence: ranks the messages that support an answer, by their content and by the facts taken from them. Pure.

A message has features of its own: its BM25 score and its similarity to the question. The facts taken from it add their
best BM25 score, their best similarity to the question, and their best similarity to the focus of the question. Features
count by value and by reciprocal rank. A message counts more if the question names its speaker, or if it is by the user:
a long reply repeats the words of a question without stating anything about the user. The neighbours of a message
support it. For an overview, messages at the start of a session count more, since topics come up there. For a question
about a past time, facts that start later support their messages by half. The weights were fitted to labelled
conversations and checked on others: see `quality/retrieval-experiments.md`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from graphmem.conversations.session import MessageRole
from graphmem.search.bm25 import Scores, Stems, StemTable, WordScores, hash_stems
from graphmem.search.candidates import Candidates, FactRow, Mask, Ranking, Rows
from graphmem.tenants.owners import split_message_key
from graphmem.text.names import name_words
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import split_words, tokenize
from graphmem.text.word_lists import load_words

RANK_K = 20
"""Constant `k` of the reciprocal ranks `k / (k + rank)`; fitted with the weights."""

NEIGHBOUR_REACH = 2
"""Distance up to which messages are neighbours; the next but one has half the influence of the next."""

OPENING_LENGTH = 40
"""Number of messages after which a session's opening counts a third (1 / e) of its first message."""

LATER_SUPPORT = 0.5
"""Share of its support that a fact lends its messages if it starts after the past time named by the question."""

EVIDENCE_PER_RESULT = 5
"""Maximum evidence messages per requested result of a search."""


@dataclass(frozen=True, slots=True)
class FactSupport:
    """The support of facts for an answer, one column each: similarities to the question and to its focus.

    `is_later` marks facts that start after the past time named by the question.
    """

    facts: Sequence[FactRow]
    similarities: Scores
    focus_similarities: Scores
    is_later: Mask

    @classmethod
    def of(cls, found: Candidates, rows: Rows, past: TimeRange | None) -> FactSupport:
        """Return the support of some of the facts found; `past` is the past time named by the question."""
        return cls(
            facts=[found.facts[row] for row in rows.tolist()],
            similarities=np.nan_to_num(found.similarities[rows]),
            focus_similarities=np.nan_to_num(found.focus_similarities[rows]),
            is_later=found.numbers.valid_from[rows] >= (math.inf if past is None else past.end),
        )


NO_SUPPORT = FactSupport([], np.zeros(0), np.zeros(0), np.zeros(0, np.bool_))
"""The support without facts."""


@dataclass(slots=True)
class MessageText:
    """The text of a message by its key (`tenants.owners.message_key`), its speaker, and its place in its session.

    Positions begin with 1. Its stems are computed on first use and kept as long as the object.
    """

    message_id: str
    content: str
    speaker: str | None
    role: str
    session_id: str
    position: int
    _stems: tuple[tuple[str, ...], Stems] | None = field(default=None, compare=False, repr=False)

    def stems(self, languages: tuple[str, ...]) -> Stems:
        """Return the stems of the text."""
        if self._stems is None or self._stems[0] != languages:
            self._stems = languages, hash_stems(tokenize(self.content, languages))
        return self._stems[1]


class MessageTexts(NamedTuple):
    """Candidate messages, with the similarity of each to the question, 0 for one without a vector."""

    messages: Sequence[MessageText]
    similarities: Scores

    def take(self, keys: Container[str]) -> MessageTexts:
        """Return the messages with one of the keys."""
        rows = [row for row, message in enumerate(self.messages) if message.message_id in keys]
        return MessageTexts([self.messages[row] for row in rows], self.similarities[rows])

    def keys_with_scores(self, ranking: Ranking) -> dict[str, float]:
        """Return the scores of ranked messages by their keys, best first."""
        keys = (self.messages[row].message_id for row in ranking.rows.tolist())
        return dict(zip(keys, ranking.scores.tolist(), strict=True))


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
"""Fitted weights of a message's features; names of reciprocal ranks end in `_rank`."""

OWN_FEATURES = ("words", "meaning", "meaning_rank")
"""Features of a message's own content, by which it supports its neighbours."""


def rank_messages(
    question: str,
    support: FactSupport,
    found: MessageTexts,
    languages: tuple[str, ...] = ("en",),
    *,
    is_overview: bool = False,
) -> Ranking:
    """Return the messages that support an answer, by row, best first.

    A score of 1 would mean that a message is best by every feature.
    """
    scores = _weighted_means(_message_features(question, support, found, languages, is_overview=is_overview))
    return Ranking(np.arange(len(found.messages)), np.maximum(0.0, scores)).sorted()


def _message_features(
    question: str,
    support: FactSupport,
    found: MessageTexts,
    languages: tuple[str, ...],
    *,
    is_overview: bool,
) -> dict[str, Scores]:
    """Return the features of all messages, by the names of `FEATURE_WEIGHTS`."""
    messages, meaning = found
    asked, named = tokenize(question, languages), frozenset(name_words(question))
    by_words = WordScores.of(asked, StemTable([fact.stems(languages).all for fact in support.facts])).shares_of_best
    weights = np.where(support.is_later, LATER_SUPPORT, 1.0)
    fact_words, fact_meaning, fact_focus = _best_of_facts(
        weights * np.stack([by_words, support.similarities, support.focus_similarities]), support.facts, messages
    )
    speakers = {message.speaker for message in messages}
    are_named = {speaker: float(not named.isdisjoint(name_words(speaker or ""))) for speaker in speakers}
    features = {
        "fact_words": fact_words,
        "fact_words_rank": _reciprocal_ranks(fact_words),
        "fact_meaning": fact_meaning,
        "fact_meaning_rank": _reciprocal_ranks(fact_meaning),
        "fact_focus_rank": _reciprocal_ranks(fact_focus),
        "words": WordScores.of(asked, StemTable([message.stems(languages) for message in messages])).shares_of_best,
        "meaning": meaning,
        "meaning_rank": _reciprocal_ranks(meaning),
        "speaker_named": np.array([are_named[message.speaker] for message in messages]),
        "by_user": np.array([float(message.role == MessageRole.USER) for message in messages]),
    }
    own = _weighted_means({name: features[name] for name in OWN_FEATURES})
    features["neighbours"] = _neighbour_means(own, messages)
    if is_overview:
        features["opening"] = np.exp((1 - np.array([message.position for message in messages])) / OPENING_LENGTH)
    return features


def _weighted_means(features: Mapping[str, Scores]) -> Scores:
    """Return the mean of each message's features, weighted by `FEATURE_WEIGHTS`."""
    means: Scores = np.average([*features.values()], axis=0, weights=[FEATURE_WEIGHTS[name] for name in features])
    return means


def _neighbour_means(scores: Scores, messages: Sequence[MessageText]) -> Scores:
    """Return the mean score of the messages around each one in its session; non-candidates count as 0."""
    places = [(*_session_of(message), message.position) for message in messages]
    rows = {place: row for row, place in enumerate(places)}
    with_none = np.append(scores, 0.0)
    influences = {step: 0.5 ** (abs(step) - 1) for step in range(-NEIGHBOUR_REACH, NEIGHBOUR_REACH + 1) if step}
    means = np.zeros(len(messages))
    for step, influence in influences.items():
        around = [rows.get((space, session, position + step), -1) for space, session, position in places]
        means += influence * with_none[around]
    return means / sum(influences.values())


def _session_of(message: MessageText) -> tuple[str, str]:
    """Return the space of a message, if any, and its session, whose id is only unique within a group."""
    return split_message_key(message.message_id)[0], message.session_id


def _best_of_facts(scores: Scores, facts: Sequence[FactRow], messages: Sequence[MessageText]) -> Scores:
    """Return the best score, at least 0, of the facts taken from each message."""
    places = {message.message_id: place for place, message in enumerate(messages)}
    taken = [
        (row, place)
        for row, fact in enumerate(facts)
        for message_id in fact.message_ids
        if (place := places.get(message_id)) is not None
    ]
    rows, taken_from = np.array(taken, np.intp).reshape(-1, 2).T
    best = np.zeros((len(scores), len(messages)))
    for of_messages, of_facts in zip(best, scores, strict=True):
        np.maximum.at(of_messages, taken_from, of_facts[rows])
    return best


def _reciprocal_ranks(scores: Scores) -> Scores:
    """Return `k / (k + rank)` of each score; equal scores share the better rank, and a score of 0 or less gets 0."""
    ranks = 1 + np.searchsorted(np.sort(-scores), -scores)
    return np.where(scores > 0, RANK_K / (RANK_K + ranks), 0.0)


def overview_topic(question: str, languages: Sequence[str] = ("en",)) -> str | None:
    """Return the topic of a question that asks for an overview, or None for other questions.

    "Can you list the order in which I brought up different aspects of my app throughout our conversations?" is about an
    app, but most similar to messages that list and order. A question without a topic is its own topic.
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
