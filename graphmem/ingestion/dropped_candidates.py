"""Errors in one candidate of a window, which drop that candidate and nothing else."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from graphmem.runtime.errors import GraphmemError, Unavailable, UserBeingForgotten
from graphmem.runtime.metrics import CANDIDATES_DROPPED

log = structlog.get_logger(__name__)

T = TypeVar("T")


def describe_error(error: Exception) -> str:
    """Return the sentence that a refused action gives for an error, without text of the user."""
    if isinstance(error, GraphmemError):
        return error.detail
    return f"an unexpected error ({type(error).__name__}), which the log of the worker locates"


def report_dropped(stage: str, error: Exception) -> None:
    """Log and count that an error dropped a candidate in a stage: the error's class and place, never its message."""
    CANDIDATES_DROPPED.labels(stage).inc()
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    log.warning("candidate dropped", stage=stage, error=type(error).__name__, place=place)


@contextmanager
def dropping_errors(stage: str, index: int, dropped: MutableMapping[int, str]) -> Iterator[None]:
    """Note the first error in the work on a candidate in `dropped`, with its reason, instead of raising it."""
    try:
        yield
    except Exception as error:
        if index not in dropped:
            report_dropped(stage, error)
            dropped[index] = describe_error(error)


@dataclass(frozen=True, slots=True)
class WriteScope:
    """What of a window a write carries out; the parts are the candidates, by index, and after them the names.

    `bare` are candidates that are saved as mere statements, which change no other memory, and `refused` are parts that
    are not written, both with the reason. A trial writes the first `trial_size` parts only, and is rolled back.
    """

    bare: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    trial_size: int | None = None

    @property
    def is_trial(self) -> bool:
        """Whether the write is rolled back."""
        return self.trial_size is not None

    def includes(self, part: int) -> bool:
        """Return whether a part is written."""
        return part not in self.refused and (self.trial_size is None or part < self.trial_size)


class TrialSucceeded(Exception):
    """Rolls back a trial that has succeeded."""


async def write_without_culprits(write: Callable[[WriteScope], Awaitable[T]], candidate_count: int) -> T:
    """Return the result of writing a window without the parts that prevent it, of which there are mostly none.

    A candidate that prevents it becomes a mere statement first and is refused if that cannot be written either. Raises
    what the write raises when it fails without any part too, and when the database is unavailable.
    """
    bare: dict[int, str] = {}
    refused: dict[int, str] = {}
    while True:
        try:
            return await write(WriteScope(bare, refused))
        except (Unavailable, UserBeingForgotten):
            raise
        except Exception as error:
            part, cause = await _find_culprit(write, WriteScope(bare, refused), candidate_count + 1, error)
        report_dropped("write", cause)
        is_last_try = part in bare or part == candidate_count
        (refused if is_last_try else bare)[part] = describe_error(cause)


async def _find_culprit(
    write: Callable[[WriteScope], Awaitable[object]], scope: WriteScope, part_count: int, error: Exception
) -> tuple[int, Exception]:
    """Return a part with which a write fails and without which, and what follows it, it succeeds; and how it fails."""

    async def fails_with(size: int) -> Exception | None:
        try:
            await write(WriteScope(scope.bare, scope.refused, size))
        except TrialSucceeded:
            return None
        except (Unavailable, UserBeingForgotten):
            raise
        except Exception as error:
            return error
        return None

    if await fails_with(0):
        raise error
    good, bad = 0, part_count
    while bad - good > 1:
        middle = (good + bad) // 2
        if found := await fails_with(middle):
            bad, error = middle, found
        else:
            good = middle
    return bad - 1, error
