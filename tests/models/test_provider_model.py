"""The client of OpenAI-compatible servers, against real servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from enum import Enum
from typing import Any, Literal

import pytest
from openai import AsyncOpenAI
from prometheus_client import REGISTRY
from pydantic import BaseModel, Field

from graphmem.models.language_model import DEFAULT_MODEL, Prompt, ToolCall
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime.errors import ModelUnavailable
from graphmem.runtime.retries import RetryPolicy
from graphmem.runtime.settings import Settings
from tests.models.scripted_server import (
    Exchange,
    ScriptedServer,
    Step,
    fails,
    hangs,
    hangs_up,
    replies,
    sends,
    trickles,
)

SECRET = "Mara keeps the spare key under the third flowerpot"
PROMPT = Prompt("test", "Judge the conversation.", SECRET)
TOOLS = [{"type": "function", "function": {"name": "keep", "parameters": {"type": "object", "properties": {}}}}]


class Tone(Enum):
    DRY = "dry"
    WARM = "warm_hearted"


class Verdict(BaseModel):
    """Instructions for programmers, not for the model."""

    keep: bool
    tone: Tone
    kind: Literal["FACT", "PLAN"] = "FACT"
    notes: list[str] = Field(default=[], description="What to write down.")


GOOD = '{"keep": true, "tone": "dry", "kind": "PLAN", "notes": ["tea"]}'
VERDICT = Verdict(keep=True, tone=Tone.DRY, kind="PLAN", notes=["tea"])


def model_at(server: ScriptedServer, **options: Any) -> ProviderModel:
    tries: dict[str, Any] = {"timeout": 60, "backoff": 0.01}
    tries |= {name: options.pop(name) for name in ("timeout", "attempts", "sleep") if name in options}
    retries = RetryPolicy(**tries)
    return ProviderModel(base_url=server.base_url, main_model="large", retries=retries, **options)


async def ask(*steps: Step, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The completion, or the error, after the server played these steps; and the requests it saw."""
    with ScriptedServer(*steps) as server:
        async with model_at(server, **options) as model:
            try:
                return await model.complete_structured(PROMPT, Verdict), server.requests
            except ModelUnavailable as error:
                return error, server.requests


def tokens_counted(model: str) -> list[float]:
    """The metric of prompt and completion tokens of a model."""
    kinds = [{"model": model, "kind": kind} for kind in ("prompt", "completion")]
    return [REGISTRY.get_sample_value("graphmem_model_tokens_total", labels) or 0 for labels in kinds]


async def test_an_answer_in_the_schema_comes_back_as_a_value_with_its_cost() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
    counted = tokens_counted("large")
    completion, requests = await ask(replies(GOOD, usage=usage))
    assert [after - before for after, before in zip(tokens_counted("large"), counted, strict=True)] == [12, 5]
    assert completion.value == VERDICT
    receipt = completion.receipt
    assert (receipt.llm_calls, receipt.prompt_tokens, receipt.completion_tokens) == (1, 12, 5)
    assert receipt.seconds > 0
    assert requests[0]["model"] == "large"
    assert requests[0]["messages"] == PROMPT.messages()
    assert requests[0]["response_format"]["json_schema"]["strict"] is True


async def test_tokens_are_estimated_where_the_server_does_not_count_them() -> None:
    completion, requests = await ask(replies(GOOD))
    assert completion.receipt.prompt_tokens == len(json.dumps(requests[0]["messages"])) // 4
    assert completion.receipt.completion_tokens > 0


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"Certainly! Here it is:\n```\n{GOOD}\n```\nAnything else?",
        f"<think>Does {{she}} mean it? {{}}</think>{GOOD}",
        GOOD.replace("dry", "DRY").replace("PLAN", "plan"),
        GOOD + '\n{"something": "else"}',
        "The set {a, b} is fine: " + GOOD,
    ],
)
async def test_text_around_a_valid_answer_and_enum_spelling_are_tolerated(text: str) -> None:
    completion, requests = await ask(replies(text))
    assert completion.value == VERDICT
    assert len(requests) == 1


