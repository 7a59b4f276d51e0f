"""Fit: how well one memory answers a question, from 0 to 1, whatever else was found. Pure.

It grows with the similarity of their vectors, with the share of the question's words that the memory contains or names,
with how specific an entity is that both name, and with the words that both share as BM25 counts them, those of the
memory's messages included. Rare words weigh more; the user's own name names nothing, because every memory is about the
user. Neither age nor use nor rank counts, so that the same memory has the same fit years later. The weights were fitted
to labelled questions and checked on others: see `docs/retrieval.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import mul
from typing import NamedTuple

from graphmem.memories.entity_names import EntityMention
from graphmem.search.bm25 import bm25_shares
from graphmem.search.rank_fusion import CHANNEL_WEIGHTS
from graphmem.search.search_candidates import FactCandidate
from graphmem.text.names import name_words
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import tokenize

BIAS = -4.75
"""Constant of the logistic function; it puts the best cut at `FIT_SCORE`."""

LATER_WEIGHT = -1.0
"""Weight of starting only after the past time that a question names: such a memory seldom says what held then."""


class FitFeatures(NamedTuple):
    """What the fit of a memory is computed from.

    `similarity`, `words` (share of the question's words) and `named` (how specific a named entity is) are from 0 to 1;
    `bm25` is a share that may exceed 1. `is_later` says that the memory starts after the past time that is asked about.
    """

    similarity: float
    words: float
    named: float
    bm25: float
    is_later: bool = False


class FitWeights(NamedTuple):
    """The weights of the features of a fit."""

    similarity: float
    words: float
    named: float
    bm25: float

    @classmethod
    def for_channels(cls, channel_weights: Mapping[str, float]) -> FitWeights:
        """Return the weights for those of the channels: a channel of twice its default weight counts twice.

        Their sum stays, so that a memory which fits in every way has the same fit.
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
    facts: Mapping[str, FactCandidate],
    mentions: Collection[EntityMention],
    languages: tuple[str, ...],
    past: TimeRange | None = None,
) -> dict[str, FitFeatures]:
    """Return the features of facts by uuid; the question names the entities `mentions` and the past time `past`."""
    named = {mention.id for mention in mentions if not mention.is_user}
    about = Counter(entity_id for fact in facts.values() for entity_id in named.intersection(fact.entity_ids))
    words = _QuestionWords.of(question, mentions, languages)
    stems = {uuid: frozenset(tokenize(_statement(fact), languages)) for uuid, fact in facts.items()}
    weights = words.weights(stems.values())
    total = sum(weights.values())
    texts = [tokenize(fact.text, languages) for fact in facts.values()]
    shares = dict(zip(facts, bm25_shares(tokenize(question, languages), texts), strict=True))
    return {
        uuid: FitFeatures(
            similarity=max(0.0, fact.similarity or 0.0),
            words=words.share(stems[uuid], fact.entity_ids, weights, total),
            named=max(
                (_specificity(about[key], len(facts)) for key in named.intersection(fact.entity_ids)), default=0.0
            ),
            bm25=shares[uuid],
            is_later=past is not None and fact.valid_from >= past.end,
        )
        for uuid, fact in facts.items()
    }


def fit(features: FitFeatures, weights: FitWeights = FIT_WEIGHTS) -> float:
    """Return the fit of a memory with these features."""
    *values, is_later = features
    log_odds = BIAS + sum(map(mul, weights, values)) + LATER_WEIGHT * is_later
    return 1 / (1 + math.exp(-log_odds))


class _QuestionWords(NamedTuple):
    """The stems of a question, and for each the entities that it helps to name."""

    entities_by_stem: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, question: str, mentions: Collection[EntityMention], languages: tuple[str, ...]) -> _QuestionWords:
        entities: dict[str, set[str]] = {stem: set() for stem in tokenize(question, languages)}
        words = name_words(question)
        for mention in mentions:
            for word in words[mention.position : mention.position + mention.size]:
                for stem in tokenize(word, languages):
                    entities.setdefault(stem, set()).add(mention.id)
        own = {mention.id for mention in mentions if mention.is_user}
        entities = {stem: ids for stem, ids in entities.items() if not ids or not ids <= own} or entities
        return cls({stem: frozenset(ids) for stem, ids in entities.items()})

    def weights(self, texts: Collection[Collection[str]]) -> dict[str, float]:
        """Return the weight of each stem by how few of the texts contain it."""
        counts = Counter(stem for text in texts for stem in self.entities_by_stem if stem in text)
        return {
            stem: 1 + math.log(1 + (len(texts) - counts[stem] + 0.5) / (counts[stem] + 0.5))
            for stem in self.entities_by_stem
        }

    def share(
        self, text: Collection[str], entity_ids: Sequence[str], weights: Mapping[str, float], total: float
    ) -> float:
        """Return the share of the stems, by weight, that a text contains or whose entity it is about."""
        shared = sum(
            weights[stem]
            for stem, entities in self.entities_by_stem.items()
            if stem in text or not entities.isdisjoint(entity_ids)
        )
        return shared / total if total else 0.0


def _statement(fact: FactCandidate) -> str:
    """Return a statement with its predicate, its names and its tags, without the messages it was taken from."""
    return f"{fact.content}\n{fact.context.partition(chr(10))[0]}"


def _specificity(about: int, facts: int) -> float:
    """Return how specific an entity is that so many of the facts found are about: 1 for one of many, 0 for all."""
    return 1 - math.log(about) / math.log(facts) if facts > 1 and about else float(about == 1)
