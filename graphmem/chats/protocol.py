"""A request to a chat model and its answer, whatever the protocol: what was said, and where a context goes. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from graphmem.conversations.message_shapes import attachments_of, mark_attachments, text_of
from graphmem.text.added_texts import without_added_texts, without_thoughts
from graphmem.text.normalising import remove_unstorable

JsonObject = dict[str, Any]
"""A JSON object of a protocol, of which a part is known here and the rest is passed on as it is."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What the user or the model said in one message; `attachments` names what is not text, such as `image`."""

    role: Literal["user", "assistant"]
    text: str
    attachments: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The turn as it is stored: its text, and a mark for each attachment."""
        return mark_attachments(self.text, self.attachments)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a request to a model says.

    `turns` are those of user and model that it carries, oldest first. The model is to answer the latest one of the
    user; with `is_continued` it has begun to, and results of tools follow. `thread_id` names a conversation or a
    response whose turns the provider keeps, so that they are not sent again. `user_id` is whom the request names as its
    user.
    """

    turns: tuple[ChatTurn, ...]
    is_continued: bool = False
    thread_id: str | None = None
    user_id: str | None = None

    @classmethod
    def of_text(cls, text: str) -> ChatRequest:
        """Return a request in which the user says a text."""
        return cls((ChatTurn("user", text),))

    @property
    def asked(self) -> ChatTurn | None:
        """The latest turn of the user; None in a request without one."""
        return next((turn for turn in reversed(self.turns) if turn.role == "user"), None)

    @property
    def is_dialogue(self) -> bool:
        """Whether the model answers a user: a turn in the request, or one that the provider keeps."""
        return self.asked is not None or (self.is_continued and self.thread_id is not None)


@dataclass(slots=True)
class ChatAnswer:
    """What a model has answered, as far as it was read; `response_id` is by what a later request may refer to it.

    `is_complete` once the provider has said that it ends here, which some servers never do; `has_failed` once it has
    reported an error instead.
    """

    text: str = ""
    response_id: str | None = None
    is_complete: bool = False
    has_failed: bool = False


class ChatProtocol(ABC):
    """How requests to a model and its answers look; nothing here fails on what it does not know."""

    name: ClassVar[str]
    path: ClassVar[str]
    """The end of the path that requests are sent to."""

    @abstractmethod
    def read_request(self, body: Mapping[str, Any]) -> ChatRequest:
        """Return what the body of a request says."""

    @abstractmethod
    def add_context(self, body: Mapping[str, Any], block: str) -> JsonObject:
        """Return the body of a request with a context at the end of its system prompt, in place of an earlier one."""

    @abstractmethod
    def read_answer(self, body: Mapping[str, Any]) -> ChatAnswer:
        """Return what an answer that is not streamed says."""

    @abstractmethod
    def read_event(self, event: Mapping[str, Any], answer: ChatAnswer) -> None:
        """Add what one event of a streamed answer says to what was read before."""


HistoryItem = ChatTurn | Literal["tool result"]
"""One item of the history in a request, as far as it matters here."""


def make_request(items: Iterable[HistoryItem], *, thread_id: object = None, user_id: object = None) -> ChatRequest:
    """Return the request whose history has these items, oldest first."""
    turns: list[ChatTurn] = []
    asked, is_continued = 0, False
    for item in items:
        if item == "tool result":
            is_continued = True
        elif isinstance(item, ChatTurn) and item.content:
            turns.append(item)
            if item.role == "user":
                asked, is_continued = len(turns), False
    if not asked:
        turns = []
    elif not is_continued:
        del turns[asked:]  # the beginning of the answer, which the caller dictates
    return ChatRequest(
        tuple(turns),
        is_continued=is_continued,
        thread_id=text_or_none(thread_id),
        user_id=text_or_none(user_id),
    )


def make_turn(role: Literal["user", "assistant"], content: object) -> ChatTurn:
    """Return the turn of a message whose content is a text, or a list of parts of which some are attachments."""
    text = remove_unstorable(without_added_texts(text_of(content))).strip()
    if role == "assistant":
        text = without_thoughts(text)
    return ChatTurn(role, text, tuple(attachments_of(content)))


def text_or_none(value: object) -> str | None:
    """Return a value that is a text with something in it; None for any other."""
    return value if isinstance(value, str) and value.strip() else None
