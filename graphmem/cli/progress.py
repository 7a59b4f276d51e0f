"""A bar on standard error for label takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphmem.cli.command import Output

if TYPE_CHECKING:
    from graphmem.domain.progress import ProgressCallback


@contextmanager
def progress_bar(output: Output, label: str, unit: str = "entries") -> Iterator[ProgressCallback]:
    """Give a callback `(done, in all)` that draws how far a command has come."""
    from rich import progress as bars

    columns = (
        bars.TextColumn(label),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn(unit),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=output.stderr) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
