"""Context in the graph: what was mentioned, what is learned, and everything a context is put together from."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from graphmem.domain.context_models import BehaviorPattern, ContextItem, LearnedPreference, RelatedSession
from graphmem.domain.identity import Owner
from graphmem.domain.session import MessageRole
from graphmem.domain.times import MAX_TIME, Clock
from graphmem.errors import NotFound
from graphmem.store.context_mapping import (
    ContextSnapshot,
    DetectedPattern,
    FeedbackUpdate,
    Mention,
    RatedInteraction,
    UserTurn,
    item_from_node,
    item_to_row,
    optional_message_from_node,
    pattern_from_node,
    preference_from_node,
    preference_to_row,
    snapshot_from_row,
)
from graphmem.store.driver import Graph, Transaction
from graphmem.store.episode_mapping import message_from_node
from graphmem.store.json_text import to_json
from graphmem.store.user_lock import lock_user

MAX_PROFILE_MEMORIES = 100
MAX_GLOBAL_MEMORIES = 20
MIN_GLOBAL_IMPORTANCE = 0.8
"""How many profile memories a context reads at most, and how many global ones of at least that importance."""

MAX_PATTERN_MESSAGES = 5_000
MAX_PATTERN_EVIDENCE = 25
"""How many messages patterns are counted over at most, and how many of the newest a pattern is bound to."""

SIZE_SAMPLE_ROWS = 500


class ContextStore:
    """What is mentioned and learned, of all users."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    # Reading

    async def load_snapshot(
        self, owner: Owner, session_id: str | None, cached: ContextSnapshot | None, max_age: timedelta, messages: int
    ) -> ContextSnapshot:
        """Return what stands, in one round trip: `cached` itself when nothing was written since it was read."""
        now = self._clock()
        fresh = cached is not None and now < cached.valid_until
        rows = await self._graph.fetch(
            "context.load_snapshot",
            group_id=owner.group_id,
            group_ids=owner.readable_group_ids,
            session_id=session_id,
            cached_version=cached.version if cached and fresh else None,
            now=now,
            valid_until=now + max_age,
            max_time=MAX_TIME,
            profile_limit=MAX_PROFILE_MEMORIES,
            global_limit=MAX_GLOBAL_MEMORIES,
            core_importance=MIN_GLOBAL_IMPORTANCE,
            message_limit=messages,
        )
        if not rows and cached is not None:
            return cached
        return snapshot_from_row(rows[0]["version"], rows[0]["found"], now, max_age)

    async def find_related_sessions(
        self,
        owner: Owner,
        *,
        excluded_session_id: str | None,
        weights: Mapping[str, float],
        words: Sequence[str],
        limit: int,
    ) -> list[RelatedSession]:
        """Return other conversations, best first: by the weight of their ids and by words in what they are about."""
        rows = await self._graph.fetch(
            "context.find_related_sessions",
            group_id=owner.group_id,
            excluded_session_id=excluded_session_id,
            weights=dict(weights),
            words=list(words),
            limit=limit,
        )
        return [
            RelatedSession(
                session_id=stored["session_id"],
                title=stored["title"],
                summary=stored["summary"] or " / ".join(" ".join(each.split()) for each in row["said"]),
                topic_tags=list(stored["topic_tags"]),
                started_at=row["first_at"] or stored["created_at"],
                last_message_at=row["last_at"] or stored["updated_at"],
                message_count=stored["message_count"],
                relevance_score=round(row["score"], 4),
            )
            for row in rows
            for stored in (row["session"],)
        ]

    async def fetch_message_times(self, owner: Owner, message_ids: Sequence[str]) -> dict[str, datetime]:
        """Return when messages were said; unknown ones are left out."""
        rows = await self._graph.fetch(
            "context.fetch_message_times",
            group_ids=owner.readable_group_ids,
            message_ids=list(dict.fromkeys(message_ids)),
        )
        return {row["message_id"]: row["at"] for row in rows}

    async def list_active_items(self, owner: Owner, session_id: str | None) -> list[ContextItem]:
        """Return what was mentioned and has not expired, the latest first."""
        rows = await self._graph.fetch(
            "context.list_active_items", group_id=owner.group_id, session_id=session_id, now=self._clock()
        )
        return [item_from_node(row["item"]) for row in rows]

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return learned preferences, the surest first."""
        rows = await self._graph.fetch("context.list_preferences", group_id=owner.group_id)
        return [preference_from_node(row["preference"]) for row in rows]

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns a user shows now, the surest first."""
        rows = await self._graph.fetch("context.list_patterns", group_id=owner.group_id)
        return [pattern_from_node(row["pattern"]) for row in rows]

    async def list_user_messages(self, owner: Owner, since: datetime, zone: str | None) -> list[UserTurn]:
        """Return what a user said since a time; local times are in `zone`, else by each message's own offset."""
        rows = await self._graph.fetch(
            "context.list_user_messages", group_id=owner.group_id, since=since, limit=MAX_PATTERN_MESSAGES
        )
        place = ZoneInfo(zone) if zone else None
        return [
            UserTurn(
                message_id=row["message_id"],
                at=row["at"],
                local=row["at"].astimezone(place) if place else row["at"] + timedelta(minutes=row["offset"] or 0),
                intent=row["intent"],
                entities=json.loads(row["entities"] or "{}"),
                plans=row["plans"],
            )
            for row in rows
        ]

    async def estimate_stored_bytes(self) -> int:
        """Return about how many bytes the messages and facts of all users take."""
        rows = await self._graph.fetch("context.estimate_stored_bytes", sample=SIZE_SAMPLE_ROWS)
        return int(rows[0]["bytes"])

    # Writing

    async def upsert_items(self, owner: Owner, mentioned: Sequence[Mention]) -> None:
        """Keep what messages mention; the same thing mentioned again in a session only lives longer."""
        if not mentioned:
            return
        now = self._clock()
        rows = [item_to_row(owner, each, now) for each in mentioned]

        async def work(transaction: Transaction) -> None:
            await self._lock_user(transaction, owner)
            await transaction.run("context.upsert_items", group_id=owner.group_id, rows=rows)

        await self._graph.write(work)

    async def delete_expired_items(self, owner: Owner) -> int:
        """Delete what was mentioned and has expired; return how many there were."""
        rows = await self._graph.execute("context.delete_expired_items", group_id=owner.group_id, now=self._clock())
        return int(rows[0]["dropped"])

    async def update_preferences(
        self, owner: Owner, act: Callable[[list[LearnedPreference]], Sequence[LearnedPreference]]
    ) -> list[LearnedPreference]:
        """Write the preferences `act` makes of those there are, under the user's lock; return what was written."""

        async def work(transaction: Transaction) -> list[LearnedPreference]:
            await self._lock_user(transaction, owner)
            changed = list(act(await self._fetch_preferences(transaction, owner)))
            await self._upsert_preferences(transaction, owner, changed)
            return changed

        return await self._graph.write(work)

    async def delete_preferences(
        self, owner: Owner, choose: Callable[[list[LearnedPreference]], Sequence[LearnedPreference]]
    ) -> int:
        """Delete the preferences `choose` picks from those there are; return how many."""

        async def work(transaction: Transaction) -> int:
            await self._lock_user(transaction, owner)
            chosen = [each.id for each in choose(await self._fetch_preferences(transaction, owner))]
            await transaction.run("context.delete_preferences", group_id=owner.group_id, ids=chosen)
            return len(chosen)

        return await self._graph.write(work)

    async def upsert_patterns(self, owner: Owner, found: Sequence[DetectedPattern]) -> None:
        """Write the patterns found now, counting each detection; those not found any more become inactive."""
        now = self._clock()
        rows = [
            {
                "pattern_type": each.type.value,
                "pattern_key": each.key,
                "id": str(uuid.uuid4()),
                "evidence": list(each.evidence)[-MAX_PATTERN_EVIDENCE:],
                "properties": {
                    "name": each.description,
                    "pattern_description": each.description,
                    "pattern_data": to_json(each.data),
                    "confidence_score": each.confidence,
                },
            }
            for each in found
        ]

        async def work(transaction: Transaction) -> None:
            await self._lock_user(transaction, owner)
            await transaction.run("context.upsert_patterns", group_id=owner.group_id, rows=rows, now=now)

        await self._graph.write(work)

    async def delete_goal_patterns(self, owner: Owner, keys: Sequence[str]) -> None:
        """Delete the patterns of goals by their keys, whether they hold or not."""
        await self._graph.execute("context.delete_goal_patterns", group_id=owner.group_id, keys=list(keys))

    async def save_feedback(
        self,
        owner: Owner,
        message_id: str,
        score: int,
        text: str | None,
        decide: Callable[[RatedInteraction], FeedbackUpdate],
    ) -> tuple[RatedInteraction, FeedbackUpdate | None]:
        """Keep a feedback and apply what `decide` makes of the rated message; raise NotFound for an unknown message.

        The update is None when the same feedback on the message was learned from before.
        """

        feedback = f"{score} {text or ''}"

        async def work(transaction: Transaction) -> tuple[RatedInteraction, FeedbackUpdate | None]:
            await self._lock_user(transaction, owner)
            rated = await self._load_interaction(transaction, owner, message_id)
            if rated.learned_from == feedback:
                return rated, None
            update = decide(rated)
            await transaction.run(
                "context.save_feedback",
                group_id=owner.group_id,
                message_id=message_id,
                score=score,
                text=text,
                confidence=update.confidence,
                learned_from=feedback,
            )
            await self._apply_update(transaction, owner, rated, update)
            return rated, update

        return await self._graph.write(work)

    # Parts

    async def _load_interaction(self, transaction: Transaction, owner: Owner, message_id: str) -> RatedInteraction:
        rows = await transaction.run("context.fetch_interaction", group_id=owner.group_id, message_id=message_id)
        if not rows:
            raise NotFound("There is no such message.")
        rated = message_from_node(rows[0]["rated"])
        asked = rated.role is MessageRole.USER
        question = rated if asked else optional_message_from_node(rows[0]["question"])
        reply = optional_message_from_node(rows[0]["reply"]) if asked else rated
        intent = next((each.intent for each in (question, reply) if each and each.intent), None)
        known = await transaction.run("context.get_intent", group_id=owner.group_id, intent=intent) if intent else []
        return RatedInteraction(
            message=rated,
            question=question,
            reply=reply,
            intent_confidence=known[0]["intent"]["confidence_score"] if known else None,
            preferences=await self._fetch_preferences(transaction, owner),
            learned_from=rows[0]["learned_from"],
        )

    async def _apply_update(
        self, transaction: Transaction, owner: Owner, rated: RatedInteraction, update: FeedbackUpdate
    ) -> None:
        if update.intent and update.intent_confidence is not None:
            await transaction.run(
                "context.upsert_intent",
                group_id=owner.group_id,
                intent=update.intent,
                id=str(uuid.uuid4()),
                confidence=update.intent_confidence,
                sql=update.sql,
                positive=bool(update.positive),
                message_id=rated.message.id,
                now=self._clock(),
            )
        await self._upsert_preferences(transaction, owner, update.preferences)

    async def _fetch_preferences(self, transaction: Transaction, owner: Owner) -> list[LearnedPreference]:
        rows = await transaction.run("context.list_preferences", group_id=owner.group_id)
        return [preference_from_node(row["preference"]) for row in rows]

    async def _upsert_preferences(
        self, transaction: Transaction, owner: Owner, changed: Sequence[LearnedPreference]
    ) -> None:
        if changed:
            await transaction.run(
                "context.upsert_preferences",
                group_id=owner.group_id,
                rows=[preference_to_row(each) for each in changed],
            )

    async def _lock_user(self, transaction: Transaction, owner: Owner) -> None:
        await lock_user(transaction, owner, self._clock())
