"""Field types shared by all packages' models, and the texts and values that a request stores."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, Field

from graphmem.text.normalising import check_storable, is_blank, is_storable, normalise

MAX_JSON_DEPTH = 64
"""Maximum levels of nesting in a stored value and in a request body."""

MAX_INTEGER = 2**63 - 1
"""Largest absolute value of a stored integer."""

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None
"""A JSON value."""

JsonPath = tuple[str | int, ...]


class UnstorableValue(ValueError):
    """A value is not JSON or cannot be stored; `path` leads to it."""

    def __init__(self, path: JsonPath, message: str) -> None:
        super().__init__(message)
        self.path = path


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; raise ValueError if it is not JSON or cannot be stored."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise UnstorableValue((), f"is nested deeper than {MAX_JSON_DEPTH} levels") from error
    check_json_value(value)
    return value


def check_json_value(value: object, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Raise UnstorableValue unless a value consists of JSON types in at most `max_depth` levels and can be stored."""
    pending: list[tuple[JsonPath, object]] = [((), value)]
    while pending:
        path, current = pending.pop()
        items: Iterable[tuple[str | int, object]]
        if isinstance(current, dict):
            _check_keys(path, current)
            items = current.items()
        elif isinstance(current, list):
            items = enumerate(current)
        else:
            if problem := _describe_problem(current):
                raise UnstorableValue(path, problem)
            continue
        if len(path) >= max_depth:
            raise UnstorableValue(path, f"is nested deeper than {max_depth} levels")
        for key, item in items:
            if type(item) is float and math.isfinite(item):  # most items: vectors are long
                continue
            if isinstance(item, (dict, list)):
                pending.append(((*path, key), item))
            elif problem := _describe_problem(item):
                raise UnstorableValue((*path, key), problem)