async def test_an_enum_spelled_with_a_space_is_read() -> None:
    completion, _ = await ask(replies('{"keep": false, "tone": "Warm hearted"}'))
    assert completion.value.tone is Tone.WARM


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD[:40], "cut or malformed"),
        ('{"keep": true, "notes": [{"keep": true, "tone": "dry"', "cut or malformed"),
        ("I would rather talk about flowerpots.", "holds no JSON"),
        ("", "holds no JSON"),
        ('{"keep": true, "tone": "flowerpot"}', "tone (enum)"),
        ('{"tone": "dry"}', "keep (missing)"),
        ('{"keep": NaN, "tone": "dry"}', "cut or malformed"),
        (f"[{GOOD}]", "another object"),
        ('{"flowerpot": 3}', "another object"),
        ("{}", "another object"),
        ('{"keep":' * 5000, "cut or malformed"),
    ],
)
@pytest.mark.req("GO-08")
async def test_an_answer_outside_the_schema_is_a_retryable_error_without_quotes(text: str, why: str) -> None:
    error, requests = await ask(replies(text))
    assert isinstance(error, ModelUnavailable)
    assert why in error.detail
    assert "flowerpot" not in error.detail
    assert error.retry_after is not None
    assert len(requests) == (2 if why == "holds no JSON" else 1), "only an answer without JSON is asked for again"


@pytest.mark.parametrize(
    "step",
    [
        sends(b"<html>Welcome to nginx</html>", "text/html"),
        sends(b"{not json"),
        sends(b"\xff\xfe\x00"),
        sends(b"{}"),
        sends(b"[]"),
        sends(b"null"),
        sends(b'{"choices": []}'),
        sends(b'{"choices": "abc"}'),
        sends(b'{"choices": [{"message": "hello"}]}'),
        sends(b'{"choices": [{"message": {"content": {"a": 1}}}]}'),
    ],
)
async def test_a_server_without_chat_completions_is_reported_as_such(step: Step) -> None:
    error, _ = await ask(step)
    assert isinstance(error, ModelUnavailable)
    assert "OPENAI_BASE_URL" in error.detail


@pytest.mark.parametrize("step", [fails(500), fails(503), fails(502), fails(429), fails(408), hangs_up])
async def test_transient_failures_are_retried(step: Step) -> None:
    completion, requests = await ask(step, step, replies(GOOD))
    assert completion.value == VERDICT
    assert len(requests) == 3
    assert completion.receipt.llm_calls == 1


@pytest.mark.parametrize("step", [fails(500), fails(429), hangs_up])
async def test_attempts_are_bounded_and_the_error_is_retryable(step: Step) -> None:
    error, requests = await ask(step, attempts=3)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after is not None
    assert len(requests) == 3


@pytest.mark.req("UMB-01")
@pytest.mark.parametrize("step", [hangs(), trickles])
async def test_a_hanging_server_costs_at_most_the_timeout_of_each_attempt(step: Step) -> None:
    async with asyncio.timeout(60):
        error, requests = await ask(step, timeout=0.2, attempts=2)
    assert isinstance(error, ModelUnavailable)
    assert "GRAPHMEM_LLM_TIMEOUT" in error.detail
    assert len(requests) == 2


async def test_an_unreachable_server_is_an_error_that_names_the_setting() -> None:
    with ScriptedServer(replies(GOOD)) as server:
        address = server.base_url
    async with ProviderModel(base_url=address, retries=RetryPolicy(attempts=2, backoff=0.01)) as model:
        with pytest.raises(ModelUnavailable, match="OPENAI_BASE_URL"):
            await model.complete_structured(PROMPT, Verdict)


async def test_retry_after_is_waited_for() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    completion, _ = await ask(fails(429, retry_after="7"), fails(503, retry_after="3"), replies(GOOD), sleep=sleep)
    assert completion.value == VERDICT
    assert pauses == [7, 3]


@pytest.mark.parametrize("header", ["120", "Fri, 31 Dec 2100 23:59:59 GMT", "inf"])
async def test_a_long_retry_after_is_passed_to_the_caller(header: str) -> None:
    error, requests = await ask(fails(429, retry_after=header))
    assert len(requests) == 1
    assert error.retry_after >= 120


async def test_an_unreadable_retry_after_is_ignored() -> None:
    completion, _ = await ask(fails(429, retry_after="soon"), replies(GOOD))
    assert completion.value == VERDICT


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (fails(401), "OPENAI_API_KEY"),
        (fails(403), "GRAPHMEM_LLM_MODEL"),
        (fails(404, "The model `large` does not exist", code="model_not_found"), "GRAPHMEM_LLM_MODEL"),
        (fails(429, code="insufficient_quota"), "quota"),
        (fails(400, f"max context length is 8 tokens: {SECRET}", code="context_length_exceeded"), "too long"),
        (fails(413), "too long"),
        (fails(400, SECRET), "400"),
        (fails(501, f"nothing for {'0a' * 12}", code="no_recording"), "0a" * 12),
    ],
)
async def test_permanent_failures_are_not_retried(step: Step, named: str) -> None:
    error, requests = await ask(step)
    assert isinstance(error, ModelUnavailable)
    assert named in error.detail
    assert SECRET not in error.detail
    assert error.retry_after is None
    assert len(requests) == 1


