"""Route classes: authentication, permissions, body limits and idempotency, checked before a route's function runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any, ClassVar

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from graphmem.jobs.runner import pause_while_waiting
from graphmem.neo4j.availability import limit_database_time
from graphmem.runtime.errors import InvalidInput, OutcomeUnknown
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKey
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner, group_key
from graphmem_api import headers
from graphmem_api.dependencies import (
    IN_PROCESS_CALLER,
    Permission,
    authorize,
    read_bearer_token,
    set_idempotent_request,
)
from graphmem_api.forwarding import StreamedResponse
from graphmem_api.idempotency import (
    IdempotentResponder,
    ResponseCipher,
    fingerprint,
    read_idempotency_key,
    require_rights_to_replay,
)
from graphmem_api.middleware import Admission
from graphmem_api.openapi import add_common_docs
from graphmem_api.problems import respond_to_error
from graphmem_api.request_body import StrictRequest

LONG_DATABASE_SECONDS = 1800.0
"""Seconds of database work for a request over all data of a user or a tenant."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class AuthenticatedRoute(APIRoute):
    """A route that requires a key; subclasses set the permission and whether the route writes."""

    permission: ClassVar[Permission] = Permission.READ
    is_write: ClassVar[bool] = False
    """Whether the route accepts an idempotency key, and refuses text that cannot be stored."""

    encrypted: ClassVar[bool] = False
    """Whether responses stored for replay are encrypted with the caller's key."""

    database_seconds: ClassVar[float] = 30.0
    """Seconds of database work for a request; an unresponsive database is given up much sooner."""

    max_fields: ClassVar[int] = 50_000
    """Most fields in all objects of a body; validating more would take seconds before refusing them."""

    outage_seconds: ClassVar[float] = 0.0
    """Seconds for which a valid key is accepted while the database is unavailable."""

    is_tenant_wide: ClassVar[bool] = False
    """Whether responses are stored for the tenant, so that erasing a user keeps them."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **add_common_docs(path, options, is_write=self.is_write))

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler of the route, preceded by the checks."""
        handle = super().get_route_handler()

        async def handle_authorized(received: Request) -> Response:
            request = StrictRequest(
                received.scope,
                received.receive,
                max_bytes=sys.maxsize
                if IN_PROCESS_CALLER in received.scope
                else self.max_body_bytes(received.app.state.settings),
                max_fields=sys.maxsize if IN_PROCESS_CALLER in received.scope else self.max_fields,
                allow_unstorable_text=not self.is_write,
            )
            with limit_database_time(self.database_seconds), ExitStack() as counted:
                caller = await authorize(request, self.permission, self.read_token, outage_seconds=self.outage_seconds)
                admission = self._admission_of(request)
                place = counted.enter_context(admission.accepted(caller.id)) if admission else None
                body = await self._read_body(request)
                if place:
                    counted.enter_context(place.worked_on())
                    pause_while_waiting(place.paused)
                key = read_idempotency_key(request) if self.is_write else None
                if key is not None:
                    return await self._run_idempotently(request, caller, key, body, handle)
                response = await handle(request)
                if isinstance(response, StreamedResponse):
                    response.hold(counted.pop_all())
                return response

        return handle_authorized

    def _admission_of(self, request: Request) -> Admission | None:
        """Return the counter of requests in progress; None for calls from this process, which are not limited."""
        return None if IN_PROCESS_CALLER in request.scope else request.app.state.admission

    @staticmethod
    def read_token(request: Request) -> str:
        """Return the key of a request; raise Unauthenticated without one."""
        return read_bearer_token(request)

    @staticmethod
    def max_body_bytes(settings: Settings) -> int:
        """Return the size limit of request bodies, in bytes."""
        return settings.max_body_bytes

    async def _read_body(self, request: StrictRequest) -> Any:
        """Return the JSON value of the body, or its text if the route does not take JSON."""
        body = await request.body()
        if self.body_field is None:
            return body.decode("latin-1")
        if not body:
            return None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" and not media_type.endswith("+json"):
            raise InvalidInput(
                "Send the body as `Content-Type: application/json`.",
                errors=[{"loc": ["header", "Content-Type"], "msg": "must be application/json"}],
            )
        return await request.json()

    async def _run_idempotently(
        self, request: Request, caller: ApiKey, key: str, body: Any, handle: Handler
    ) -> Response:
        user_id = None if self.is_tenant_wide else _requested_user_id(request, body)
        owner = Owner(caller.tenant, user_id or "")
        path_user_id = request.path_params.get("user_id")
        record = IdempotentRequest(
            owner=owner,
            route=f"{request.method} {self.path_format}" + (f" {group_key(path_user_id)}" if path_user_id else ""),
            key=key,
            fingerprint=fingerprint(request, _describe_rights(caller), body),
            contains_user_text=not self.is_tenant_wide,
        )
        set_idempotent_request(request, record)
        cipher = ResponseCipher(request.headers["authorization"]) if self.encrypted else None
        responder = IdempotentResponder(request.app.state.services.idempotency, cipher)

        async def require_rights(answer: str) -> None:
            await require_rights_to_replay(request, caller, owner, body, answer)

        return await responder.respond(record, lambda: _response_or_problem(request, handle), require_rights)


