"""Progress on standard error: bars, and what a start waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphmem.cli.command import Output

if TYPE_CHECKING:
    from graphmem.runtime.progress import ProgressCallback, StartProgress


@contextmanager
def progress_bar(output: Output, label: str, unit: str = "entries") -> Iterator[ProgressCallback]:
    """Show a bar while the context lasts; the callback takes the number of units done and in total."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn(label),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn(unit),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=output.stderr) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def start_progress(output: Output) -> Iterator[StartProgress]:
    """Show what a start waits for: lines, and on a terminal a bar for each download; with `--json` nothing."""
    from graphmem.runtime.progress import StartProgress

    if output.flags.json:
        yield StartProgress()
    elif output.stderr.is_terminal:
        with _download_bar(output) as advance:
            yield StartProgress(_named_note(output), advance)
    else:
        yield StartProgress(_named_note(output))


def _named_note(output: Output) -> Callable[[str], None]:
    return lambda sentence: output.note(f"graphmem: {sentence}")


@contextmanager
def _download_bar(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for each download; the callback takes the bytes downloaded and in total."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=output.stderr, disable=True) as bar:
        task = bar.add_task("Downloading", total=None)

        def advance(downloaded: int, total: int) -> None:
            bar.disable = False
            bar.start()
            bar.update(task, completed=downloaded, total=total)
            if downloaded >= total:
                bar.stop()

        yield advance