async def test_a_gate_model_that_is_unknown_names_its_own_setting() -> None:
    with ScriptedServer(fails(404)) as server:
        async with model_at(server, gate_model="small") as model:
            with pytest.raises(ModelUnavailable, match="GRAPHMEM_LLM_GATE_MODEL"):
                await model.complete_structured(PROMPT, Verdict, use="gate")


@pytest.mark.parametrize(
    "refusal",
    [
        fails(400, "This response_format type is unavailable now"),
        fails(404, "No endpoints found that can handle the requested parameters."),
        fails(422, "unknown field", param="response_format"),
    ],
)
async def test_a_server_without_json_schema_support_gets_the_schema_in_the_prompt(refusal: Step) -> None:
    with ScriptedServer(refusal, replies(GOOD)) as server:
        async with model_at(server) as model:
            for _ in range(2):
                assert (await model.complete_structured(PROMPT, Verdict)).value == VERDICT
    formats = [request["response_format"]["type"] for request in server.requests]
    assert formats == ["json_schema", "json_object", "json_object"]
    system, user = server.requests[-1]["messages"]
    assert system["content"].startswith(PROMPT.system)
    assert '"tone"' in system["content"]
    assert user["content"] == SECRET


async def test_a_server_without_any_json_mode_is_asked_in_plain_text() -> None:
    refusal = fails(400, "response_format is not supported")
    completion, requests = await ask(refusal, refusal, replies(f"Sure:\n```json\n{GOOD}\n```"))
    assert completion.value == VERDICT
    assert "response_format" not in requests[2]
    assert '"tone"' in requests[2]["messages"][0]["content"]


async def test_two_calls_refused_at_the_same_time_drop_one_format_only() -> None:
    both_have_asked = threading.Barrier(2)

    def refuses(exchange: Exchange) -> None:
        both_have_asked.wait(60)
        fails(400, "json_schema is not supported")(exchange)

    with ScriptedServer(refuses, refuses, replies(GOOD)) as server:
        async with model_at(server) as model:
            await asyncio.gather(*(model.complete_structured(PROMPT, Verdict) for _ in range(2)))
    assert [request["response_format"]["type"] for request in server.requests[2:]] == ["json_object"] * 2


async def test_an_answer_without_json_is_asked_for_with_the_schema_in_the_prompt_in_that_call_only() -> None:
    with ScriptedServer(replies("The user has a key."), replies(GOOD)) as server:
        async with model_at(server) as model:
            first = await model.complete_structured(PROMPT, Verdict)
            assert (await model.complete_structured(PROMPT, Verdict)).value == VERDICT
    assert first.value == VERDICT
    assert first.receipt.llm_calls == 2
    assert ['"tone"' in request["messages"][0]["content"] for request in server.requests] == [False, True, False]
    formats = [request["response_format"]["type"] for request in server.requests]
    assert formats == ["json_schema", "json_object", "json_schema"]


async def test_a_refused_parameter_is_sent_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.models.structured_output.REFUSAL_SECONDS", 0.05)
    with ScriptedServer(fails(400, "response_format is not supported"), replies(GOOD)) as server:
        async with model_at(server) as model:
            await model.complete_structured(PROMPT, Verdict)
            await asyncio.sleep(0.06)
            await model.complete_structured(PROMPT, Verdict)
    formats = [request["response_format"]["type"] for request in server.requests]
    assert formats == ["json_schema", "json_object", "json_schema"]


async def test_the_output_can_be_asked_for_as_a_tool_call_or_in_the_prompt() -> None:
    tool_call = call(json.loads(GOOD), name="Verdict")
    completion, requests = await ask(replies(None, finish="tool_calls", tool_calls=[tool_call]), output_mode="tool")
    assert completion.value == VERDICT
    assert "response_format" not in requests[0]
    assert requests[0]["tool_choice"] in ("required", {"type": "function", "function": {"name": "Verdict"}})
    assert requests[0]["tools"][0]["function"]["parameters"]["required"] == ["keep", "tone", "kind", "notes"]
    completion, requests = await ask(replies(GOOD), output_mode="prompted")
    assert completion.value == VERDICT
    assert '"tone"' in requests[0]["messages"][0]["content"]


