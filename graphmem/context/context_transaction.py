"""What is learned from one user's feedback and messages, read and written in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from graphmem.context.context_mapping import (
    lessons_from_text,
    lessons_to_text,
    optional_message_from_node,
    preference_from_node,
    preference_to_row,
)
from graphmem.context.learned_preferences import (
    FeedbackResult,
    FeedbackVerdict,
    LearnedPreference,
    Lesson,
    RatedInteraction,
)
from graphmem.conversations.episode_mapping import message_from_node
from graphmem.conversations.session import MessageRole
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.errors import NotFound
from graphmem.tenants.owners import Owner


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
