"""Reranking by a cross-encoder, which reads question and statement together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from graphmem.runtime.errors import ConfigurationError


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers that runs in this process and is loaded on first use."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._model: Any = None
        self._loading = asyncio.Lock()

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers, from 0 to 1; raise ConfigurationError when the model cannot be loaded."""
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
        scores = await asyncio.to_thread(self._predict, [(question, text) for text in texts])
        return [float(score) for score in scores]

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder

            return CrossEncoder(self._name, num_labels=1)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigurationError(
                f"The cross-encoder {self._name} cannot be loaded ({error}): run pip install "
                "'graphmem[sentence-transformers]' and set GRAPHMEM_RERANK_MODEL to the folder or name of one."
            ) from error

    def _predict(self, pairs: list[tuple[str, str]]) -> Any:
        import torch

        return self._model.predict(pairs, activation_fn=torch.nn.Sigmoid(), show_progress_bar=False)
