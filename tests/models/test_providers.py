"""Choosing a provider by the name of a model, and what is missing for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from graphmem.cli.doctor_checks import check_language_model
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import PROVIDERS, Settings, is_installed, split_model_name
from tests.models.scripted_server import ScriptedServer, replies


class Verdict(BaseModel):
    keep: bool


KEYS = [name for provider in PROVIDERS.values() for name in provider.credentials]
WITH_EXTRA = [provider for provider in PROVIDERS.values() if provider.extra]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*KEYS, "OPENAI_BASE_URL", "OLLAMA_BASE_URL"]:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("gpt-4.1-mini", "openai", "gpt-4.1-mini"),
        ("anthropic:some-model", "anthropic", "some-model"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("llama3.2:3b", "openai", "llama3.2:3b"),
        ("ft:gpt-4o:acme", "openai", "ft:gpt-4o:acme"),
        ("openai:mistral:7b", "openai", "mistral:7b"),
    ],
)
def test_a_model_is_named_with_its_provider_or_as_its_server_knows_it(name: str, provider: str, model: str) -> None:
    found, rest = split_model_name(name)
    assert (found.name, rest) == (provider, model)


def settings_for(model: str, **fields: Any) -> Settings:
    return Settings(_env_file=None, llm_model=model, **fields)


@pytest.mark.parametrize("provider", WITH_EXTRA, ids=lambda provider: provider.name)
def test_a_provider_without_its_package_or_key_says_what_to_install_or_set(provider: Any) -> None:
    settings = settings_for(f"{provider.name}:some-model")
    assert settings.has_model
    missing = "set" if is_installed(provider) else rf"pip install 'graphmem\[{provider.extra}\]'"
    with pytest.raises(ConfigurationError, match=missing):
        ProviderModel.from_settings(settings)


@pytest.mark.parametrize("provider", WITH_EXTRA, ids=lambda provider: provider.name)
async def test_doctor_says_what_a_provider_lacks(provider: Any) -> None:
    [check] = await check_language_model(settings_for(f"{provider.name}:some-model"))
    if not is_installed(provider):
        assert (check.verdict, check.fix) == ("broken", f"pip install 'graphmem[{provider.extra}]'")
    elif provider.credentials:
        assert (check.verdict, check.fix) == ("broken", f"Set {' or '.join(provider.credentials)}.")


async def test_doctor_checks_gate_and_main_model() -> None:
    checks = await check_language_model(settings_for("ollama:qwen3", llm_gate_model="ollama:gemma3"))
    assert [(check.verdict, check.detail) for check in checks] == [
        ("ok", "qwen3 of ollama"),
        ("ok", "gemma3 of ollama"),
    ]


async def test_ollama_is_asked_at_its_own_address_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(replies(json.dumps({"keep": True}))) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.base_url)
        model = ProviderModel.from_settings(settings_for("ollama:qwen3:8b", llm_effort="low"))
        assert model is not None
        async with model:
            answer = await model.complete_structured([{"role": "user", "content": "Tea?"}], Verdict)
    assert answer.value == Verdict(keep=True)
    assert server.requests[0]["model"] == "qwen3:8b"
    assert server.requests[0]["response_format"]["type"] == "json_schema"
