"""Embeddings on this machine, by the real model."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from graphmem.embedding import create_embedder
from graphmem.embedding.local import LocalEmbedder
from graphmem.errors import ConfigurationError, ModelUnavailable
from graphmem.settings import Settings


class CountingEmbedder(LocalEmbedder):
    """The real embedder, which also writes down how many texts each run took."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[int] = []

    def _encode(self, texts: list[str]) -> list[list[float]]:
        self.runs.append(len(texts))
        return super()._encode(texts)


@pytest.fixture(scope="module")
async def local() -> AsyncIterator[CountingEmbedder]:
    embedder = CountingEmbedder()
    await embedder.open()
    yield embedder
    await embedder.aclose()


def similarity(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


async def test_the_built_in_model_gives_384_numbers_of_unit_length(local: CountingEmbedder) -> None:
    assert (local.model, local.dimension) == ("all-MiniLM-L6-v2", 384)
    (vector,) = await local.embed(["Mara likes sailing"])
    assert len(vector) == 384
    assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
    assert all(isinstance(number, float) for number in vector)


async def test_texts_of_one_meaning_are_nearer_than_others(local: CountingEmbedder) -> None:
    question, answer, other = await local.embed(
        ["Which sport does she enjoy?", "Mara loves playing tennis", "The mortgage rate is 3.5 %"]
    )
    assert similarity(question, answer) > similarity(question, other) + 0.1


async def test_vectors_come_in_the_order_of_the_texts(local: CountingEmbedder) -> None:
    texts = [f"fact number {number}" + " and more" * (number % 7) for number in range(70)]
    together = await local.embed(texts)
    assert len(together) == 70
    for number in (0, 33, 69):
        # Padding inside a run moves the last bits.
        alone = await LocalEmbedder._enqueue(local, [texts[number]])
        assert similarity(together[number], alone[0]) == pytest.approx(1.0, abs=1e-4)


async def test_callers_at_the_same_time_share_runs_of_the_model(local: CountingEmbedder) -> None:
    local.runs.clear()
    answers = await asyncio.gather(*(local.embed([f"caller {number}"]) for number in range(40)))
    assert [len(answer) for answer in answers] == [1] * 40
    assert local.runs == [32, 8]


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


async def test_the_event_loop_stays_free_while_the_model_runs(local: CountingEmbedder) -> None:
    embedding = asyncio.create_task(local.embed([f"busy {number}" for number in range(200)]))
    beats = 0
    while not embedding.done():
        await asyncio.sleep(0)
        beats += 1
    assert beats > 20


async def test_a_repeated_question_does_not_run_the_model(local: CountingEmbedder) -> None:
    first = await local.embed(["where does Mara work?"])
    local.runs.clear()
    assert await local.embed(["where does Mara work?"]) == first
    assert local.runs == []


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


async def test_a_closed_embedder_says_so() -> None:
    embedder = LocalEmbedder()
    await embedder.open()
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["too late"])


async def test_a_model_that_cannot_be_loaded_names_the_setting() -> None:
    embedder = create_embedder(Settings(_env_file=None, embedding_model="./no/such/model"))
    with pytest.raises(ConfigurationError, match="GRAPHMEM_EMBEDDING_MODEL"):
        await embedder.open()
    await embedder.aclose()


async def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = LocalEmbedder()
    with pytest.raises(ConfigurationError, match=r"pip install 'graphmem\[local\]'"):
        await embedder.open()
    await embedder.aclose()


def test_the_built_in_model_needs_no_net() -> None:
    script = """
import asyncio, socket

def refuse(*_):
    raise AssertionError("asked the net")

socket.socket.connect = socket.getaddrinfo = refuse
from graphmem.embedding.local import LocalEmbedder

async def main():
    embedder = LocalEmbedder()
    print(len((await embedder.embed(["tea"]))[0]))
    await embedder.aclose()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=110)
    assert (done.stdout.strip(), done.returncode) == ("384", 0), done.stderr


def test_importing_the_embedder_does_not_import_the_model_library() -> None:
    script = "import sys, graphmem.embedding.local; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
