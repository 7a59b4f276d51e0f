"""Opening the services for one command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from graphmem.cli.command import Output, read_settings
from graphmem.cli.progress import download_progress

if TYPE_CHECKING:
    from graphmem.bootstrap import Services
    from graphmem.settings import Settings


@asynccontextmanager
async def open_services(
    output: Output, *, worker: bool = False, settings: Settings | None = None
) -> AsyncIterator[Services]:
    """Open the services as configured; with `worker` this process also runs jobs."""
    from graphmem.bootstrap import Services

    with download_progress(output) as on_download:
        async with Services.open(settings or read_settings(), worker=worker, progress=on_download) as services:
            yield services
