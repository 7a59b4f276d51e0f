"""Language models behind any OpenAI-compatible server: structured answers and tool calls, with bounded retries."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar

from openai import APIStatusError, OpenAIError
from openai.types.chat import ChatCompletion
from opentelemetry.trace import SpanKind
from pydantic import BaseModel, SecretStr
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from graphmem.errors import ModelUnavailable
from graphmem.llm.completion import (
    Completion,
    LlmReceipt,
    ToolCallCompletion,
    is_completion,
    parse_tool_call,
    raise_if_incomplete,
    read_receipt,
    read_text,
)
from graphmem.llm.failures import (
    DEFAULT_RETRY_AFTER_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    is_transient,
    not_a_completion_error,
    to_model_unavailable,
    unsupported_parameter,
)
from graphmem.llm.prompts import ChatMessage, Prompt
from graphmem.llm.server_capabilities import JsonMode, ServerCapabilities, build_structured_request
from graphmem.llm.structured_output import UnusableAnswer, read_answer
from graphmem.openai_client import DEFAULT_BASE_URL, create_client, retry_after_seconds
from graphmem.settings import Settings
from graphmem.tracing import span

DEFAULT_MODEL = "gpt-4.1-mini"

ModelUse = Literal["gate", "main"]
_SETTING_BY_USE: dict[ModelUse, str] = {
    "gate": "GRAPHMEM_LLM_GATE_MODEL or GRAPHMEM_LLM_MODEL",
    "main": "GRAPHMEM_LLM_MODEL",
}
T = TypeVar("T", bound=BaseModel)

log = logging.getLogger(__name__)


class LanguageModel:
    """A language model for two uses: `gate` (is anything worth keeping, and what) and `main` (everything else).

    Belongs to the event loop of its first call. All failures are ModelUnavailable; its `retry_after` is None where only
    a change of settings helps. Nothing logged contains text of a message.
    """

    def __init__(
        self,
        *,
        api_key: str = "none",
        base_url: str = DEFAULT_BASE_URL,
        main_model: str = DEFAULT_MODEL,
        gate_model: str | None = None,
        main_effort: str | None = None,
        gate_effort: str | None = None,
        timeout: float = 15.0,
        attempts: int = 4,
        backoff: float = 0.5,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`timeout`: seconds of one try; `attempts`: tries in all; `backoff`: longest first pause, then doubled."""
        self.main_model = main_model
        self.gate_model = gate_model or main_model
        self._efforts: dict[ModelUse, str | None] = {"main": main_effort, "gate": gate_effort}
        self._timeout = timeout
        self._attempts = attempts
        self._sleep = sleep
        self._backoff = wait_random_exponential(multiplier=backoff, max=MAX_RETRY_AFTER_SECONDS)
        self._capabilities: dict[str, ServerCapabilities] = {}
        self._client = create_client(base_url, api_key, timeout)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """The model the settings name; None when neither a key nor an address is set."""
        if not settings.has_model:
            return None
        return cls(
            api_key=_secret_text(settings.openai_api_key) or "none",
            base_url=settings.openai_base_url or DEFAULT_BASE_URL,
            main_model=settings.llm_model or DEFAULT_MODEL,
            gate_model=settings.llm_gate_model,
            main_effort=settings.llm_effort,
            gate_effort=settings.llm_gate_effort,
            timeout=settings.llm_timeout,
            attempts=settings.llm_attempts,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def complete_structured(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        schema: type[T],
        *,
        use: ModelUse = "main",
        model: str | None = None,
    ) -> Completion[T]:
        """One answer in the shape of `schema`; `model` overrides the model of `use`.

        Raises ModelUnavailable when the server fails after bounded retries or the answer does not fit the schema.
        """
        name, messages = self._model_name(use, model), _messages(prompt)
        answer, receipt = await self._complete(
            name, use, lambda json_mode: build_structured_request(messages, schema, json_mode)
        )
        told = read_text(answer, name)
        try:
            return Completion(read_answer(told, schema), receipt)
        except UnusableAnswer as unusable:
            if not unusable.found_json:
                # A server that ignores `response_format` without a word; the next prompt carries the schema.
                self._capabilities[name].put_schema_into_prompt()
            text = f"The answer of the language model {name} cannot be used: {unusable}. Repeating the call may help."
            raise ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS) from None

    async def call_tools(
        self,
        prompt: Prompt | Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        use: ModelUse = "main",
        model: str | None = None,
    ) -> ToolCallCompletion:
        """Let the model call the tools it wants, or none; `tools` in the shape of the chat completions API.

        Raises ModelUnavailable when the server fails after bounded retries or a call's arguments are no JSON object.
        """
        name = self._model_name(use, model)
        request = {"messages": _messages(prompt), "tools": [dict(tool) for tool in tools]}
        answer, receipt = await self._complete(name, use, lambda _: request)
        message = answer.choices[0].message
        raise_if_incomplete(answer, name)
        return ToolCallCompletion(
            [parse_tool_call(call, name) for call in message.tool_calls or ()], message.content or "", receipt
        )

    def _model_name(self, use: ModelUse, model: str | None) -> str:
        return model or (self.gate_model if use == "gate" else self.main_model)

    def _sampling_parameters(self, use: ModelUse, capabilities: ServerCapabilities) -> dict[str, Any]:
        """As deterministic as the model lets us, and thinking as hard as the settings say."""
        wanted = {"temperature": 0, "reasoning_effort": self._efforts[use]}
        return {
            name: value
            for name, value in wanted.items()
            if value is not None and name not in capabilities.unsupported_parameters
        }

    async def _complete(
        self, model: str, use: ModelUse, request: Callable[[JsonMode], dict[str, Any]]
    ) -> tuple[ChatCompletion, LlmReceipt]:
        """Send the request in the model's capabilities, giving up refused parameters one by one."""
        started = time.monotonic()
        with span(
            f"chat {model}", kind=SpanKind.CLIENT, gen_ai__operation__name="chat", gen_ai__request__model=model
        ) as current:
            asked, completion = await self._send_negotiated(model, use, request)
            receipt = replace(read_receipt(asked, completion), seconds=time.monotonic() - started)
            current.set_attribute("gen_ai.usage.input_tokens", receipt.prompt_tokens)
            current.set_attribute("gen_ai.usage.output_tokens", receipt.completion_tokens)
        log.debug("model %s answered: %s", model, receipt)
        return completion, receipt

    async def _send_negotiated(
        self, model: str, use: ModelUse, request: Callable[[JsonMode], dict[str, Any]]
    ) -> tuple[dict[str, Any], ChatCompletion]:
        """Return what was asked in the end, and the answer."""
        capabilities = self._capabilities.setdefault(model, ServerCapabilities())
        while True:
            asked = {**request(capabilities.json_mode), **self._sampling_parameters(use, capabilities)}
            try:
                return asked, await self._send_with_retries(model, use, asked)
            except APIStatusError as error:
                if not capabilities.learn_from_refusal(error, asked):
                    raise self._to_model_unavailable(error, model, use) from None
                log.info("model %s refuses %s: going on without", model, unsupported_parameter(error, asked))

    async def _send_with_retries(self, model: str, use: ModelUse, asked: Mapping[str, Any]) -> ChatCompletion:
        """One request with retries; refusals of the request itself (4xx) are left to the caller."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            wait=self._retry_wait,
            sleep=self._sleep,
            retry=retry_if_exception(is_transient),
            before_sleep=lambda state: _log_retry(state, model, self._attempts),
            reraise=True,
        )
        try:
            completion: ChatCompletion = await retrying(self._send_once, model, asked)
        except APIStatusError as error:
            if is_transient(error) or error.status_code >= 500:
                raise self._to_model_unavailable(error, model, use) from None
            raise
        except (TimeoutError, OpenAIError, ValueError) as error:
            raise self._to_model_unavailable(error, model, use) from None
        return completion

    async def _send_once(self, model: str, asked: Mapping[str, Any]) -> ChatCompletion:
        # The client's own limit is per read; a server that trickles bytes would outlast it.
        async with asyncio.timeout(self._timeout):
            answer = await self._client.chat.completions.create(model=model, stream=False, **asked)
        if not is_completion(answer):
            raise not_a_completion_error(model)
        return answer

    def _retry_wait(self, state: RetryCallState) -> float:
        asked = retry_after_seconds(state.outcome.exception()) if state.outcome else None
        return max(self._backoff(state), asked or 0.0)

    def _to_model_unavailable(self, error: Exception, model: str, use: ModelUse) -> ModelUnavailable:
        return to_model_unavailable(
            error, model=model, setting=_SETTING_BY_USE[use], attempts=self._attempts, timeout=self._timeout
        )


def _messages(prompt: Prompt | Sequence[ChatMessage]) -> list[ChatMessage]:
    return prompt.messages() if isinstance(prompt, Prompt) else [dict(message) for message in prompt]


def _log_retry(state: RetryCallState, model: str, attempts: int) -> None:
    error = state.outcome.exception() if state.outcome else None
    why = str(error.status_code) if isinstance(error, APIStatusError) else type(error).__name__
    tried, pause = state.attempt_number, state.upcoming_sleep
    log.info("model %s: try %d of %d failed (%s), next in %.1f s", model, tried, attempts, why, pause)


def _secret_text(value: SecretStr | None) -> str:
    return value.get_secret_value().strip() if value else ""
