"""Embeddings by a server, over real HTTP."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest
from fastapi.responses import PlainTextResponse

from graphmem.models.embedder import create_embedder
from graphmem.models.openai_api import OpenAIEmbedder
from graphmem.runtime.errors import ConfigurationError, ModelUnavailable
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import Settings

from .embeddings_server import EmbeddingsServer, error_response, serve_embeddings


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with serve_embeddings(EmbeddingsServer()) as server:
        yield server


@pytest.fixture
async def embedder(server: EmbeddingsServer) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder("tiny", api_key="k", base_url=server.url, retries=RetryPolicy(attempts=3, backoff=0.001))
    yield embedder
    await embedder.aclose()


async def test_the_dimension_is_probed_once(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    await embedder.open()
    await embedder.open()
    assert (embedder.model, embedder.dimension, len(server.requests)) == ("tiny", 8, 1)


async def test_a_known_model_is_not_probed(server: EmbeddingsServer) -> None:
    embedder = OpenAIEmbedder(base_url=server.url)
    await embedder.open()
    assert (embedder.model, embedder.dimension, server.requests) == ("text-embedding-3-small", 1536, [])
    await embedder.aclose()


async def test_vectors_come_in_the_order_of_the_texts_and_of_unit_length(
    server: EmbeddingsServer, embedder: OpenAIEmbedder
) -> None:
    texts = ["tea", "coffee", "tea", ""]
    vectors = await embedder.embed(texts)
    for text, vector in zip(texts, vectors, strict=True):
        expected = server.vector(text or " ")
        length = math.hypot(*expected)
        assert vector == pytest.approx([number / length for number in expected], abs=1e-6)
    assert server.requests[-1]["input"] == ["tea", "coffee", " "]
    assert server.keys[-1] == "Bearer k"


async def test_many_texts_go_in_batches(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    await embedder.open()
    assert len(await embedder.embed([f"fact {number}" for number in range(600)])) == 600
    assert [len(requests["input"]) for requests in server.requests[1:]] == [256, 256, 88]


async def test_a_long_text_is_embedded_by_its_beginning(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    await embedder.embed(["word " * 20_000])
    assert 7_900 < len(server.requests[-1]["input"][0].split()) <= 8_000


async def test_a_repeated_text_is_not_asked_again(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    first = await embedder.embed(["where does she work?"])
    requests = len(server.requests)
    assert await embedder.embed(["where does she work?"]) == first
    assert len(server.requests) == requests


async def test_no_texts_ask_nothing(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    await embedder.open()
    assert await embedder.embed([]) == []
    assert len(server.requests) == 1


async def test_transient_errors_are_retried(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    server.queued_errors = [error_response(429, **{"retry-after": "0"}), error_response(500)]
    assert len(await embedder.embed(["tea"])) == 1
    assert len(server.requests) == 4


async def test_lasting_errors_raise_model_unavailable(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    server.queued_errors = [error_response(503) for _ in range(3)]
    with pytest.raises(ModelUnavailable, match=r"failed \(503\), tried 3 times"):
        await embedder.open()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (401, "invalid_api_key", "OPENAI_API_KEY"),
        (404, "model_not_found", "GRAPHMEM_EMBEDDING_MODEL"),
        (429, "insufficient_quota", "quota"),
    ],
)
async def test_client_error_is_not_retried_and_says_what_to_fix(
    server: EmbeddingsServer, embedder: OpenAIEmbedder, status: int, code: str, told: str
) -> None:
    server.queued_errors = [error_response(status, code)]
    with pytest.raises(ConfigurationError, match=told):
        await embedder.open()
    assert len(server.requests) == 1


async def test_non_openai_server_is_detected(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    server.queued_errors = [PlainTextResponse("<html>hello</html>")]
    with pytest.raises(ConfigurationError, match="/v1"):
        await embedder.open()


async def test_unreachable_server_raises_model_unavailable() -> None:
    embedder = OpenAIEmbedder("tiny", base_url="http://127.0.0.1:9/v1", retries=RetryPolicy(attempts=2, backoff=0.001))
    with pytest.raises(ModelUnavailable, match="OPENAI_BASE_URL"):
        await embedder.embed(["tea"])
    await embedder.aclose()


async def test_vectors_of_another_dimension_are_refused(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    await embedder.open()
    server.dimension = 9
    with pytest.raises(ConfigurationError, match="9 dimensions where 8"):
        await embedder.embed(["tea"])


async def test_settings_choose_the_server(server: EmbeddingsServer) -> None:
    settings = Settings(_env_file=None, embedder="openai", embedding_model="tiny", openai_base_url=server.url)
    embedder = create_embedder(settings)
    await embedder.open()
    assert (embedder.model, embedder.dimension) == ("tiny", 8)
    await embedder.aclose()


def test_settings_without_a_server_say_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY or OPENAI_BASE_URL"):
        create_embedder(Settings(_env_file=None, embedder="openai"))


async def test_a_long_retry_after_is_passed_to_the_caller(server: EmbeddingsServer, embedder: OpenAIEmbedder) -> None:
    server.queued_errors = [error_response(429, **{"retry-after": "120"})]
    with pytest.raises(ModelUnavailable) as caught:
        await embedder.open()
    assert caught.value.retry_after == 120
    assert len(server.requests) == 1
