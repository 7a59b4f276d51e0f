"""Model calls that the service passes on: their providers, the contexts added to them, the turns stored after them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from graphmem.chats.answer_reader import ChatFailure, ChatFailures
from graphmem.chats.conversation import (
    ChatCall,
    ChatContext,
    ConversationIds,
    RecentChats,
    RecentResponse,
    messages_to_store,
    question_of,
)
from graphmem.chats.protocol import ChatAnswer, ChatRequest
from graphmem.context.models import ContextRequest
from graphmem.context.service import ContextService
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import MessagesIn
from graphmem.ingestion.service import MessageService
from graphmem.neo4j.availability import limit_database_time
from graphmem.runtime.errors import NotConfigured, Unavailable
from graphmem.runtime.field_types import Domain, SessionId
from graphmem.runtime.metrics import CHAT_FAILURES
from graphmem.runtime.process import read_text
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.spaces import SpaceId, SpaceRole
from graphmem.tenants.users import UserStore
from graphmem.text.token_counts import count_tokens

DEFAULT_CHAT_BUDGET = 1_000
"""Default token budget of a context in a system prompt."""

CONTEXT_SECONDS = 30.0
"""Seconds that a call waits for its context, as long as for a request; an unreachable database fails sooner."""

STORE_SECONDS = 30.0
"""Seconds of database work in which to store the turns of a call."""

STORE_PAUSES = (1.0, 5.0, 30.0)
"""Seconds before each retry of storing turns while a dependency is unavailable."""

PREVIOUS_SECONDS = 5.0
"""Seconds that a call waits for its user's earlier turns to be stored: its context may need them."""

CLOSING_SECONDS = 5.0
"""Seconds in which remaining turns are stored when the service closes."""


class ChatOptions(BaseModel):
    """How a call uses the memory of its user.

    Turns are stored in the session `session_id`; without one, in a session for each conversation. They belong to the
    domain where there is one only. With a `space` its members share them, otherwise they are the user's own. With
    `read_only` none is stored and no retrieval counted.
    """

    model_config = ConfigDict(frozen=True)

    session_id: SessionId | None = None
    token_budget: int = Field(DEFAULT_CHAT_BUDGET, ge=1, le=100_000)
    domains: list[Domain] = Field(default_factory=list, max_length=10)
    space: SpaceId | None = None
    read_only: bool = False

    @property
    def needed_role(self) -> SpaceRole:
        """The role that the caller needs in the call's space."""
        return SpaceRole.READER if self.read_only else SpaceRole.WRITER

    @property
    def domain(self) -> str | None:
        """The domain of the stored turns."""
        return self.domains[0] if len(self.domains) == 1 else None


@dataclass(slots=True, kw_only=True)
class ServedCall(ChatCall):
    """A user's call made by a caller; `life` is that of the turns' user or space at the start, None if unknown."""

    owner: Owner
    caller: ApiKey
    options: ChatOptions
    ids: ConversationIds
    previous: RecentResponse | None
    life: str | None = field(default=None, repr=False)

    @property
    def conversation(self) -> tuple[str, str | None, str]:
        """The key of the conversation: the user, the space that shares the turns, and the session."""
        return self.owner.group_id, self.options.space, self.session_id

    @property
    def asked_id(self) -> str | None:
        """The id of the user's turn that the call answers."""
        if self.request.asked:
            return self.ids.asked_id(self.session_id, self.request)
        return self.previous.asked_id if self.previous else None


