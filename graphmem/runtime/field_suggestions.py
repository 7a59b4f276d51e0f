"""Which field a caller meant by one that a model does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

SYNONYMS = {
    "as_of": ("valid_as_of",),
    "at": ("valid_at",),
    "body": ("content",),
    "budget": ("token_budget",),
    "category": ("type",),
    "conversation_id": ("session_id",),
    "data": ("content",),
    "end": ("invalid_at",),
    "expiration_date": ("expires_at",),
    "k": ("limit",),
    "kind": ("type",),
    "labels": ("tags",),
    "max_results": ("limit",),
    "max_tokens": ("token_budget",),
    "memory": ("content",),
    "n": ("limit",),
    "n_results": ("limit",),
    "page_size": ("limit",),
    "q": ("query", "question"),
    "relation": ("predicate",),
    "run_id": ("session_id",),
    "score_threshold": ("min_score",),
    "size": ("limit",),
    "start": ("valid_at",),
    "text": ("content", "query", "question"),
    "thread_id": ("session_id",),
    "threshold": ("min_score",),
    "top_k": ("limit",),
    "topk": ("limit",),
    "ttl": ("expires_at",),
    "valid_from": ("valid_at",),
    "valid_to": ("invalid_at",),
}
"""Names that other libraries give to fields, in snake case, and the names here."""

MIN_SIMILARITY = 0.75
"""Least similarity of two names, from 0 to 1, at which the one is taken for a typing error of the other."""

MAX_LISTED_FIELDS = 12
"""Most fields that a message lists when none is similar."""


def describe_unknown_field(model: object, location: Sequence[str | int]) -> str:
    """Return what is wrong with a field that a model, or a model inside it, does not have.

    `model` is a model or an annotation with models; `location` is the path of the field from there.
    """
    *parents, unknown = location
    models = _models_in(model)
    for part in parents:
        models = _models_at(models, part)
    fields = dict.fromkeys(name for candidate in models for name in _field_names(candidate))
    snake_case = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(unknown)).lstrip("_")
    if meant := _closest(snake_case, fields):
        return f"is not a field: did you mean {meant}?"
    if place := next((f"{outer}.{snake_case}" for outer in _fields_with(models, snake_case)), None):
        return f"is not a field here: give {place}"
    if fields and len(fields) <= MAX_LISTED_FIELDS:
        return f"is not a field: the fields are {', '.join(fields)}"
    return "is not a field"


def _closest(unknown: str, fields: Iterable[str]) -> str | None:
    """Return the field that a name means: the same in snake case, a synonym, or the most similar one."""
    names = list(fields)
    for meant in (unknown, *SYNONYMS.get(unknown, ())):
        if meant in names:
            return meant
    return next(iter(get_close_matches(unknown, names, 1, MIN_SIMILARITY)), None)


def _fields_with(models: Iterable[type[BaseModel]], name: str) -> Iterable[str]:
    """Yield the fields whose own models have a field of that name."""
    for model in models:
        for outer, field in model.model_fields.items():
            if any(name in _field_names(inner) for inner in _models_in(field.annotation)):
                yield field.alias or outer


def _models_at(models: Iterable[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    """Return the models of the field `part`; an index or the tag of a union stays at the same models."""
    found = [
        inner
        for model in models
        for name, field in model.model_fields.items()
        if part in (name, field.alias)
        for inner in _models_in(field.annotation)
    ]
    return found or list(models)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation holds, at any depth of lists, unions and `Annotated`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
