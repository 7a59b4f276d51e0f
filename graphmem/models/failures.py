"""Failures of a language model's server: the parameter it refused, and the error to raise."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from pydantic_ai.exceptions import (
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UserError,
)

from graphmem.runtime.errors import ModelUnavailable
from graphmem.runtime.model_names import ModelProvider
from graphmem.runtime.retries import (
    DEFAULT_RETRY_AFTER_SECONDS,
    RetryPolicy,
    error_code,
    is_transient,
    retry_after_seconds,
)

OptionalParameter = Literal["response_format", "temperature", "reasoning_effort"]
"""Parameters of a request that a server may not know."""

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
    """Return the optional parameter of those sent that the server refuses by its error, or None."""
    if error.status_code not in (400, 404, 415, 422) or _is_prompt_too_long(error):
        return None
    text = _message_of(error).casefold()
    return next((name for word, name in _PARAMETER_BY_WORD.items() if word in text and name in sent), None)


def may_succeed_later(error: BaseException) -> bool:
    """Return whether the same request to a model may succeed later."""
    return not isinstance(error, ModelQuotaExceededError) and is_transient(error)


def to_model_unavailable(
    error: Exception, model: str, provider: ModelProvider, setting: str, retries: RetryPolicy
) -> ModelUnavailable:
    """Return the error to raise for a failed call; it never quotes the server's text, which may echo the user's.

    `retry_after` is None where the same call fails until a setting changes, such as the variable `setting`.
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
    """Return the sentence for a failure that lasts until a setting changes; None for a transient one."""
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
