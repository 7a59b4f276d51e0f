"""Which JSON values can be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphmem.runtime.field_types import (
    MAX_JSON_DEPTH,
    UnstorableValue,
    check_json_value,
    parse_json,
)


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", [None, True, 2**63 - 1, -1.5, "é🎉", [], {"a": [{"b": None}]}, nest(MAX_JSON_DEPTH)])
def test_storable_values_are_accepted(value: Any) -> None:
    check_json_value(value)
    assert parse_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), 2**63, "a\x00b", "\ud800", b"bytes", {1, 2}, nest(MAX_JSON_DEPTH + 1), {1: "a"},
        {"\ud800": 1},
    ],
)  # fmt: skip
def test_other_values_are_refused_with_their_path(value: Any) -> None:
    with pytest.raises(UnstorableValue) as refusal:
        check_json_value({"list": [1, value]})
    assert refusal.value.path[:2] == ("list", 1)
    with pytest.raises(UnstorableValue):
        check_json_value(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "1e999", '"\\ud800"', '"\\u0000"', "[" * 100_000])
def test_text_that_is_not_storable_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - UnstorableValue and JSONDecodeError alike
        parse_json(text)
