"""Context in the graph: mentions, learned preferences, patterns, intents, and snapshots of all of these."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from graphmem.context.mapping import (
    intent_from_columns,
    item_from_columns,
    lessons_from_text,
    lessons_to_text,
    mention_to_row,
    optional_message_from_node,
    pattern_from_columns,
    pattern_to_row,
    preference_from_columns,
    preference_to_row,
    snapshot_from_columns,
    stated_item_to_row,
)
from graphmem.context.models import (
    MAX_NEGATIVE_SCORE,
    BehaviorPattern,
    ContextItem,
    ContextItemIn,
    ContextSnapshot,
    DetectedPattern,
    FeedbackResult,
    FeedbackVerdict,
    LearnedIntent,
    LearnedPreference,
    Lesson,
    Mention,
    RatedInteraction,
    UserTurn,
)
from graphmem.conversations.session import MessageRole, Session
from graphmem.conversations.stored import message_from_node
from graphmem.memories.fact import memory_from_columns
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.memories.memory import Memory, Scope
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import NotFound
from graphmem.runtime.times import MAX_TIME, Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import Effect, StatedKind, TrustOrder
from graphmem.tenants.users import lock_or_create_user, lock_user


class ContextTransaction:
    """Reads and writes learned data of one user, under that user's lock."""

    def __init__(self, transaction: Transaction, owner: Owner, now: datetime) -> None:
        self._transaction = transaction
        self._tenant = owner.tenant
        self._group_id = owner.group_id
        self._now = now

    async def find_order(self) -> TrustOrder:
        """Return the tenant's order of trust."""
        return await find_trust_order(self._transaction, self._tenant)

    async def list_preferences(self) -> list[LearnedPreference]:
        """Return the learned preferences, the most confident first."""
        (row,) = await self._transaction.run("context.list_preferences", group_id=self._group_id)
        return [preference_from_columns(columns) for columns in row["preferences"]]

    async def upsert_preferences(self, preferences: Sequence[LearnedPreference]) -> None:
        """Write new and changed preferences."""
        if preferences:
            await self._transaction.run(
                "context.upsert_preferences",
                group_id=self._group_id,
                rows=[preference_to_row(preference) for preference in preferences],
            )

    async def delete_preferences(self, preferences: Sequence[LearnedPreference]) -> None:
        """Delete preferences."""
        ids = [preference.id for preference in preferences]
        await self._transaction.run("context.delete_preferences", group_id=self._group_id, ids=ids)

    async def load_interaction(self, message_id: str) -> RatedInteraction:
        """Return a message with its question and reply; raise NotFound for an unknown message."""
        rows = await self._transaction.run("context.fetch_interaction", group_id=self._group_id, message_id=message_id)
        if not rows:
            raise NotFound("There is no such message.")
        message = message_from_node(rows[0]["rated"])
        is_question = message.role is MessageRole.USER
        interaction = RatedInteraction(
            message=message,
            question=message if is_question else optional_message_from_node(rows[0]["question"]),
            reply=optional_message_from_node(rows[0]["reply"]) if is_question else message,
            intent_confidence=None,
            preferences=await self.list_preferences(),
            lessons=lessons_from_text(rows[0]["learned_from"]),
            rating_source_kind=rows[0]["rated"].get("rating_source_kind") or "user",
        )
        return replace(interaction, intent_confidence=await self._get_intent_confidence(interaction.intent))

    async def save_feedback(
        self,
        interaction: RatedInteraction,
        result: FeedbackResult,
        text: str | None,
        lesson: Lesson,
        rating_source_kind: StatedKind,
    ) -> None:
        """Write a source's feedback on a message and everything learned from it.

        An intent counts the messages by their current rating.
        """
        await self._transaction.run(
            "context.save_feedback",
            group_id=self._group_id,
            message_id=result.message_id,
            score=result.score,
            text=text,
            issues=result.issues,
            confidence=result.confidence,
            learned_from=lessons_to_text([*interaction.lessons, lesson]),
            rating_source_kind=rating_source_kind,
        )
        is_positive = result.verdict is FeedbackVerdict.POSITIVE
        changes = {
            verdict: (result.verdict is verdict) - (interaction.verdict is verdict)
            for verdict in (FeedbackVerdict.POSITIVE, FeedbackVerdict.NEGATIVE)
        }
        if interaction.intent is not None and any(changes.values()):
            await self._transaction.run(
                "context.upsert_intent",
                group_id=self._group_id,
                intent=interaction.intent,
                id=str(uuid.uuid4()),
                confidence=result.intent_confidence,
                sql=interaction.database_query if is_positive else None,
                positive=changes[FeedbackVerdict.POSITIVE],
                negative=changes[FeedbackVerdict.NEGATIVE],
                message_id=result.message_id,
                now=self._now,
            )
        await self.upsert_preferences(result.preferences)

    async def _get_intent_confidence(self, intent: str | None) -> float | None:
        if intent is None:
            return None
        rows = await self._transaction.run("context.get_intent", group_id=self._group_id, intent=intent)
        return rows[0]["confidence"] if rows else None


