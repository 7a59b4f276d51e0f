"""The language model of mem0's configuration as settings of graphmem."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmem.runtime.settings import Settings

_PROVIDERS = {"anthropic": "anthropic", "gemini": "google", "groq": "groq", "mistral": "mistral", "ollama": "ollama"}
"""Providers of graphmem by their names in mem0; `openai` is the one without a name."""

_ADDRESSES = {
    "xai": "https://api.x.ai/v1",
    "deepseek": "https://api.deepseek.com",
    "together": "https://api.together.xyz/v1",
}
"""Addresses of providers that are compatible with OpenAI."""

_KEY_VARIABLES = {"xai": "XAI_API_KEY", "deepseek": "DEEPSEEK_API_KEY", "together": "TOGETHER_API_KEY"}
"""Where mem0 looks for their keys."""

_log = logging.getLogger(__name__)


def settings_of(config: object, settings: Settings | None) -> Settings | None:
    """Return settings with the language model of a configuration; None for those of the environment alone.

    What else the configuration says is reported in the log: graphmem has a database and embeddings of its own.
    """
    given = _as_mapping(config)
    ignored = sorted(name for name, value in given.items() if name not in ("llm", "version") and value is not None)
    if ignored:
        _log.warning("graphmem's settings apply in the place of mem0's %s", ", ".join(ignored))
    changes = read_model(_as_mapping(given.get("llm")))
    if not changes:
        return settings
    from graphmem.runtime.settings import Settings

    return (settings or Settings()).model_copy(update=changes)


def read_model(llm: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a language model as mem0 describes it; none where its provider is unknown."""
    import os

    from pydantic import SecretStr

    provider, config = llm.get("provider"), _as_mapping(llm.get("config"))
    model = config.get("model")
    if provider is None or model is None:
        return {}
    if provider in _PROVIDERS:
        return {"llm_model": f"{_PROVIDERS[provider]}:{model}"}
    address = next((value for name, value in config.items() if name.endswith("base_url") and value), None)
    address = address or _ADDRESSES.get(provider)
    if provider != "openai" and address is None:
        _log.warning("the language model of %s is not used: set GRAPHMEM_LLM_MODEL and its key", provider)
        return {}
    key = config.get("api_key") or os.environ.get(_KEY_VARIABLES.get(provider, ""))
    return {
        "llm_model": model,
        **({"openai_base_url": address} if address else {}),
        **({"openai_api_key": SecretStr(key)} if key else {}),
    }


def _as_mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    return dump() if dump else {}
