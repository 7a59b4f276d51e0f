"""Failures of a language model's server: what is worth another try, and the sentence for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from openai import APIConnectionError, APIStatusError, APITimeoutError

from graphmem.errors import ModelUnavailable
from graphmem.openai_client import retry_after_seconds

OptionalParameter = Literal["response_format", "temperature", "reasoning_effort"]

MAX_RETRY_AFTER_SECONDS = 30.0
"""Seconds; a server that asks for a longer pause is not waited for."""

DEFAULT_RETRY_AFTER_SECONDS = 30
"""Seconds after which a call that failed for a passing reason may be worth repeating."""

_TRANSIENT_STATUSES = {408, 409, 425, 429}
_PERMANENT_CODES = {"insufficient_quota", "no_recording"}
_CODE_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
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


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment: time-outs, lost connections, 408, 409, 425, 429 and 5xx."""
    if isinstance(error, APIStatusError):
        if _error_code(error) in _PERMANENT_CODES or (retry_after_seconds(error) or 0) > MAX_RETRY_AFTER_SECONDS:
            return False
        return error.status_code in _TRANSIENT_STATUSES or error.status_code >= 500
    return isinstance(error, (TimeoutError, APIConnectionError))


def unsupported_parameter(error: APIStatusError, asked: Mapping[str, object]) -> OptionalParameter | None:
    """Which optional parameter of the request this server or model does not know, as far as its answer tells."""
    if error.status_code not in (400, 404, 415, 422) or _is_prompt_too_long(error):
        return None
    said = f"{error.param} {error.message}".casefold()
    return next((name for word, name in _PARAMETER_BY_WORD.items() if word in said and name in asked), None)


def to_model_unavailable(
    error: Exception, *, model: str, setting: str, attempts: int, timeout: float
) -> ModelUnavailable:
    """The error to raise for a failed call; never quotes the server's text, which may echo the user's.

    `retry_after` is None where repeating the call cannot help until somebody mends a setting.
    """
    if isinstance(error, APIStatusError):
        return _status_error(error, model, setting, attempts)
    if isinstance(error, (TimeoutError, APITimeoutError)):
        text = f"The language model {model} did not answer within {timeout:g} s, asked {attempts} times"
        return ModelUnavailable(f"{text}; GRAPHMEM_LLM_TIMEOUT allows more.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, APIConnectionError):
        text = f"The language model's server cannot be reached, tried {attempts} times"
        return ModelUnavailable(
            f"{text}: check OPENAI_BASE_URL and that it runs.", retry_after=DEFAULT_RETRY_AFTER_SECONDS
        )
    return not_a_completion_error(model)


def not_a_completion_error(model: str) -> ModelUnavailable:
    """The server answered 200 with something that is no chat completion."""
    text = f"The server's answer is no chat completion of {model}: check that OPENAI_BASE_URL is an OpenAI-compatible"
    return ModelUnavailable(f"{text} address, which often ends in /v1.", retry_after=DEFAULT_RETRY_AFTER_SECONDS)


def _status_error(error: APIStatusError, model: str, setting: str, attempts: int) -> ModelUnavailable:
    if permanent := _permanent_failure_text(error, model, setting):
        return ModelUnavailable(permanent, retry_after=None)
    pause = retry_after_seconds(error)
    why = "limits the rate of calls" if error.status_code == 429 else "failed"
    text = f"The language model's server {why} ({_status_text(error)}), tried up to {attempts} times: try later."
    return ModelUnavailable(text, retry_after=DEFAULT_RETRY_AFTER_SECONDS if pause is None else max(1, round(pause)))


def _permanent_failure_text(error: APIStatusError, model: str, setting: str) -> str | None:
    """What has to be mended before the same call can succeed; None for a failure that may pass."""
    status, code = error.status_code, _error_code(error)
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
    if status in _TRANSIENT_STATUSES or status >= 500:
        return None
    return {
        401: "The language model's server refused the key (401): check OPENAI_API_KEY.",
        403: f"The key may not use the model {model} (403): check OPENAI_API_KEY and {setting}.",
        404: f"The server knows no model {model} or no such address (404): check {setting} and OPENAI_BASE_URL.",
    }.get(status, f"The language model's server refused the request ({_status_text(error)}): check {setting}.")


def _is_prompt_too_long(error: APIStatusError) -> bool:
    if error.status_code == 413 or _error_code(error) == "context_length_exceeded":
        return True
    return "context length" in error.message.casefold()


def _status_text(error: APIStatusError) -> str:
    code = _error_code(error)
    return f"{error.status_code}, {code}" if code else str(error.status_code)


def _error_code(error: APIStatusError) -> str | None:
    """The server's error code, when it is an identifier."""
    code = error.code
    return code if isinstance(code, str) and _CODE_PATTERN.fullmatch(code) else None
