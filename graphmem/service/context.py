"""What to put before the model, and what is learned from conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from graphmem.context.builder import ContextBuilder
from graphmem.context.conversation_summary import MAX_RECENT_MESSAGES
from graphmem.context.feedback import FeedbackLearner
from graphmem.context.mentions import MAX_TTL, extract_mentions
from graphmem.context.patterns import MAX_WINDOW_DAYS, find_patterns
from graphmem.context.preferences import (
    apply_signals,
    confident_value,
    extract_stated_preferences,
    select_stale_preferences,
    source_message_ids,
)
from graphmem.context.reply_enhancement import ReplyContext, enhance_reply, predict_followups
from graphmem.domain.context_models import (
    BehaviorPattern,
    ContextItem,
    ContextRequest,
    ContextResponse,
    EnhancedReply,
    FeedbackResult,
    LearnedPreference,
    PreferenceType,
)
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Message, MessageRole
from graphmem.domain.times import Clock
from graphmem.jobs import Steps
from graphmem.metrics import CONTEXT_EXTRACTION_TIME, MEMORY_SIZE_BYTES, PATTERN_DETECTION_COUNT, PREFERENCE_UPDATES
from graphmem.retrieval.hybrid_search import HybridSearch
from graphmem.retrieval.lookup import EntityLookup
from graphmem.retrieval.reinforcement import ReinforcementBuffer
from graphmem.store.context import ContextStore
from graphmem.store.context_mapping import Mention
from graphmem.store.episodes import EpisodeStore
from graphmem.text.normalising import normalise


class ContextService:
    """The verbs of context: build one, look at what it is made of, learn from messages and verdicts."""

    def __init__(
        self,
        store: ContextStore,
        episodes: EpisodeStore,
        search: HybridSearch,
        lookup: EntityLookup,
        reinforcement: ReinforcementBuffer,
        policy: SecretPolicy,
        clock: Clock,
    ) -> None:
        self._store = store
        self._episodes = episodes
        self._lookup = lookup
        self._reinforcement = reinforcement
        self._policy = policy
        self._clock = clock
        self._builder = ContextBuilder(store, search, clock)
        self._feedback = FeedbackLearner(store, clock)

    # Reading

    async def build(self, owner: Owner, request: ContextRequest, *, reinforce: bool = True) -> ContextResponse:
        """Return what to put before the model; raise InvalidInput when the question alone is over the budget.

        `reinforce` counts a retrieval of each memory that the question recalled.
        """
        built = await self._builder.build(owner, request)
        if reinforce:
            self._reinforcement.record(owner, built.recalled)
        return built.context

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return how the user likes to be answered, the surest first."""
        return await self._store.list_preferences(owner)

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns the user shows now, the surest first."""
        return await self._store.list_patterns(owner)

    async def list_items(self, owner: Owner, session_id: str | None = None) -> list[ContextItem]:
        """Return what was mentioned lately and has not expired, of one session or of all, the latest first."""
        return await self._store.list_active_items(owner, session_id)

    async def enhance(self, owner: Owner, session_id: str, draft: str) -> EnhancedReply:
        """Return a draft reply with continuity, style, an example and follow-ups of this user worked in (TRUE-20)."""
        snapshot = await self._store.load_snapshot(owner, session_id, None, timedelta(0), MAX_RECENT_MESSAGES)
        asked = next(
            (each.intent for each in reversed(snapshot.messages) if each.role is MessageRole.USER and each.intent), None
        )
        own = [snapshot.session.intent_sequence] if snapshot.session else []
        return enhance_reply(
            draft,
            ReplyContext(
                recent=snapshot.messages,
                style=confident_value(snapshot.preferences, PreferenceType.COMMUNICATION, "style"),
                patterns=snapshot.patterns,
                followups=predict_followups([*(each.intents for each in snapshot.sessions), *own], asked),
            ),
        )

    # Learning

    async def handle_observation_job(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job that learns from messages that have arrived."""
        owner = Owner(payload["tenant"], payload["user_id"])

        async def learn() -> None:
            await self.learn_from_messages(owner, await self._episodes.load_messages(owner, payload["message_ids"]))

        await steps.run("observe", learn)
        return JobOutcome(status=JobStatus.SUCCEEDED)

    async def learn_from_messages(self, owner: Owner, messages: Sequence[Message]) -> None:
        """Learn from messages that have arrived: what they mention, how the user wants to be answered, patterns.

        Only what the user says counts; taking the same messages twice changes nothing but the patterns' count.
        """
        user_messages = [each for each in messages if each.role is MessageRole.USER]
        if not user_messages:
            return
        mentioned = [each for message in user_messages for each in await self._extract_mentions(owner, message)]
        await self._store.upsert_items(owner, mentioned)
        for message in user_messages:
            await self._learn_stated_preferences(owner, message)
        await self.detect_patterns(owner)

    async def learn_from_feedback(
        self, owner: Owner, message_id: str, score: int, text: str | None = None
    ) -> FeedbackResult:
        """Keep a verdict of 1 to 5 on a message and learn from it.

        Raises InvalidInput for another score, NotFound for an unknown message.
        """
        return await self._feedback.learn(owner, message_id, score, text)

    async def detect_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Count the user's patterns anew, write them, and return those that hold (TRUE-13)."""
        now = self._clock()
        asked = await self._store.list_user_messages(
            owner, now - timedelta(days=MAX_WINDOW_DAYS), await self._episodes.get_timezone(owner)
        )
        found = find_patterns(asked, now)
        await self._store.upsert_patterns(owner, found)
        for each in found:
            PATTERN_DETECTION_COUNT.labels(each.type.value).inc()
        return await self._store.list_patterns(owner)

    # Maintenance

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Drop expired context items and faded preferences; return how many of each (TRUE-23)."""
        now = self._clock()
        return {
            "context_items": await self._store.delete_expired_items(owner),
            "preferences": await self._store.delete_preferences(
                owner, lambda current: select_stale_preferences(current, now)
            ),
        }

    async def erase_memory_traces(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase the goals that an erased memory is told by, or was, as a pattern."""
        await self._store.delete_goal_patterns(owner, [normalise(each) for each in texts])

    async def measure_storage(self) -> int:
        """Return, and set as a metric, about how many bytes messages and memories of all users take."""
        size = await self._store.estimate_stored_bytes()
        MEMORY_SIZE_BYTES.set(size)
        return size

    # Parts

    async def _extract_mentions(self, owner: Owner, message: Message) -> list[Mention]:
        now = self._clock()
        if message.timestamp + MAX_TTL <= now:
            return []
        with CONTEXT_EXTRACTION_TIME.time():
            named: list[tuple[str, str]] = []
            if not message.entities:
                answer = await self._lookup.lookup(owner, message.content, 1, reinforce=False)
                named = [(each.entity.type, each.entity.name) for each in answer.entities if not each.entity.is_user]
            # Reading times is slow work for the processor: not in the way of replies.
            found = await asyncio.to_thread(extract_mentions, message, now, named)
        return [each for each in found if not self._policy.refused_classes({each.key: each.value}, owner.tenant)]

    async def _learn_stated_preferences(self, owner: Owner, message: Message) -> None:
        signs = extract_stated_preferences(message.content)
        if not signs:
            return
        now = self._clock()

        def act(current: list[LearnedPreference]) -> list[LearnedPreference]:
            already_learned = {
                (each.preference_type.value, each.preference_key)
                for each in current
                if message.id in source_message_ids(each)
            }
            new = [sign for sign in signs if sign.type_and_key not in already_learned]
            return apply_signals(current, new, owner.user_id, message.id, now)

        changed = await self._store.update_preferences(owner, act)
        PREFERENCE_UPDATES.inc(len(changed))
