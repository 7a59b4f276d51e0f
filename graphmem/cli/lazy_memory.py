"""The client of commands without a server: it opens the services at the first call, once the arguments are valid."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from graphmem.cli.startup import open_services
from graphmem.client.async_client import AsyncClient
from graphmem.client.transport import ApiCall
from graphmem.tenants.access import COMMAND_LINE
from graphmem.tenants.owners import Owner, make_owner

if TYPE_CHECKING:
    from graphmem.cli.command import Output
    from graphmem.graph_memory import GraphMemory
    from graphmem.runtime.settings import Settings
    from graphmem.tenants.access import ApiKey

T = TypeVar("T")

_USERS = "/v1/users/"


class LazyMemory(AsyncClient):
    """A tenant's memories in this process; with a `key`, those that it has access to.

    If opening fails, the next call tries again.
    """

    def __init__(
        self, output: Output, tenant: str, settings: Settings, *, worker: bool = False, key: ApiKey | None = None
    ) -> None:
        self._output = output
        self._tenant = tenant
        self._settings = settings
        self._worker = worker
        self._key = key
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._memory: GraphMemory | None = None

    async def _send(self, call: ApiCall[T]) -> T:
        if call.path.startswith(_USERS):
            make_owner(self._tenant, unquote(call.path.removeprefix(_USERS).partition("/")[0]))
        else:
            Owner(self._tenant, "")
        return await (await self._open())._send(call)

    async def _open(self) -> GraphMemory:
        from graphmem.graph_memory import GraphMemory

        async with self._opening:
            if self._memory is None:
                services = await self._stack.enter_async_context(
                    open_services(self._output, worker=self._worker, settings=self._settings)
                )
                if self._key is None:
                    self._memory = GraphMemory(services, self._tenant, actor=COMMAND_LINE)
                else:
                    self._memory = GraphMemory.of_key(services, self._key)
            return self._memory

    async def aclose(self) -> None:
        """Close the services."""
        await self._stack.aclose()