MAX_PROFILE_MEMORIES = 100
"""Maximum memories of scope profile in a snapshot; the most important are taken."""

MAX_GLOBAL_MEMORIES = 20
"""Maximum number of global memories, and of each space's profile memories, in a snapshot; most important first."""

MAX_CONTESTED_MEMORIES = 100
"""Maximum contested memories of each group in a snapshot; the latest are taken."""

MAX_PATTERN_MESSAGES = 5_000
"""Maximum messages that patterns are counted over; the newest are taken."""

NO_VERSION = "none"
"""The version of a snapshot not in any cache; a text, since Neo4j replans a query if a parameter is null."""

T = TypeVar("T")


class ContextStore:
    """Reads and writes the context of all users."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def load_snapshot(
        self,
        reader: Reader,
        session_id: str | None,
        *,
        place: Owner | None = None,
        message_limit: int,
        valid_until: datetime,
        cached_version: str = NO_VERSION,
    ) -> ContextSnapshot | None:
        """Return the snapshot of a user and session in one query; None if `cached_version` is still current.

        `place` is the space that shares the session, None for the user's own.
        """
        now, scope = self._clock(), scope_of(reader)
        found = await self._graph.fetch_value(
            "context.load_snapshot",
            group_id=scope.owner.group_id,
            group_ids=scope.group_ids,
            session_group_id=(place or scope.owner).group_id,
            session_id=session_id,
            cached_version=cached_version,
            now=now,
            valid_until=valid_until,
            max_time=MAX_TIME,
            profile_limit=MAX_PROFILE_MEMORIES,
            global_limit=MAX_GLOBAL_MEMORIES,
            contested_limit=MAX_CONTESTED_MEMORIES,
            message_limit=message_limit,
            said_until=MAX_TIME,
            stored_until=MAX_TIME,
        )
        return snapshot_from_columns(found[0], now, valid_until) if found else None

    async def list_latest_sessions(self, reader: Reader, until: datetime, limit: int) -> list[tuple[str | None, str]]:
        """Return space (None for the user's own memory) and id of the latest conversations, the latest first."""
        rows = await self._graph.fetch(
            "context.list_latest_sessions", group_ids=scope_of(reader).group_ids, until=until, limit=limit
        )
        return [(Owner.from_group_id(row["group_id"]).space, row["session_id"]) for row in rows]

    async def load_past_snapshot(
        self,
        reader: Reader,
        session_id: str | None,
        *,
        place: Owner | None = None,
        message_limit: int,
        valid_as_of: datetime | None,
        known_as_of: datetime | None,
    ) -> ContextSnapshot:
        """Return the snapshot as of two times: what was valid and known then, and what had been said by then."""
        now, scope = self._clock(), scope_of(reader)
        said_until, stored_until = valid_as_of or now, known_as_of or now
        moment = min(said_until, stored_until)
        (found,) = await self._graph.fetch_value(
            "context.load_snapshot",
            group_id=scope.owner.group_id,
            group_ids=scope.group_ids,
            session_group_id=(place or scope.owner).group_id,
            session_id=session_id,
            cached_version=NO_VERSION,
            now=moment,
            valid_until=moment,
            max_time=MAX_TIME,
            profile_limit=0,
            global_limit=0,
            contested_limit=0,
            message_limit=message_limit,
            said_until=said_until,
            stored_until=stored_until,
        )
        profile = await self._list_memories_as_of(
            scope,
            MAX_PROFILE_MEMORIES,
            FactFilters(valid_at=said_until, known_at=known_at_or_now(known_as_of)),
            scopes=[Scope.PROFILE.value, Scope.GLOBAL.value],
        )
        snapshot = snapshot_from_columns(found, now, moment)
        return replace(
            snapshot,
            profile=profile,
            session=_past_session(snapshot),
            items=[item for item in snapshot.items if item.created_at <= moment],
            preferences=[preference for preference in snapshot.preferences if preference.created_at <= moment],
            patterns=[pattern for pattern in snapshot.patterns if pattern.first_detected <= moment],
            intents=[intent for intent in snapshot.intents if intent.created_at <= moment],
        )

    async def list_domain_memories(
        self,
        reader: Reader,
        domain: str | None,
        limit: int,
        *,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
    ) -> list[Memory]:
        """Return the memories of a domain, or of all, now or as of two times, the most important first."""
        filters = FactFilters(valid_at=valid_as_of or self._clock(), known_at=known_at_or_now(known_as_of))
        return await self._list_memories_as_of(reader, limit, filters, domain=domain)

    async def _list_memories_as_of(
        self,
        reader: Reader,
        limit: int,
        filters: FactFilters,
        *,
        scopes: list[str] | None = None,
        domain: str | None = None,
    ) -> list[Memory]:
        found = await self._graph.fetch_value(
            "context.list_memories_as_of",
            group_ids=scope_of(reader).group_ids,
            scopes=scopes,
            domain=domain,
            limit=limit,
            **filters.as_of_params,
        )
        now = self._clock()
        return [memory_from_columns(columns, now) for columns in found]

    async def list_intents(self, owner: Owner) -> list[LearnedIntent]:
        """Return the learned intents, the best understood first."""
        (row,) = await self._graph.fetch("context.list_intents", group_id=owner.group_id)
        return [intent_from_columns(columns) for columns in row["intents"]]

    async def fetch_source_times(self, reader: Reader, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when messages were said, or memories said or first known, by id, leaving out unknown ones."""
        rows = await self._graph.fetch(
            "context.fetch_source_times", group_ids=scope_of(reader).group_ids, ids=list(dict.fromkeys(ids))
        )
        return {row["id"]: row["at"] for row in rows}

    async def save_item(self, owner: Owner, item: ContextItemIn, kind: StatedKind | None) -> ContextItem:
        """Store a source's context item, replacing one of the same type, key and session.

        `kind` is None for an admin. Raises NotFound for a session that is not the user's, and Forbidden for an item
        from a more trusted source.
        """
        now = self._clock()

        async def work(transaction: Transaction) -> ContextItem:
            await lock_or_create_user(transaction, owner, now)
            order = await find_trust_order(transaction, owner.tenant)
            rows = await transaction.run(
                "context.save_item",
                group_id=owner.group_id,
                **stated_item_to_row(owner, item, kind or "user", now),
                permitted=order.permitted_on(Effect.END, kind),
                now=now,
            )
            if not rows:
                raise NotFound("There is no such session.")
            if not rows[0]["is_permitted"]:
                order.require(Effect.END, kind, rows[0]["source_kind"], f"The context item {item.key!r}")
            return item_from_columns(rows[0]["item"])

        return await self._graph.write(work)

    async def delete_item(self, owner: Owner, item_id: str, kind: StatedKind | None) -> None:
        """Delete a context item for a source; None stands for an admin.

        Raises NotFound for an item that is not the user's, and Forbidden for one from a more trusted source.
        """

        async def work(transaction: Transaction) -> None:
            await self._lock_user(transaction, owner)
            rows = await transaction.run("context.delete_item", group_id=owner.group_id, id=item_id)
            if not rows:
                raise NotFound("There is no such context item.")
            order = await find_trust_order(transaction, owner.tenant)
            order.require(Effect.HIDE, kind, rows[0]["source_kind"], "The context item")

        await self._graph.write(work)

    async def list_active_items(self, owner: Owner, session_id: str | None) -> list[ContextItem]:
        """Return the unexpired context items, the latest first."""
        (row,) = await self._graph.fetch(
            "context.list_active_items", group_id=owner.group_id, session_id=session_id, now=self._clock()
        )
        return [item_from_columns(columns) for columns in row["items"]]

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return the learned preferences, the most confident first, without one-off requests."""
        (row,) = await self._graph.fetch("context.list_preferences", group_id=owner.group_id)
        return [preference_from_columns(columns) for columns in row["preferences"]]

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return a user's current patterns, the most confident first."""
        (row,) = await self._graph.fetch("context.list_patterns", group_id=owner.group_id)
        return [pattern_from_columns(columns) for columns in row["patterns"]]

    async def list_user_messages(self, owner: Owner, since: datetime, zone: str | None) -> list[UserTurn]:
        """Return a user's messages since a time; local times are in `zone`, else in each message's own offset."""
        rows = await self._graph.fetch(
            "context.list_user_messages",
            group_id=owner.group_id,
            since=since,
            limit=MAX_PATTERN_MESSAGES,
            worst_score=MAX_NEGATIVE_SCORE,
        )
        return [
            UserTurn(
                message_id=row["message_id"],
                at=row["at"],
                local=_local_time(row, zone),
                intent=row["intent"],
                entities=json.loads(row["entities"] or "{}"),
                plans=row["plans"],
                answered_badly=row["answered_badly"],
                source_kind=row["source_kind"],
            )
            for row in rows
        ]

    async def write(self, owner: Owner, work: Callable[[ContextTransaction], Awaitable[T]]) -> T:
        """Run `work` in one transaction under the user's lock; it may run again after a transient error."""

        async def locked(transaction: Transaction) -> T:
            now = await self._lock_user(transaction, owner)
            return await work(ContextTransaction(transaction, owner, now))

        return await self._graph.write(locked)

    async def upsert_items(self, owner: Owner, mentions: Sequence[Mention]) -> None:
        """Store mentions as context items; an existing item of the session gets a later expiry."""
        if not mentions:
            return
        now = self._clock()

        async def work(transaction: Transaction) -> None:
            await self._lock_user(transaction, owner)
            order = await find_trust_order(transaction, owner.tenant)
            rows = [mention_to_row(owner, mention, order, now) for mention in mentions]
            await transaction.run("context.upsert_items", group_id=owner.group_id, rows=rows)

        await self._graph.write(work)

    async def delete_expired_items(self, owner: Owner) -> int:
        """Delete expired context items; return their number."""
        rows = await self._write_rows(owner, "context.delete_expired_items", now=self._clock())
        return int(rows[0]["deleted"])

    async def upsert_patterns(self, owner: Owner, patterns: Sequence[DetectedPattern]) -> None:
        """Write the detected patterns, and deactivate the other ones."""
        await self._write_rows(
            owner,
            "context.upsert_patterns",
            rows=[pattern_to_row(pattern) for pattern in patterns],
            now=self._clock(),
        )

    async def delete_goal_patterns(self, owner: Owner, keys: Sequence[str]) -> None:
        """Delete the goal patterns with these keys, active or not."""
        await self._write_rows(owner, "context.delete_goal_patterns", keys=list(keys))

    async def _write_rows(self, owner: Owner, query: str, **parameters: object) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            await self._lock_user(transaction, owner)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        return await self._graph.write(work)

    async def _lock_user(self, transaction: Transaction, owner: Owner) -> datetime:
        return await lock_user(transaction, owner, self._clock())


def _past_session(snapshot: ContextSnapshot) -> Session | None:
    """Return the session without anything from later messages, or None if it had no message yet."""
    statistics = snapshot.statistics
    if snapshot.session is None or not statistics.stored:
        return None
    known = {"summary": None, "message_count": statistics.stored, "intent_sequence": list(statistics.intents)}
    return snapshot.session.model_copy(update=known)


def _local_time(row: Row, zone: str | None) -> datetime:
    """Return the time of a message on the user's clock: in their time zone, else in the offset it was sent with."""
    at: datetime = row["at"]
    return at.astimezone(ZoneInfo(zone)) if zone else at + timedelta(minutes=row["offset"] or 0)
