"""Context in the graph: mentions, learned preferences, patterns, intents, and snapshots of all of these."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from graphmem.context.models import (
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
    PastSession,
    PreferenceSource,
    PreferenceType,
    RatedInteraction,
    SessionStatistics,
    UserTurn,
    verdict_for_score,
)
from graphmem.conversations.episode_store import message_from_node, message_from_row, session_from_node
from graphmem.conversations.session import Message, MessageRole, Session
from graphmem.memories.entity_store import entity_ref_from_node
from graphmem.memories.fact_mapping import fact_from_row, memory_from_fact
from graphmem.memories.filters import FactFilters, known_at_or_now
from graphmem.memories.memory import Memory
from graphmem.neo4j.driver import Graph, Row, Transaction, to_json
from graphmem.runtime.errors import NotFound
from graphmem.runtime.times import MAX_TIME, Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import PatternType
from graphmem.tenants.users import lock_or_create_user, lock_user

MAX_PATTERN_EVIDENCE = 25
"""Messages that a pattern is linked to at most; the newest are taken."""

MAX_LESSONS = 20
"""Lessons stored with a message at most; the latest are kept."""

_VERDICTS = {
    **{verdict.value: verdict for verdict in FeedbackVerdict},
    **{str(score): verdict_for_score(score) for score in range(1, 6)},
}


def snapshot_from_row(version: str, found: Row, now: datetime, valid_until: datetime) -> ContextSnapshot:
    """Return the result of `context.load_snapshot` as of `now`."""
    statistics = found["statistics"]
    return ContextSnapshot(
        version=version,
        valid_until=valid_until,
        profile=[memory_from_snapshot_row(row, now) for row in found["profile"]],
        session=session_from_node(found["session"]) if found["session"] else None,
        statistics=SessionStatistics(**{**statistics, "intents": tuple(statistics["intents"])}),
        messages=[message_from_row(row) for row in reversed(found["messages"])],
        items=[item_from_node(node) for node in found["items"]],
        preferences=settled_preferences(found["preferences"]),
        patterns=[pattern_from_node(node) for node in found["patterns"]],
        sessions=[
            PastSession(
                session_id=node["session_id"],
                title=node["title"],
                summary=node["summary"],
                topic_tags=tuple(node["topic_tags"]),
                intents=tuple(node["intent_sequence"]),
                updated_at=node["updated_at"],
            )
            for node in found["sessions"]
        ],
        intents=[LearnedIntent.model_validate(node) for node in found["intents"]],
        user_entity_name=found["user_entity_name"],
        speaker=found["speaker"],
    )


def memory_from_snapshot_row(row: Row, now: datetime) -> Memory:
    """Return a row of the fragment `fact_with_entities` as a memory."""
    refs = {node["uuid"]: entity_ref_from_node(node) for node in row["entities"]}
    return memory_from_fact(fact_from_row(row), refs, now)


def optional_message_from_node(stored: Mapping[str, Any] | None) -> Message | None:
    """Return an episode node's properties as a message; None stays None."""
    return message_from_node(stored) if stored else None


def item_from_node(stored: Mapping[str, Any]) -> ContextItem:
    """Return a node's properties as a context item."""
    same = ("id", "context_type", "context_key", "relevance_score", "expires_at", "created_at")
    return ContextItem(
        **{name: stored[name] for name in same},
        session_id=stored["session_id"] or None,
        user_id=_user_id_from_node(stored),
        context_value=json.loads(stored["context_value"]),
    )


def mention_to_row(owner: Owner, mention: Mention, now: datetime) -> Row:
    """Return a mention as a context item to be stored; `item_key` is equal for equal mentions of a session."""
    value = to_json(mention.value)
    digest = hashlib.sha256(f"{mention.type}\n{mention.key}\n{value}".encode()).hexdigest()[:32]
    return {
        "message_id": mention.message_id,
        "session_id": mention.session_id,
        "item_key": digest,
        "properties": {
            "id": str(uuid.uuid4()),
            "group_id": owner.group_id,
            "name": f"{mention.key}: {value[:80]}",
            "context_type": mention.type,
            "context_key": mention.key,
            "context_value": value,
            "relevance_score": mention.relevance,
            "expires_at": mention.expires_at,
            "created_at": now,
        },
    }


