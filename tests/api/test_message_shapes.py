"""Messages in the shapes that programs have them in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anthropic.types
import httpx
import openai.types.chat
import openai.types.responses
import pytest
from pydantic import ValidationError

from graphmem.conversations.session import MessageIn, MessageRole, MessagesIn
from graphmem.tenants.access import ApiKeyIn
from graphmem.tenants.spaces import check_space_id

CALL: Any = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
COMPLETION = openai.types.chat.ChatCompletionMessage(role="assistant", content="In Lund.", tool_calls=None)
OUTPUT = openai.types.responses.ResponseOutputMessage.model_validate(
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "In Lund.", "annotations": []}],
    }
)
MESSAGE = anthropic.types.Message.model_validate(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Where?", "signature": "s"},
            {"type": "text", "text": "In Lund."},
            {"type": "tool_use", "id": "t", "name": "look", "input": {}},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
)

SHAPES: list[tuple[Any, str, str]] = [
    (COMPLETION, "assistant", "In Lund."),
    (COMPLETION.model_dump(), "assistant", "In Lund."),
    (OUTPUT.model_dump(), "assistant", "In Lund."),
    (MESSAGE, "assistant", "In Lund."),
    (MESSAGE.model_dump(), "assistant", "In Lund."),
    ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "assistant", ""),
    ({"role": "assistant", "content": "", "tool_calls": [CALL]}, "assistant", ""),
    ({"role": "assistant", "function_call": CALL["function"]}, "assistant", ""),
    ({"role": "tool", "tool_call_id": "c1", "content": "It rains."}, "tool", "It rains."),
    ({"role": "function", "name": "look", "content": "It rains."}, "tool", "It rains."),
    ({"role": "developer", "content": "Be brief."}, "system", "Be brief."),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Rain"}]}, "user", ""),
    ({"role": "user", "content": ["One", {"type": "text", "text": "two."}]}, "user", "One\ntwo."),
    (
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Look!"}, {"type": "input_image", "image_url": "d"}],
        },
        "user",
        "Look!\n[image]",
    ),
    ({"role": "user", "content": "Hello", "name": None, "metadata": None, "entities": None}, "user", "Hello"),
    ({"role": "assistant", "content": "<think>An elephant?</think> No."}, "assistant", "No."),
    ({"role": "user", "content": "<think>An elephant?</think> No."}, "user", "<think>An elephant?</think> No."),
]


def test_messages_are_read_in_the_shapes_of_providers() -> None:
    for given, role, text in SHAPES:
        message = MessageIn.model_validate(given)
        assert (message.role, message.content) == (MessageRole(role), text), given
        again = MessageIn.model_validate(message.model_dump(mode="json"))  # as a client sends it
        assert (again.role, again.content) == (message.role, text), given


def test_a_time_may_be_a_number_of_seconds_or_milliseconds() -> None:
    at = datetime(2024, 5, 1, 22, 39, 17, tzinfo=UTC)
    for given in (1714603157, 1714603157.0, 1714603157000, at.isoformat(), at):
        for field in ("timestamp", "created_at"):
            assert MessageIn.model_validate({"role": "user", "content": "x", field: given}).timestamp == at, given


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "user", "content": " "},
        {"role": "user"},
        {"role": "wizard", "content": "x"},
        {"role": "user", "content": [1]},
        {"role": "user", "content": {"text": "x"}},
        {"role": "user", "content": "x", "contents": "y"},
        {"role": "user", "content": "x", "timestamp": True},
        {"role": "user", "content": "x", "timestamp": 1e30},
    ],
    ids=str,
)
def test_what_is_no_message_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MessageIn.model_validate(wrong)


PLACEHOLDERS = (
    "{{LIBRECHAT_USER_ID}}", "{{ user.id }}", "app:{{user}}", "${USER}", "undefined", "null", "None", "NULL",
    "[object Object]",
)  # fmt: skip
FURTHER_PLACEHOLDERS = (
    "{user}", "tenant-{user_id}", "%7Buser%7D", "#{user}", "<user_id>", "<%= user %>", "%USER%", "$USER", "__USER__",
    "[USER_ID]", " null ", "(null)", "NaN", "nan", "shop:undefined", "<function get_user at 0x7f1c>",
    "[object Promise]", "{0}", "{}", "%(user)s", "{% user %}",
)  # fmt: skip
IDS = (
    "none-of-yours", "user-null-1", "undefined behaviour", "Nullius", "$5", "object Object", "Nan", "100%",
    "<17@mail.example>", "a{1}b", "shop:mara", "__init", "[1]", "5 < 6 > 4",
)  # fmt: skip


def test_placeholders_are_no_ids_of_sessions_users_or_spaces_and_longer_ids_may_hold_their_words() -> None:
    messages = [{"role": "user", "content": "x"}]
    for placeholder in (*PLACEHOLDERS, *FURTHER_PLACEHOLDERS):
        with pytest.raises(ValidationError, match="placeholder"):
            ApiKeyIn.model_validate({"name": "n", "role": "agent", "users": ["mara", placeholder.strip()]})
        with pytest.raises(ValueError, match=r"placeholder|select spaces"):
            check_space_id(placeholder.strip())
        with pytest.raises(ValidationError, match="placeholder"):
            MessagesIn.model_validate({"session_id": placeholder, "messages": messages})
    for given in IDS:
        assert MessagesIn.model_validate({"session_id": given, "messages": messages}).session_id == given
        assert ApiKeyIn.model_validate({"name": "n", "role": "agent", "users": [given]}).users == [given]


async def test_a_placeholder_is_nobody(agent: httpx.AsyncClient) -> None:
    turns = [{"role": "user", "content": "I have asthma."}]
    for placeholder in PLACEHOLDERS:
        path = "/v1/users/" + httpx.QueryParams({"": placeholder}).__str__()[1:].replace("+", "%20")
        for answer in (
            await agent.post(path + "/messages", json={"messages": turns}),
            await agent.post("/v1/memories", json={"userId": placeholder, "messages": turns}),
            await agent.get(path + "/memories"),
            await agent.get(path.replace("/v1/users/", "/v1/users/mara/sessions/") + "/messages"),
        ):
            assert answer.status_code == 422, (placeholder, answer.request.url)
            assert "placeholder" in answer.text


async def test_messages_without_text_are_listed_and_cost_the_others_nothing(agent: httpx.AsyncClient) -> None:
    turns = [
        {"role": "user", "content": "Does it rain in Lund?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "It rains."},
    ]
    answer = await agent.post("/v1/users/mara/messages", json={"session_id": "s", "messages": turns})
    assert answer.status_code == 202
    assert answer.json()["skipped"] == [{"index": 1, "reason": "it has no text"}]
    assert len(answer.json()["message_ids"]) == 2
    alone = await agent.post("/v1/users/mara/messages", json={"session_id": "s", "messages": turns[1:2]})
    assert alone.status_code == 202
    assert alone.json() == {
        "job_id": None,
        "session_id": "s",
        "message_ids": [],
        "skipped": [{"index": 0, "reason": "it has no text"}],
    }
    listed = (await agent.get("/v1/users/mara/sessions/s/messages")).json()["items"]
    assert [message["content"] for message in listed] == ["Does it rain in Lund?", "It rains."]
