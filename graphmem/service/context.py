"""What to put before the model, and what is learned from conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from graphmem.context.build import ContextBuilder
from graphmem.context.enhance import Acquaintance, enhance, likely_followups
from graphmem.context.feedback import Feedback
from graphmem.context.mentions import LONGEST_TTL, mentions
from graphmem.context.patterns import LONGEST_DAYS, detect
from graphmem.context.preferences import faded, observed, sources_of, stated, value_of
from graphmem.context.summary import RECENT
from graphmem.domain.context import (
    BehaviorPattern,
    Context,
    ContextItem,
    ContextRequest,
    EnhancedReply,
    FeedbackLesson,
    LearnedPreference,
    PreferenceType,
)
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Message, Role
from graphmem.domain.text import normalise
from graphmem.domain.times import Clock
from graphmem.jobs import Steps
from graphmem.metrics import CONTEXT_EXTRACTION_TIME, MEMORY_SIZE_BYTES, PATTERN_DETECTION_COUNT, PREFERENCE_UPDATES
from graphmem.retrieval.lookup import Lookup
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.retrieval.search import Search
from graphmem.store.context import ContextStore
from graphmem.store.context_rows import Mentioned
from graphmem.store.episodes import EpisodeStore


class Contexts:
    """The verbs of context: build one, look at what it is made of, learn from messages and verdicts."""

    def __init__(
        self,
        store: ContextStore,
        episodes: EpisodeStore,
        search: Search,
        lookup: Lookup,
        reinforcement: Reinforcement,
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
        self._feedback = Feedback(store, clock)

    # Reading

    async def build(self, owner: Owner, request: ContextRequest, *, reinforce: bool = True) -> Context:
        """Return what to put before the model; raise InvalidInput when the question alone is over the budget.

        `reinforce` counts a retrieval of each memory that the question recalled.
        """
        built = await self._builder.build(owner, request)
        if reinforce:
            self._reinforcement.note(owner, built.recalled)
        return built.context

    async def preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return how the user likes to be answered, the surest first."""
        return await self._store.preferences(owner)

    async def patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns the user shows now, the surest first."""
        return await self._store.patterns(owner)

    async def contexts(self, owner: Owner, session_id: str | None = None) -> list[ContextItem]:
        """Return what was mentioned lately and has not expired, of one session or of all, the latest first."""
        return await self._store.live_items(owner, session_id)

    async def enhance(self, owner: Owner, session_id: str, draft: str) -> EnhancedReply:
        """Return a draft reply with continuity, style, an example and follow-ups of this user worked in (TRUE-20)."""
        standing = await self._store.standing(owner, session_id, None, timedelta(0), RECENT)
        asked = next(
            (each.intent for each in reversed(standing.messages) if each.role is Role.USER and each.intent), None
        )
        own = [standing.session.intent_sequence] if standing.session else []
        return enhance(
            draft,
            Acquaintance(
                recent=standing.messages,
                style=value_of(standing.preferences, PreferenceType.COMMUNICATION, "style"),
                patterns=standing.patterns,
                followups=likely_followups([*(each.intents for each in standing.sessions), *own], asked),
            ),
        )

    # Learning

    async def observe(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job that learns from messages that have arrived."""
        owner = Owner(payload["tenant"], payload["user_id"])

        async def learn() -> None:
            await self.on_messages(owner, await self._episodes.load(owner, payload["message_ids"]))

        await steps.run("observe", learn)
        return JobOutcome(status=JobStatus.SUCCEEDED)

    async def on_messages(self, owner: Owner, messages: Sequence[Message]) -> None:
        """Learn from messages that have arrived: what they mention, how the user wants to be answered, patterns.

        Only what the user says counts; taking the same messages twice changes nothing but the patterns' count.
        """
        spoken = [each for each in messages if each.role is Role.USER]
        if not spoken:
            return
        mentioned = [each for message in spoken for each in await self._mentioned(owner, message)]
        await self._store.keep_items(owner, mentioned)
        for message in spoken:
            await self._learn_stated(owner, message)
        await self.detect_patterns(owner)

    async def learn_from_feedback(
        self, owner: Owner, message_id: str, score: int, text: str | None = None
    ) -> FeedbackLesson:
        """Keep a verdict of 1 to 5 on a message and learn from it.

        Raises InvalidInput for another score, NotFound for an unknown message.
        """
        return await self._feedback.learn(owner, message_id, score, text)

    async def detect_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Count the user's patterns anew, write them, and return those that hold (TRUE-13)."""
        now = self._clock()
        asked = await self._store.asked(owner, now - timedelta(days=LONGEST_DAYS), await self._episodes.zone(owner))
        found = detect(asked, now)
        await self._store.keep_patterns(owner, found)
        for each in found:
            PATTERN_DETECTION_COUNT.labels(each.type.value).inc()
        return await self._store.patterns(owner)

    # Upkeep

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Drop expired context items and faded preferences; return how many of each (TRUE-23)."""
        now = self._clock()
        return {
            "context_items": await self._store.drop_expired(owner),
            "preferences": await self._store.drop_preferences(owner, lambda current: faded(current, now)),
        }

    async def forget_memory(self, owner: Owner, memory_id: str, texts: Sequence[str]) -> None:
        """Erase the goals that an erased memory is told by, or was, as a pattern."""
        await self._store.drop_goals(owner, [normalise(each) for each in texts])

    async def measure(self) -> int:
        """Return, and set as a metric, about how many bytes messages and memories of all users take."""
        size = await self._store.stored_bytes()
        MEMORY_SIZE_BYTES.set(size)
        return size

    # Parts

    async def _mentioned(self, owner: Owner, message: Message) -> list[Mentioned]:
        now = self._clock()
        if message.timestamp + LONGEST_TTL <= now:
            return []
        with CONTEXT_EXTRACTION_TIME.time():
            named: list[tuple[str, str]] = []
            if not message.entities:
                answer = await self._lookup.lookup(owner, message.content, 1, reinforce=False)
                named = [(each.entity.type, each.entity.name) for each in answer.entities if not each.entity.is_user]
            # Reading times is slow work for the processor: not in the way of replies.
            found = await asyncio.to_thread(mentions, message, now, named)
        return [each for each in found if not self._policy.refused({each.key: each.value}, owner.tenant)]

    async def _learn_stated(self, owner: Owner, message: Message) -> None:
        signs = stated(message.content)
        if not signs:
            return
        now = self._clock()

        def act(current: list[LearnedPreference]) -> list[LearnedPreference]:
            heard = {
                (each.preference_type.value, each.preference_key) for each in current if message.id in sources_of(each)
            }
            new = [sign for sign in signs if sign.place not in heard]
            return observed(current, new, owner.user_id, message.id, now)

        changed = await self._store.change_preferences(owner, act)
        PREFERENCE_UPDATES.inc(len(changed))
