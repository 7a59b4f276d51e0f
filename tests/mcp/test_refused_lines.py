"""Lines on standard input that are no requests: each is answered, with the id of the request where it can be read."""

from __future__ import annotations

import pytest
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from graphmem.mcp.server import _refuse

LINES = [
    ("not json", None, -32700),
    ("", None, -32700),
    ('{"jsonrpc":"2.0","id":"a-7","method":"tools/call","params":{"x":"\\udc00"}}', "a-7", -32700),
    ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":', 7, -32700),
    ('[{"jsonrpc":"2.0","id":9,"method":"ping"}]', 9, -32600),
    ("[]", None, -32600),
    ("7", None, -32600),
    ("null", None, -32600),
    ('"ping"', None, -32600),
    ('{"id":11,"method":"ping"}', 11, -32600),
    ('{"jsonrpc":"2.0","id":14,"method":7}', 14, -32600),
]


@pytest.mark.parametrize(("line", "request_id", "code"), LINES)
def test_a_line_that_is_no_request_is_answered(line: str, request_id: int | str | None, code: int) -> None:
    with pytest.raises(ValidationError) as refused:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    [answer] = _refuse(refused.value)
    assert (answer.id, answer.error.code) == (request_id, code)
    assert answer.error.message


def test_any_other_error_of_a_line_is_answered() -> None:
    [answer] = _refuse(ValueError("broken"))
    assert answer.error.code == -32700
