"""Context in the graph: what was mentioned, what is learned, and everything a context is put together from."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from graphmem.domain.context import BehaviorPattern, ContextItem, LearnedPreference, RelatedSession
from graphmem.domain.identity import Owner
from graphmem.domain.session import Role
from graphmem.domain.times import END, Clock
from graphmem.errors import NotFound
from graphmem.store.context_rows import (
    Asked,
    FoundPattern,
    Lesson,
    Mentioned,
    Rated,
    Standing,
    item_of,
    item_row,
    message_or_none,
    pattern_of,
    preference_of,
    preference_row,
    standing_of,
    to_json,
)
from graphmem.store.driver import Graph, Transaction
from graphmem.store.episode_rows import message_of

MOST_PROFILE = 100
MOST_GLOBAL = 20
CORE_IMPORTANCE = 0.8
"""How many profile memories a context reads at most, and how many global ones of at least that importance."""

MOST_ASKED = 5_000
MOST_EVIDENCE = 25
"""How many messages patterns are counted over at most, and how many of the newest a pattern is bound to."""

SIZE_SAMPLE = 500


class ContextStore:
    """What is mentioned and learned, of all users."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    # Reading

    async def standing(
        self, owner: Owner, session_id: str | None, held: Standing | None, keep: timedelta, messages: int
    ) -> Standing:
        """Return what stands, in one round trip: `held` itself when nothing was written since it was read."""
        now = self._clock()
        fresh = held is not None and now < held.until
        rows = await self._graph.fetch(
            "context.standing",
            group_id=owner.group_id,
            group_ids=owner.readable,
            session_id=session_id,
            held=held.version if held and fresh else None,
            now=now,
            until=now + keep,
            open=END,
            profile_limit=MOST_PROFILE,
            global_limit=MOST_GLOBAL,
            core_importance=CORE_IMPORTANCE,
            message_limit=messages,
        )
        if not rows and held is not None:
            return held
        return standing_of(rows[0]["version"], rows[0]["found"], now, keep)

    async def related_sessions(
        self, owner: Owner, *, besides: str | None, weights: Mapping[str, float], words: Sequence[str], limit: int
    ) -> list[RelatedSession]:
        """Return other conversations, best first: by the weight of their ids and by words in what they are about."""
        rows = await self._graph.fetch(
            "context.related_sessions",
            group_id=owner.group_id,
            besides=besides,
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

    async def said_at(self, owner: Owner, message_ids: Sequence[str]) -> dict[str, datetime]:
        """Return when messages were said; unknown ones are left out."""
        rows = await self._graph.fetch(
            "context.said_at", group_ids=owner.readable, message_ids=list(dict.fromkeys(message_ids))
        )
        return {row["message_id"]: row["at"] for row in rows}

    async def live_items(self, owner: Owner, session_id: str | None) -> list[ContextItem]:
        """Return what was mentioned and has not expired, the latest first."""
        rows = await self._graph.fetch(
            "context.live_items", group_id=owner.group_id, session_id=session_id, now=self._clock()
        )
        return [item_of(row["item"]) for row in rows]

    async def preferences(self, owner: Owner) -> list[LearnedPreference]:
        """Return learned preferences, the surest first."""
        rows = await self._graph.fetch("context.preferences", group_id=owner.group_id)
        return [preference_of(row["preference"]) for row in rows]

    async def patterns(self, owner: Owner) -> list[BehaviorPattern]:
        """Return the patterns a user shows now, the surest first."""
        rows = await self._graph.fetch("context.patterns", group_id=owner.group_id)
        return [pattern_of(row["pattern"]) for row in rows]

    async def asked(self, owner: Owner, since: datetime, zone: str | None) -> list[Asked]:
        """Return what a user said since a time; local times are in `zone`, else by each message's own offset."""
        rows = await self._graph.fetch("context.asked", group_id=owner.group_id, since=since, limit=MOST_ASKED)
        place = ZoneInfo(zone) if zone else None
        return [
            Asked(
                message_id=row["message_id"],
                at=row["at"],
                local=row["at"].astimezone(place) if place else row["at"] + timedelta(minutes=row["offset"] or 0),
                intent=row["intent"],
                entities=json.loads(row["entities"] or "{}"),
                plans=row["plans"],
            )
            for row in rows
        ]

    async def stored_bytes(self) -> int:
        """Return about how many bytes the messages and facts of all users take."""
        rows = await self._graph.fetch("context.stored_bytes", sample=SIZE_SAMPLE)
        return int(rows[0]["bytes"])

    # Writing

    async def keep_items(self, owner: Owner, mentioned: Sequence[Mentioned]) -> None:
        """Keep what messages mention; the same thing mentioned again in a session only lives longer."""
        if not mentioned:
            return
        now = self._clock()
        rows = [item_row(owner, each, now) for each in mentioned]

        async def work(transaction: Transaction) -> None:
            await self._lock(transaction, owner)
            await transaction.run("context.keep_items", group_id=owner.group_id, rows=rows)

        await self._graph.write(work)

    async def drop_expired(self, owner: Owner) -> int:
        """Delete what was mentioned and has expired; return how many there were."""
        rows = await self._graph.execute("context.drop_expired_items", group_id=owner.group_id, now=self._clock())
        return int(rows[0]["dropped"])

    async def change_preferences(
        self, owner: Owner, act: Callable[[list[LearnedPreference]], Sequence[LearnedPreference]]
    ) -> list[LearnedPreference]:
        """Write the preferences `act` makes of those there are, under the user's lock; return what was written."""

        async def work(transaction: Transaction) -> list[LearnedPreference]:
            await self._lock(transaction, owner)
            changed = list(act(await self._preferences(transaction, owner)))
            await self._keep_preferences(transaction, owner, changed)
            return changed

        return await self._graph.write(work)

    async def drop_preferences(
        self, owner: Owner, choose: Callable[[list[LearnedPreference]], Sequence[LearnedPreference]]
    ) -> int:
        """Delete the preferences `choose` picks from those there are; return how many."""

        async def work(transaction: Transaction) -> int:
            await self._lock(transaction, owner)
            chosen = [each.id for each in choose(await self._preferences(transaction, owner))]
            await transaction.run("context.drop_preferences", group_id=owner.group_id, ids=chosen)
            return len(chosen)

        return await self._graph.write(work)

    async def keep_patterns(self, owner: Owner, found: Sequence[FoundPattern]) -> None:
        """Write the patterns found now, counting each detection; those not found any more become inactive."""
        now = self._clock()
        rows = [
            {
                "pattern_type": each.type.value,
                "pattern_key": each.key,
                "id": str(uuid.uuid4()),
                "evidence": list(each.evidence)[-MOST_EVIDENCE:],
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
            await self._lock(transaction, owner)
            await transaction.run("context.keep_patterns", group_id=owner.group_id, rows=rows, now=now)

        await self._graph.write(work)

    async def drop_goals(self, owner: Owner, keys: Sequence[str]) -> None:
        """Delete the patterns of goals by their keys, whether they hold or not."""
        await self._graph.execute("context.drop_goals", group_id=owner.group_id, keys=list(keys))

    async def learn(
        self, owner: Owner, message_id: str, score: int, text: str | None, decide: Callable[[Rated], Lesson]
    ) -> tuple[Rated, Lesson | None]:
        """Keep a verdict and apply what `decide` makes of the rated message; raise NotFound for an unknown message.

        The lesson is None when the same verdict on the message was learned from before.
        """

        verdict = f"{score} {text or ''}"

        async def work(transaction: Transaction) -> tuple[Rated, Lesson | None]:
            await self._lock(transaction, owner)
            rated = await self._rated(transaction, owner, message_id)
            if rated.learned_from == verdict:
                return rated, None
            lesson = decide(rated)
            await transaction.run(
                "context.mark_learned",
                group_id=owner.group_id,
                message_id=message_id,
                score=score,
                text=text,
                confidence=lesson.confidence,
                learned_from=verdict,
            )
            await self._apply(transaction, owner, rated, lesson)
            return rated, lesson

        return await self._graph.write(work)

    # Parts

    async def _rated(self, transaction: Transaction, owner: Owner, message_id: str) -> Rated:
        rows = await transaction.run("context.interaction", group_id=owner.group_id, message_id=message_id)
        if not rows:
            raise NotFound("There is no such message.")
        rated = message_of(rows[0]["rated"])
        asked = rated.role is Role.USER
        question = rated if asked else message_or_none(rows[0]["question"])
        reply = message_or_none(rows[0]["reply"]) if asked else rated
        intent = next((each.intent for each in (question, reply) if each and each.intent), None)
        known = await transaction.run("context.intent", group_id=owner.group_id, intent=intent) if intent else []
        return Rated(
            message=rated,
            question=question,
            reply=reply,
            intent_confidence=known[0]["intent"]["confidence_score"] if known else None,
            preferences=await self._preferences(transaction, owner),
            learned_from=rows[0]["learned_from"],
        )

    async def _apply(self, transaction: Transaction, owner: Owner, rated: Rated, lesson: Lesson) -> None:
        if lesson.intent and lesson.intent_confidence is not None:
            await transaction.run(
                "context.keep_intent",
                group_id=owner.group_id,
                intent=lesson.intent,
                id=str(uuid.uuid4()),
                confidence=lesson.intent_confidence,
                sql=lesson.sql,
                positive=bool(lesson.positive),
                message_id=rated.message.id,
                now=self._clock(),
            )
        await self._keep_preferences(transaction, owner, lesson.preferences)

    async def _preferences(self, transaction: Transaction, owner: Owner) -> list[LearnedPreference]:
        rows = await transaction.run("context.preferences", group_id=owner.group_id)
        return [preference_of(row["preference"]) for row in rows]

    async def _keep_preferences(
        self, transaction: Transaction, owner: Owner, changed: Sequence[LearnedPreference]
    ) -> None:
        if changed:
            await transaction.run(
                "context.keep_preferences", group_id=owner.group_id, rows=[preference_row(each) for each in changed]
            )

    async def _lock(self, transaction: Transaction, owner: Owner) -> None:
        await transaction.run(
            "facts.lock_user",
            group_id=owner.group_id, tenant=owner.tenant, user_id=owner.user_id, now=self._clock(), count=1,
        )  # fmt: skip
