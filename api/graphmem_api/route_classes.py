"""What happens to a request before its route sees it: admitted, bounded, read strictly, answered once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from graphmem.domain.api_key import ApiKey
from graphmem.domain.idempotency import IdempotentRequest
from graphmem.domain.identity import Owner, group_key
from graphmem.errors import InvalidInput
from graphmem_api.auth import Permission, authorize
from graphmem_api.idempotency import IDEMPOTENCY_HEADER, IdempotentResponder, fingerprint, read_key
from graphmem_api.openapi import add_common_docs
from graphmem_api.problems import respond_to_error
from graphmem_api.request_body import StrictRequest

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class AuthenticatedRoute(APIRoute):
    """A route behind a key. Subclasses say what it demands and whether it is_write."""

    permission: ClassVar[Permission] = Permission.READ
    is_write: ClassVar[bool] = False
    encrypted: ClassVar[bool] = False
    is_tenant_wide: ClassVar[bool] = False

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **add_common_docs(path, options, is_write=self.is_write))

    def get_route_handler(self) -> Handler:
        """Return the handler that guards the one FastAPI makes."""
        handle = super().get_route_handler()

        async def handle_authorized(plain: Request) -> Response:
            request = StrictRequest(plain.scope, plain.receive)
            request.allow_unstorable_text = not self.is_write
            caller = await authorize(request, self.permission)
            value = await self._read_body(request)
            key = read_key(request) if self.is_write else None
            if key is None:
                return await handle(request)
            return await self._run_idempotently(request, caller, key, value, handle)

        return handle_authorized

    async def _read_body(self, request: StrictRequest) -> Any:
        """Return the body's value, where the route takes JSON, else its text."""
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
        self, request: Request, caller: ApiKey, key: str, value: Any, handle: Handler
    ) -> Response:
        user_id = None if self.is_tenant_wide else _requested_user_id(request, value)
        owner = Owner(caller.tenant, user_id or "")
        in_path = request.path_params.get("user_id")
        record = IdempotentRequest(
            owner=owner,
            route=f"{request.method} {self.path_format}" + (f" {group_key(in_path)}" if in_path else ""),
            key=key,
            fingerprint=fingerprint(request, f"{caller.role.value} {caller.users}", value),
            contains_user_text=not self.is_tenant_wide,
        )
        secret = request.headers["authorization"] if self.encrypted else None
        responder = IdempotentResponder(request.app.state.memory.idempotency, secret)
        return await responder.respond(record, lambda: _response_or_problem(request, handle))


async def _response_or_problem(request: Request, handle: Handler) -> Response:
    """Return the answer of a route with its refusals as answers too, since they are replayed as well."""
    try:
        return await handle(request)
    except Exception as error:
        return respond_to_error(request, error)


def _requested_user_id(request: Request, value: Any) -> str | None:
    """Return whose data a request is about: the user in its path, else the one its body names."""
    in_path: str | None = request.path_params.get("user_id")
    if in_path is not None or not isinstance(value, dict):
        return in_path
    named = value.get("userId", value.get("user_id"))
    return named if isinstance(named, str) else None


class ReadRoute(AuthenticatedRoute):
    """Reads a user's data, by GET or by a POST that asks a question."""


class WriteRoute(AuthenticatedRoute):
    """Changes a user's data."""

    permission, is_write = Permission.WRITE, True


class AdminReadRoute(AuthenticatedRoute):
    """Reads what only admins see."""

    permission = Permission.ADMIN


class AdminWriteRoute(AuthenticatedRoute):
    """Changes what only admins may."""

    permission, is_write = Permission.ADMIN, True


class ForgetRoute(AdminWriteRoute):
    """Erases a user; its record is the tenant's own, or it would be erased with the user."""

    is_tenant_wide = True


class KeyWriteRoute(AdminWriteRoute):
    """Makes or revokes keys; a secret in the answer is kept only under the seal of its caller's key."""

    encrypted, is_tenant_wide = True, True


__all__ = [
    "IDEMPOTENCY_HEADER",
    "AdminReadRoute",
    "AdminWriteRoute",
    "AuthenticatedRoute",
    "ForgetRoute",
    "KeyWriteRoute",
    "ReadRoute",
    "WriteRoute",
]
