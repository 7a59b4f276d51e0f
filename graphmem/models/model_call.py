"""One language model call: its requests under the retry policy, unusable answers, failures, and cost."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from opentelemetry.trace import SpanKind
from pydantic import BaseModel
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelTimeoutError,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from graphmem.models.language_model import CHARACTERS_PER_TOKEN, ChatMessage, LenientAnswer, Receipt, ToolCall
from graphmem.models.openai_api import unlogged
from graphmem.models.structured_output import (
    OutputMode,
    ServerRefusals,
    UnusableAnswer,
    add_schema_to_system,
    read_answer,
    structured_parameters,
)
from graphmem.runtime.errors import GraphmemError, ModelAnswerUnusable, ModelUnavailable
from graphmem.runtime.metrics import MODEL_CALLS, MODEL_TOKENS
from graphmem.runtime.retries import (
    DEFAULT_RETRY_AFTER_SECONDS,
    RetryPolicy,
    error_code,
    is_transient,
    retry_after_seconds,
)
from graphmem.runtime.settings import OPENAI_COMPATIBLE, ModelProvider
from graphmem.runtime.tracing import span
from graphmem.text.added_texts import without_thoughts

MAX_REQUESTS = 6
"""Maximum requests of one call, including retries after failures and requests resent in another form."""

OptionalParameter = Literal["response_format", "temperature", "reasoning_effort"]
"""Request parameters that a server may not support."""

_RECORDING_KEY_PATTERN = re.compile(r"\b[0-9a-f]{24}\b")
_PARAMETER_BY_WORD: dict[str, OptionalParameter] = {
    "temperature": "temperature",
    "reasoning": "reasoning_effort",
    "response_format": "response_format",
    "response format": "response_format",
    "json_schema": "response_format",
    "json schema": "response_format",
    "json_object": "response_format",
    "structured output": "response_format",
    "grammar": "response_format",
    "tool_choice": "response_format",
    "requested parameters": "response_format",
}


def unsupported_parameter(error: ModelHTTPError, sent: Collection[OptionalParameter]) -> OptionalParameter | None:
    """Return which of the sent optional parameters the server's error rejects, or None."""
    if error.status_code not in (400, 404, 415, 422) or _is_prompt_too_long(error):
        return None
    text = _message_of(error).casefold()
    return next((name for word, name in _PARAMETER_BY_WORD.items() if word in text and name in sent), None)


def takes_temperature(model: Model, effort: str | None) -> bool:
    """Return whether a model accepts a temperature; pydantic-ai warns if it drops one because of reasoning."""
    profile: Mapping[str, Any] = model.profile
    if profile.get("anthropic_disallows_sampling_settings") or profile.get("bedrock_disallows_sampling_settings"):
        return False
    if not profile.get("openai_supports_reasoning"):
        return True
    efforts = profile.get("openai_reasoning_efforts")
    may_not_reason = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    reasons = profile.get("thinking_enabled_by_default") if effort is None else effort != "none"
    return bool(may_not_reason) and not reasons


def may_succeed_later(error: BaseException) -> bool:
    """Return whether the same request to a model may succeed later."""
    return not isinstance(error, ModelQuotaExceededError) and is_transient(error)


