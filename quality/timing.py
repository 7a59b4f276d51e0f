"""The time that language model and embedder take, to tell the overhead of everything else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel

from graphmem.jobs.job import Job
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import (
    ChatMessage,
    CheckToolCall,
    Completion,
    LanguageModel,
    ModelUse,
    Prompt,
    ToolCallCompletion,
)

T = TypeVar("T", bound=BaseModel)


class ModelTimer:
    """Records when a model or the embedder was working, in seconds of the wall clock."""

    def __init__(self) -> None:
        self._busy_spans: list[tuple[float, float]] = []

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Record the time of the block."""
        started = time.time()
        try:
            yield
        finally:
            self._busy_spans.append((started, time.time()))

    def overhead_ms(self, job: Job) -> float | None:
        """Return the milliseconds a job spent outside model and embedder while it ran alone; None for a failed one."""
        if job.finished_at is None or job.error:
            return None
        end = job.finished_at.timestamp()
        start = end - job.receipt.seconds
        busy = sum(max(0.0, min(end, last) - max(start, first)) for first, last in self._busy_spans)
        return 1000 * max(0.0, job.receipt.seconds - busy)


class TimedModel:
    """A `LanguageModel` whose calls are timed."""

    def __init__(self, model: LanguageModel, timer: ModelTimer) -> None:
        self._model = model
        self._timer = timer

    async def complete_structured(
        self, prompt: Prompt | Sequence[ChatMessage], schema: type[T], *, use: ModelUse = "main"
    ) -> Completion[T]:
        """Return the model's answer."""
        with self._timer.busy():
            return await self._model.complete_structured(prompt, schema, use=use)

    async def call_tools(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        use: ModelUse = "main",
        check: CheckToolCall = lambda call: None,
    ) -> ToolCallCompletion:
        """Return the model's tool calls."""
        with self._timer.busy():
            return await self._model.call_tools(prompt, tools, use=use, check=check)


class TimedEmbedder:
    """An `Embedder` whose calls are timed."""

    def __init__(self, embedder: Embedder, timer: ModelTimer) -> None:
        self._embedder = embedder
        self._timer = timer

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._embedder.model

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._embedder.dimension

    async def open(self) -> None:
        """Load the model."""
        await self._embedder.open()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector per text."""
        with self._timer.busy():
            return await self._embedder.embed(texts, query=query)

    async def aclose(self) -> None:
        """Close the embedder."""
        await self._embedder.aclose()
