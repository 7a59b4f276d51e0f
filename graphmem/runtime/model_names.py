"""The providers of language models, and the names of models as the settings write them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider of language models.

    `package` must be installed, with the extra of graphmem that is named `extra`, if any. `credentials` are the
    environment variables of which one must be set, `address` the one that names the server.
    """

    name: str
    package: str = "openai"
    extra: str | None = None
    credentials: tuple[str, ...] = ()
    address: str | None = None


OPENAI_COMPATIBLE = ModelProvider("openai", address="OPENAI_BASE_URL", credentials=("OPENAI_API_KEY",))
"""The provider of models whose name has no provider: any server that speaks the OpenAI chat completions API."""

PROVIDERS = {
    provider.name: provider
    for provider in (
        OPENAI_COMPATIBLE,
        ModelProvider("ollama", address="OLLAMA_BASE_URL"),
        ModelProvider("anthropic", "anthropic", "anthropic", ("ANTHROPIC_API_KEY",)),
        ModelProvider("google", "google.genai", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
        ModelProvider("bedrock", "boto3", "bedrock"),
        ModelProvider("groq", "groq", "groq", ("GROQ_API_KEY",)),
        ModelProvider("mistral", "mistralai", "mistral", ("MISTRAL_API_KEY",)),
    )
}
"""The providers by the name that stands before the colon of `provider:model`."""


def split_model_name(name: str) -> tuple[ModelProvider, str]:
    """Return the provider of a model and its name there; a prefix that is no provider is part of the name."""
    prefix, colon, rest = name.partition(":")
    provider = PROVIDERS.get(prefix)
    return (provider, rest) if colon and provider and rest else (OPENAI_COMPATIBLE, name)


def is_of_other_provider(name: str | None) -> bool:
    """Return whether a model needs neither the key nor the address of an OpenAI-compatible server."""
    return name is not None and split_model_name(name)[0] is not OPENAI_COMPATIBLE


def lacks_credentials(provider: ModelProvider, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether none of the variables with a key of the provider is set."""
    return bool(provider.credentials) and not any(environment.get(name) for name in provider.credentials)


def is_installed(provider: ModelProvider) -> bool:
    """Return whether the package of a provider is installed."""
    try:
        return find_spec(provider.package) is not None
    except ModuleNotFoundError:  # the parent of a package with dots
        return False
