"""Failures of the memory of a chat, which its calls do not notice: counted, and logged once until it works again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from threading import Lock

from graphmem.runtime.errors import GraphmemError


class ChatFailure(StrEnum):
    """What of the memory of a chat failed."""

    READ = "read"
    CONTEXT = "context"
    ANSWER = "answer"
    STORE = "store"

    @property
    def text(self) -> str:
        """What it means, as it is logged."""
        return _TEXTS[self]


_TEXTS = {
    ChatFailure.READ: "a request cannot be read, so that its model is called without memory",
    ChatFailure.CONTEXT: "a model is called without memory",
    ChatFailure.ANSWER: "an answer cannot be read",
    ChatFailure.STORE: "the turns of a call are not stored",
}

log = logging.getLogger(__name__)


class ChatFailures:
    """Counts failures, and logs the first of several of one kind in a row; `on_failure` is called with the kind."""

    def __init__(self, on_failure: Callable[[ChatFailure], None] | None = None) -> None:
        self.count = 0
        self._on_failure = on_failure
        self._logged: set[ChatFailure] = set()
        self._lock = Lock()

    @contextmanager
    def noted(self, kind: ChatFailure, errors: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
        """Return a block whose `errors` are noted and go no further."""
        try:
            yield
        except errors as error:
            with self._lock:
                self.count += 1
                is_first = kind not in self._logged
                self._logged.add(kind)
            if self._on_failure:
                self._on_failure(kind)
            if is_first:
                # The text of an unexpected error may quote what was said.
                reason = error.detail if isinstance(error, GraphmemError) else type(error).__name__
                log.warning("%s: %s", kind.text, reason)
        else:
            self._logged.discard(kind)