def _check_keys(path: JsonPath, value: dict[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise UnstorableValue(path, "has a key that is not text")
        if problem := _describe_problem(key):
            raise UnstorableValue(path, f"has a key that {problem}")


def _describe_problem(value: object) -> str | None:
    """Return why a scalar value cannot be stored, or None if it can."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number"
    if isinstance(value, int):
        return None if abs(value) <= MAX_INTEGER else "is an integer of more than 64 bits"
    if isinstance(value, str):
        return None if is_storable(value) else "contains a NUL character or a lone surrogate, which is not text"
    return f"has the type {type(value).__name__}, which JSON does not have"


def content_hash(content: str) -> str:
    """Return the SHA-256 (hex) of a statement's exact text, in NFC and stripped of surrounding white space."""
    return hashlib.sha256(unicodedata.normalize("NFC", content).strip().encode()).hexdigest()


def name_key(name: str) -> str:
    """Return the key that makes an entity's name or alias unique within its user."""
    return normalise(name)


def _strip_non_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("must not be empty")
    return text.strip()


StorableText = Annotated[str, AfterValidator(check_storable)]
"""Text that UTF-8 and Neo4j can store."""

NonBlankText = Annotated[StorableText, AfterValidator(_strip_non_blank)]
"""Text with at least one visible character, stripped."""


def check_normalised_length(text: str, limit: int) -> str:
    """Return `text` unchanged; raise ValueError if its normalised form, which indexes store, is over `limit`.

    Normalisation may turn one character into up to 18.
    """
    if not text.isascii() and len(normalise(text)) > limit:
        raise ValueError(f"must have at most {limit} characters when it is normalised (NFKC)")
    return text


Item = TypeVar("Item", bound=Hashable)

MAX_NAME_LENGTH = 300
"""Longest entity name, in characters, before and after normalisation."""

MAX_METADATA_DEPTH = 8
"""Deepest nesting of objects and lists in metadata, in levels."""


def deduplicate(items: Iterable[Item]) -> list[Item]:
    """Return the items without duplicates, in the order of their first occurrence."""
    return list(dict.fromkeys(items))


def describe_object(data: Mapping[str, Any]) -> str:
    """Return an object as one line of text: `preferred os: Linux; stack.web: Django`."""
    return "; ".join(f"{key.replace('_', ' ')}: {_describe_value(value)}" for key, value in _flatten(data))


def scalar_texts(data: Mapping[str, Any]) -> list[str]:
    """Return the texts and numbers in an object at any depth."""
    return [_describe_value(value) for _, value in _flatten(data) if value is not None and not isinstance(value, bool)]


def _flatten(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{key}.{inner}", leaf) for inner, leaf in _flatten(value))
        else:
            yield str(key), value


def _describe_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_describe_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _normalise_domain(value: str) -> str:
    return " ".join(value.lower().split())


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Raise ValueError for metadata that is nested too deeply or contains a value that JSON cannot store."""
    check_json_value(metadata, MAX_METADATA_DEPTH)
    return metadata


def _check_name_length(name: str) -> str:
    return check_normalised_length(name, MAX_NAME_LENGTH)


_TEMPLATES = re.compile(r"\{\{.*?\}\}|[$#]\{.*?\}|<%.*?%>|\{%.*?%\}|\{[A-Za-z_][\w. -]*\}|%\(\w+\)[sd]", re.DOTALL)
"""A template anywhere in an id, as `{{user}}`, `${user}`, `#{user}`, `<%= user %>`, `{user}` and `%(user)s`."""

_WHOLE_PLACEHOLDERS = re.compile(
    r"%[A-Za-z_]\w*%|\{\d*\}|\$[A-Za-z_]\w*|__[A-Z][A-Z_]*__|\[[A-Za-z_][\w -]*\]|<[A-Za-z_][^<>@]*>"
    r"|(?i:undefined|null|none|\((?:undefined|null|none)\))|NaN|nan"
)
"""A template that is the whole id, as `%USER%`, `{0}`, `$USER`, `[user]` and `<user>`, or a stand-in for no value.

`<1@host>` is a mail id, and Nan is a name.
"""


_CONTROLS = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode categories of control characters, hidden marks, and line and paragraph separators."""

_JOINERS = "\u200c\u200d"
"""Hidden marks within Persian and Hindi words, and within emoji."""


def check_printable(text: str) -> str:
    """Return a text unchanged; raise ValueError if it has control characters, such as line ends."""
    if not text.isprintable() and any(
        unicodedata.category(char) in _CONTROLS and char not in _JOINERS for char in text
    ):
        raise ValueError("must not contain control characters")
    return text


def check_identity(identity: str) -> str:
    """Return a user, session or space id unchanged.

    Raises ValueError for control characters and unfilled placeholders: templates such as `{{USER_ID}}`, `{user}` and
    `%USER%`, and stand-ins for missing values such as `undefined`, `null`, `None`, `NaN` and `[object Object]`. As an
    id, each would be shared by everybody.
    """
    parts = [part.strip() for part in identity.split(":")]  # adapters put an app before the id
    if _TEMPLATES.search(unquote(identity)) or any(_WHOLE_PLACEHOLDERS.fullmatch(part) for part in parts):
        raise ValueError("is a placeholder that was not filled in: send the id itself")
    return check_printable(identity)


Id = Annotated[StorableText, Field(min_length=1, max_length=255), AfterValidator(check_printable)]
"""An id given by a caller."""

SessionId = Annotated[Id, AfterValidator(check_identity)]
"""A session id given by a caller."""

UserId = Annotated[Id, AfterValidator(check_identity)]
"""A user id given by a caller."""

EntityName = Annotated[NonBlankText, Field(max_length=MAX_NAME_LENGTH), AfterValidator(_check_name_length)]
"""The name or an alias of an entity."""

Domain = Annotated[NonBlankText, Field(max_length=100), AfterValidator(_normalise_domain)]
"""The area a memory belongs to, in lower case."""

UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number from 0 to 1."""

Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]
"""A caller's JSON object, stored unchanged."""

Vector = list[float]
"""An embedding; its dimension is the embedder's."""


def to_json(value: object) -> str:
    """Return a value as compact JSON; times become ISO 8601 in UTC, models objects, other unknown types their `str`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_to_json_value)


def _to_json_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


MAX_REQUEST_TEXT = 1_000_000
"""Maximum characters of text in one request, including keys and digits of integers."""

MAX_REQUEST_VALUES = 50_000
"""Maximum number of keys and values in one request."""

Model = TypeVar("Model", bound=BaseModel)


def stored_values(value: object) -> JSON:
    """Return a model's values as JSON, without times and enum values.

    Field names are left out: unlike metadata keys, they are not written by the caller, and each would be scanned for
    secrets with every value.
    """
    match value:
        case Enum() | date():
            return None
        case BaseModel():
            return [stored for _, part in value if (stored := stored_values(part)) not in (None, "", [], {})]
        case list() | tuple():
            return [stored_values(part) for part in value]
        case dict():
            return dict(value)
        case str() | int() | float():
            return value
    return None


def text_length(value: object) -> int:
    """Return the number of characters in a value or model; an integer counts about as many as it has digits."""
    return _measure(value)[0]


def check_request_size(request: Model) -> Model:
    """Return a request unchanged; raise ValueError if it is too large to be checked for secrets at once."""
    characters, values = _measure(request)
    if characters > MAX_REQUEST_TEXT:
        raise ValueError(
            f"holds {characters:,} characters of text, and a request may hold {MAX_REQUEST_TEXT:,}: "
            "send it in several requests"
        )
    if values > MAX_REQUEST_VALUES:
        raise ValueError(
            f"holds {values:,} values, and a request may hold {MAX_REQUEST_VALUES:,}: send it in several requests"
        )
    return request


def _measure(value: object) -> tuple[int, int]:
    """Return the number of characters of text, and the number of keys and values."""
    characters, values = 0, 1
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            characters += len(item)
            continue
        if isinstance(item, int):
            characters += 1 + item.bit_length() // 3
            continue
        parts: list[Any]
        if isinstance(item, BaseModel):
            parts = [*vars(item).values(), *(item.model_extra or {}).values()]
        elif isinstance(item, Mapping):
            parts = [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple)):
            parts = list(item)
        else:
            continue
        values += len(parts)
        pending += [part for part in parts if part is not None and type(part) is not float]  # most fields are either
    return characters, values
