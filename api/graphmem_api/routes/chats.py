"""Model calls in the providers' protocols: forwarded with a context, and their turns stored."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from graphmem.app.bootstrap import Services
from graphmem.chats.answer_reader import AnswerReader, ChatFailure, PassingAnswer
from graphmem.chats.protocol import (
    ChatCompletionsProtocol,
    ChatProtocol,
    ChatRequest,
    MessagesProtocol,
    ResponsesProtocol,
)
from graphmem.chats.service import CREDENTIAL_HEADERS, DEFAULT_CHAT_BUDGET, ChatOptions, ServedCall, UpstreamProtocol
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import Id, SessionId
from graphmem.runtime.validation import validate_input
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner, make_owner
from graphmem.tenants.spaces import SpaceId
from graphmem.text.normalising import is_blank
from graphmem_api import headers, route_classes
from graphmem_api.dependencies import IN_PROCESS_CALLER, Caller, ServicesDep
from graphmem_api.forwarding import (
    forward_response,
    forwarded_request_headers,
    holds_graphmem_key,
    without_graphmem_keys,
)
from graphmem_api.openapi import openapi_problem

router = APIRouter(route_class=route_classes.ChatRoute, tags=["chats"])

OPENAI_PATH, ANTHROPIC_PATH = "/openai/v1", "/anthropic/v1"
"""Paths for provider clients; Anthropic clients' base URL omits the `/v1`."""

_THREADED_BYTES = 256 * 1024
"""Size in bytes from which bodies are parsed and written in a thread, so that other requests continue."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

_ANY_OBJECT = {"type": "object", "additionalProperties": True}


def _pass_on_route(
    method: str, path: str, *, summary: str, operation_id: str, fields: Sequence[str] = (), streams: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Return the decorator of a route that forwards a call; its body must have these `fields`."""
    content: dict[str, Any] = {"application/json": {"schema": _ANY_OBJECT}}
    if streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    answer = {"description": "The answer of the provider, as it was sent; its errors too.", "content": content}
    schema = {**_ANY_OBJECT, "required": list(fields)}
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    return router.api_route(
        path,
        methods=[method],
        summary=summary,
        operation_id=operation_id,
        response_class=Response,
        responses={200: answer, 501: openapi_problem(501, "No provider is configured.")},
        openapi_extra=body if fields else None,
    )


class ChatHeaders(BaseModel):
    """Options for the memory of a call, in headers that are not forwarded to the provider."""

    model_config = ConfigDict(extra="ignore")

    x_graphmem_user: Id | None = Field(
        None, description="The user, as UTF-8; defaults to the user in the body, then the key's user."
    )
    x_graphmem_session: SessionId | None = Field(
        None, description="The session that stores the turns; defaults to one per conversation."
    )
    x_graphmem_space: SpaceId | None = Field(
        None, description="The space that shares the turns; defaults to the user's own memory."
    )
    x_graphmem_domains: Annotated[str, Field(max_length=1_000)] | None = Field(
        None, description="Comma-separated domains of the call."
    )
    x_graphmem_budget: int = Field(
        DEFAULT_CHAT_BUDGET, ge=1, le=100_000, description="Maximum tokens of the context in the system prompt."
    )
    x_graphmem_read_only: bool = Field(False, description="Whether to store nothing and count no retrieval.")

    @field_validator("x_graphmem_user", "x_graphmem_session", "x_graphmem_space", "x_graphmem_domains", mode="before")
    @classmethod
    def _decode(cls, value: object) -> object:
        """Return the text of a header, which may be UTF-8, although HTTP only knows Latin-1."""
        if not isinstance(value, str):
            return value
        try:
            return value.encode("latin-1").decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            return value

    @property
    def options(self) -> ChatOptions:
        """The options of the call; raises InvalidInput for invalid domains."""
        domains = [part for part in (self.x_graphmem_domains or "").split(",") if not is_blank(part)]
        given = {
            "session_id": self.x_graphmem_session,
            "token_budget": self.x_graphmem_budget,
            "domains": domains,
            "space": self.x_graphmem_space,
            "read_only": self.x_graphmem_read_only,
        }
        return validate_input(ChatOptions, given)


GivenHeaders = Annotated[ChatHeaders, Header()]


@_pass_on_route(
    "POST",
    OPENAI_PATH + "/chat/completions",
    summary="OpenAI chat completion, with memory",
    operation_id="openai_chat_completions",
    fields=(
        "model",
        "messages",
    ),
    streams=True,
)
async def chat_completions(request: Request, caller: Caller, services: ServicesDep, given: GivenHeaders) -> Response:
    """Forward a chat completion with the context for the user's last message, and store the turn."""
    return await _pass_on_chat(request, caller, services, given, UpstreamProtocol.OPENAI, ChatCompletionsProtocol())


@_pass_on_route(
    "POST",
    OPENAI_PATH + "/responses",
    summary="OpenAI response, with memory",
    operation_id="openai_responses",
    fields=(
        "model",
        "input",
    ),
    streams=True,
)
async def responses(request: Request, caller: Caller, services: ServicesDep, given: GivenHeaders) -> Response:
    """Forward a response request with the context for the user's last message, and store the turn."""
    return await _pass_on_chat(request, caller, services, given, UpstreamProtocol.OPENAI, ResponsesProtocol())


@_pass_on_route(
    "POST",
    ANTHROPIC_PATH + "/messages",
    summary="Anthropic message, with memory",
    operation_id="anthropic_messages",
    fields=(
        "model",
        "messages",
        "max_tokens",
    ),
    streams=True,
)
async def messages(request: Request, caller: Caller, services: ServicesDep, given: GivenHeaders) -> Response:
    """Forward a message request with the context for the user's last message, and store the turn."""
    return await _pass_on_chat(request, caller, services, given, UpstreamProtocol.ANTHROPIC, MessagesProtocol())