def _describe_rights(caller: ApiKey) -> str:
    """Return a key's permissions and source kind, for the fingerprints of its requests."""
    bound = "" if caller.spaces is None else f" {caller.spaces}"
    return f"{caller.role.value} {caller.users}{bound} as {caller.source_kind}"


async def _response_or_problem(request: Request, handle: Handler) -> Response:
    """Return a route's response, or the problem document of an expected error: both are replayed.

    If it is unknown whether a write was stored, the route runs again, which does not write twice.
    """
    try:
        with suppress(OutcomeUnknown):
            return await handle(request)
        return await handle(request)
    except Exception as error:
        return respond_to_error(request, error)


def _requested_user_id(request: Request, body: Any) -> str | None:
    """Return the user that a request is about: the one in the path, else the one in the body."""
    path_user_id: str | None = request.path_params.get("user_id")
    if path_user_id is not None or not isinstance(body, dict):
        return path_user_id
    user_id = body.get("userId", body.get("user_id"))
    return user_id if isinstance(user_id, str) else None


class ReadRoute(AuthenticatedRoute):
    """Reads data of a user, by GET or by a POST with a query as its body."""


class WriteRoute(AuthenticatedRoute):
    """Changes data of a user."""

    permission, is_write = Permission.WRITE, True


class ImportRoute(WriteRoute):
    """Imports data of a user, with its own limits."""

    database_seconds = LONG_DATABASE_SECONDS

    max_fields = sys.maxsize

    @staticmethod
    def max_body_bytes(settings: Settings) -> int:
        """Return the size limit of imports, in bytes."""
        return settings.max_import_bytes


class ExportRoute(ReadRoute):
    """Reads all data of a user."""

    database_seconds = LONG_DATABASE_SECONDS


class AdminReadRoute(AuthenticatedRoute):
    """Reads data restricted to admins."""

    permission = Permission.ADMIN


class AdminWriteRoute(AuthenticatedRoute):
    """Changes data restricted to admins."""

    permission, is_write = Permission.ADMIN, True
    database_seconds = LONG_DATABASE_SECONDS


class ForgetRoute(AdminWriteRoute):
    """Erases a user; the stored response belongs to the tenant and outlives the user."""

    is_tenant_wide = True


class SpaceWriteRoute(WriteRoute):
    """Changes or erases a space; stored responses belong to the tenant and outlive the space."""

    database_seconds = LONG_DATABASE_SECONDS
    is_tenant_wide = True


class SecretWriteRoute(AdminWriteRoute):
    """Creates or removes keys and webhooks; stored responses may have a secret and are encrypted."""

    encrypted, is_tenant_wide = True, True


class ChatRoute(AuthenticatedRoute):
    """Forwards a call to a model provider; the key may be where provider clients send theirs."""

    permission = Permission.WRITE
    max_fields = sys.maxsize  # bodies are in other formats, of which graphmem reads a few fields
    outage_seconds = 3600.0  # the call continues without memory

    def _admission_of(self, request: Request) -> Admission | None:
        """Return None: model answers take long, but cost this server little."""
        return None

    @staticmethod
    def read_token(request: Request) -> str:
        """Return the key in `X-Graphmem-Key`, else the one in place of the provider's."""
        received = request.headers
        key = received.get(headers.GRAPHMEM_KEY) or received.get("x-api-key") or received.get("api-key")
        return key.strip() if key and key.strip() else read_bearer_token(request)

    @staticmethod
    def max_body_bytes(settings: Settings) -> int:
        """Return the size limit of model requests, in bytes."""
        return settings.max_chat_bytes
