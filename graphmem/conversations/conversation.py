"""Batches of messages on their way into the store, and messages as extraction reads them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from graphmem.conversations.session import Message, MessageIn
from graphmem.runtime.field_types import Vector


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message ready to be stored; `redacted` is its text without secrets, None when it holds none.

    Without a `vector` it is found by its words only, until a job has computed one.
    """

    message: MessageIn
    vector: Vector | None
    redacted: str | None = None


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of storing a batch.

    `message_ids` are those of the whole batch, `new_ids` those that were stored now. `job_id` is the job that the
    messages were assigned to which no other job has read or will read; `pending_jobs` will read the others.
    """

    session_id: str
    message_ids: list[str]
    new_ids: list[str]
    job_id: str | None
    pending_jobs: list[str]


@dataclass(frozen=True, slots=True)
class PendingMessages:
    """Messages of one session that a job will read."""

    group_id: str
    job_id: str
    session_id: str
    message_ids: list[str]


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Messages in the order of their session, the messages before them, oldest first, and the user's time zone.

    `domain` is that of the messages, or else of their session. `previous_at` is the time of the last message of the
    user's conversation before this one.
    """

    messages: list[Message]
    preceding: list[Message]
    timezone: str | None
    domain: str | None = None
    previous_at: datetime | None = None
