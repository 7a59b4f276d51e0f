"""Language models behind any server that speaks the OpenAI chat completions API."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from openai import APIStatusError, OpenAIError
from openai.types.chat import ChatCompletion
from opentelemetry.trace import SpanKind
from pydantic import BaseModel

from graphmem.domain.job import Receipt
from graphmem.errors import ModelUnavailable
from graphmem.llm.completion import (
    Completion,
    ToolCallCompletion,
    is_completion,
    parse_tool_call,
    raise_if_incomplete,
    read_receipt,
    read_text,
)
from graphmem.llm.failures import not_a_completion_error, to_model_unavailable, unsupported_parameter
from graphmem.llm.model import ModelUse
from graphmem.llm.prompts import ChatMessage, Prompt
from graphmem.llm.server_capabilities import JsonMode, ServerCapabilities, build_structured_request
from graphmem.llm.structured_output import UnusableAnswer, read_answer
from graphmem.openai_client import DEFAULT_BASE_URL, NO_KEY, api_key_of, create_client
from graphmem.retries import DEFAULT_RETRY_AFTER_SECONDS, RetryPolicy, is_transient
from graphmem.settings import Settings
from graphmem.tracing import span

DEFAULT_MODEL = "gpt-4.1-mini"
"""Model where the settings name a key or an address and no model."""

_SETTING_BY_USE: dict[ModelUse, str] = {
    "gate": "GRAPHMEM_LLM_GATE_MODEL or GRAPHMEM_LLM_MODEL",
    "main": "GRAPHMEM_LLM_MODEL",
}
T = TypeVar("T", bound=BaseModel)

log = logging.getLogger(__name__)


class OpenAILanguageModel:
    """A `LanguageModel` of an OpenAI-compatible server. Belongs to the event loop of its first call.

    It learns from refusals which optional parameters the server takes. Nothing logged contains text of a message.
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
        retries: RetryPolicy | None = None,
    ) -> None:
        self.main_model = main_model
        self.gate_model = gate_model or main_model
        self._efforts: dict[ModelUse, str | None] = {"main": main_effort, "gate": gate_effort}
        self._retries = retries or RetryPolicy()
        self._capabilities: dict[str, ServerCapabilities] = {}
        self._client = create_client(base_url, api_key, self._retries.timeout)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """Return the model of the settings; None when they have neither a key nor an address."""
        if not settings.has_model:
            return None
        return cls(
            api_key=api_key_of(settings),
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            main_model=settings.llm_model or DEFAULT_MODEL,
            gate_model=settings.llm_gate_model,
            main_effort=settings.llm_effort,
            gate_effort=settings.llm_gate_effort,
            retries=RetryPolicy(timeout=settings.llm_timeout, attempts=settings.llm_attempts),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete_structured(
        self, prompt: Prompt | Sequence[ChatMessage], schema: type[T], *, use: ModelUse = "main"
    ) -> Completion[T]:
        """Return one answer in the shape of `schema`.

        Raises ModelUnavailable when the server fails after bounded retries or the answer does not fit the schema.
        """
        model, messages = self._model_of(use), _messages(prompt)
        completion, receipt = await self._complete(
            use, lambda json_mode: build_structured_request(messages, schema, json_mode)
        )
        text = read_text(completion, model)
        try:
            return Completion(read_answer(text, schema), receipt)
        except UnusableAnswer as unusable:
            if not unusable.found_json:
                # The server ignored `response_format` without an error; the next prompt carries the schema.
                self._capabilities[model].put_schema_into_prompt()
            raise ModelUnavailable(
                f"The answer of the language model {model} cannot be used: {unusable}. Repeating the call may help.",
                retry_after=DEFAULT_RETRY_AFTER_SECONDS,
            ) from None

    async def call_tools(
        self, prompt: Prompt | Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], *, use: ModelUse = "main"
    ) -> ToolCallCompletion:
        """Return the calls of tools that the model makes, if any; `tools` as in the chat completions API.

        Raises ModelUnavailable when the server fails after bounded retries or a call's arguments are no JSON object.
        """
        model = self._model_of(use)
        request = {"messages": _messages(prompt), "tools": [dict(tool) for tool in tools]}
        completion, receipt = await self._complete(use, lambda _: request)
        raise_if_incomplete(completion, model)
        message = completion.choices[0].message
        calls = [parse_tool_call(call, model) for call in message.tool_calls or ()]
        return ToolCallCompletion(calls, message.content or "", receipt)

    def _model_of(self, use: ModelUse) -> str:
        return self.gate_model if use == "gate" else self.main_model

    async def _complete(
        self, use: ModelUse, build_request: Callable[[JsonMode], dict[str, Any]]
    ) -> tuple[ChatCompletion, Receipt]:
        """Return the completion of a request, and its cost with the seconds of all tries."""
        model, started = self._model_of(use), time.monotonic()
        with span(
            f"chat {model}", kind=SpanKind.CLIENT, gen_ai__operation__name="chat", gen_ai__request__model=model
        ) as current:
            request, completion = await self._negotiate(use, build_request)
            receipt = read_receipt(request, completion, seconds=time.monotonic() - started)
            current.set_attribute("gen_ai.usage.input_tokens", receipt.prompt_tokens)
            current.set_attribute("gen_ai.usage.output_tokens", receipt.completion_tokens)
        log.debug("model %s answered: %s", model, receipt)
        return completion, receipt

    async def _negotiate(
        self, use: ModelUse, build_request: Callable[[JsonMode], dict[str, Any]]
    ) -> tuple[dict[str, Any], ChatCompletion]:
        """Send a request without the parameters the server refuses; return the request it took, and its answer."""
        model = self._model_of(use)
        capabilities = self._capabilities.setdefault(model, ServerCapabilities())
        while True:
            request = {**build_request(capabilities.json_mode), **self._sampling_parameters(use, capabilities)}
            try:
                return request, await self._send(use, request)
            except APIStatusError as error:
                if not capabilities.learn_from_refusal(error, request):
                    raise self._to_model_unavailable(error, use) from None
                log.info("model %s refuses %s: continuing without", model, unsupported_parameter(error, request))

    def _sampling_parameters(self, use: ModelUse, capabilities: ServerCapabilities) -> dict[str, Any]:
        """Return the parameters for an answer as deterministic as the model allows, with the configured effort."""
        parameters = {"temperature": 0, "reasoning_effort": self._efforts[use]}
        return {
            name: value
            for name, value in parameters.items()
            if value is not None and name not in capabilities.unsupported_parameters
        }

    async def _send(self, use: ModelUse, request: Mapping[str, Any]) -> ChatCompletion:
        """Send one request with retries and return the completion; raise client errors (4xx) unchanged."""
        model = self._model_of(use)

        async def send_once() -> ChatCompletion:
            answer = await self._client.chat.completions.create(model=model, stream=False, **request)
            if not is_completion(answer):
                raise not_a_completion_error(model)
            return answer

        try:
            return await self._retries.run(model, send_once)
        except APIStatusError as error:
            if is_transient(error) or error.status_code >= 500:
                raise self._to_model_unavailable(error, use) from None
            raise
        except (TimeoutError, OpenAIError, ValueError) as error:
            raise self._to_model_unavailable(error, use) from None

    def _to_model_unavailable(self, error: Exception, use: ModelUse) -> ModelUnavailable:
        return to_model_unavailable(error, self._model_of(use), _SETTING_BY_USE[use], self._retries)


def _messages(prompt: Prompt | Sequence[ChatMessage]) -> list[ChatMessage]:
    return prompt.messages() if isinstance(prompt, Prompt) else [dict(message) for message in prompt]
