"""Pydantic's validation errors as errors of graphmem, which never quote the input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_suggestions import describe_unknown_field
from graphmem.runtime.times import LOCAL_DATES

M = TypeVar("M", bound=BaseModel)

FieldError = dict[str, Any]
"""`{loc, msg}`: the path of a field in the input and what is wrong with it."""

MAX_DESCRIBED_ERRORS = 5
"""Most errors that one sentence names."""


def field_errors(error: ValidationError, path: Sequence[str | int] = (), model: object = None) -> list[FieldError]:
    """Return the errors of a validation; `path` is the location of the input in the document.

    With the `model` that was validated, the error of an unknown field says which field was probably meant.
    """
    return to_field_errors(error.errors(include_url=False, include_input=False), path, model)


def to_field_errors(
    details: Iterable[Mapping[str, Any]], path: Sequence[str | int] = (), model: object = None
) -> list[FieldError]:
    """Return error details of pydantic as field errors."""
    return [{"loc": [*path, *detail["loc"]], "msg": _message(detail, model)} for detail in details]


def describe_field_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the first errors as one sentence without a full stop: `limit: …; types.0: …`."""
    return "; ".join(
        f"{'.'.join(map(str, error['loc']))}: {error['msg']}" if error["loc"] else str(error["msg"])
        for error in errors[:MAX_DESCRIBED_ERRORS]
    )


def invalid_input_from(
    error: ValidationError,
    detail: str | None = None,
    *,
    path: Sequence[str | int] = (),
    max_errors: int | None = None,
    model: object = None,
) -> InvalidInput:
    """Return a validation error as InvalidInput with at most `max_errors` errors; the default `detail` names them."""
    errors = field_errors(error, path, model)[:max_errors]
    return InvalidInput(detail or f"The input cannot be used: {describe_field_errors(errors)}.", errors=errors)


def validate_arguments(model: type[M], data: object) -> M:
    """Return the arguments of a call on this machine as a model, as `validate_input` does.

    A date means its first moment in this machine's time zone.
    """
    return validate_input(model, data, {LOCAL_DATES: True})


def validate_input(model: type[M], data: object, context: Mapping[str, object] | None = None) -> M:
    """Return data as a model; raise InvalidInput when it does not fit."""
    try:
        return model.model_validate(dict(data) if isinstance(data, Mapping) else data, context=context)
    except ValidationError as error:
        raise invalid_input_from(error, model=model) from None


def _message(detail: Mapping[str, Any], model: object) -> str:
    """Return what is wrong with a field; for an unknown tag pydantic's own message quotes the input."""
    if detail["type"] == "extra_forbidden":
        return describe_unknown_field(model, detail["loc"])
    if detail["type"] == "union_tag_invalid":
        return f"must be one of {detail['ctx']['expected_tags']}"
    return str(detail["msg"]).removeprefix("Value error, ")
