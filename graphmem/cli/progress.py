"""A bar on standard error for what takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphmem.cli.command import Output

if TYPE_CHECKING:
    from graphmem.domain.progress import Progress


@contextmanager
def progress(output: Output, what: str, things: str = "entries") -> Iterator[Progress]:
    """Give a callback `(done, in all)` that draws how far a command has come."""
    from rich import progress as bars

    columns = (
        bars.TextColumn(what),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn(things),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=output.notes) as bar:
        task = bar.add_task(things, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