@_pass_on_route(
    "POST",
    ANTHROPIC_PATH + "/messages/count_tokens",
    summary="Count the tokens of an Anthropic request",
    operation_id="anthropic_count_tokens",
    fields=(
        "model",
        "messages",
    ),
)
async def count_tokens(request: Request, services: ServicesDep) -> Response:
    """Count the tokens of a request, without a context."""
    return await _pass_on(request, services, UpstreamProtocol.ANTHROPIC, await request.body(), {}, None)


@_pass_on_route("GET", OPENAI_PATH + "/models", summary="Models of the OpenAI provider", operation_id="openai_models")
async def openai_models(request: Request, services: ServicesDep) -> Response:
    """List the provider's models."""
    return await _pass_on(request, services, UpstreamProtocol.OPENAI, None, {}, None)


@_pass_on_route(
    "GET",
    ANTHROPIC_PATH + "/models",
    summary="Models of the Anthropic provider",
    operation_id="anthropic_models",
)
async def anthropic_models(request: Request, services: ServicesDep) -> Response:
    """List the provider's models."""
    return await _pass_on(request, services, UpstreamProtocol.ANTHROPIC, None, {}, None)


async def _pass_on_chat(
    request: Request,
    caller: ApiKey,
    services: Services,
    given: ChatHeaders,
    upstream: UpstreamProtocol,
    protocol: ChatProtocol,
) -> Response:
    """Forward a call, with memory if a user speaks in it."""
    services.upstream.find(upstream)  # raises before anything is read if no provider is configured
    content = await request.body()
    body, said = None, ChatRequest(())
    with services.chats.failures.noted(ChatFailure.READ):
        body = await _in_thread_if_long(len(content), json.loads, content)
        said = protocol.read_request(body) if isinstance(body, dict) else said
    if not said.is_dialogue:
        return await _pass_on(request, services, upstream, content, {}, None)
    owner = _find_owner(caller, given.x_graphmem_user, said)
    call = await services.chats.begin(owner, caller, said, given.options, _secret_of(request, services))
    if call.context is None:
        added = {headers.MEMORY: "unavailable"}
    else:
        added = {headers.CONTEXT_ID: call.context.id}
        if call.context.block:
            extended = protocol.add_context(body, call.context.block)
            content = await _in_thread_if_long(len(content), _to_bytes, extended)
    return await _pass_on(request, services, upstream, content, added, (protocol, call))


async def _pass_on(
    request: Request,
    services: Services,
    protocol: UpstreamProtocol,
    content: bytes | None,
    added: Mapping[str, str],
    call: tuple[ChatProtocol, ServedCall] | None,
) -> Response:
    """Forward a request to its provider; return the answer, which is read as it passes."""
    upstream = services.upstream.find(protocol)
    key = _own_key(request)
    given = {name: value for name, value in request.headers.items() if not holds_graphmem_key(value, key)}
    own = {name: given[name] for name in CREDENTIAL_HEADERS if services.upstream.accepts_caller_keys and name in given}
    sent = forwarded_request_headers(given) | (own or upstream.credentials(request.headers))
    tail = request.url.path.removeprefix(f"/{protocol}").removeprefix(
        "/v1" if protocol is UpstreamProtocol.OPENAI else ""
    )
    parameters = request.query_params.multi_items()
    kept = [(name, value) for name, value in parameters if not holds_graphmem_key(value, key)]
    asked = request.url.query if kept == parameters else urlencode(kept)
    query = f"?{asked}" if asked else ""
    sent_content = None if content is None else without_graphmem_keys(content, key)
    response = await services.upstream.send(request.method, f"{upstream.url}{tail}{query}", sent, sent_content)
    passing = None
    if call and response.is_success:
        spoken, served = call
        reader = AnswerReader(spoken, response.headers.get("content-type", ""))
        passing = PassingAnswer(reader, services.chats.failures, lambda answer: services.chats.store(served, answer))
    return forward_response(response, passing, added)


def _find_owner(caller: ApiKey, given: str | None, said: ChatRequest) -> Owner:
    """Return the user of a call, from the header, the body, or the key's only user.

    Raises InvalidInput without a user, Forbidden if the key has no access to the user.
    """
    only = caller.users[0] if caller.users and len(caller.users) == 1 else None
    user_id = given or said.user_id or only
    if user_id is None:
        raise InvalidInput(
            "The call names no user: send X-Graphmem-User, name the user in the body, or use a key that is bound to "
            "one user.",
            errors=[{"loc": ["header", "X-Graphmem-User"], "msg": "is missing"}],
        )
    caller.require_access(user_id)
    return make_owner(caller.tenant, user_id)


def _secret_of(request: Request, services: Services) -> bytes:
    """Return the secret for the ids of a caller's messages: the same for all calls with one key."""
    if IN_PROCESS_CALLER in request.scope:
        return services.chats.secret
    return hashlib.sha256(_own_key(request).encode("utf-8", "surrogatepass")).digest()


def _own_key(request: Request) -> str:
    """Return the graphmem key of a request; empty for requests from this process."""
    return "" if IN_PROCESS_CALLER in request.scope else route_classes.ChatRoute.read_token(request)


async def _in_thread_if_long(size: int, work: Any, value: Any) -> Any:
    return await asyncio.to_thread(work, value) if size > _THREADED_BYTES else work(value)


def _to_bytes(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
