"""Ids of messages that come without any: the same turns get the same ids, so that a repeated batch is recognised."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

from graphmem.conversations.session import MessageIn

_NAMESPACE = uuid.UUID("0f6c1c52-6f5d-4c5e-9a55-2f8f6f0c7a41")


class BatchFingerprint:
    """What identifies a batch: the life of its user, its session (None for a new one) and its turns.

    The life is random and known to nobody outside, so that ids tell nothing about what was said.
    """

    def __init__(self, life: str, session_id: str | None, messages: Sequence[MessageIn]) -> None:
        turns = [
            {**message.model_dump(mode="json", exclude={"id"}), "content": " ".join(message.content.split())}
            for message in messages
        ]
        self._value = uuid.uuid5(_NAMESPACE, json.dumps([life, session_id, turns], sort_keys=True))
        self._size = len(messages)

    def session_id(self, period: int) -> str:
        """Return the id of the session that the batch opens in a period."""
        return str(uuid.uuid5(self._value, f"session {period}"))

    def message_ids(self, place: str) -> list[str]:
        """Return the ids of its messages at a place: a position in its session, or the session that it opens."""
        return [str(uuid.uuid5(self._value, f"{place} {index}")) for index in range(self._size)]

    def complete_ids(self, given: Sequence[str | None]) -> list[str]:
        """Return the ids given to some of its messages, and for the others ids that go with these."""
        made = self.message_ids(json.dumps(given))
        return [message_id or made[index] for index, message_id in enumerate(given)]
