"""Requests of commands on the machine of the server, which its secret in the data folder authorises."""

from __future__ import annotations

from ipaddress import ip_address

from fastapi import Request

from graphmem.tenants.access import ApiKey
from graphmem.tenants.tokens import authenticate_local_token

FORWARDED_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers of a proxy: its own address says nothing about where the request is from."""


def authenticate_local(request: Request, token: str) -> ApiKey | None:
    """Return the key of a command on this machine; None for any other token, and for one from another machine."""
    secret: str | None = request.app.state.local_secret
    if secret is None or not _is_from_this_machine(request):
        return None
    return authenticate_local_token(token, secret)


def _is_from_this_machine(request: Request) -> bool:
    if request.client is None or any(header in request.headers for header in FORWARDED_HEADERS):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False
