"""Learning context items, preferences and patterns from messages and feedback, and pruning them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from pydantic import Field

from graphmem.context.mentions import MAX_TTL, extract_mentions, extract_named_things
from graphmem.context.models import BehaviorPattern, FeedbackResult, FeedbackVerdict, Lesson, Mention
from graphmem.context.patterns import find_patterns_by_source, max_window_days
from graphmem.context.preferences import (
    HIGHEST_SCORE,
    LOWEST_SCORE,
    PreferenceSignal,
    apply_signals,
    evaluate_feedback,
    extract_stated_preferences,
    read_wished_preferences,
    select_stale_preferences,
    signals_of,
)
from graphmem.context.store import ContextStore, ContextTransaction
from graphmem.context.usage import ContextUsage
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import Message
from graphmem.ingestion.answers import Wish
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import JobKind, Steps, UserJobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.runtime.errors import InvalidInput, NotFound
from graphmem.runtime.field_types import stored_values, text_length
from graphmem.runtime.metrics import CONTEXT_EXTRACTION_TIME, PATTERN_DETECTION_COUNT, PREFERENCE_UPDATES
from graphmem.runtime.process import read_text
from graphmem.runtime.times import Clock
from graphmem.search.models import LookupResponse
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import TrustService
from graphmem.tenants.trust import Effect, StatedKind


class ObservationPayload(UserJobPayload):
    """New messages to learn from; with `is_derived`, a second pass over what extraction found in them.

    `wishes` are those that a model read in messages, by message id. With `is_model_awaited`, a model has yet to read
    them, so wishes are not detected by form.
    """

    message_ids: list[str]
    is_derived: bool = False
    is_model_awaited: bool = False
    wishes: dict[str, list[Wish]] = Field(default_factory=dict)


OBSERVATION_JOB = JobKind("observation", ObservationPayload)
"""Learns context items, preferences and patterns from new messages."""


async def queue_observation(
    jobs: JobRunner, owner: Owner, message_ids: Sequence[str], *, is_model_awaited: bool = False
) -> None:
    """Queue the job for new messages; the same messages give the same job, so a repeated request queues it once."""
    payload = ObservationPayload(
        tenant=owner.tenant, user_id=owner.user_id, message_ids=list(message_ids), is_model_awaited=is_model_awaited
    )
    await _enqueue(jobs, payload, OBSERVATION_JOB.name)


async def queue_derived_observation(
    jobs: JobRunner, owner: Owner, message_ids: Sequence[str], wishes: Mapping[str, Sequence[Wish]]
) -> None:
    """Queue the job for messages that extraction has read, as `queue_observation` does."""
    payload = ObservationPayload(
        tenant=owner.tenant,
        user_id=owner.user_id,
        message_ids=list(message_ids),
        is_derived=True,
        wishes={message_id: list(read) for message_id, read in wishes.items()},
    )
    await _enqueue(jobs, payload, f"{OBSERVATION_JOB.name} derived")


async def _enqueue(jobs: JobRunner, payload: ObservationPayload, name: str) -> None:
    job_id = str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([name, payload.owner.group_id, *payload.message_ids])))
    await jobs.enqueue(OBSERVATION_JOB, payload, job_id)


class EntityFinder(Protocol):
    """Finds the user's entities in a text."""

    async def lookup(self, owner: Owner, text: str, limit: int, /, *, reinforce: bool) -> LookupResponse:
        """Return the entities that the text names, each with up to `limit` memories."""