async def test_one_call_sends_at_most_six_requests_whatever_goes_wrong() -> None:
    refusals = [
        fails(400, f"{name} is not supported") for name in ("response_format", "response_format", "temperature")
    ]
    error, requests = await ask(*refusals, fails(503), attempts=6)
    assert isinstance(error, ModelUnavailable)
    assert len(requests) == 6


async def test_a_refused_sampling_parameter_is_left_out_for_that_model_only() -> None:
    def refuse_for_large(name: str) -> Step:
        def step(exchange: Any) -> None:
            if name in exchange.body and exchange.body["model"] == "large":
                fails(400, f"Unsupported parameter: '{name}'", param=name)(exchange)
            else:
                replies(GOOD)(exchange)

        return step

    for name in ("temperature", "reasoning_effort"):
        with ScriptedServer(refuse_for_large(name)) as server:
            async with model_at(server, gate_model="small", main_effort="high", gate_effort="low") as model:
                await model.complete_structured(PROMPT, Verdict)
                await model.complete_structured(PROMPT, Verdict)
                await model.complete_structured(PROMPT, Verdict, use="gate")
        assert [name in request for request in server.requests] == [True, False, False, True]


@pytest.mark.req("GO-03", "GO-14")
async def test_gate_and_main_calls_use_their_own_model_and_effort() -> None:
    with ScriptedServer(replies(GOOD)) as server:
        settings = Settings(
            _env_file=None,
            openai_base_url=server.base_url,
            llm_model="large",
            llm_gate_model="small",
            llm_effort="high",
            llm_gate_effort="none",
        )
        model = ProviderModel.from_settings(settings)
        assert model is not None
        async with model:
            await model.complete_structured(PROMPT, Verdict, use="gate")
            await model.complete_structured(PROMPT, Verdict)
    asked = [(request["model"], request["reasoning_effort"]) for request in server.requests]
    assert asked == [("small", "none"), ("large", "high")]


def test_without_key_and_address_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ProviderModel.from_settings(Settings(_env_file=None)) is None


def test_a_key_alone_means_the_default_model() -> None:
    model = ProviderModel.from_settings(Settings(_env_file=None, openai_api_key="k"))
    assert model is not None
    assert (model.main_model, model.gate_model) == (DEFAULT_MODEL, DEFAULT_MODEL)


async def test_an_answer_cut_at_the_length_limit_is_not_used() -> None:
    error, _ = await ask(replies(GOOD, finish="length"))
    assert "length limit" in error.detail


async def test_a_filtered_or_declined_answer_is_reported_and_not_retried() -> None:
    for step, word in (
        (replies(None, finish="content_filter"), "filter"),
        (replies(None, refusal="I cannot"), "declined"),
    ):
        error, requests = await ask(step)
        assert word in error.detail
        assert len(requests) == 1


async def tools_answer(step: Step) -> Any:
    with ScriptedServer(step) as server:
        async with model_at(server) as model:
            answer = await model.call_tools(PROMPT, TOOLS)
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["keep"]
    assert server.requests[0].get("tool_choice", "auto") == "auto"
    return answer


def call(arguments: object, name: str = "keep") -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.req("CASH-08")
async def test_several_tool_calls_of_one_answer_come_back_in_order() -> None:
    calls = [call('{"what": "tea"}'), call({"what": "cake"}), call("")]
    answer = await tools_answer(replies("Noted.", finish="tool_calls", tool_calls=calls))
    assert answer.calls == [ToolCall("keep", {"what": "tea"}), ToolCall("keep", {"what": "cake"}), ToolCall("keep", {})]
    assert answer.text == "Noted."
    assert answer.receipt.llm_calls == 2, "a model that only repeats itself is not asked a third time"


@pytest.mark.req("CASH-14")
async def test_no_tool_call_is_an_answer_too() -> None:
    answer = await tools_answer(replies("Nothing memorable here."))
    assert (answer.calls, answer.text) == ([], "Nothing memorable here.")


@pytest.mark.parametrize("bad", ['{"what": "te', "[1]", '"tea"', 5])
async def test_tool_arguments_that_are_no_object_cost_the_other_calls_nothing(bad: object) -> None:
    answer = await tools_answer(replies(None, finish="tool_calls", tool_calls=[call('{"a": 1}'), call(bad)]))
    assert answer.calls == [ToolCall("keep", {"a": 1}), ToolCall("keep", {})]


