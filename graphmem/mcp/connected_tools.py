"""What all groups of tools have: the services, and the connection of each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mcp.server.mcpserver import Context as ToolCall

from graphmem.mcp.connection import Connection

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services


class ConnectedTools:
    """A group of tools of one server; `get_connection` names the user of each call."""

    def __init__(
        self, get_services: Callable[[], Awaitable[Services]], get_connection: Callable[[ToolCall], Connection]
    ) -> None:
        self._get_services = get_services
        self._get_connection = get_connection