def to_model_unavailable(
    error: Exception, model: str, provider: ModelProvider, setting: str, retries: RetryPolicy
) -> ModelUnavailable:
    """Return the error to raise for a failed call; it never quotes the server's text, which may echo the user's.

    `retry_after` is None if the call keeps failing until a setting changes, such as the variable `setting`.
    """
    if isinstance(error, ModelHTTPError):
        return _status_error(error, model, provider, setting)
    if isinstance(error, TimeoutError):
        text = f"The language model {model} did not answer within {retries.timeout:g} s, tried {retries.attempts} times"
        return ModelUnavailable(f"{text}; GRAPHMEM_LLM_TIMEOUT allows more.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, ConnectionError):
        text = f"The language model's server cannot be reached, tried {retries.attempts} times"
        check = f"check {provider.address} and that it runs" if provider.address else "check the network"
        return ModelUnavailable(f"{text}: {check}.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, UserError):
        text = f"The language model {model} takes no such request: check GRAPHMEM_LLM_OUTPUT and {setting}."
        return ModelUnavailable(text, retry_after=None)
    return _not_a_completion_error(model, provider)


def _not_a_completion_error(model: str, provider: ModelProvider) -> ModelUnavailable:
    check = f"check that {provider.address} is an OpenAI-compatible address, which often ends in /v1"
    advice = check if provider.address else "try later"
    text = f"The server's answer is no chat completion of {model}: {advice}."
    return ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS)


def _status_error(error: ModelHTTPError, model: str, provider: ModelProvider, setting: str) -> ModelUnavailable:
    if permanent := _permanent_failure_text(error, model, provider, setting):
        return ModelUnavailable(permanent, retry_after=None)
    pause = retry_after_seconds(error)
    why = "limits the rate of calls" if error.status_code == 429 else "failed"
    text = f"The language model's server {why} ({_status_text(error)}): try later."
    return ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS if pause is None else max(1, round(pause)))


def _permanent_failure_text(error: ModelHTTPError, model: str, provider: ModelProvider, setting: str) -> str | None:
    """Return the message for a failure that lasts until a setting changes; None for a transient one."""
    status, key = error.status_code, " or ".join(provider.credentials) or "the credentials"
    if error_code(error) == "no_recording":
        found = _RECORDING_KEY_PATTERN.search(_message_of(error))
        which = f" (key {found.group()})" if found else ""
        return f"No completion is recorded for this prompt{which}; set OPENAI_API_KEY to ask a language model instead."
    if isinstance(error, ModelQuotaExceededError):
        return f"The language model's account has no quota left ({status}): check the account behind {key}."
    if _is_prompt_too_long(error):
        return (
            f"The prompt is too long for the model {model} ({status}): send fewer messages at once or change {setting}."
        )
    if may_succeed_later(error):
        return None
    address = f" and {provider.address}" if provider.address else ""
    return {
        401: f"The language model's server refused the key (401): check {key}.",
        403: f"The key may not use the model {model} (403): check {key} and {setting}.",
        404: f"The server knows no model {model} or no such address (404): check {setting}{address}.",
    }.get(status, f"The language model's server refused the request ({_status_text(error)}): check {setting}.")


def _is_prompt_too_long(error: ModelHTTPError) -> bool:
    if isinstance(error, ModelContextWindowExceededError) or error.status_code == 413:
        return True
    return error_code(error) == "context_length_exceeded" or "context length" in _message_of(error).casefold()


def _message_of(error: ModelHTTPError) -> str:
    body = error.body
    return f"{body.get('param')} {body.get('message')}" if isinstance(body, dict) else str(body)


def _status_text(error: ModelHTTPError) -> str:
    code = error_code(error)
    return f"{error.status_code}, {code}" if code else str(error.status_code)


def to_model_messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Return chat messages in pydantic-ai's format."""
    converted: list[ModelMessage] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            converted.append(ModelResponse(parts=[TextPart(content)]))
        else:
            part = SystemPromptPart(content) if message["role"] == "system" else UserPromptPart(content)
            if converted and isinstance(converted[-1], ModelRequest):
                converted[-1] = ModelRequest(parts=[*converted[-1].parts, part])
            else:
                converted.append(ModelRequest(parts=[part]))
    return converted


def raise_if_withheld(response: ModelResponse, model: str) -> None:
    """Raise if the answer was withheld by a filter or declined."""
    if (response.provider_details or {}).get("refusal"):
        raise ModelUnavailable(f"The language model {model} declined to answer this prompt.", retry_after=None)
    if response.finish_reason == "content_filter":
        text = f"The content filter of the language model {model} withheld the answer."
        raise ModelUnavailable(text, retry_after=None)


def raise_if_cut(response: ModelResponse, model: str) -> None:
    """Raise if the answer was cut at its length limit."""
    if response.finish_reason == "length":
        raise ModelAnswerUnusable(
            f"The answer of {model} was cut off at its length limit: send fewer messages at once.",
            retry_after=DEFAULT_RETRY_AFTER_SECONDS,
        )


