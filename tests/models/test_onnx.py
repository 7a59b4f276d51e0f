"""The default embedder with its real models."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from itertools import combinations
from pathlib import Path

import pytest

from graphmem.models.embedder import create_embedder
from graphmem.models.onnx_embedder import (
    LOCK_FILE,
    MODELS,
    OnnxEmbedder,
    model_jars,
)
from graphmem.runtime.errors import ConfigurationError, ModelUnavailable
from graphmem.runtime.settings import Settings
from tests.forks import run_python

UNREACHABLE_URL = "http://127.0.0.1:9"
REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text("utf-8"))["vectors"]
"""Vectors of the fp32 model; the file names their source."""

MIN_COSINE = 0.97
"""Of the int8 and the fp32 vector of one text; measured: 0.974 for two letters, 0.986 to 0.994 for sentences."""


class CountingEmbedder(OnnxEmbedder):
    """The real embedder, which also records its batches."""

    def __init__(self) -> None:
        super().__init__(threads=2)
        self.batches: list[list[str]] = []

    async def _encode(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(texts)
        return await super()._encode(texts)


@pytest.fixture(scope="module")
async def local() -> AsyncIterator[CountingEmbedder]:
    embedder = CountingEmbedder()
    await embedder.open()
    yield embedder
    await embedder.aclose()


def similarity(first: list[float], second: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(first, second, strict=True))


async def test_default_model_returns_384_numbers_of_unit_length(local: CountingEmbedder) -> None:
    assert (local.model, local.dimension) == ("all-MiniLM-L6-v2-int8", 384)
    (vector,) = await local.embed(["Mara likes sailing"])
    assert len(vector) == 384
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
    assert all(isinstance(number, float) for number in vector)


async def test_texts_of_similar_meaning_have_similar_vectors(local: CountingEmbedder) -> None:
    question, answer, other = await local.embed(
        ["Which sport does she enjoy?", "Mara loves playing tennis", "The mortgage rate is 3.5 %"]
    )
    assert similarity(question, answer) > similarity(question, other) + 0.1


async def test_vectors_are_close_to_those_of_the_fp32_model(local: CountingEmbedder) -> None:
    vectors = await local.embed([entry["text"] for entry in REFERENCE])
    for entry, vector in zip(REFERENCE, vectors, strict=True):
        assert similarity(vector, entry["vector"]) > MIN_COSINE, entry["text"]


async def test_similarities_are_close_to_those_of_the_fp32_model(local: CountingEmbedder) -> None:
    vectors = await local.embed([entry["text"] for entry in REFERENCE])
    pairs = list(zip(REFERENCE, vectors, strict=True))
    for (first, first_vector), (second, second_vector) in combinations(pairs, 2):
        expected = similarity(first["vector"], second["vector"])
        assert similarity(first_vector, second_vector) == pytest.approx(expected, abs=0.08), (first, second)


async def test_vector_does_not_depend_on_other_texts_or_threads() -> None:
    texts = [f"fact number {number}" + " and more" * (number % 7) for number in range(70)]
    single, parallel = OnnxEmbedder(threads=1), OnnxEmbedder(threads=4)
    try:
        expected = [(await single.embed([text]))[0] for text in texts]
        assert await parallel.embed(texts) == expected
        pairs = await asyncio.gather(*(parallel.embed([text, f"beside {text}"]) for text in reversed(texts)))
        assert [vectors[0] for vectors in reversed(pairs)] == expected
    finally:
        await single.aclose()
        await parallel.aclose()


async def test_word_pieces_after_the_256th_are_ignored(local: CountingEmbedder) -> None:
    read = " ".join(["tea"] * 254)
    same, longer, shorter = await local.embed([read, read + " mortgage" * 300, "tea " * 100])
    assert longer == same
    assert shorter != same


async def test_concurrent_callers_share_batches(local: CountingEmbedder) -> None:
    local.batches.clear()
    results = await asyncio.gather(*(local.embed([f"caller {number}"]) for number in range(40)))
    assert [len(vectors) for vectors in results] == [1] * 40
    assert [len(batch) for batch in local.batches] == [8] * 5


async def test_large_batch_does_not_delay_a_single_text(local: CountingEmbedder) -> None:
    done: list[str] = []

    async def embed(name: str, texts: list[str]) -> None:
        await local.embed(texts)
        done.append(name)

    bulk = asyncio.create_task(embed("bulk", [f"long list, item {number}" for number in range(400)]))
    await asyncio.sleep(0.01)
    await embed("question", ["a question in between"])
    assert done == ["question"]
    await bulk


async def test_event_loop_stays_responsive_while_the_model_runs(local: CountingEmbedder) -> None:
    embedding = asyncio.create_task(local.embed([f"busy {number}" for number in range(200)]))
    beats = 0
    while not embedding.done():
        await asyncio.sleep(0)
        beats += 1
    assert beats > 20


async def test_repeated_question_does_not_run_the_model(local: CountingEmbedder) -> None:
    first = await local.embed(["where does Mara work?"])
    local.batches.clear()
    assert await local.embed(["where does Mara work?"]) == first
    assert local.batches == []


async def test_cancelled_caller_does_not_affect_others(local: CountingEmbedder) -> None:
    impatient = asyncio.create_task(local.embed(["gives up"]))
    patient = asyncio.create_task(local.embed(["waits"]))
    await asyncio.sleep(0)
    impatient.cancel()
    assert len(await patient) == 1
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_any_text_can_be_embedded(local: CountingEmbedder) -> None:
    vectors = await local.embed(["", "\ud800 half a character", "\x00", "語" * 8000, "word " * 8000])
    assert [len(vector) for vector in vectors] == [384] * 5
    assert await local.embed([]) == []


async def test_closed_embedder_raises_model_unavailable() -> None:
    embedder = OnnxEmbedder()
    await embedder.open()
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["too late"])


async def test_unreachable_model_error_names_the_settings(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(cache_dir=tmp_path, mirror=UNREACHABLE_URL)
    assert await embedder.find_missing_jars() == list(model_jars("all-MiniLM-L6-v2").jars)
    with pytest.raises(ConfigurationError, match=r"GRAPHMEM_JAR_MIRROR to .*, or set GRAPHMEM_EMBEDDER=openai"):
        await embedder.open()
    await embedder.aclose()


async def test_bge_prefixes_questions_and_finds_their_answers() -> None:
    embedder = create_embedder(Settings(_env_file=None, embedding_model="bge-small-en-v1.5", embedding_threads=1))
    try:
        text = "Which sport does she enjoy?"
        (question,) = await embedder.embed([text], query=True)
        unmarked, answer, other = await embedder.embed(
            [text, "Mara loves playing tennis", "The mortgage rate is 3.5 %"]
        )
        assert (embedder.model, embedder.dimension, len(question)) == ("bge-small-en-v1.5-int8", 384, 384)
        assert question != unmarked
        assert similarity(question, answer) > similarity(question, other) + 0.1
    finally:
        await embedder.aclose()


def test_lock_file_lists_every_model_and_no_address() -> None:
    assert all(len(model_jars(name).jars) == 1 for name in MODELS)
    assert "://" not in LOCK_FILE.read_text(encoding="utf-8")


def test_cached_model_needs_no_network_and_no_torch() -> None:
    script = """
import asyncio, socket, sys

def refuse(*_):
    raise AssertionError("used the network")

socket.socket.connect = socket.getaddrinfo = refuse
from graphmem.models.onnx_embedder import OnnxEmbedder

async def main():
    embedder = OnnxEmbedder()
    print(len((await embedder.embed(["tea"]))[0]), "torch" in sys.modules)
    await embedder.aclose()

asyncio.run(main())
"""
    done = run_python(["-c", script])
    assert (done.stdout.strip(), done.returncode) == ("384 False", 0), done.stderr
