"""The Python API in one process: `async with GraphMemory.open() as memory: await memory.search("mara", "tea")`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakKeyDictionary

import httpx

from graphmem.client.async_client import AsyncClient
from graphmem.client.transport import ApiCall, AsyncTransport, CallRetryPolicy
from graphmem.runtime.errors import Unavailable
from graphmem.tenants.access import LIBRARY, make_local_key
from graphmem.tenants.owners import DEFAULT_TENANT

if TYPE_CHECKING:
    from fastapi import FastAPI

    from graphmem.app.bootstrap import Services
    from graphmem.runtime.artifacts import DownloadProgress
    from graphmem.runtime.settings import Settings
    from graphmem.tenants.access import ApiKey

T = TypeVar("T")

_log = logging.getLogger(__name__)

_APPS: WeakKeyDictionary[Services, FastAPI] = WeakKeyDictionary()
"""The application of open services: tenants share it."""


class GraphMemory(AsyncClient):
    """The memories of one tenant's users, with the methods of `AsyncClient`; `for_tenant` returns another tenant's.

    Calls go to the application in this process, without network, key or rate limit. Methods raise the errors of
    `graphmem`: InvalidInput for unusable arguments, Unavailable if a dependency such as Neo4j is unavailable.
    """

    def __init__(self, services: Services, tenant: str = DEFAULT_TENANT, *, actor: str | None = None) -> None:
        """Use open services; `actor` is recorded as who writes. Raise InvalidInput for a tenant that cannot be one."""
        self.services = services
        self.actor = actor
        self._caller = make_local_key(actor or LIBRARY, tenant)
        self.tenant = self._caller.tenant
        self._connection: AsyncTransport | None = None

    async def _send(self, call: ApiCall[T]) -> T:
        if self._connection is None:
            from graphmem_api.app import InProcessApp, create_in_process_app

            if self.services not in _APPS:
                _APPS[self.services] = create_in_process_app(self.services, self.services.settings)
            app = InProcessApp(_APPS[self.services], self._caller)
            self._connection = AsyncTransport(
                "", "http://graphmem", 30, CallRetryPolicy(1), False, httpx.ASGITransport(app)
            )
        return await self._connection.send(call)

    async def aclose(self) -> None:
        """Do nothing; whoever opened the services closes them."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings | None = None, *, worker: bool = True, progress: DownloadProgress | None = None
    ) -> AsyncIterator[Self]:
        """Open the services of this process for `async with`; with `worker`, also run background jobs.

        Without `settings`, they are read from the environment. Progress, such as downloading or starting Neo4j, is
        written to standard error; with `progress`, it is instead called with the bytes downloaded and the total. Raises
        ConfigurationError or DatabaseUnavailable with what to do.
        """
        from graphmem.app.bootstrap import Services  # takes most of the time of a program that only imports this class
        from graphmem.runtime.progress import StartProgress

        report = StartProgress(on_download=progress) if progress else StartProgress.on_standard_error()
        async with AsyncExitStack() as stack:
            try:
                services = await stack.enter_async_context(Services.open(settings, worker=worker, progress=report))
            except Unavailable as error:
                _log.debug("the services cannot be opened", exc_info=True)
                raise error from None  # it says what to do; what caused it is a hundred lines of the driver
            yield cls(services)

    @classmethod
    def of_key(cls, services: Services, key: ApiKey) -> Self:
        """Return the memories that a key may use; its rights are checked as for an HTTP request."""
        memory = cls(services, key.tenant, actor=key.id)
        memory._caller = key
        return memory

    def for_tenant(self, tenant: str) -> GraphMemory:
        """Return the same services for the users of another tenant."""
        return GraphMemory(self.services, tenant, actor=self.actor)
