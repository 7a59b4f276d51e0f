"""One call of a language model: its requests within the retry policy, and their cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from opentelemetry.trace import SpanKind
from pydantic import BaseModel
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelTimeoutError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from graphmem.models.failures import (
    OptionalParameter,
    may_succeed_later,
    to_model_unavailable,
    unsupported_parameter,
)
from graphmem.models.output_modes import (
    OutputMode,
    ServerRefusals,
    add_schema_to_system,
    structured_parameters,
)
from graphmem.models.prompts import ChatMessage
from graphmem.models.receipt import Receipt
from graphmem.models.responses import (
    raise_if_incomplete,
    read_receipt,
    structured_text_of,
    to_model_messages,
)
from graphmem.models.structured_output import UnusableAnswer, read_answer
from graphmem.runtime.errors import GraphmemError, ModelAnswerUnusable
from graphmem.runtime.metrics import MODEL_CALLS, MODEL_TOKENS
from graphmem.runtime.model_names import OPENAI_COMPATIBLE, ModelProvider
from graphmem.runtime.retries import DEFAULT_RETRY_AFTER_SECONDS, MAX_REQUESTS, RetryPolicy
from graphmem.runtime.tracing import span

R = TypeVar("R")
T = TypeVar("T", bound=BaseModel)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A model that is ready to be asked, and what its server refused."""

    name: str
    provider: ModelProvider
    model: Model
    refusals: ServerRefusals


class ModelCall:
    """One call: a structured answer, or the turns of a model that calls tools. It sends at most `MAX_REQUESTS`."""

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
        """The cost of the answers until now, with the seconds since the start."""
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
            return read_answer(structured_text_of(response), schema)

        try:
            return await self._run(ask_once)
        except UnusableAnswer as unusable:
            raise ModelAnswerUnusable(
                f"The answer of the language model {self.name} cannot be used: {unusable}. Repeating it may help.",
                retry_after=DEFAULT_RETRY_AFTER_SECONDS,
            ) from None

    async def ask(
        self, history: list[ModelMessage], parameters: ModelRequestParameters, messages: Sequence[ChatMessage]
    ) -> ModelResponse:
        """Return the answer to a conversation; `messages` are its prompt, by which tokens are estimated."""
        return await self._run(lambda: self._send(history, parameters, messages))

    def _output_mode(self) -> OutputMode:
        mode = self._opened.refusals.output_mode()
        return "prompted" if self._without_json and mode in ("native", "tool") else mode

    async def _run(self, request: Callable[[], Awaitable[R]]) -> R:
        try:
            return await self._retries.run(
                self.name,
                request,
                may_succeed_later=may_succeed_later,
                adapt=self._adapt,
                max_requests=MAX_REQUESTS - self._requests,
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
        """Send one request; lost connections and time-outs become Python's own errors."""
        model, self._requests = self._opened.model, self._requests + 1
        prepared = model.prepare_messages(history, parameters)
        try:
            response = await model.request(prepared, self._settings(parameters), parameters)
        except ModelTimeoutError:
            raise TimeoutError from None
        except ModelConnectionError:
            raise ConnectionError from None
        self._count(read_receipt(messages, response))
        raise_if_incomplete(response, self.name)
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
            chosen.clear()  # its client takes neither for a single request
        if "temperature" not in refusals:
            chosen["temperature"] = 0
            self._sent.add("temperature")
        if self._effort is not None and "reasoning_effort" not in refusals:
            self._sent.add("reasoning_effort")
            if self._opened.provider is OPENAI_COMPATIBLE:
                chosen["openai_reasoning_effort"] = self._effort
            else:
                chosen["thinking"] = False if self._effort == "none" else self._effort
        return cast(ModelSettings, chosen)

    def _adapt(self, error: BaseException) -> bool:
        """Change the next request after an answer without JSON or a refused parameter; return whether it did."""
        if isinstance(error, UnusableAnswer):
            repeats = not error.found_json and not self._without_json and self._mode in ("native", "tool")
            if repeats:
                # The server ignored the schema without an error. Only this call changes: the next one may be obeyed.
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
