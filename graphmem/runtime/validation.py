"""Converts validation errors to graphmem's errors, which name the fields and never quote the input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import islice
from types import NoneType
from typing import Any, TypeVar, get_args
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_snake

from graphmem.runtime.errors import GraphmemError, InvalidInput, RequestTimeout, Unauthenticated
from graphmem.runtime.times import LOCAL_DATES
from graphmem.text.normalising import replace_surrogates


class RequestBody(BaseModel):
    """A request body or part of one: unknown fields are rejected, and a meaningless null means the default."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and None in value.values():
            absent = _fields_without_null(cls)
            return {name: given for name, given in value.items() if given is not None or name not in absent}
        return value


@cache
def _fields_without_null(model: type[BaseModel]) -> frozenset[str]:
    """Return the names, as callers write them, of a model's optional fields that cannot be null."""
    fields = {
        name: field
        for name, field in model.model_fields.items()
        if not field.is_required() and NoneType not in get_args(field.annotation)
    }
    return frozenset([*fields, *(field.alias for field in fields.values() if field.alias)])


MIN_SIMILARITY = 0.75
"""Minimum similarity, from 0 to 1, at which one name counts as a misspelling of another."""

MAX_LISTED_FIELDS = 12
"""Maximum fields listed in a message if none is similar."""


def describe_unknown_field(model: object, location: Sequence[str | int]) -> str:
    """Return a message about a field that neither a model nor a model inside it has.

    `model` is a model or an annotation with models; `location` is the field's path from there.
    """
    *parents, unknown = location
    models = _models_in(model)
    for part in parents:
        models = _models_at(models, part)
    fields = list(dict.fromkeys(name for candidate in models for name in _field_names(candidate)))
    snake_case = to_snake(str(unknown)[:_MAX_NAME_CHARS])
    longer = [name for name in fields if name.endswith(f"_{snake_case}")]
    if meant := get_close_matches(snake_case, fields, 1, MIN_SIMILARITY) or longer[:1]:
        return f"is not a field: did you mean {meant[0]}?"
    if fields and len(fields) <= MAX_LISTED_FIELDS:
        return f"is not a field: the fields are {', '.join(fields)}"
    return "is not a field"


