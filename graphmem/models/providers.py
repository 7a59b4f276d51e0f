"""Opening the models of providers; whatever a provider needs is imported when a model of it is opened."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

from graphmem.models.openai_client import NO_KEY, create_client, filter_logs_of
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.process import environment_defaults
from graphmem.runtime.settings import ModelProvider, is_installed

DEFAULT_OLLAMA_URL = "http://localhost:11434/v1"
"""Address of Ollama where `OLLAMA_BASE_URL` names none."""


class CompatibleModel(OpenAIChatModel):
    """A model of an OpenAI-compatible server."""

    def _validate_completion(self, response: Any) -> Any:
        # Some servers send the arguments of a tool call themselves instead of their JSON.
        for choice in response.choices or ():
            for call in getattr(choice.message, "tool_calls", None) or ():
                call.function.arguments = _to_json_text(call.function.arguments)
        return super()._validate_completion(response)


def open_compatible_model(name: str, base_url: str, api_key: str, timeout: float) -> Model:
    """Return a model of an OpenAI-compatible server."""
    client = create_client(base_url, api_key, timeout)
    return CompatibleModel(name, provider=OpenAIProvider(openai_client=client))


def open_model_of(provider: ModelProvider, name: str, timeout: float) -> Model:
    """Return a model of a provider, with the credentials of the environment.

    Raises ConfigurationError when a package or a credential is missing.
    """
    if not is_installed(provider):
        raise missing_extra(provider)
    if provider.name == "ollama":
        address = os.environ.get("OLLAMA_BASE_URL") or DEFAULT_OLLAMA_URL
        client = create_client(address, os.environ.get("OLLAMA_API_KEY") or NO_KEY, timeout)
        return OllamaModel(name, provider=OllamaProvider(openai_client=client))
    try:
        # The client of Bedrock knows no limit for a single request; graphmem retries itself.
        with environment_defaults(AWS_MAX_ATTEMPTS="1"):
            model = infer_model(f"{provider.name}:{name}")
    except ImportError as error:
        raise missing_extra(provider) from error
    except UserError:
        needed = " or ".join(provider.credentials) or "the credentials of the provider"
        raise ConfigurationError(
            f"The model {provider.name}:{name} cannot be opened: set {needed}.", retry_after=None
        ) from None
    for library in ("openai", "anthropic", "groq", "mistralai", "google_genai", "boto3", "botocore"):
        filter_logs_of(library)
    return model


def takes_temperature(model: Model, effort: str | None) -> bool:
    """Return whether a model takes a temperature; pydantic-ai warns of one that it leaves out because of reasoning."""
    profile: Mapping[str, Any] = model.profile
    if profile.get("anthropic_disallows_sampling_settings") or profile.get("bedrock_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    may_not_reason = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    reasons = profile.get("thinking_enabled_by_default") if effort is None else effort != "none"
    return bool(may_not_reason) and not reasons


def missing_extra(provider: ModelProvider) -> ConfigurationError:
    """Return the error for a provider whose package is not installed."""
    return ConfigurationError(
        f"Models of {provider.name} need a package that is not installed: pip install 'graphmem[{provider.extra}]'.",
        retry_after=None,
    )


def _to_json_text(arguments: object) -> object:
    return arguments if isinstance(arguments, str | None) else json.dumps(arguments)
