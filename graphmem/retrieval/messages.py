"""Messages found by themselves and through the facts that rest on them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphmem.domain.recall import Evidence, MessageHit
from graphmem.retrieval.evidence import FactText, MessageText, order
from graphmem.retrieval.inquiry import Inquiry
from graphmem.retrieval.names import fold
from graphmem.store.episodes import EpisodeStore
from graphmem.store.search import FoundFact, FoundMessage, MessageWords, SearchStore


@dataclass(frozen=True, slots=True)
class Material:
    """What the order of messages is made from; `found` are those a channel found by themselves."""

    facts: list[FactText]
    messages: list[MessageText]
    found: frozenset[str]


class Messages:
    """Gathers what messages and facts say, and puts messages in order."""

    def __init__(self, store: SearchStore, episodes: EpisodeStore) -> None:
        self._store = store
        self._episodes = episodes

    async def material(
        self, inquiry: Inquiry, facts: Sequence[FoundFact], heard: Mapping[str, Sequence[FoundMessage]]
    ) -> Material:
        """Return the candidates with their texts and exact likeness to the question."""
        found = dict.fromkeys(each.message_id for messages in heard.values() for each in messages)
        ids = found | dict.fromkeys(key for fact in facts for key in fact.message_ids)
        vectors = await inquiry.vectors() if inquiry.vectors else []
        likeness, messages = await asyncio.gather(
            self._store.fact_likeness([fact.uuid for fact in facts], vectors if len(vectors) > 1 else []),
            self._store.message_words(
                inquiry.owner, list(ids), vectors[0] if vectors else None, inquiry.question.filters.known_at
            ),
        )
        unlike = [0.0, 0.0]
        texts = []
        for fact in facts:
            whole, focus = likeness.get(fact.uuid, unlike)
            texts.append(FactText(fact.memory_id, fact.text, whole, focus, fact.message_ids))
        asked = frozenset(fold(inquiry.text).split())
        return Material(texts, [_text(each, asked) for each in messages], frozenset(found))

    async def recall(
        self,
        inquiry: Inquiry,
        facts: Sequence[FoundFact],
        heard: Mapping[str, Sequence[FoundMessage]],
        limit: int,
    ) -> tuple[list[MessageHit], list[Evidence]]:
        """Return up to `limit` messages that answer by themselves, and all that support an answer, the best first."""
        if not heard:
            return [], []
        material = await self.material(inquiry, facts, heard)
        return await self._hits(inquiry, material, limit), order(inquiry.text, material.facts, material.messages)

    async def _hits(self, inquiry: Inquiry, material: Material, limit: int) -> list[MessageHit]:
        own = [each for each in material.messages if each.message_id in material.found]
        best = order(inquiry.text, [], own)[:limit]
        loaded = await self._episodes.load(inquiry.owner, [each.message_id for each in best])
        stored = {each.id: each for each in loaded}
        return [
            MessageHit(message=stored[each.message_id], score=each.score) for each in best if each.message_id in stored
        ]


def _text(stored: MessageWords, asked: frozenset[str]) -> MessageText:
    named = not asked.isdisjoint(fold(stored.speaker or "").split())
    return MessageText(stored.message_id, stored.content, stored.likeness, named)