class ChatService:
    """Adds contexts to calls and stores their turns, without ever failing a call.

    `secret` keys the ids of callers in this process, who have no key of their own.
    """

    def __init__(
        self,
        contexts: ContextService,
        messages: MessageService,
        episodes: EpisodeStore,
        users: UserStore,
        rights: Rights,
        clock: Clock,
    ) -> None:
        self._contexts = contexts
        self._messages = messages
        self._episodes = episodes
        self._users = users
        self._rights = rights
        self._clock = clock
        self.secret = secrets.token_bytes()
        self._recent = RecentChats()
        self._storing: dict[tuple[str, str | None, str], asyncio.Task[None]] = {}
        for kind in ChatFailure:
            CHAT_FAILURES.labels(kind.value)  # exported as 0 from the start
        self.failures = ChatFailures(lambda kind: CHAT_FAILURES.labels(kind.value).inc())

    async def begin(
        self, owner: Owner, caller: ApiKey, request: ChatRequest, options: ChatOptions, secret: bytes
    ) -> ServedCall:
        """Return the call of a request with its context, or without one if it is not available in time.

        A caller who may not write to the space of the options gets no context either. Ids are keyed by the `secret`, so
        that they do not reveal the conversation.
        """
        ids = ConversationIds(secret)
        previous = self._recent.find_response(owner.group_id, request)
        session_id = options.session_id or (previous.session_id if previous else None)
        session_id = session_id or ids.session_id(owner.user_id, request, self._clock().date())
        call = ServedCall(
            request,
            session_id,
            owner=owner,
            caller=caller,
            options=options,
            ids=ids,
            previous=previous,
        )
        with self.failures.noted(ChatFailure.CONTEXT):
            async with asyncio.timeout(CONTEXT_SECONDS):
                call.context = await self._build_context(call)
        return call

    async def _build_context(self, call: ServedCall) -> ChatContext:
        """Return the context, and note the life of the user or space that stores the turns.

        Raises NotFound or Forbidden for a space that the caller has no right to.
        """
        user = call.owner.group_id
        if storing := [task for (group_id, *_), task in self._storing.items() if group_id == user]:
            await asyncio.wait(storing, timeout=PREVIOUS_SECONDS)
        scope, space = await self._rights.read_scope(call.owner, call.caller), call.options.space
        group = call.owner if space is None else scope.require_space(space, call.options.needed_role)
        question = question_of(call.request)
        if call.request.asked is None:
            question = await self._load_question(call, group)
        tokens = await read_text(len(question or ""), lambda: count_tokens(question or ""))
        request = ContextRequest(
            question=question,
            session_id=call.session_id,
            domains=call.options.domains,
            space=space,
            token_budget=call.options.token_budget + tokens,
            recent_messages=False,  # the caller sends them to the model
        )
        # Requests with tool results repeat the question, which is not another retrieval.
        reinforce = not call.options.read_only and not call.request.is_continued
        call.life, context = await asyncio.gather(
            self._users.get_life(group), self._contexts.build(scope, request, reinforce=reinforce)
        )
        return ChatContext.make(context.context_id, context.preamble)

    async def _load_question(self, call: ServedCall, group: Owner) -> str | None:
        """Return the stored question of a call whose turns the provider keeps; None if it is unknown."""
        if call.asked_id is None:
            return None
        messages = await self._episodes.load_messages(group, [call.asked_id])
        return question_of(ChatRequest.of_text(messages[0].content)) if messages else None

    def store(self, call: ServedCall, answer: ChatAnswer | None) -> None:
        """Store the turns of a call in the background, after the pending turns of its session."""
        if answer and answer.response_id:
            response = RecentResponse(call.session_id, asked_id=call.asked_id)
            self._recent.remember_response(call.owner.group_id, answer.response_id, response)
        messages = messages_to_store(call.ids, call.session_id, call.request, answer)
        if call.options.read_only or not messages:
            return
        batch = MessagesIn.model_validate(
            {"session_id": call.session_id, "messages": messages, "domain": call.options.domain}
        )
        key = call.conversation
        task = asyncio.create_task(self._store_after(self._storing.get(key), call, batch))
        self._storing[key] = task
        task.add_done_callback(lambda done: self._storing.pop(key) if self._storing.get(key) is done else None)

    async def _store_after(self, previous: asyncio.Task[None] | None, call: ServedCall, batch: MessagesIn) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        with self.failures.noted(ChatFailure.STORE):
            for pause in (*STORE_PAUSES, None):
                try:
                    with limit_database_time(STORE_SECONDS):
                        await self._store(call, batch)
                    return
                except Unavailable:
                    if pause is None:
                        raise
                    await asyncio.sleep(pause)

    async def _store(self, call: ServedCall, batch: MessagesIn) -> None:
        """Store turns, unless their user or space was erased since the call began.

        Raises NotFound or Forbidden if the caller has no right to the space, or has lost it.
        """
        group = await self._rights.find_group(call.owner, call.caller, call.options.space, SpaceRole.WRITER)
        if call.life is None or await self._users.get_life(group) == call.life:
            await self._messages.add(group, batch, author=call.owner.author_in(group), sent_as=call.caller.source_kind)

    async def flush(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - an end, not an error
        """Wait until the turns of all calls are stored, at most `timeout` seconds."""
        if self._storing:
            await asyncio.wait([*self._storing.values()], timeout=timeout)

    async def close(self) -> None:
        """Store pending turns, for a short time."""
        await self.flush(CLOSING_SECONDS)
        for task in self._storing.values():
            task.cancel()


CONNECT_SECONDS = 10.0
"""Seconds in which a provider must accept a connection."""

MAX_IDLE_CONNECTIONS = 32
"""Most idle connections to providers kept for further calls."""

CREDENTIAL_HEADERS = ("authorization", "x-api-key", "api-key")
"""Headers in which provider clients send a key, in lower case."""


class UpstreamProtocol(StrEnum):
    """The protocol of a provider."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


_DEFAULT_URLS = {
    UpstreamProtocol.OPENAI: "https://api.openai.com/v1",
    UpstreamProtocol.ANTHROPIC: "https://api.anthropic.com",
}


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider: its address, and the key added to calls, if any."""

    url: str
    key: SecretStr | None

    def credentials(self, received: Mapping[str, str]) -> dict[str, str]:
        """Return the key in the header that the caller uses for theirs; empty without a key."""
        if self.key is None:
            return {}
        secret = self.key.get_secret_value()
        if received.get("authorization") or not received.get("x-api-key"):
            return {"authorization": f"Bearer {secret}"}
        return {"x-api-key": secret}


class UpstreamService:
    """Sends requests to the providers of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None

    @property
    def accepts_caller_keys(self) -> bool:
        """Whether a caller's own provider key is passed on."""
        return self._settings.upstream_caller_keys

    def find(self, protocol: UpstreamProtocol) -> Upstream:
        """Return the provider of a protocol; raise NotConfigured without one."""
        settings = self._settings
        url, key = {
            UpstreamProtocol.OPENAI: (settings.upstream_openai_url, settings.upstream_openai_key),
            UpstreamProtocol.ANTHROPIC: (settings.upstream_anthropic_url, settings.upstream_anthropic_key),
        }[protocol]
        if not url and not key and not settings.upstream_caller_keys:
            name = protocol.name
            raise NotConfigured(
                "Model calls cannot be forwarded because no provider is configured: set "
                f"GRAPHMEM_UPSTREAM_{name}_KEY, GRAPHMEM_UPSTREAM_{name}_URL or both."
            )
        return Upstream((url or _DEFAULT_URLS[protocol]).rstrip("/"), key)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> httpx.Response:
        """Send a request; return its response, whose body the caller reads and closes.

        Raises Unavailable if the provider does not answer.
        """
        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=httpx.Timeout(self._settings.upstream_timeout, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_keepalive_connections=MAX_IDLE_CONNECTIONS),
            )
        request = self._http.build_request(method, url, content=content, headers=dict(headers))
        try:
            return await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(
                f"The model provider does not answer ({reason}): check GRAPHMEM_UPSTREAM_…_URL, or try again later."
            ) from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
