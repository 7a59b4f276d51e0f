"""Messages found by themselves and through the facts that rest on them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphmem.domain.search_candidates import FactCandidate, MessageCandidate, MessageContent
from graphmem.domain.search_models import Evidence, MessageHit
from graphmem.retrieval.evidence import FactText, MessageText, rank_messages
from graphmem.retrieval.search_preparer import PreparedSearch
from graphmem.store.episodes import EpisodeStore
from graphmem.store.search import SearchStore
from graphmem.text.names import name_words


@dataclass(frozen=True, slots=True)
class EvidenceCandidates:
    """What the order of messages is made from; `direct_hit_ids` are those a channel found by themselves."""

    facts: list[FactText]
    messages: list[MessageText]
    direct_hit_ids: frozenset[str]


class MessageRanker:
    """Gathers what messages and facts say, and puts messages in order."""

    def __init__(self, store: SearchStore, episodes: EpisodeStore, languages: tuple[str, ...]) -> None:
        self._store = store
        self._episodes = episodes
        self._languages = languages

    async def evidence_candidates(
        self,
        prepared: PreparedSearch,
        facts: Sequence[FactCandidate],
        hits_by_channel: Mapping[str, Sequence[MessageCandidate]],
    ) -> EvidenceCandidates:
        """Return the candidates with their texts and exact likeness to the question."""
        found = dict.fromkeys(each.message_id for messages in hits_by_channel.values() for each in messages)
        ids = found | dict.fromkeys(key for fact in facts for key in fact.message_ids)
        vectors = await prepared.vectors() if prepared.vectors else []
        similarities, messages = await asyncio.gather(
            self._store.compute_fact_similarities([fact.uuid for fact in facts], vectors if len(vectors) > 1 else []),
            self._store.load_message_contents(
                prepared.owner, list(ids), vectors[0] if vectors else None, prepared.channel_query.filters.known_at
            ),
        )
        no_similarity = [0.0, 0.0]
        texts = []
        for fact in facts:
            similarity, focus_similarity = similarities.get(fact.uuid, no_similarity)
            texts.append(FactText(fact.memory_id, fact.text, similarity, focus_similarity, fact.message_ids))
        asked = frozenset(name_words(prepared.text))
        return EvidenceCandidates(texts, [_text(each, asked) for each in messages], frozenset(found))

    async def rank(
        self,
        prepared: PreparedSearch,
        facts: Sequence[FactCandidate],
        hits_by_channel: Mapping[str, Sequence[MessageCandidate]],
        limit: int,
    ) -> tuple[list[MessageHit], list[Evidence]]:
        """Return up to `limit` messages that answer by themselves, and all that support an answer, the best first."""
        if not hits_by_channel:
            return [], []
        candidates = await self.evidence_candidates(prepared, facts, hits_by_channel)
        return await self._hits(prepared, candidates, limit), rank_messages(
            prepared.text, candidates.facts, candidates.messages, languages=self._languages
        )

    async def _hits(self, prepared: PreparedSearch, candidates: EvidenceCandidates, limit: int) -> list[MessageHit]:
        own = [each for each in candidates.messages if each.message_id in candidates.direct_hit_ids]
        best = rank_messages(prepared.text, [], own, languages=self._languages)[:limit]
        loaded = await self._episodes.load_messages(prepared.owner, [each.message_id for each in best])
        stored = {each.id: each for each in loaded}
        return [
            MessageHit(message=stored[each.message_id], score=each.score) for each in best if each.message_id in stored
        ]


def _text(stored: MessageContent, asked: frozenset[str]) -> MessageText:
    named = not asked.isdisjoint(name_words(stored.speaker or ""))
    return MessageText(stored.message_id, stored.content, stored.similarity, named)
