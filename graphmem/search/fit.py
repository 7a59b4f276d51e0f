"""Fit: how well one memory answers a question, from 0 to 1, and the ranks it is computed from. Pure.

It grows with the similarity of their vectors, with the share of the question's words that the memory contains or names,
with the specificity of an entity that both name, and with their common words by BM25, including the memory's messages.
Rare words weigh more. The user's own name names only memories with the user as subject, because every memory is about
the user. Age, use and rank do not count, so that the same memory has the same fit years later. The weights were fitted
to labelled questions and checked on others: see `docs/search.md`.

The full-text index finds the candidates with the statistics of all users. A term that every candidate contains, such as
the user's name, distinguishes them no better than an article does; only statistics of the candidates show that.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import mul
from typing import NamedTuple

import numpy as np

from graphmem.memories.names import EntityMention, MentionKind
from graphmem.search.bm25 import Scores, Stems, StemTable, WordScores, rarity
from graphmem.search.candidates import Candidates, FactRow, Mask, Rows
from graphmem.text.names import Identifier, find_identifiers, name_words, names_other
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import tokenize

CHANNEL_WEIGHTS: Mapping[str, float] = {"semantic": 0.5, "keyword": 1.0, "graph": 0.1}
"""Default weights of the channels of a search; an unlisted channel has weight 1."""


def reciprocal_rank_fusion(
    rankings: Mapping[str, Rows], weights: Mapping[str, float], size: int, k: int = 60
) -> Scores:
    """Return the score of each of `size` rows: the sum of `weight / (k + rank)` over all rankings, 0 without any.

    Ranks start at 1, and a row is in a ranking once. A ranking without a weight has weight 1. See Cormack, Clarke and
    Büttcher, SIGIR 2009.
    """
    scores = np.zeros(size)
    for name, rows in rankings.items():
        scores[rows] += weights.get(name, 1.0) / (k + np.arange(1, len(rows) + 1))
    return scores


def max_rrf_score(names: Iterable[str], weights: Mapping[str, float], k: int = 60) -> float:
    """Return the score of a row that is first in every named ranking."""
    return sum(weights.get(name, 1.0) for name in names) / (k + 1)


BIAS = -4.75
"""Constant of the logistic function; it puts the best cut at `FIT_SCORE`."""

OTHER_IDENTIFIER_FACTOR = 0.25
"""Factor for the fit of a memory about another thing of the kind that the question names by number.

