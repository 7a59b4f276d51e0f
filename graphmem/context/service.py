"""Contexts for a model's prompt, and the learned data behind them."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.context.builder import ContextBuilder, SnapshotCache
from graphmem.context.composition import BuiltContext
from graphmem.context.conversation_summary import MAX_RECENT_MESSAGES
from graphmem.context.hints import ReplyEvidence, enhance_reply
from graphmem.context.models import (
    BehaviorPattern,
    ContextFeedbackResult,
    ContextItem,
    ContextItemIn,
    ContextRequest,
    ContextResponse,
    EnhancedReply,
    EnhanceIn,
    LearnedIntent,
    LearnedPreference,
    MemoryUse,
    RelatedSession,
)
from graphmem.context.relevance import refers_to_past_session
from graphmem.context.store import ContextStore
from graphmem.context.surroundings import SurroundingsStore
from graphmem.context.usage import ContextUsage
from graphmem.memories.fact_store import ReinforcementBuffer
from graphmem.memories.memory import MemoryStatus
from graphmem.runtime.errors import InvalidInput, NotFound
from graphmem.runtime.field_types import stored_values, text_length
from graphmem.runtime.process import read_text
from graphmem.runtime.times import Clock
from graphmem.search.hybrid_search import HybridSearch
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.trust import StatedKind

MAX_ENHANCED_TOKENS = 1_000_000
"""Token budget for finding the session that a question of any length refers to."""


class ContextService:
    """Builds contexts, enhances replies, and lists learned data."""

    def __init__(
        self,
        store: ContextStore,
        surroundings: SurroundingsStore,
        search: HybridSearch,
        reinforcement: ReinforcementBuffer,
        profiles: TenantProfiles,
        policy: SecretPolicy,
        clock: Clock,
        usage: ContextUsage,
    ) -> None:
        self._store = store
        self._usage = usage
        self._policy = policy
        self._reinforcement = reinforcement
        self._profiles = profiles
        self._snapshots = SnapshotCache(store, clock)
        self._builder = ContextBuilder(store, surroundings, self._snapshots, search, profiles, clock)

    async def build(self, reader: Reader, request: ContextRequest, *, reinforce: bool = True) -> ContextResponse:
        """Return the context for a request; raise InvalidInput if the question alone exceeds the budget.

        `reinforce` counts a retrieval of each memory that the question recalled, and remembers which memories it held.
        """
        built = await self.gather(reader, request)
        if reinforce:
            self.record(reader, [built], request.session_id)
        return built.context

    async def gather(self, reader: Reader, request: ContextRequest) -> BuiltContext:
        """Return the context for a request with its material; it only counts once it is recorded.

        Raises InvalidInput if the question alone exceeds the budget.
        """
        return await self._builder.build(reader, request)

    def record(self, reader: Reader, contexts: Sequence[BuiltContext], session_id: str | None) -> None:
        """Count a retrieval of each memory recalled by the contexts of one question, and remember their memories.

        They are remembered together, under the id of the first.
        """
        recalled = {memory.id: memory for built in contexts for memory in built.recalled}
        self._reinforcement.record(reader, list(recalled.values()))
        shown = (memory for built in contexts for memory in built.context.memories)
        held = {memory.id: memory for memory in shown if memory.status is not MemoryStatus.CONTESTED}
        self._usage.record(scope_of(reader).owner, contexts[0].context.context_id, list(held.values()), session_id)

    async def enhance(self, owner: Owner, session_id: str, draft: EnhanceIn) -> EnhancedReply:
        """Return a draft reply with continuity, style, an example, follow-ups and sources of this user added.

        Raises NotFound for a session that is not the user's.
        """
        snapshot = await self._snapshots.load(owner, session_id, MAX_RECENT_MESSAGES)
        if snapshot.session is None:
            raise NotFound("There is no such session.")
        said_at = await self._store.fetch_source_times(owner, draft.sources) if draft.sources else {}
        evidence = ReplyEvidence(
            said_at=list(said_at.values()),
            external=[source for source in draft.sources if source not in said_at],
            past_session=await self._find_past_session(owner, session_id, draft.question),
        )
        return enhance_reply(draft.reply, snapshot, self._profiles.for_tenant(owner.tenant), evidence)

    async def _find_past_session(self, owner: Owner, session_id: str, question: str | None) -> RelatedSession | None:
        """Return the earlier session that a question refers to, if any."""
        if question is None or not refers_to_past_session(question):
            return None
        request = ContextRequest(question=question, session_id=session_id, token_budget=MAX_ENHANCED_TOKENS)
        related = (await self._builder.build(owner, request)).context.related_sessions
        return related[0] if related else None

    async def rate(
        self, reader: Reader, context_id: str, score: int, kind: StatedKind | None = None
    ) -> ContextFeedbackResult:
        """Store the rating of a context's answer, which credits the memories that the context held.

        `kind` is the source that rates, None for an admin. Raises NotFound for a context that is unknown or has
        expired, and Forbidden if a more trusted source has rated it.
        """
        return await self._usage.rate(reader, context_id, score, kind)

    async def list_uses(self, reader: Reader, memory_id: str, limit: int) -> list[MemoryUse]:
        """Return the contexts that held a memory, the latest first; raise NotFound for an unknown memory."""
        return await self._usage.list_of_memory(reader, memory_id, limit)

    async def close(self) -> None:
        """Write the contexts that have not been written yet."""
        await self._usage.buffer.close()

    async def add_item(self, owner: Owner, item: ContextItemIn, kind: StatedKind | None = None) -> ContextItem:
        """Store a source's context item; None stands for an admin.

        Raises InvalidInput for a secret, NotFound for a session that is not the user's, and Forbidden for an item from
        a more trusted source.
        """
        classes = await read_text(
            text_length(item), lambda: self._policy.refused_classes(stored_values(item), owner.tenant)
        )
        if classes:
            raise InvalidInput(f"The item contains a secret ({', '.join(classes)}), which is not stored: leave it out.")
        return await self._store.save_item(owner, item, kind)

    async def delete_item(self, owner: Owner, item_id: str, kind: StatedKind | None = None) -> None:
        """Delete a context item for a source; None stands for an admin.

        Raises NotFound for an item that is not the user's, and Forbidden for one from a more trusted source.
        """
        await self._store.delete_item(owner, item_id, kind)

    async def list_intents(self, owner: Owner) -> list[LearnedIntent]:
        """Return the learned intents, the best understood first."""
        return await self._store.list_intents(owner)

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything cached for a user."""
        await self._usage.buffer.discard_user(owner)
        await self._snapshots.discard_user(owner)

    async def count_user(self, owner: Owner) -> int:
        """Return the number of cached entries of a user."""
        return await self._snapshots.count_user(owner) + await self._usage.buffer.count_user(owner)

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return the user's learned preferences for answers, the most confident first."""
        return await self._store.list_preferences(owner)

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the user's current patterns, the most confident first."""
        return await self._store.list_patterns(owner)

    async def list_items(self, owner: Owner, session_id: str | None = None) -> list[ContextItem]:
        """Return the unexpired context items of one session or of all, the latest first."""
        return await self._store.list_active_items(owner, session_id)
