"""Failures of a language model's server: the parameter it refused, and the error to raise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from openai import APIConnectionError, APIStatusError, APITimeoutError

from graphmem.errors import ModelUnavailable
from graphmem.retries import DEFAULT_RETRY_AFTER_SECONDS, RetryPolicy, error_code, is_transient, retry_after_seconds

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
    "requested parameters": "response_format",
}


def unsupported_parameter(error: APIStatusError, request: Mapping[str, object]) -> OptionalParameter | None:
    """Return the optional parameter of the request that the server refuses by its error, or None."""
    if error.status_code not in (400, 404, 415, 422) or _is_prompt_too_long(error):
        return None
    text = f"{error.param} {error.message}".casefold()
    return next((name for word, name in _PARAMETER_BY_WORD.items() if word in text and name in request), None)


def to_model_unavailable(error: Exception, model: str, setting: str, retries: RetryPolicy) -> ModelUnavailable:
    """Return the error to raise for a failed call; it never quotes the server's text, which may echo the user's.

    `retry_after` is None where the same call fails until a setting, such as the variable `setting`, changes.
    """
    if isinstance(error, APIStatusError):
        return _status_error(error, model, setting, retries)
    if isinstance(error, (TimeoutError, APITimeoutError)):
        text = f"The language model {model} did not answer within {retries.timeout:g} s, tried {retries.attempts} times"
        return ModelUnavailable(f"{text}; GRAPHMEM_LLM_TIMEOUT allows more.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, APIConnectionError):
        text = f"The language model's server cannot be reached, tried {retries.attempts} times"
        return ModelUnavailable(
            f"{text}: check OPENAI_BASE_URL and that it runs.", retry_after=DEFAULT_RETRY_AFTER_SECONDS
        )
    return not_a_completion_error(model)


def not_a_completion_error(model: str) -> ModelUnavailable:
    """Return the error for a server that answers with status 200 and no chat completion."""
    text = f"The server's answer is no chat completion of {model}: check that OPENAI_BASE_URL is an OpenAI-compatible"
    return ModelUnavailable(f"{text} address, which often ends in /v1.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)


def _status_error(error: APIStatusError, model: str, setting: str, retries: RetryPolicy) -> ModelUnavailable:
    if permanent := _permanent_failure_text(error, model, setting):
        return ModelUnavailable(permanent, retry_after=None)
    pause = retry_after_seconds(error)
    why = "limits the rate of calls" if error.status_code == 429 else "failed"
    text = (
        f"The language model's server {why} ({_status_text(error)}), tried up to {retries.attempts} times: try later."
    )
    return ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS if pause is None else max(1, round(pause)))


def _permanent_failure_text(error: APIStatusError, model: str, setting: str) -> str | None:
    """Return the sentence for a failure that lasts until a setting changes; None for a transient one."""
    status, code = error.status_code, error_code(error)
    if code == "no_recording":
        key = _RECORDING_KEY_PATTERN.search(error.message)
        which = f" (key {key.group()})" if key else ""
        return f"No completion is recorded for this prompt{which}; set OPENAI_API_KEY to ask a language model instead."
    if code == "insufficient_quota":
        return f"The language model's account has no quota left ({status}): check the account behind OPENAI_API_KEY."
    if _is_prompt_too_long(error):
        return (
            f"The prompt is too long for the model {model} ({status}): send fewer messages at once or change {setting}."
        )
    if is_transient(error):
        return None
    return {
        401: "The language model's server refused the key (401): check OPENAI_API_KEY.",
        403: f"The key may not use the model {model} (403): check OPENAI_API_KEY and {setting}.",
        404: f"The server knows no model {model} or no such address (404): check {setting} and OPENAI_BASE_URL.",
    }.get(status, f"The language model's server refused the request ({_status_text(error)}): check {setting}.")


def _is_prompt_too_long(error: APIStatusError) -> bool:
    if error.status_code == 413 or error_code(error) == "context_length_exceeded":
        return True
    return "context length" in error.message.casefold()


def _status_text(error: APIStatusError) -> str:
    code = error_code(error)
    return f"{error.status_code}, {code}" if code else str(error.status_code)
