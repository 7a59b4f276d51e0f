"""Request bodies: bounded in size, and strict JSON."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi import Request
from starlette.types import Receive, Scope

from graphmem.runtime.errors import InvalidInput, TooLarge
from graphmem.runtime.field_types import MAX_INTEGER, MAX_JSON_DEPTH
from graphmem.text.normalising import is_storable

_MAX_INTEGER_DIGITS = 20

_DRAIN_FACTOR = 8
"""A body that is too large is read up to this multiple of the limit: many clients send all of it before reading."""

_DRAIN_SECONDS = 3.0
"""Seconds after which reading a body that is too large stops."""

_THREADED_PARSE_BYTES = 256 * 1024
"""Size in bytes from which bodies are parsed in a thread, so that other requests continue."""

_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|d[89a-f])", re.IGNORECASE)

_UNREAD = object()


class StrictRequest(Request):
    """A request with a body of at most `max_bytes` bytes and `max_fields` fields, in strict JSON.

    Strict JSON is UTF-8 with finite numbers, 64-bit integers and limited nesting. NUL characters and lone surrogates
    are refused unless `allow_unstorable_text`, which is for search queries: they are cleaned and never stored.
    """

    def __init__(
        self, scope: Scope, receive: Receive, *, max_bytes: int, max_fields: int, allow_unstorable_text: bool
    ) -> None:
        super().__init__(scope, receive)
        self._max_bytes = max_bytes
        self._max_fields = max_fields
        self._allow_unstorable_text = allow_unstorable_text
        self._bounded_body: bytes | None = None
        self._strict_json: Any = _UNREAD

    async def body(self) -> bytes:
        """Return the body; raise TooLarge if it exceeds the limit, with or without `Content-Length`."""
        if self._bounded_body is None:
            self._bounded_body = await self._read()
        return self._bounded_body

    async def json(self) -> Any:
        """Return the value of the body; raise InvalidInput if it is not strict JSON."""
        if self._strict_json is _UNREAD:
            body = await self.body()
            limits: Any = {"max_fields": self._max_fields, "allow_unstorable_text": self._allow_unstorable_text}
            if len(body) > _THREADED_PARSE_BYTES:
                self._strict_json = await asyncio.to_thread(parse_json, body, **limits)
            else:
                self._strict_json = parse_json(body, **limits)
        return self._strict_json

    async def _read(self) -> bytes:
        size = int(self.headers.get("content-length") or 0)
        if size > self._max_bytes:
            if "expect" not in self.headers:
                await self._drain(self.stream(), size)
            raise _too_large(self._max_bytes)
        chunks: list[bytes] = []
        size = 0
        stream = self.stream()
        async for chunk in stream:
            size += len(chunk)
            if size > self._max_bytes:
                await self._drain(stream, size)
                raise _too_large(self._max_bytes)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _drain(self, stream: AsyncIterator[bytes], size: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while size <= _DRAIN_FACTOR * self._max_bytes and (chunk := await anext(stream, b"")):
                    size += 0 if "content-length" in self.headers else len(chunk)


def parse_json(body: bytes, *, max_fields: int = sys.maxsize, allow_unstorable_text: bool = False) -> Any:
    """Return the value of a JSON text; raise InvalidInput if it is not strict JSON."""
    try:
        text = body.decode("utf-8-sig")  # programs on Windows add a byte order mark
        value = json.loads(
            text,
            parse_constant=_reject_constant,
            parse_int=_parse_integer,
            parse_float=_parse_float,
        )
    except UnicodeDecodeError as error:
        raise _invalid_json(error.start, "is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _invalid_json(error.pos, "is not valid JSON here") from error
    except RecursionError as error:
        raise _too_deep() from error
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH:
        _check_depth(value)
    if body.count(b":") + body.count(b",") > max_fields and _count_values(value) > max_fields:
        raise _invalid_body(f"The body has more than {max_fields:,} fields and list items.", "has too many fields")
    if not allow_unstorable_text and _UNSTORABLE_ESCAPE.search(body) and _has_unstorable_text(value):
        raise _invalid_body(
            "The body holds a NUL character or a lone surrogate, which is not text.",
            "contains a NUL character or a lone surrogate",
        )
    return value


def _child_values(level: list[Any]) -> list[Any]:
    """Return the values in the objects and lists of a nesting level."""
    children: list[Any] = []
    for value in level:
        if isinstance(value, dict):
            children.extend(value.values())
        elif isinstance(value, list):
            children.extend(value)
    return children


def _count_values(value: Any) -> int:
    """Return the number of fields and list items, each of which may cause an error."""
    count, level = 0, [value]
    while level := _child_values(level):
        count += len(level)
    return count


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [child for child in _child_values(level) if isinstance(child, (dict, list))]
        if not level:
            return
    raise _too_deep()


def _has_unstorable_text(value: Any) -> bool:
    level = [value]
    while level:
        names = (name for item in level if isinstance(item, dict) for name in item)
        texts = (item for item in level if isinstance(item, str))
        if not all(is_storable(text) for text in (*names, *texts)):
            return True
        level = _child_values(level)
    return False


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_INTEGER_DIGITS or abs(number := int(digits)) > MAX_INTEGER:
        raise _invalid_body("A number is too large.", "integers have up to 64 bits")
    return number


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _invalid_body("A number is too large.", "numbers must be finite")
    return number


def _reject_constant(_: str) -> float:
    raise _invalid_body("JSON has no NaN and no Infinity.", "numbers must be finite")


def _invalid_body(detail: str, message: str) -> InvalidInput:
    return InvalidInput(detail, errors=[{"loc": ["body"], "msg": message}])


def _invalid_json(position: int, message: str) -> InvalidInput:
    return InvalidInput("The body is not JSON in UTF-8.", errors=[{"loc": ["body", position], "msg": message}])


def _too_deep() -> InvalidInput:
    return _invalid_body(f"The body is nested deeper than {MAX_JSON_DEPTH} levels.", "is nested too deeply")


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than {limit} bytes: send it in several requests.")
