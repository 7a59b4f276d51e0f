"""Opening the service for one command, with a progress bar while Neo4j's jars are fetched."""

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
    """Give a callback `(bytes fetched, bytes in all)` that draws a bar from its first call to the last byte."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("Fetching Neo4j"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output.stderr, disable=True) as bar:
        task = bar.add_task("jars", total=None)

        def advance(fetched: int, total: int) -> None:
            if bar.disable:
                bar.disable = False
                bar.start()
            bar.update(task, completed=fetched, total=total)
            if fetched >= total:
                bar.stop()

        yield advance
