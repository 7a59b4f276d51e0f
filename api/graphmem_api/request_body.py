"""Request bodies: read up to a limit, and as JSON that means one thing."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi import Request

from graphmem.errors import InvalidInput, TooLarge
from graphmem.text.storable import is_storable

MAX_JSON_DEPTH = 64
"""Levels a JSON body may be nested."""

_DRAIN_FACTOR = 8
_DRAIN_SECONDS = 3.0
"""Bodies up to so many times the limit, and for so many seconds, are read to their end: only then do all senders look
for the answer."""

_MAX_INTEGER = 2**63 - 1
_THREADED_PARSE_BYTES = 256 * 1024
_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|d[89a-f])", re.IGNORECASE)


class StrictRequest(Request):
    """A request whose body is bounded and whose JSON is strict: UTF-8, finite numbers of 64 bits, few levels.

    `allow_unstorable_text` lets NUL and lone surrogates through for questions, which are cleaned and never stored.
    """

    allow_unstorable_text = False

    async def body(self) -> bytes:
        """Return the body; raise TooLarge when it is over the limit, whether it says so or not."""
        if not hasattr(self, "_checked_body"):
            settings = self.app.state.settings
            imports = self.url.path.endswith("/import")
            self._checked_body = await self._read(settings.max_import_bytes if imports else settings.max_body_bytes)
        return self._checked_body

    async def json(self) -> Any:
        """Return the body as JSON; raise InvalidInput when it is none that can be used."""
        if not hasattr(self, "_checked_json"):
            body = await self.body()
            if len(body) > _THREADED_PARSE_BYTES:
                self._checked_json = await asyncio.to_thread(
                    parse_json, body, allow_unstorable_text=self.allow_unstorable_text
                )
            else:
                self._checked_json = parse_json(body, allow_unstorable_text=self.allow_unstorable_text)
        return self._checked_json

    async def _read(self, limit: int) -> bytes:
        size = int(self.headers.get("content-length") or 0)
        if size > limit:
            if "expect" not in self.headers:
                await self._drain(self.stream(), size, limit)
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        stream = self.stream()
        async for chunk in stream:
            size += len(chunk)
            if size > limit:
                await self._drain(stream, size, limit)
                raise _too_large(limit)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _drain(self, stream: AsyncIterator[bytes], size: int, limit: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while size <= _DRAIN_FACTOR * limit and (chunk := await anext(stream, b"")):
                    size += 0 if "content-length" in self.headers else len(chunk)


def parse_json(body: bytes, *, allow_unstorable_text: bool = False) -> Any:
    """Return the value of a JSON text; raise InvalidInput for what is not JSON or could not be kept as it is."""
    try:
        value = json.loads(
            body.decode("utf-8"), parse_constant=_reject_constant, parse_int=_parse_integer, parse_float=_parse_float
        )
    except UnicodeDecodeError as error:
        raise _invalid_json(error.start, "is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise _invalid_json(error.pos, "is not valid JSON here") from error
    except RecursionError as error:
        raise _too_deep() from error
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH:
        _check_depth(value)
    if not allow_unstorable_text and _UNSTORABLE_ESCAPE.search(body) and _has_unstorable_text(value):
        raise InvalidInput(
            "The body holds a NUL character or a lone surrogate, which is not text.",
            errors=[{"loc": ["body"], "msg": "contains a NUL character or a lone surrogate"}],
        )
    return value


def _child_values(level: list[Any]) -> list[Any]:
    below: list[Any] = []
    for value in level:
        if isinstance(value, dict):
            below.extend(value.values())
        elif isinstance(value, list):
            below.extend(value)
    return below


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [each for each in _child_values(level) if isinstance(each, dict | list)]
        if not level:
            return
    raise _too_deep()


def _has_unstorable_text(value: Any) -> bool:
    level = [value]
    while level:
        names = (name for each in level if isinstance(each, dict) for name in each)
        texts = (each for each in level if isinstance(each, str))
        if not all(is_storable(text) for text in (*names, *texts)):
            return True
        level = _child_values(level)
    return False


def _parse_integer(digits: str) -> int:
    if len(digits) > 20 or abs(number := int(digits)) > _MAX_INTEGER:
        raise InvalidInput("A number is too large.", errors=[{"loc": ["body"], "msg": "integers have up to 64 bits"}])
    return number


def _parse_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise InvalidInput("A number is too large.", errors=[{"loc": ["body"], "msg": "numbers must be finite"}])
    return number


def _reject_constant(_: str) -> float:
    raise InvalidInput("JSON has no NaN and no Infinity.", errors=[{"loc": ["body"], "msg": "numbers must be finite"}])


def _invalid_json(position: int, what: str) -> InvalidInput:
    return InvalidInput("The body is not JSON in UTF-8.", errors=[{"loc": ["body", position], "msg": what}])


def _too_deep() -> InvalidInput:
    return InvalidInput(
        f"The body is nested deeper than {MAX_JSON_DEPTH} levels.",
        errors=[{"loc": ["body"], "msg": "is nested too deeply"}],
    )


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is larger than {limit} bytes: send it in several requests.")
