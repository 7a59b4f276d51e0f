"""The memory behind every agent framework: context for a question, two tools, and turns to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphmem.chats.answer_reader import ChatFailure, ChatFailures
from graphmem.chats.protocol import make_context_block
from graphmem.conversations.session import MAX_MESSAGE_LENGTH, split_into_batches
from graphmem.memories.memory import SaveAction, SaveResult
from graphmem.runtime.errors import GraphmemError, InvalidInput, RateLimited, RequestTimeout, Unavailable
from graphmem.text.added_texts import fence_line
from graphmem.text.normalising import remove_unstorable

if TYPE_CHECKING:
    from graphmem.client import AsyncClient

DEFAULT_TOKEN_BUDGET = 1000
"""Default token budget of a context in a prompt."""

_STORED = (SaveAction.INSERT, SaveAction.REINFORCE, SaveAction.SUPERSEDE)
"""Actions of a save after which the statement is current."""

AWAY = (Unavailable, RateLimited, RequestTimeout)
"""Errors of an unavailable memory: the agent continues without it."""

MAX_TOOL_RESULTS = 10
"""Most memories returned by a call of the search tool."""


def require_stored(results: Iterable[SaveResult], named: Sequence[str] = ()) -> None:
    """Raise InvalidInput unless each saved statement is current; the error names the others, with the reasons.

    `named` are the caller's names of the statements, by default their numbers. Statements that are current stay stored.
    """
    lost = [(index, result) for index, result in enumerate(results) if result.action not in _STORED]
    if lost:
        reasons = (
            f"{named[index] if named else f'statement {index + 1}'}: {result.reason or result.action.value}"
            for index, result in lost
        )
        raise InvalidInput(f"Not stored: {'; '.join(reasons)}.")


async def add_each(client: AsyncClient, user_id: str, statements: Sequence[Mapping[str, Any]]) -> list[SaveResult]:
    """Save statements; an unusable one is skipped with the reason and does not prevent the others.

    Raises InvalidInput if none of them can be used.
    """
    if not statements:
        return []
    try:
        return await client.add(user_id, [*statements])
    except InvalidInput as error:
        results: list[SaveResult] = []
        for statement in statements:
            try:
                results += await client.add(user_id, statement)
            except InvalidInput as reason:
                results.append(SaveResult(action=SaveAction.SKIP, memory=None, reason=reason.detail.rstrip(".")))
        if all(result.action is SaveAction.SKIP for result in results):
            raise error from None
        return results


def split_long_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages that fit the service's limit; longer ones are split into several with ids derived from their own.

    Characters that cannot be stored, such as half an emoji, are left out.
    """
    parts: list[dict[str, Any]] = []
    for message in messages:
        text = remove_unstorable(message["content"])
        pieces = [text[start : start + MAX_MESSAGE_LENGTH] for start in range(0, len(text), MAX_MESSAGE_LENGTH)]
        for number, piece in enumerate(pieces):
            own_id = {"id": f"{message['id']}-{number + 1}"} if number and "id" in message else {}
            parts.append({**message, "content": piece, **own_id})
    return parts


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """The memory of one user for one agent; `client` speaks HTTP or is a `GraphMemory` in the same process.

    Turns are stored in the session `session_id`. With `space`, what the agent stores and saves is shared with the
    members of that space; the agent reads all spaces of the user in any case. If the service is unavailable, contexts
    are empty and turns are not stored; `failures` counts both and logs the first in a row. What the service refuses
    raises an error.
    """

    client: AsyncClient
    user_id: str
    session_id: str | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    space: str | None = None
    failures: ChatFailures = field(default_factory=ChatFailures, compare=False, repr=False)

    async def build_context(self, question: str) -> str:
        """Return known facts that may help with a question, in a block that adapters recognise; empty without any."""
        preamble = ""
        with self.failures.noted(ChatFailure.CONTEXT, AWAY):
            response = await self.client.context(
                self.user_id,
                question,
                session_id=self.session_id,
                token_budget=self.token_budget,
                space=self.space,
                recent_messages=False,  # the framework sends the conversation
            )
            preamble = response.preamble
        return make_context_block(preamble) if preamble.strip() else ""

    async def search_memory(self, query: str) -> str:
        """Search what is known about the user by meaning.

        Args:
            query: What to look for, as a question or as keywords.
        """
        try:
            response = await self.client.search(self.user_id, query, limit=MAX_TOOL_RESULTS, include_messages=True)
        except GraphmemError as error:
            return f"Memory cannot be searched: {error}"
        known = [hit.memory.quoted for hit in response.results]
        if not response.has_fitting:
            messages = [hit.message for hit in response.messages[:MAX_TOOL_RESULTS]]
            known += [fence_line(f"Said in a message by {said.said_by}: {said.content}") for said in messages]
        return "\n".join(known) or "Nothing is known about this."

    async def save_memory(self, statement: str) -> str:
        """Remember a statement about the user for later conversations.

        Args:
            statement: One sentence in the third person, with names instead of pronouns and dates instead of "tomorrow".
        """
        try:
            (result,) = await self.client.add(self.user_id, {"content": statement, "space": self.space})
        except GraphmemError as error:
            return f"Not saved: {error}"
        if result.memory is None or result.action not in _STORED:
            return f"Not saved: {result.reason or result.action.value}"
        return f"Saved: {fence_line(result.memory.content)}"

    async def record(self, turns: Iterable[tuple[str, str]]) -> None:
        """Store turns, each a role and a text; memories are extracted from them in the background."""
        messages = split_long_messages({"role": role, "content": text} for role, text in turns)
        for batch in split_into_batches(messages):
            with self.failures.noted(ChatFailure.STORE, AWAY):
                await self.client.add_messages(self.user_id, batch, session_id=self.session_id, space=self.space)