class ContextLearner:
    """Learns from users' messages and from their ratings of replies."""

    def __init__(
        self,
        store: ContextStore,
        episodes: EpisodeStore,
        entities: EntityFinder,
        policy: SecretPolicy,
        profiles: TenantProfiles,
        clock: Clock,
        usage: ContextUsage,
        trust: TrustService,
    ) -> None:
        self._store = store
        self._trust = trust
        self._episodes = episodes
        self._entities = entities
        self._policy = policy
        self._profiles = profiles
        self._clock = clock
        self._usage = usage

    async def handle_observation_job(self, payload: ObservationPayload, steps: Steps) -> JobOutcome:
        """Handle a job that learns from new messages."""
        owner = payload.owner

        async def learn() -> None:
            messages = await self._episodes.load_messages(owner, payload.message_ids)
            if payload.is_derived:
                await self.learn_from_turns(owner, messages, payload.wishes)
            else:
                await self.learn_from_messages(owner, messages, reads_wishes=not payload.is_model_awaited)

        await steps.run("observe", learn)
        return JobOutcome(status=JobStatus.SUCCEEDED)

    async def learn_from_messages(
        self, owner: Owner, messages: Sequence[Message], *, reads_wishes: bool = True
    ) -> None:
        """Learn from the user's own messages: what they mention, how to answer the user, patterns.

        Without `reads_wishes`, a model detects wishes. Documents sent by the user, and messages sent as the user's by a
        tool's key, do not count as the user's statements. Learning from the same messages again changes nothing.
        """
        user_messages = [message for message in messages if message.origin == "user" and not message.is_of_others]
        if not user_messages:
            return
        mentions = [mention for message in user_messages for mention in await self._extract_mentions(owner, message)]
        await self._store.upsert_items(owner, mentions)
        for message in user_messages if reads_wishes else ():
            await self._learn_preferences(owner, message, extract_stated_preferences(message.content))
        await self.detect_patterns(owner)

    async def learn_from_turns(
        self, owner: Owner, messages: Sequence[Message], wishes: Mapping[str, Sequence[Wish]]
    ) -> None:
        """Learn from the intents, entities and wishes that extraction found in messages, and from their patterns."""
        now = self._clock()
        own = [message for message in messages if not message.is_of_others]
        mentions = [mention for message in own for mention in extract_named_things(message, now)]
        await self._store.upsert_items(owner, mentions)
        for message in own:
            await self._learn_preferences(owner, message, read_wished_preferences(wishes.get(message.id, ())))
        await self.detect_patterns(owner)

    async def learn_from_feedback(
        self,
        reader: Reader,
        message_id: str,
        score: int,
        text: str | None = None,
        context_id: str | None = None,
        *,
        kind: StatedKind | None = None,
    ) -> FeedbackResult:
        """Learn from a score of 1 to 5 on a message and an optional comment; repeated feedback teaches nothing.

        A positive score credits the memories of the context that led to the reply; a badly answered question no longer
        counts for the user's patterns. `kind` is the source of the feedback, None for an admin. Raises InvalidInput for
        another score, NotFound for an unknown message or context, and Forbidden if a more trusted source has rated the
        message.
        """
        if not LOWEST_SCORE <= score <= HIGHEST_SCORE:
            raise InvalidInput(
                f"A score must be between {LOWEST_SCORE} and {HIGHEST_SCORE}.",
                errors=[{"loc": ["score"], "msg": "out of range"}],
            )
        owner = scope_of(reader).owner
        technical_cues = self._profiles.for_tenant(owner.tenant).technical_cues
        said = " ".join((text or "").split())
        now = self._clock()

        async def learn(transaction: ContextTransaction) -> FeedbackResult:
            interaction, order = await transaction.load_interaction(message_id), await transaction.find_order()
            if interaction.message.feedback_score is not None:
                order.require(Effect.END, kind, interaction.rating_source_kind, "The rating of this message")
            by = kind or "user"
            result = evaluate_feedback(interaction, score, said, technical_cues, now, by, order)
            await transaction.save_feedback(interaction, result, text, Lesson(result.verdict, said), by)
            return result

        credited: list[str] = []
        if context_id is not None:
            if not await self._episodes.load_messages(owner, [message_id]):
                raise NotFound("There is no such message.")
            credited = (await self._usage.rate(reader, context_id, score, kind)).credited
        result = await self._store.write(owner, learn)
        PREFERENCE_UPDATES.inc(len(result.preferences))
        if result.verdict is not FeedbackVerdict.NEUTRAL:
            await self.detect_patterns(owner)
        return result.model_copy(update={"credited": credited})

    async def detect_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Detect the user's patterns again, store them, and return those that hold."""
        now = self._clock()
        profile = self._profiles.for_tenant(owner.tenant)
        turns = await self._store.list_user_messages(
            owner, now - timedelta(days=max_window_days(profile)), await self._episodes.get_timezone(owner)
        )
        patterns = find_patterns_by_source(turns, now, profile, await self._trust.get_order(owner.tenant))
        await self._store.upsert_patterns(owner, patterns)
        for pattern in patterns:
            PATTERN_DETECTION_COUNT.labels(pattern.type.value).inc()
        return await self._store.list_patterns(owner)

    async def prune(self, owner: Owner) -> dict[str, int]:
        """Delete expired context items and stale preferences; return the number of each."""
        now = self._clock()

        async def delete_stale(transaction: ContextTransaction) -> int:
            stale = select_stale_preferences(await transaction.list_preferences(), now)
            await transaction.delete_preferences(stale)
            return len(stale)

        return {
            "context_items": await self._store.delete_expired_items(owner),
            "preferences": await self._store.write(owner, delete_stale),
        }

    async def _extract_mentions(self, owner: Owner, message: Message) -> list[Mention]:
        """Return the mentions in a message, without secrets."""
        now = self._clock()
        if message.timestamp + MAX_TTL <= now:
            return []
        with CONTEXT_EXTRACTION_TIME.time():
            known_entities: list[tuple[str, str]] = []
            if not message.entities:
                found = await self._entities.lookup(owner, message.content, 1, reinforce=False)
                known_entities = [
                    (match.entity.type, match.entity.name) for match in found.entities if not match.entity.is_user
                ]
            profile = self._profiles.for_tenant(owner.tenant)
            # Reading times is CPU-bound; in a thread it does not delay replies.
            mentions = await asyncio.to_thread(extract_mentions, message, now, profile, known_entities)
        named = [{mention.key: stored_values(mention.value)} for mention in mentions]
        secret = await read_text(
            text_length(named), lambda: [bool(self._policy.refused_classes(value, owner.tenant)) for value in named]
        )
        return [mention for mention, is_secret in zip(mentions, secret, strict=True) if not is_secret]

    async def _learn_preferences(self, owner: Owner, message: Message, signals: Sequence[PreferenceSignal]) -> None:
        if not signals:
            return
        now = self._clock()

        async def learn(transaction: ContextTransaction) -> int:
            current, order = await transaction.list_preferences(), await transaction.find_order()
            already_learned = {
                preference.type_and_key for preference in current if message.id in preference.learned_from.message_ids
            }
            new_signals = signals_of(
                order.least_trusted(message.stated_by),
                (signal for signal in signals if signal.type_and_key not in already_learned),
            )
            changed = apply_signals(current, new_signals, owner.user_id, message.id, now, order)
            await transaction.upsert_preferences(changed)
            return len(changed)

        PREFERENCE_UPDATES.inc(await self._store.write(owner, learn))