async def test_a_model_is_told_what_became_of_its_tool_calls_until_it_makes_no_more() -> None:
    def check(tool_call: ToolCall) -> str | None:
        return None if tool_call.arguments.get("what") else "what (missing)"

    with ScriptedServer(
        replies("Noted.", finish="tool_calls", tool_calls=[call('{"what": "tea"}'), {**call("{}"), "id": "call_2"}]),
        replies(None, finish="tool_calls", tool_calls=[call('{"what": "cake"}'), {**call("{}"), "id": "call_2"}]),
        replies("That is all."),
    ) as server:
        async with model_at(server) as model:
            answer = await model.call_tools(PROMPT, TOOLS, check=check)
    assert [made.arguments for made in answer.calls] == [{"what": "tea"}, {}, {"what": "cake"}]
    assert (answer.text, answer.receipt.llm_calls) == ("Noted.", 3)
    *_, kept, refused = server.requests[1]["messages"]
    assert (kept["role"], kept["tool_call_id"], kept["content"]) == ("tool", "call_1", "done")
    assert (refused["tool_call_id"], refused["content"]) == ("call_2", "what (missing)")


@pytest.mark.parametrize(
    "steps",
    [
        [replies(GOOD)],
        [
            fails(500, SECRET),
            fails(429, SECRET, retry_after="0"),
            fails(400, f"response_format {SECRET}"),
            replies(GOOD),
        ],
        [replies(SECRET)],
        [replies(json.dumps({"keep": SECRET, "tone": SECRET, SECRET: 1}))],
    ],
)
async def test_logs_and_tracebacks_contain_no_user_text(steps: list[Step], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "openai")
    with ScriptedServer(*steps) as server:
        async with model_at(server) as model:
            try:
                await model.complete_structured(PROMPT, Verdict)
            except ModelUnavailable:
                logging.getLogger("test").exception("the job failed")
    assert caplog.records
    assert SECRET not in caplog.text
    assert "flowerpot" not in caplog.text


async def test_requests_of_others_in_the_process_are_logged_as_they_configured_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "openai")
    with ScriptedServer(replies(GOOD)) as server:
        async with model_at(server) as model, AsyncOpenAI(api_key="none", base_url=server.base_url) as others:
            await model.complete_structured(PROMPT, Verdict)
            await others.chat.completions.create(model="large", messages=[{"role": "user", "content": "teapot"}])
    assert caplog.text.count("Sending HTTP Request") == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "effort", "is_sent"),
    [("large", None, True), ("o3", None, False), ("gpt-5", "high", False), ("gpt-5.1", None, True)],
)
async def test_a_model_that_reasons_is_sent_no_temperature_and_nothing_warns_of_it(
    name: str, effort: str | None, is_sent: bool
) -> None:
    with ScriptedServer(replies(GOOD)) as server:
        async with ProviderModel(base_url=server.base_url, main_model=name, main_effort=effort) as model:
            await model.complete_structured(PROMPT, Verdict)
    assert ("temperature" in server.requests[0]) is is_sent


async def test_a_loopback_server_is_reached_without_the_environments_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer(fails(400)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        completion, _ = await ask(replies(GOOD))
    assert completion.value == VERDICT
    assert proxy.requests == []


def schema_of(request: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = request["response_format"]["json_schema"]["schema"]
    return schema


async def test_the_schema_sent_is_strict_and_free_of_docstrings() -> None:
    _, requests = await ask(replies(GOOD))
    schema = schema_of(requests[0])
    assert schema["required"] == ["keep", "tone", "kind", "notes"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["notes"]["description"] == "What to write down."
    text = json.dumps(schema)
    assert "programmers" not in text
    assert "default" not in text


async def test_properties_named_like_keywords_stay() -> None:
    class Item(BaseModel):
        title: str
        default: int

    with ScriptedServer(replies('{"title": "a", "default": 1}')) as server:
        async with model_at(server) as model:
            assert (await model.complete_structured([{"role": "user", "content": "x"}], Item)).value.title == "a"
    assert schema_of(server.requests[0])["required"] == ["title", "default"]


async def test_an_output_that_the_model_does_not_support_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(replies(GOOD)) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.base_url)
        async with ProviderModel(main_model="ollama:qwen3-cloud", output_mode="native") as model:
            with pytest.raises(ModelUnavailable, match="GRAPHMEM_LLM_OUTPUT") as caught:
                await model.complete_structured(PROMPT, Verdict)
    assert caught.value.retry_after is None
    assert server.requests == []