def _models_at(models: Iterable[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    """Return the models of the field `part`; an index or union tag leaves the models unchanged."""
    found = [
        inner
        for model in models
        for name, field in model.model_fields.items()
        if part in (name, field.alias)
        for inner in _models_in(field.annotation)
    ]
    return found or list(models)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in an annotation, at any depth of lists, unions and `Annotated`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


M = TypeVar("M", bound=BaseModel)

FieldError = dict[str, Any]
"""`{loc, msg}`: the path of a field in the input and what is wrong with it."""

MAX_DESCRIBED_ERRORS = 5
"""Maximum errors named in one sentence."""

MAX_REPORTED_ERRORS = 20
"""Maximum errors reported for one input."""


def field_errors(error: ValidationError, path: Sequence[str | int] = (), model: object = None) -> list[FieldError]:
    """Return the first errors of a validation; `path` is the location of the input in the document.

    With the validated `model`, an unknown field's error suggests the field that was probably meant.
    """
    return to_field_errors(error.errors(include_url=False, include_input=False), path, model)


def to_field_errors(
    details: Iterable[Mapping[str, Any]], path: Sequence[str | int] = (), model: object = None
) -> list[FieldError]:
    """Return pydantic's first error details as field errors."""
    first = islice(details, MAX_REPORTED_ERRORS)
    return [{"loc": [*path, *_fields_in(detail["loc"])], "msg": _message(detail, model)} for detail in first]


def count_errors(count: int) -> str:
    """Return a sentence with the number of errors if not all are reported, else an empty text."""
    return f" The first {MAX_REPORTED_ERRORS} of {count} errors are listed." if count > MAX_REPORTED_ERRORS else ""


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
    described = f"The input cannot be used: {describe_field_errors(errors)}.{count_errors(error.error_count())}"
    return InvalidInput(detail or described, errors=errors)


def validate_arguments(model: type[M], data: object) -> M:
    """Return the arguments of a local call as a model, as `validate_input` does.

    A date means the start of that day in this machine's time zone.
    """
    return validate_input(model, data, {LOCAL_DATES: True})


def validate_input(model: type[M], data: object, context: Mapping[str, object] | None = None) -> M:
    """Return data as a model; raise InvalidInput if it does not fit."""
    try:
        return model.model_validate(dict(data) if isinstance(data, Mapping) else data, context=context)
    except ValidationError as error:
        raise invalid_input_from(error, model=model) from None


_CHOICE = re.compile(r"function-\w+\[.*|(?:dict|list|set|tuple)\[.*|constrained-\w+", re.DOTALL)
"""pydantic's name for a union member within a location, in Python terms."""


def _fields_in(loc: Sequence[str | int]) -> list[str | int]:
    """Return a location without the union members in its path."""
    parts = [part for part in loc if isinstance(part, int) or not _CHOICE.fullmatch(part)]
    return parts[:-1] if len(parts) > 1 and parts[-1] in ("str", "int", "float", "bool") else parts


def _message(detail: Mapping[str, Any], model: object) -> str:
    """Return what is wrong with a field; for an unknown tag pydantic's own message quotes the input."""
    if detail["type"] == "extra_forbidden":
        return describe_unknown_field(model, detail["loc"])
    if detail["type"] == "union_tag_invalid":
        return f"must be one of {detail['ctx']['expected_tags']}"
    if detail["type"] in ("model_type", "model_attributes_type"):
        return "must be an object"  # pydantic names its class
    if detail["type"] == "too_long" and detail["ctx"]["field_type"] == "Value":
        return f"must have at most {detail['ctx']['max_length']} characters"  # pydantic counts items
    return str(detail["msg"]).removeprefix("Value error, ")


PROBLEM_MEDIA_TYPE = "application/problem+json"

DEFAULT_RETRY_AFTER_SECONDS = 5
"""Default `Retry-After`, in seconds, of transient errors without a time of their own."""

_MAX_NAME_CHARS = 64


class FieldProblem(BaseModel):
    """The location of a problem in the request and its description; for a conflict also the conflicting element."""

    loc: list[str | int]
    msg: str
    kind: str | None = None
    id: str | None = None
    memory_id: str | None = None
    fields: list[str] | None = None


class Problem(BaseModel):
    """A problem document."""

    type: str = Field(description="URN of the problem: the list is in the description of the API.")
    title: str = Field(description="The problem in a few words; the same for every problem of the type.")
    status: int = Field(ge=400, le=599, description="The HTTP status.")
    detail: str
    instance: str
    errors: list[FieldProblem] | None = None


def problem_type(title: str) -> str:
    """Return the URN of problems with this title."""
    return "urn:graphmem:problem:" + re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def problem_document(
    path: str, status: int, title: str, detail: str, errors: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the problem document of a request to `path`; each of `errors` has at least `loc` and `msg`."""
    document: dict[str, Any] = {
        "type": problem_type(title),
        "title": title,
        "status": status,
        "detail": detail,
        "instance": quote(path, safe="/%:@!$&'()*+,;=-._~"),
    }
    if errors:
        document["errors"] = [{**error, "loc": _printable_location(error["loc"])} for error in errors]
    return document


def problem_headers(error: GraphmemError) -> dict[str, str]:
    """Return the response headers that belong to an error."""
    headers = {}
    if error.retry_after is not None or error.status in (429, 503):
        headers["Retry-After"] = str(error.retry_after or DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, RequestTimeout):
        headers["Connection"] = "close"
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def _printable_location(parts: Iterable[str | int]) -> list[str | int]:
    """Return a location with its names, which callers may have chosen, cut short and encodable."""
    return [part if isinstance(part, int) else replace_surrogates(part[:_MAX_NAME_CHARS]) for part in parts]
