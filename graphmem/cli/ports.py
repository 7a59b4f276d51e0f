"""Binding a port to listen on."""

from __future__ import annotations

import errno
import socket

from graphmem.runtime.errors import ConfigurationError


def bind_port(host: str, port: int, advice: str) -> socket.socket:
    """Return a socket bound to a port; raise ConfigurationError, which ends with `advice`, when that fails."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        is_used = error.errno == errno.EADDRINUSE
        reason = "Port already in use" if is_used else f"Cannot listen ({error.strerror or error})"
        raise ConfigurationError(f"{reason} at {host}:{port}: {advice}") from error
    return bound
