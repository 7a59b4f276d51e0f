"""Language models of any provider that pydantic-ai supports, and of any OpenAI-compatible server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from graphmem.models.language_model import (
    DEFAULT_MODEL,
    MAX_TOOL_ANSWERS,
    TOOL_DONE,
    ChatMessage,
    CheckToolCall,
    Completion,
    ModelUse,
    Prompt,
    ToolCall,
    ToolCallCompletion,
    ToolExchange,
)
from graphmem.models.model_call import (
    ModelCall,
    OpenModel,
    parse_tool_call,
    text_of,
    to_model_messages,
    tool_call_parts,
)
from graphmem.models.openai_api import DEFAULT_BASE_URL, NO_KEY, api_key_of, create_client, filter_logs_of
from graphmem.models.structured_output import OutputMode, ServerRefusals, preferred_mode
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.process import environment_defaults
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import OPENAI_COMPATIBLE, ModelProvider, Settings, is_installed, split_model_name

DEFAULT_OLLAMA_URL = "http://localhost:11434/v1"
"""Default address of Ollama, without `OLLAMA_BASE_URL`."""


class CompatibleModel(OpenAIChatModel):
    """A model of an OpenAI-compatible server."""

    def _validate_completion(self, response: Any) -> Any:
        # Some servers send a tool call's arguments as an object instead of JSON text.
        for choice in response.choices or ():
            for call in getattr(choice.message, "tool_calls", None) or ():
                call.function.arguments = _to_json_text(call.function.arguments)
        return super()._validate_completion(response)


def open_compatible_model(name: str, base_url: str, api_key: str, timeout: float) -> Model:
    """Return a model of an OpenAI-compatible server."""
    client = create_client(base_url, api_key, timeout)
    return CompatibleModel(name, provider=OpenAIProvider(openai_client=client))


def open_model_of(provider: ModelProvider, name: str, timeout: float) -> Model:
    """Return a provider's model, with credentials from the environment.

    Raises ConfigurationError if a package or credential is missing.
    """
    if not is_installed(provider):
        raise missing_extra(provider)
    if provider.name == "ollama":
        address = os.environ.get("OLLAMA_BASE_URL") or DEFAULT_OLLAMA_URL
        client = create_client(address, os.environ.get("OLLAMA_API_KEY") or NO_KEY, timeout)
        return OllamaModel(name, provider=OllamaProvider(openai_client=client))
    try:
        # Bedrock's client has no per-request retry limit; graphmem does its own retries.
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


def missing_extra(provider: ModelProvider) -> ConfigurationError:
    """Return the error for a provider whose package is not installed."""
    return ConfigurationError(
        f"Models of {provider.name} need a package that is not installed: pip install 'graphmem[{provider.extra}]'.",
        retry_after=None,
    )


def _to_json_text(arguments: object) -> object:
    return arguments if isinstance(arguments, str | None) else json.dumps(arguments)


_SETTING_BY_USE: dict[ModelUse, str] = {
    "gate": "GRAPHMEM_LLM_GATE_MODEL or GRAPHMEM_LLM_MODEL",
    "main": "GRAPHMEM_LLM_MODEL",
}
T = TypeVar("T", bound=BaseModel)


class ProviderModel:
    """A `LanguageModel` of any provider. Belongs to the event loop of its first call.

    It learns from rejections which optional parameters a server accepts. Logs contain no message text.
    """

    def __init__(
        self,
        *,
        api_key: str = NO_KEY,
        base_url: str = DEFAULT_BASE_URL,
        main_model: str = DEFAULT_MODEL,
        gate_model: str | None = None,
        main_effort: str | None = None,
        gate_effort: str | None = None,
        output_mode: OutputMode | None = None,
        retries: RetryPolicy | None = None,
    ) -> None:
        """Open the models; raise ConfigurationError if a provider's package or credentials are missing.

        `api_key` and `base_url` are for models without a provider. `output_mode` is how to ask for JSON; by default, as
        each model's profile says.
        """
        self.main_model = main_model
        self.gate_model = gate_model or main_model
        self._efforts: dict[ModelUse, str | None] = {"main": main_effort, "gate": gate_effort}
        self._retries = retries or RetryPolicy()
        self._models = {
            name: self._open(name, base_url, api_key, output_mode) for name in {self.main_model, self.gate_model}
        }

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """Return the configured model; None if the settings have no key, address or provider."""
        if not settings.has_model:
            return None
        return cls(
            api_key=api_key_of(settings),
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            main_model=settings.llm_model or DEFAULT_MODEL,
            gate_model=settings.llm_gate_model,
            main_effort=settings.llm_effort,
            gate_effort=settings.llm_gate_effort,
            output_mode=settings.llm_output,
            retries=RetryPolicy(timeout=settings.llm_timeout, attempts=settings.llm_attempts),
        )

    def _open(self, name: str, base_url: str, api_key: str, mode: OutputMode | None) -> OpenModel:
        provider, short_name = split_model_name(name)
        timeout = self._retries.timeout
        model: Model
        if provider is OPENAI_COMPATIBLE:
            model = open_compatible_model(short_name, base_url, api_key, timeout)
        else:
            model = open_model_of(provider, short_name, timeout)
        return OpenModel(short_name, provider, model, ServerRefusals(mode or preferred_mode(model)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to OpenAI-compatible servers; the library shares the others."""
        for opened in self._models.values():
            if isinstance(opened.model, OpenAIChatModel):
                await opened.model.client.close()

    async def complete_structured(
        self, prompt: Prompt | Sequence[ChatMessage], schema: type[T], *, use: ModelUse = "main"
    ) -> Completion[T]:
        """Return one answer in the shape of `schema`.

        After an answer without JSON, the request is repeated once with the schema in the prompt. Raises
        ModelUnavailable if the server fails after bounded retries, and ModelAnswerUnusable if the answer does not fit
        the schema.
        """
        call = self._start_call(use)
        with call.span():
            value = await call.ask_structured(_messages(prompt), schema)
        return Completion(value, call.receipt)

    async def call_tools(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        use: ModelUse = "main",
        check: CheckToolCall = lambda call: None,
    ) -> ToolCallCompletion:
        """Return the model's tool calls, if any; `tools` has the chat completions format.

        `check` returns why a call cannot be used. The model receives each call's result, and may continue until it
        calls no tool, only repeats itself, or has answered six times. All calls are returned, including unusable ones;
        arguments other than a JSON object are empty. Raises ModelUnavailable if the server fails after bounded retries.
        """
        call, messages = self._start_call(use), _messages(prompt)
        history, parameters = to_model_messages(messages), _tool_parameters(tools)
        calls: list[ToolCall] = []
        exchange: list[ToolExchange] = []
        with call.span():
            while len(exchange) < MAX_TOOL_ANSWERS:
                response = await call.ask(history, parameters, messages)
                parts = tool_call_parts(response)
                made = [parse_tool_call(part) for part in parts]
                results = [check(tool_call) or TOOL_DONE for tool_call in made]
                exchange.append(ToolExchange(text_of(response), made, results))
                is_repetition = all(tool_call in calls for tool_call in made)
                calls += [tool_call for tool_call in made if tool_call not in calls]
                if is_repetition:
                    break
                returned = [
                    ToolReturnPart(part.tool_name, result, part.tool_call_id)
                    for part, result in zip(parts, results, strict=True)
                ]
                history = [*history, response, ModelRequest(parts=returned)]
        return ToolCallCompletion(calls, exchange[0].text, call.receipt, messages, exchange)

    def _start_call(self, use: ModelUse) -> ModelCall:
        opened = self._models[self.gate_model if use == "gate" else self.main_model]
        return ModelCall(opened, self._efforts[use], _SETTING_BY_USE[use], self._retries)


def _messages(prompt: Prompt | Sequence[ChatMessage]) -> list[ChatMessage]:
    return prompt.messages() if isinstance(prompt, Prompt) else [dict(message) for message in prompt]


def _tool_parameters(tools: Sequence[Mapping[str, Any]]) -> ModelRequestParameters:
    return ModelRequestParameters(function_tools=[_to_tool_definition(tool["function"]) for tool in tools])


def _to_tool_definition(function: Mapping[str, Any]) -> ToolDefinition:
    return ToolDefinition(
        name=function["name"],
        description=function.get("description"),
        parameters_json_schema=dict(function["parameters"]),
        strict=False,
    )
