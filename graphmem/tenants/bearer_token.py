"""The bearer token of an HTTP request."""

from __future__ import annotations

from graphmem.runtime.errors import Unauthenticated


def parse_bearer_token(authorization: str | None) -> str:
    """Return the token of an `Authorization` header; raise Unauthenticated when it has none."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("Send an API key as `Authorization: Bearer <key>`.")
    return token.strip()
