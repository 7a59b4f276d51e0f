"""Fit: how well one memory answers a question, from 0 to 1, and the ranks it is computed from. Pure.

It grows with the similarity of their vectors, with the share of the question's words that the memory contains or names,
with how specific an entity is that both name, and with the words that both share as BM25 counts them, those of the
memory's messages included. Rare words weigh more; the user's own name names nothing, because every memory is about the
user. Neither age nor use nor rank counts, so that the same memory has the same fit years later. The weights were fitted
to labelled questions and checked on others: see `docs/retrieval.md`.

The full-text index finds the candidates with the statistics of all users. A term that is in each candidate, such as the
user's name, tells them apart as little as an article does; only statistics of the candidates show that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import mul
from typing import NamedTuple, TypeVar

from graphmem.memories.entity_names import EntityMention
from graphmem.search.fact_candidate import FactCandidate
from graphmem.text.identifiers import find_identifiers, names_other
from graphmem.text.names import name_words
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import tokenize

K1 = 1.2
"""Saturation of a term's count in one text; the usual value."""

B = 0.75
"""Share of the length normalisation, from 0 to 1; the usual value."""


class _TermCounts(NamedTuple):
    """How often each token of a query is in each of some tokenised documents, and the weights of these tokens."""

    counts: Sequence[Mapping[str, int]]
    lengths: Sequence[int]
    weights: Mapping[str, float]

    @classmethod
    def of(cls, query: Sequence[str], documents: Sequence[Sequence[str]]) -> _TermCounts:
        wanted = set(query)
        counts = [{token: document.count(token) for token in wanted.intersection(document)} for document in documents]
        containing = Counter(token for count in counts for token in count)
        weights = {token: _weight(len(documents), containing[token]) for token in wanted}
        return cls(counts, [*map(len, documents)], weights)

    def scores(self) -> list[float]:
        average = sum(self.lengths) / max(1, len(self.lengths)) or 1.0
        scores = []
        for count, length in zip(self.counts, self.lengths, strict=True):
            saturation = K1 * (1 - B + B * length / average)
            scores.append(sum(self.weights[token] * n * (K1 + 1) / (n + saturation) for token, n in count.items()))
        return scores


def bm25_scores(query: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the BM25 score of each tokenised document for the tokens of a query.

    Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
    """
    return _TermCounts.of(query, documents).scores()


class WordScores(NamedTuple):
    """The BM25 scores of the facts found, by uuid, and the score that is a share of 1: all weights of the question.

    A fact of average length that contains every token once has a share of 1; one that is short or repeats them has
    more, up to `1 + K1`. Tokens that no fact contains weigh most, so that the share does not depend on the best fact.
    """

    by_uuid: Mapping[str, float]
    total: float

    @classmethod
    def of(cls, question: str, facts: Mapping[str, FactCandidate], languages: tuple[str, ...]) -> WordScores:
        """Return the scores of facts for the words of a question, with the statistics of these facts."""
        texts = [fact.text.tokens(languages).all for fact in facts.values()]
        counts = _TermCounts.of(tokenize(question, languages), texts)
        return cls(dict(zip(facts, counts.scores(), strict=True)), sum(counts.weights.values()))

    def share(self, uuid: str) -> float:
        """Return the score of a fact as a share."""
        return self.by_uuid[uuid] / self.total if self.total else 0.0


def _weight(documents: int, containing: int) -> float:
    """Return the weight of a token that so many of the documents contain."""
    return math.log(1 + (documents - containing + 0.5) / (containing + 0.5))


Key = TypeVar("Key", bound=Hashable)

CHANNEL_WEIGHTS: Mapping[str, float] = {"semantic": 0.5, "keyword": 1.0, "graph": 0.1}
"""Default weights of the channels of a search; a channel that is not listed has weight 1."""


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Key]], weights: Mapping[str, float], k: int = 60
) -> dict[Key, float]:
    """Return the score of every ranked key, best first: the sum of `weight / (k + rank)` over all rankings.

    Ranks start at 1. A ranking without a weight has weight 1. A key that occurs twice in a ranking counts with its
    better rank. Keys of equal score keep the order of their first occurrence. See Cormack, Clarke and Büttcher, SIGIR
    2009.
    """
    scores: dict[Key, float] = {}
    for name, ranking in rankings.items():
        weight = weights.get(name, 1.0)
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


def max_rrf_score(names: Iterable[str], weights: Mapping[str, float], k: int = 60) -> float:
    """Return the score of a key that is first in every named ranking."""
    return sum(weights.get(name, 1.0) for name in names) / (k + 1)


BIAS = -4.75
"""Constant of the logistic function; it puts the best cut at `FIT_SCORE`."""

OTHER_IDENTIFIER_FACTOR = 0.25
"""What remains of the fit of a memory about another thing of the kind that the question names by its number.

It is below every threshold of a fit: one digit makes another invoice, flight or model.
"""

LATER_WEIGHT = -1.0
"""Weight of starting only after the past time that a question names: such a memory seldom says what held then."""


class FitFeatures(NamedTuple):
    """What the fit of a memory is computed from.

    `similarity`, `words` (share of the question's words) and `named` (how specific a named entity is) are from 0 to 1;
    `bm25` is a share that may exceed 1. `is_later` says that the memory starts after the past time that is asked about,
    `names_other` that it names another identifier than the question, such as INV-20231 for INV-20232.
    """

    similarity: float
    words: float
    named: float
    bm25: float
    is_later: bool = False
    names_other: bool = False


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
    scores: WordScores,
    past: TimeRange | None = None,
) -> dict[str, FitFeatures]:
    """Return the features of facts by uuid; the question names the entities `mentions` and the past time `past`.

    `scores` are those of the question's words in the facts.
    """
    named = {mention.id for mention in mentions if not mention.is_user}
    about = Counter(entity_id for fact in facts.values() for entity_id in named.intersection(fact.entity_ids))
    words, identifiers = _QuestionWords.of(question, mentions, languages), find_identifiers(question, languages)
    stems = {uuid: frozenset(fact.text.tokens(languages).statement) for uuid, fact in facts.items()}
    weights = words.weights(stems.values())
    total = sum(weights.values())
    return {
        uuid: FitFeatures(
            similarity=max(0.0, fact.similarity or 0.0),
            words=words.share(stems[uuid], fact.entity_ids, weights, total),
            named=max(
                (_specificity(about[key], len(facts)) for key in named.intersection(fact.entity_ids)), default=0.0
            ),
            bm25=scores.share(uuid),
            is_later=past is not None and fact.valid_from >= past.end,
            names_other=bool(identifiers) and names_other(identifiers, fact.text.statement_and_names, languages),
        )
        for uuid, fact in facts.items()
    }


def fit(features: FitFeatures, weights: FitWeights = FIT_WEIGHTS) -> float:
    """Return the fit of a memory with these features."""
    *values, is_later, names_other = features
    log_odds = BIAS + sum(map(mul, weights, values)) + LATER_WEIGHT * is_later
    return (OTHER_IDENTIFIER_FACTOR if names_other else 1.0) / (1 + math.exp(-log_odds))


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
            if stem in text or (entities and not entities.isdisjoint(entity_ids))
        )
        return shared / total if total else 0.0


def _specificity(about: int, facts: int) -> float:
    """Return how specific an entity is that so many of the facts found are about: 1 for one of many, 0 for all."""
    return 1 - math.log(about) / math.log(facts) if facts > 1 and about else float(about == 1)
