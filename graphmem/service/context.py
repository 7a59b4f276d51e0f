"""Contexts for a model's prompt, and what they are made of."""

from __future__ import annotations

from graphmem.context.builder import ContextBuilder
from graphmem.context.conversation_summary import MAX_RECENT_MESSAGES
from graphmem.context.reply_enhancement import enhance_reply
from graphmem.context.snapshot_cache import SnapshotCache
from graphmem.domain.behavior_patterns import BehaviorPattern
from graphmem.domain.context_models import ContextItem, ContextRequest, ContextResponse, EnhancedReply
from graphmem.domain.identity import Owner
from graphmem.domain.learned_preferences import LearnedPreference
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.times import Clock
from graphmem.retrieval.hybrid_search import HybridSearch
from graphmem.retrieval.reinforcement import ReinforcementBuffer
from graphmem.store.context import ContextStore


class ContextService:
    """Builds contexts, enhances replies, and lists what was learned."""

    def __init__(
        self,
        store: ContextStore,
        search: HybridSearch,
        reinforcement: ReinforcementBuffer,
        profiles: TenantProfiles,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reinforcement = reinforcement
        self._profiles = profiles
        self._snapshots = SnapshotCache(store, clock)
        self._builder = ContextBuilder(store, self._snapshots, search, profiles)

    async def build(self, owner: Owner, request: ContextRequest, *, reinforce: bool = True) -> ContextResponse:
        """Return the context for a request; raise InvalidInput when the question alone exceeds the budget.

        `reinforce` counts a retrieval of each memory that the question recalled.
        """
        built = await self._builder.build(owner, request)
        if reinforce:
            self._reinforcement.record(owner, built.recalled)
        return built.context

    async def enhance(self, owner: Owner, session_id: str, draft: str) -> EnhancedReply:
        """Return a draft reply with continuity, style, an example and follow-ups of this user added."""
        snapshot = await self._snapshots.load(owner, session_id, MAX_RECENT_MESSAGES)
        return enhance_reply(draft, snapshot, self._profiles.for_tenant(owner.tenant))

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything cached of a user."""
        await self._snapshots.discard_user(owner)

    async def count_user(self, owner: Owner) -> int:
        """Return how many cached entries there are of a user."""
        return await self._snapshots.count_user(owner)

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return how the user likes to be answered, the most confident first."""
        return await self._store.list_preferences(owner)

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns that the user shows now, the most confident first."""
        return await self._store.list_patterns(owner)

    async def list_items(self, owner: Owner, session_id: str | None = None) -> list[ContextItem]:
        """Return the context items that have not expired, of one session or of all, the latest first."""
        return await self._store.list_active_items(owner, session_id)
