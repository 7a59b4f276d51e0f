"""Chat logs as OpenAI's API has them: `{role, content}` in a list, in lines, or under `messages`, one talk or many."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from graphmem.domain.formats.document import refuse
from graphmem.domain.formats.told import Refused
from graphmem.domain.memory import Id
from graphmem.domain.session import MAX_BATCH, MessageIn, MessagesIn
from graphmem.errors import InvalidInput

ROLES = {"developer": "system", "function": "tool"}
"""Roles of the API that are called otherwise here."""

Place = tuple[str | int, ...]


class _Turn(BaseModel):
    role: str
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    name: str | None = None
    timestamp: str | None = None
    created_at: str | int | float | None = None


class _Talk(BaseModel):
    messages: list[Any]
    session_id: Id | None = None
    conversation_id: Id | None = None
    id: Id | None = None


@dataclass(slots=True)
class Talks:
    """What a chat log holds: batches ready to be stored, each of one session, and what has no text."""

    batches: list[MessagesIn] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


def read_chat(document: Any) -> Talks:
    """Return the conversations of a chat log; raise InvalidInput where it has not that form.

    Ids of sessions and messages that the log lacks are made of what it says, so that the same log is known again.
    """
    talks = Talks()
    for place, talk in _talks(document):
        session = talk.session_id or talk.conversation_id or talk.id or _session_of(talk.messages)
        messages = list(_messages(talk, place, session, talks.refused))
        for start in range(0, len(messages), MAX_BATCH):
            talks.batches.append(MessagesIn(session_id=session, messages=messages[start : start + MAX_BATCH]))
    if not talks.batches and not talks.refused:
        raise InvalidInput("The chat log holds no messages.")
    return talks


def turn_id(session: str, message: dict[str, Any], said: Counter[str]) -> str:
    """Return an id made of a message's content and place; what is said twice in a session is counted."""
    content = json.dumps([session, message], sort_keys=True, ensure_ascii=False)
    said[content] += 1
    return "line-" + hashlib.sha256(f"{said[content]}{content}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _talks(document: Any) -> Iterator[tuple[Place, _Talk]]:
    """Yield each conversation and where its messages stand."""
    whole = [document] if isinstance(document, dict) and "messages" not in document else document
    if isinstance(whole, list) and not any(isinstance(each, dict) and "messages" in each for each in whole):
        yield (), _Talk(messages=whole)
        return
    several = isinstance(whole, list)
    for index, each in enumerate(whole if several else [whole]):
        place: Place = (index,) if several else ()
        try:
            yield (*place, "messages"), _Talk.model_validate(each)
        except ValidationError as error:
            raise refuse(error, place, "a chat log") from None


def _messages(talk: _Talk, place: Place, session: str, refused: list[Refused]) -> Iterator[MessageIn]:
    said: Counter[str] = Counter()
    for index, raw in enumerate(talk.messages):
        at = (*place, index)
        try:
            turn = _Turn.model_validate(raw)
            text = _text(turn.content)
            if not text.strip():
                refused.append(Refused(loc=list(at), id=turn.id, reason="it has no text"))
                continue
            message = {
                "role": ROLES.get(turn.role, turn.role),
                "content": text,
                "name": turn.name,
                "timestamp": turn.timestamp or _moment(turn.created_at),
            }
            message = {key: value for key, value in message.items() if value is not None}
            message["id"] = turn.id or turn_id(session, message, said)
            yield MessageIn.model_validate(message)
        except ValidationError as error:
            raise refuse(error, at, "a chat log") from None


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """Return the text of a message, whose content may be parts of several kinds."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content or []]
    told = [text.get("value") if isinstance(text, dict) else text for text in texts]
    return "\n".join(text for text in told if isinstance(text, str))


def _moment(value: str | float | None) -> str | None:
    """Return a time of creation as RFC 3339; the API gives seconds since 1970."""
    if not isinstance(value, int | float):
        return value
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return str(value)


def _session_of(messages: list[Any]) -> str:
    said = json.dumps(messages, sort_keys=True, ensure_ascii=False)
    return "import-" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