def stated_item_to_row(owner: Owner, item: ContextItemIn, now: datetime) -> Row:
    """Return a context item of a caller to be stored; `item_key` is equal for items of the same type and key."""
    value = to_json(item.value)
    return {
        "session_id": item.session_id or "",
        "item_key": hashlib.sha256(f"{item.type}\n{item.key}".encode()).hexdigest()[:32],
        "created": {
            "id": str(uuid.uuid4()),
            "group_id": owner.group_id,
            "context_type": item.type,
            "context_key": item.key,
            "created_at": now,
        },
        "changed": {
            "name": f"{item.key}: {value[:80]}",
            "context_value": value,
            "relevance_score": item.relevance,
            "expires_at": now + timedelta(seconds=item.ttl),
        },
    }


def preference_from_node(stored: Mapping[str, Any]) -> LearnedPreference:
    """Return a node's properties as a learned preference."""
    same = ("id", "preference_key", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
    return LearnedPreference(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        preference_type=PreferenceType(stored["preference_type"]),
        preference_value=json.loads(stored["preference_value"]),
        learned_from=PreferenceSource.model_validate_json(stored["learned_from"]),
    )


def settled_preferences(nodes: Iterable[Mapping[str, Any]]) -> list[LearnedPreference]:
    """Return the learned preferences of nodes, without those that one request only has shown."""
    return [preference for preference in map(preference_from_node, nodes) if not preference.is_tentative]


def lessons_from_text(text: str | None) -> list[Lesson]:
    """Return what feedback on a message has taught, of the text that is stored: one lesson a line.

    A line begins with the verdict or, as stored earlier, with the score.
    """
    lines = [line.partition(" ") for line in (text or "").splitlines()]
    return [Lesson(_VERDICTS[word], comment.strip()) for word, _, comment in lines if word in _VERDICTS]


def lessons_to_text(lessons: Sequence[Lesson]) -> str:
    """Return what feedback on a message has taught as the text to store, each lesson once."""
    return "\n".join(f"{verdict} {text}".rstrip() for verdict, text in list(dict.fromkeys(lessons))[-MAX_LESSONS:])


def preference_to_row(preference: LearnedPreference) -> Row:
    """Return a learned preference as a row to be stored."""
    same = ("id", "confidence_score", "frequency", "last_observed", "created_at", "updated_at")
    return {
        "preference_type": preference.preference_type.value,
        "preference_key": preference.preference_key,
        "message_id": preference.learned_from.message_id,
        "properties": {
            **{name: getattr(preference, name) for name in same},
            "name": f"{preference.preference_key}: {', '.join(preference.preference_value.values())}",
            "preference_value": to_json(preference.preference_value),
            "learned_from": to_json(preference.learned_from),
        },
    }


def pattern_from_node(stored: Mapping[str, Any]) -> BehaviorPattern:
    """Return a node's properties as a behaviour pattern."""
    same = (
        *("id", "pattern_description", "confidence_score", "occurrence_count"),
        *("first_detected", "last_detected", "is_active"),
    )
    return BehaviorPattern(
        **{name: stored[name] for name in same},
        user_id=_user_id_from_node(stored),
        pattern_type=PatternType(stored["pattern_type"]),
        pattern_data=json.loads(stored["pattern_data"]),
    )


def pattern_to_row(pattern: DetectedPattern) -> Row:
    """Return a detected pattern as a row to be stored."""
    return {
        "pattern_type": pattern.type.value,
        "pattern_key": pattern.key,
        "id": str(uuid.uuid4()),
        "evidence": list(pattern.evidence)[-MAX_PATTERN_EVIDENCE:],
        "properties": {
            "name": pattern.description,
            "pattern_description": pattern.description,
            "pattern_data": to_json(pattern.data),
            "confidence_score": pattern.confidence,
            "occurrence_count": len(pattern.evidence),
        },
    }


def _user_id_from_node(stored: Mapping[str, Any]) -> str:
    return Owner.from_group_id(stored["group_id"]).user_id


class ContextTransaction:
    """Reads and writes what is learned from one user, under that user's lock."""

    def __init__(self, transaction: Transaction, owner: Owner, now: datetime) -> None:
        self._transaction = transaction
        self._group_id = owner.group_id
        self._now = now

    async def list_preferences(self) -> list[LearnedPreference]:
        """Return the learned preferences, the most confident first."""
        (row,) = await self._transaction.run("context.list_preferences", group_id=self._group_id)
        return [preference_from_node(node) for node in row["preferences"]]

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
        )
        return replace(interaction, intent_confidence=await self._get_intent_confidence(interaction.intent))

    async def save_feedback(
        self, interaction: RatedInteraction, result: FeedbackResult, text: str | None, lesson: Lesson
    ) -> None:
        """Write the feedback on a message and everything that was learned from it.

        An intent counts the messages by their present rating.
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
"""Memories of scope profile in a snapshot at most; the most important are taken."""

MAX_GLOBAL_MEMORIES = 20
"""Memories of scope global in a snapshot at most; the most important are taken."""

MAX_PATTERN_MESSAGES = 5_000
"""Messages that patterns are counted over at most; the newest are taken."""

T = TypeVar("T")


class ContextStore:
    """Reads and writes the context of all users."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def load_snapshot(
        self,
        owner: Owner,
        session_id: str | None,
        *,
        message_limit: int,
        valid_until: datetime,
        cached_version: str | None = None,
    ) -> ContextSnapshot | None:
        """Return the snapshot of a user and session in one query; None when `cached_version` is still its version."""
        now = self._clock()
        rows = await self._graph.fetch(
            "context.load_snapshot",
            group_id=owner.group_id,
            group_ids=owner.readable_group_ids,
            session_id=session_id,
            cached_version=cached_version,
            now=now,
            valid_until=valid_until,
            max_time=MAX_TIME,
            profile_limit=MAX_PROFILE_MEMORIES,
            global_limit=MAX_GLOBAL_MEMORIES,
            message_limit=message_limit,
            said_until=MAX_TIME,
            stored_until=MAX_TIME,
        )
        return snapshot_from_row(rows[0]["version"], rows[0]["found"], now, valid_until) if rows else None

    async def load_past_snapshot(
        self,
        owner: Owner,
        session_id: str | None,
        *,
        message_limit: int,
        valid_as_of: datetime | None,
        known_as_of: datetime | None,
    ) -> ContextSnapshot:
        """Return the snapshot as of two times: what held and was known then, and what had been said by then."""
        now = self._clock()
        said_until, stored_until = valid_as_of or now, known_as_of or now
        moment = min(said_until, stored_until)
        (row,) = await self._graph.fetch(
            "context.load_snapshot",
            group_id=owner.group_id,
            group_ids=owner.readable_group_ids,
            session_id=session_id,
            cached_version=None,
            now=moment,
            valid_until=moment,
            max_time=MAX_TIME,
            profile_limit=0,
            global_limit=0,
            message_limit=message_limit,
            said_until=said_until,
            stored_until=stored_until,
        )
        profile = await self._list_memories_as_of(
            owner,
            None,
            MAX_PROFILE_MEMORIES,
            FactFilters(valid_at=said_until, known_at=known_at_or_now(known_as_of)),
        )
        snapshot = snapshot_from_row(row["version"], row["found"], now, moment)
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
        owner: Owner,
        domain: str,
        limit: int,
        *,
        valid_as_of: datetime | None = None,
        known_as_of: datetime | None = None,
    ) -> list[Memory]:
        """Return the memories of a domain, now or as of two times, the most important first."""
        filters = FactFilters(valid_at=valid_as_of or self._clock(), known_at=known_at_or_now(known_as_of))
        return await self._list_memories_as_of(owner, domain, limit, filters)

    async def _list_memories_as_of(
        self, owner: Owner, domain: str | None, limit: int, filters: FactFilters
    ) -> list[Memory]:
        rows = await self._graph.fetch(
            "context.list_memories_as_of",
            group_ids=owner.readable_group_ids,
            domain=domain,
            limit=limit,
            **filters.as_of_params,
        )
        now = self._clock()
        return [memory_from_snapshot_row(row["row"], now) for row in rows]

    async def list_intents(self, owner: Owner) -> list[LearnedIntent]:
        """Return the learned intents, the best understood first."""
        (row,) = await self._graph.fetch("context.list_intents", group_id=owner.group_id)
        return [LearnedIntent.model_validate(node) for node in row["intents"]]

    async def fetch_source_times(self, owner: Owner, ids: Sequence[str]) -> dict[str, datetime]:
        """Return when messages and memories were said, or memories first known, by id, without the unknown ones."""
        rows = await self._graph.fetch(
            "context.fetch_source_times", group_ids=owner.readable_group_ids, ids=list(dict.fromkeys(ids))
        )
        return {row["id"]: row["at"] for row in rows}

    async def save_item(self, owner: Owner, item: ContextItemIn) -> ContextItem:
        """Store a context item that the caller states, instead of one of the same type, key and session.

        Raises NotFound for a session that is not the user's.
        """
        now = self._clock()

        async def work(transaction: Transaction) -> ContextItem:
            await lock_or_create_user(transaction, owner, now)
            row = stated_item_to_row(owner, item, now)
            rows = await transaction.run("context.save_item", group_id=owner.group_id, **row)
            if not rows:
                raise NotFound("There is no such session.")
            return item_from_node(rows[0]["item"])

        return await self._graph.write(work)

    async def delete_item(self, owner: Owner, item_id: str) -> None:
        """Delete a context item; raise NotFound for one that is not the user's."""
        rows = await self._write_rows(owner, "context.delete_item", id=item_id)
        if not rows[0]["deleted"]:
            raise NotFound("There is no such context item.")

    async def list_active_items(self, owner: Owner, session_id: str | None) -> list[ContextItem]:
        """Return the context items that have not expired, the latest first."""
        (row,) = await self._graph.fetch(
            "context.list_active_items", group_id=owner.group_id, session_id=session_id, now=self._clock()
        )
        return [item_from_node(node) for node in row["items"]]

    async def list_preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return the learned preferences, the most confident first, without what was asked for once."""
        (row,) = await self._graph.fetch("context.list_preferences", group_id=owner.group_id)
        return settled_preferences(row["preferences"])

    async def list_patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns that a user shows now, the most confident first."""
        (row,) = await self._graph.fetch("context.list_patterns", group_id=owner.group_id)
        return [pattern_from_node(node) for node in row["patterns"]]

    async def list_user_messages(self, owner: Owner, since: datetime, zone: str | None) -> list[UserTurn]:
        """Return the messages of a user since a time; local times are in `zone`, else in each message's own offset."""
        rows = await self._graph.fetch(
            "context.list_user_messages", group_id=owner.group_id, since=since, limit=MAX_PATTERN_MESSAGES
        )
        return [
            UserTurn(
                message_id=row["message_id"],
                at=row["at"],
                local=_local_time(row, zone),
                intent=row["intent"],
                entities=json.loads(row["entities"] or "{}"),
                plans=row["plans"],
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
        """Store mentions as context items; one that a session has already expires later."""
        if mentions:
            now = self._clock()
            await self._write_rows(
                owner, "context.upsert_items", rows=[mention_to_row(owner, mention, now) for mention in mentions]
            )

    async def delete_expired_items(self, owner: Owner) -> int:
        """Delete expired context items; return how many."""
        rows = await self._write_rows(owner, "context.delete_expired_items", now=self._clock())
        return int(rows[0]["deleted"])

    async def upsert_patterns(self, owner: Owner, patterns: Sequence[DetectedPattern]) -> None:
        """Write the detected patterns, and deactivate the patterns that were not detected."""
        await self._write_rows(
            owner,
            "context.upsert_patterns",
            rows=[pattern_to_row(pattern) for pattern in patterns],
            now=self._clock(),
        )

    async def delete_goal_patterns(self, owner: Owner, keys: Sequence[str]) -> None:
        """Delete the goal patterns of some keys, active or not."""
        await self._write_rows(owner, "context.delete_goal_patterns", keys=list(keys))

    async def _write_rows(self, owner: Owner, query: str, **parameters: object) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            await self._lock_user(transaction, owner)
            return await transaction.run(query, group_id=owner.group_id, **parameters)

        return await self._graph.write(work)

    async def _lock_user(self, transaction: Transaction, owner: Owner) -> datetime:
        return await lock_user(transaction, owner, self._clock())


def _past_session(snapshot: ContextSnapshot) -> Session | None:
    """Return the session with nothing that later messages brought; None when it had no message yet."""
    statistics = snapshot.statistics
    if snapshot.session is None or not statistics.stored:
        return None
    known = {"summary": None, "message_count": statistics.stored, "intent_sequence": list(statistics.intents)}
    return snapshot.session.model_copy(update=known)


def _local_time(row: Row, zone: str | None) -> datetime:
    """Return the time of a message on the user's clock: in their time zone, else in the offset it was sent with."""
    at: datetime = row["at"]
    return at.astimezone(ZoneInfo(zone)) if zone else at + timedelta(minutes=row["offset"] or 0)