def text_of(response: ModelResponse) -> str:
    """Return the text of an answer, without thoughts."""
    return without_thoughts("".join(part.content for part in response.parts if isinstance(part, TextPart)))


def structured_text_of(response: ModelResponse) -> str:
    """Return the text in which to look for JSON: the arguments of the answer's tool call, or its text."""
    calls = tool_call_parts(response)
    return calls[0].args_as_json_str() if calls else text_of(response)


def tool_call_parts(response: ModelResponse) -> list[ToolCallPart]:
    """Return the tool calls of an answer, in order."""
    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def parse_tool_call(part: ToolCallPart) -> ToolCall:
    """Return one tool call; its arguments are empty unless the model wrote a JSON object."""
    try:
        arguments: object = part.args or "{}"
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        # The call is sent back with its result, and providers reject arguments that are not JSON.
        part.args = arguments = {}
    return ToolCall(part.tool_name, arguments)


def read_receipt(messages: Sequence[ChatMessage], response: ModelResponse) -> Receipt:
    """Return the cost of one answer, without its seconds."""
    prompt_tokens, completion_tokens = response.usage.input_tokens, response.usage.output_tokens
    if not prompt_tokens and not completion_tokens:
        answer = [text_of(response), *(part.args_as_json_str() for part in tool_call_parts(response))]
        prompt_tokens = len(json.dumps(messages, ensure_ascii=False)) // CHARACTERS_PER_TOKEN
        completion_tokens = sum(map(len, answer)) // CHARACTERS_PER_TOKEN
    return Receipt(llm_calls=1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


R = TypeVar("R")
T = TypeVar("T", bound=BaseModel)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that is ready for requests, and its server's refusals."""

    name: str
    provider: ModelProvider
    model: Model
    refusals: ServerRefusals


class ModelCall:
    """One call: a structured answer, or the turns of a model that calls tools. Sends at most `MAX_REQUESTS`."""

    def __init__(self, opened: OpenModel, effort: str | None, setting: str, retries: RetryPolicy) -> None:
        self.name = opened.name
        self._opened = opened
        self._effort = effort
        self._setting = setting
        self._retries = retries
        self._started = time.monotonic()
        self._cost = Receipt()
        self._requests = 0
        self._mode: OutputMode | None = None
        self._without_json = False
        self._sent: set[OptionalParameter] = set()

    @property
    def receipt(self) -> Receipt:
        """The cost of the answers so far, with the seconds since the start."""
        return self._cost.model_copy(update={"seconds": time.monotonic() - self._started})

    @contextmanager
    def span(self) -> Iterator[None]:
        """Record the call as a span with its tokens."""
        with span(
            f"chat {self.name}", kind=SpanKind.CLIENT, gen_ai__operation__name="chat", gen_ai__request__model=self.name
        ) as current:
            try:
                yield
            finally:
                current.set_attribute("gen_ai.usage.input_tokens", self._cost.prompt_tokens)
                current.set_attribute("gen_ai.usage.output_tokens", self._cost.completion_tokens)
        log.debug("model %s answered: %s", self.name, self.receipt)

    async def ask_structured(self, messages: list[ChatMessage], schema: type[T]) -> T:
        """Return the answer in the shape of `schema`."""

        async def ask_once() -> T:
            self._mode = self._output_mode()
            in_prompt = self._mode in ("prompted", "text")
            shown = add_schema_to_system(messages, schema) if in_prompt else messages
            response = await self._send(to_model_messages(shown), structured_parameters(schema, self._mode), shown)
            if not issubclass(schema, LenientAnswer):
                raise_if_cut(response, self.name)
            try:
                return read_answer(structured_text_of(response), schema)
            except UnusableAnswer:
                raise_if_cut(response, self.name)
                raise

        try:
            return await self._run(ask_once)
        except UnusableAnswer as unusable:
            raise ModelAnswerUnusable(
                f"The answer of {self.name} cannot be used: {unusable}. Repeating it may help.",
                retry_after=DEFAULT_RETRY_AFTER_SECONDS,
            ) from None

    async def ask(
        self, history: list[ModelMessage], parameters: ModelRequestParameters, messages: Sequence[ChatMessage]
    ) -> ModelResponse:
        """Return the answer to a conversation; `messages` is its prompt, used to estimate tokens."""
        response = await self._run(lambda: self._send(history, parameters, messages))
        if not tool_call_parts(response):
            raise_if_cut(response, self.name)
        return response

    def _output_mode(self) -> OutputMode:
        mode = self._opened.refusals.output_mode()
        return "prompted" if self._without_json and mode in ("native", "tool") else mode

    async def _run(self, request: Callable[[], Awaitable[R]]) -> R:
        async def request_in_accepted_form() -> R:
            while True:
                try:
                    return await request()
                except Exception as error:
                    if not self._adapt(error) or self._requests >= MAX_REQUESTS:
                        raise

        try:
            return await self._retries.run(
                f"model {self.name}",
                request_in_accepted_form,
                lambda error: may_succeed_later(error) and self._requests < MAX_REQUESTS,
            )
        except (GraphmemError, UnusableAnswer):
            raise
        except Exception as error:
            provider = self._opened.provider
            log.info("model %s cannot be used: %s", self.name, type(error).__name__)
            raise to_model_unavailable(error, self.name, provider, self._setting, self._retries) from None

    async def _send(
        self, history: list[ModelMessage], parameters: ModelRequestParameters, messages: Sequence[ChatMessage]
    ) -> ModelResponse:
        """Send one request; raise Python's own errors for lost connections and timeouts."""
        model, self._requests = self._opened.model, self._requests + 1
        prepared = model.prepare_messages(history, parameters)
        try:
            # The client's own limit applies to each read; a server that sends byte by byte would never reach it.
            async with asyncio.timeout(self._retries.timeout):
                with unlogged():
                    response = await model.request(prepared, self._settings(parameters), parameters)
        except ModelTimeoutError:
            raise TimeoutError from None
        except ModelConnectionError:
            raise ConnectionError from None
        self._count(read_receipt(messages, response))
        raise_if_withheld(response, self.name)
        return response

    def _count(self, cost: Receipt) -> None:
        self._cost += cost
        MODEL_CALLS.labels(self.name).inc(cost.llm_calls)
        MODEL_TOKENS.labels(self.name, "prompt").inc(cost.prompt_tokens)
        MODEL_TOKENS.labels(self.name, "completion").inc(cost.completion_tokens)

    def _settings(self, parameters: ModelRequestParameters) -> ModelSettings:
        """Return the settings for an answer as deterministic as the model allows, with the configured effort."""
        refusals = self._opened.refusals
        self._sent = {"response_format"} if parameters.output_object or parameters.output_tools else set()
        chosen: dict[str, Any] = {"max_retries": 0, "timeout": self._retries.timeout}
        if self._opened.provider.name == "bedrock":
            chosen.clear()  # its client accepts neither for a single request
        effort = None if "reasoning_effort" in refusals else self._effort
        if "temperature" not in refusals and takes_temperature(self._opened.model, effort):
            chosen["temperature"] = 0
            self._sent.add("temperature")
        if effort is not None:
            self._sent.add("reasoning_effort")
            if self._opened.provider is OPENAI_COMPATIBLE:
                chosen["openai_reasoning_effort"] = effort
            else:
                chosen["thinking"] = False if effort == "none" else effort
        return cast(ModelSettings, chosen)

    def _adapt(self, error: BaseException) -> bool:
        """Change the next request after an answer without JSON or a refused parameter; return whether it did."""
        if isinstance(error, UnusableAnswer):
            repeats = not error.found_json and not self._without_json and self._mode in ("native", "tool")
            if repeats:
                # The server ignored the schema without an error. Only this call changes: the next one may succeed.
                self._without_json = True
                log.info("model %s answered without JSON: asking with the schema in the prompt", self.name)
            return repeats
        if not isinstance(error, ModelHTTPError):
            return False
        refused = unsupported_parameter(error, self._sent)
        if refused is None:
            return False
        self._opened.refusals.add(self._mode or refused if refused == "response_format" else refused)
        log.info("model %s refuses %s: continuing without", self.name, refused)
        return True