The result is below every threshold of a fit: one digit makes another invoice, flight or model.
"""

MAX_USER_SPECIFICITY = 0.3
"""Maximum specificity of the user: enough for memories about the user to precede those about "Mara's sister"."""

LATER_WEIGHT = -1.0
"""Weight of a start after the past time named by a question: such a memory seldom says what held then."""


class FitFeatures(NamedTuple):
    """The features from which the fit of memories is computed, one column each.

    `similarity`, `words` (share of the question's words) and `named` (specificity of a named entity) are from 0 to 1;
    `bm25` is a share that may exceed 1. `is_later` means that the memory starts after the past time in question,
    `names_other` that it names another identifier than the question, such as INV-20231 for INV-20232.
    """

    similarity: Scores
    words: Scores
    named: Scores
    bm25: Scores
    is_later: Mask
    names_other: Mask


class FitWeights(NamedTuple):
    """The weights of the features of a fit."""

    similarity: float
    words: float
    named: float
    bm25: float

    @classmethod
    def for_channels(cls, channel_weights: Mapping[str, float]) -> FitWeights:
        """Return the weights adjusted for channel weights: a channel of twice its default weight counts twice.

        Their sum is unchanged, so that a memory which fits in every way has the same fit.
        """
        semantic, keyword, graph = (
            channel_weights.get(name, default) / default for name, default in CHANNEL_WEIGHTS.items()
        )
        scaled = [
            weight * scale for weight, scale in zip(FIT_WEIGHTS, (semantic, keyword, graph, keyword), strict=True)
        ]
        return cls(*(weight * sum(FIT_WEIGHTS) / sum(scaled) for weight in scaled))


FIT_WEIGHTS = FitWeights(similarity=6.0, words=3.5, named=2.5, bm25=2.0)
"""Fitted weights of the logistic function of the features."""


def fit_features(
    question: str,
    found: Candidates,
    mentions: Collection[EntityMention],
    languages: tuple[str, ...],
    scores: WordScores,
    past: TimeRange | None = None,
) -> FitFeatures:
    """Return the features of facts; the question names the entities `mentions` and the past time `past`.

    `scores` are the scores of the question's words in the facts.
    """
    about = {mention.id: _about(found.facts, mention.id) for mention in mentions}
    named = np.zeros(len(found))
    for mention in mentions:
        if mention.kind is not MentionKind.SELF_REFERENCE:
            meant = _whose_subject(found.facts, mention.id) if mention.is_user else about[mention.id]
            most = MAX_USER_SPECIFICITY if mention.is_user else 1.0
            np.maximum(named, meant * min(most, _specificity(meant)), out=named)
    stems = _question_stems(question, mentions, languages)
    return FitFeatures(
        similarity=np.maximum(0.0, np.nan_to_num(found.similarities)),
        words=_word_shares(stems, [fact.stems(languages).statement for fact in found.facts], about),
        named=named,
        bm25=scores.shares,
        is_later=found.numbers.valid_from >= (math.inf if past is None else past.end),
        names_other=_names_other(find_identifiers(question, languages), found.facts, languages),
    )


def told_words(
    question: str, facts: Sequence[FactRow], mentions: Collection[EntityMention], languages: tuple[str, ...]
) -> tuple[list[int], int]:
    """Return, for each fact, a bit for each question word it states, and the bits of all words.

    Words that name an entity are left out: every fact around it may state them.
    """
    stems = [stem for stem, named in _question_stems(question, mentions, languages).items() if not named]
    texts = StemTable([fact.stems(languages).statement for fact in facts])
    told = [0] * len(facts)
    for place, stem in enumerate(stems):
        for row in np.flatnonzero(texts.counts(stem)).tolist():
            told[row] |= 1 << place
    return told, (1 << len(stems)) - 1


def fit(features: FitFeatures, weights: FitWeights = FIT_WEIGHTS) -> Scores:
    """Return the fit of memories with these features."""
    *values, is_later, names_other = features
    log_odds = BIAS + sum(map(mul, weights, values)) + LATER_WEIGHT * is_later
    fits: Scores = np.where(names_other, OTHER_IDENTIFIER_FACTOR, 1.0) / (1 + np.exp(-log_odds))
    return fits


def _names_other(asked: Sequence[Identifier], facts: Sequence[FactRow], languages: tuple[str, ...]) -> Mask:
    """Return which facts have a different identifier of a kind that is asked for."""
    other = np.zeros(len(facts), np.bool_)
    for row, fact in enumerate(facts) if asked else ():
        other[row] = names_other(asked, fact.statement_and_names, languages)
    return other


def _question_stems(
    question: str, mentions: Collection[EntityMention], languages: tuple[str, ...]
) -> dict[str, set[str]]:
    """Return the stems of a question, each with the entities that it helps to name."""
    entities: dict[str, set[str]] = {stem: set() for stem in tokenize(question, languages)}
    words = name_words(question)
    for mention in mentions:
        for word in words[mention.position : mention.position + mention.size]:
            for stem in tokenize(word, languages):
                entities.setdefault(stem, set()).add(mention.id)
    own = {mention.id for mention in mentions if mention.is_user}
    return {stem: ids for stem, ids in entities.items() if not ids or not ids <= own} or entities


def _word_shares(
    entities_by_stem: Mapping[str, Collection[str]], statements: Sequence[Stems], about: Mapping[str, Mask]
) -> Scores:
    """Return, for each fact, the weighted share of the stems that it states or whose entity it is `about`.

    A stem weighs more the fewer facts state it.
    """
    texts = StemTable(statements)
    shared, total = np.zeros(len(texts)), 0.0
    for stem, entities in entities_by_stem.items():
        stated = texts.counts(stem) > 0
        weight = 1 + rarity(len(texts), int(np.count_nonzero(stated)))
        shared += weight * np.logical_or.reduce([stated, *(about[entity_id] for entity_id in entities)])
        total += weight
    return shared / total if total else shared


def _about(facts: Sequence[FactRow], entity_id: str) -> Mask:
    """Return which facts are about an entity."""
    return np.fromiter((entity_id in fact.entity_ids for fact in facts), np.bool_, len(facts))


def _whose_subject(facts: Sequence[FactRow], entity_id: str) -> Mask:
    """Return which facts have an entity as their subject, the first of their entities."""
    return np.fromiter((next(iter(fact.entity_ids), None) == entity_id for fact in facts), np.bool_, len(facts))


def _specificity(about: Mask) -> float:
    """Return the specificity of an entity given which facts are about it: 1 for one of many, 0 for all."""
    facts, found = len(about), int(np.count_nonzero(about))
    return 1 - math.log(found) / math.log(facts) if facts > 1 and found else float(found == 1)
