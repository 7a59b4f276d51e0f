"""Open the service for one command, with a progress bar while Neo4j and the embedding model are downloaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from graphmem.cli.command import Output, read_settings

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory
    from graphmem.settings import Settings


@asynccontextmanager
async def open_memory(
    output: Output, *, worker: bool = False, settings: Settings | None = None
) -> AsyncIterator[GraphMemory]:
    """Open the service as the settings say; with `worker` this process also runs jobs."""
    from graphmem.bootstrap import GraphMemory

    with download_progress(output) as progress:
        async with GraphMemory.open(settings or read_settings(), worker=worker, progress=progress) as memory:
            yield memory


@contextmanager
def download_progress(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback `(bytes downloaded, bytes in total)` that draws a progress bar for each download."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.stderr, disable=True) as bar:
        task = bar.add_task("Downloading", total=None)

        def advance(fetched: int, total: int) -> None:
            bar.disable = False
            bar.start()
            bar.update(task, completed=fetched, total=total)
            if fetched >= total:
                bar.stop()

        yield advance
