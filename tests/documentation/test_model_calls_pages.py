"""The code of the page on chat programs runs, with a provider on this machine."""

from __future__ import annotations

import asyncio
import os
import re

import httpx
import pytest
import yaml

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.documentation.test_examples import code_blocks, read_page
from tests.forks import run_python
from tests.provider_server import ProviderServer

RUN_EACH = "import sys\nfor code in sys.argv[1:]: exec(code, {'__name__': '__main__'})"


async def run_programs(environment: dict[str, str], *programs: str) -> str:
    """Return what programs print, which run one after the other in one process; fail when one fails."""
    done = await asyncio.to_thread(run_python, ["-c", RUN_EACH, *programs], {**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
async def key(services: Services, tenant: str) -> str:
    """A key of an agent in a tenant of its own."""
    return (await services.keys.create(tenant, ApiKeyIn(name="docs", role=KeyRole.AGENT))).key


@pytest.fixture
async def bound_key(services: Services, tenant: str) -> str:
    """A key of an agent that is bound to one user."""
    return (await services.keys.create(tenant, ApiKeyIn(name="docs", role=KeyRole.AGENT, users=["mara"]))).key


async def test_two_lines_remember_what_was_said(
    address: str, key: str, provider: ProviderServer, local_environment: dict[str, str], local_user: str
) -> None:
    environment = {
        "GRAPHMEM_URL": address,
        "GRAPHMEM_API_KEY": key,
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": provider.url,
    }
    with_openai, with_anthropic, in_process = code_blocks("docs/chat-programs.md#wrap-the-client", "python")
    provider.prepare("Noted.", "In Lund.", "I do not know.")
    code = in_process.replace('user="mara"', f'user="{local_user}"')
    assert code != in_process
    printed = await run_programs({**local_environment, **environment}, with_openai, with_anthropic, code)
    assert printed == "Noted.\nIn Lund.\nI do not know.\n"
    assert "I live in Lund." in provider.received[1].system


async def test_the_first_screen_gives_a_program_a_memory(
    address: str, bound_key: str, provider: ProviderServer
) -> None:
    """Two lines for OpenAI and for Anthropic, and a base URL for a program that knows nothing of graphmem."""
    environment = {"GRAPHMEM_URL": address, "GRAPHMEM_API_KEY": bound_key}
    with_openai, with_anthropic = code_blocks("README.md", "python")[:2]
    async with AsyncClient(bound_key, address) as memory:
        await memory.context("mara", "Where do I live?")  # the first one takes longest, and a call waits five seconds
    provider.prepare("Noted.", "In Lund.", "In Lund.")
    keys = {"OPENAI_API_KEY": "sk-test", "ANTHROPIC_API_KEY": "sk-test"}
    direct = {**keys, "OPENAI_BASE_URL": f"{provider.url}/v1", "ANTHROPIC_BASE_URL": provider.url}
    assert await run_programs({**environment, **direct}, with_openai) == "Noted.\n"
    async with AsyncClient(bound_key, address) as memory:
        told = (await memory.context("mara", "Where do I live?", recent_messages=False)).preamble
    [shown] = re.findall(r"```text\n(## Said.*?)\n```", read_page("README.md"), re.DOTALL)
    assert re.sub(r"20\d\d-\d\d-\d\d", "…", told) == re.sub(r"20\d\d-\d\d-\d\d", "…", shown)
    assert await run_programs({**environment, **direct}, with_anthropic) == "In Lund.\n"
    assert "I live in Lund." in provider.received[1].system

    variables = re.findall(r"^(OPENAI_BASE_URL=.*) python your_program\.py$", read_page("README.md"), re.MULTILINE)[0]
    through = dict(word.split("=", 1) for word in variables.replace("gm_…", bound_key).split())
    through["OPENAI_BASE_URL"] = through["OPENAI_BASE_URL"].replace("http://127.0.0.1:8321", address)
    unchanged = with_openai.replace("from graphmem.integrations import wrap_openai\n", "")
    unchanged = unchanged.replace('wrap_openai(OpenAI(), user="mara")', "OpenAI()")
    assert "graphmem" not in unchanged
    asked = unchanged.replace("I live in Lund.", "In which city do I live?")
    assert await run_programs(through, asked) == "In Lund.\n"
    assert "I live in Lund." in provider.received[2].system


async def test_requests_of_the_page_get_answers(address: str, key: str, provider: ProviderServer) -> None:
    provider.prepare("In Lund.", "In Lund.")
    commands = [block for block in code_blocks("docs/chat-programs.md", "sh") if block.startswith("curl")]
    assert len(commands) == 2
    for command in commands:
        path = re.findall(r"http://127\.0\.0\.1:8321(\S+)", command)[0]
        headers = dict(line.split(": ", 1) for line in re.findall(r'-H "([^"]+)"', command))
        headers = {name: value.replace("gm_…", key).replace("sk-ant-…", "sk-ant-1") for name, value in headers.items()}
        async with httpx.AsyncClient(base_url=address, headers=headers) as client:
            body = re.findall(r"-d '([^']+)'", command)[0]
            answer = await client.post(path, content=body, headers={"X-Graphmem-User": "mara"})
        assert answer.status_code == 200, answer.text
        assert "In Lund." in answer.text


def test_configurations_of_the_page_are_yaml_and_name_our_headers() -> None:
    first, second = (yaml.safe_load(block) for block in code_blocks("docs/chat-programs.md", "yaml"))
    (endpoint,) = first["endpoints"]["custom"]
    assert endpoint["baseURL"] == second[0]["api_base"] == "http://127.0.0.1:8321/openai/v1"
    assert set(endpoint["headers"]) == {"X-Graphmem-User", "X-Graphmem-Session"}
