"""`graphmem init`: what it finds in a project, what it asks, and that every program it writes works."""

from __future__ import annotations

import ast
import asyncio
import itertools
import os
import pty
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from graphmem.cli.init import STARTERS, MemoryPlace, Starter, read_project, write_starter
from graphmem.runtime.errors import InvalidInput
from tests.cli.conftest import GRAPHMEM, Cli, serving
from tests.documentation.test_examples import read_page
from tests.forks import run_python
from tests.provider_server import ProviderServer

COMBINATIONS = [
    (starter, place, user)
    for starter, place, user in itertools.product(STARTERS, MemoryPlace, (None, 'the "cook"'))
    if starter.runs_in_process or place is not MemoryPlace.PROCESS
]


def found_in(folder: Path) -> dict[str, str]:
    project = read_project(folder)
    return {starter.framework: file for starter in STARTERS if (file := starter.find_in(project))}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["LangGraph>=1", "httpx"]', {"langgraph"}),
        ("pyproject.toml", '[project.optional-dependencies]\nx = ["openai_agents[voice]~=0.24"]', {"openai-agents"}),
        ("pyproject.toml", '[dependency-groups]\nx = [{include-group = "y"}, "google-adk"]', {"google-adk"}),
        ("pyproject.toml", '[tool.poetry.group.x.dependencies]\nmem0ai = "^2"', {"mem0"}),
        ("pyproject.toml", '[tool.poetry.dependencies]\nllama-index = {version = "*"}', {"llama-index"}),
        ("Pipfile", '[packages]\nanthropic = "*"', {"anthropic"}),
        (
            "requirements-dev.txt",
            "# langgraph\n-r other.txt\npydantic-ai-slim[openai]==2 ; python_version > '3'\n",
            {"pydantic-ai"},
        ),
        ("requirements.txt", "openai\nfastapi\n", {"fastapi", "openai"}),
        ("requirements.txt", "fastapi\n", set()),
        ("requirements.txt", "openai-whisper\n", set()),
        ("app.py", "from agents import Agent", {"openai-agents"}),
        ("app.py", "def f():\n    from google import adk", {"google-adk"}),
        ("app.py", "import google.adk.agents as x, openai", {"google-adk", "openai"}),
        ("app.py", "from .openai import x", set()),
        ("app.py", "this is no Python", set()),
    ],
)
def test_a_framework_is_found_where_it_is_named(tmp_path: Path, name: str, text: str, found: set[str]) -> None:
    (tmp_path / name).write_text(text)
    assert found_in(tmp_path) == dict.fromkeys([s.framework for s in STARTERS if s.framework in found], name)


def test_what_is_not_of_the_project_is_not_found(tmp_path: Path) -> None:
    for place in (".venv/lib", "env-of-mine/lib", "node_modules/x", "agents"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "x.py").write_text("import mem0" if place != "agents" else "")
    (tmp_path / "env-of-mine/pyvenv.cfg").touch()
    (tmp_path / "app.py").write_text("from agents import Desk  # the project's own")
    (tmp_path / "large.py").write_text("import langgraph\n" + "#" * 1_000_000)
    assert found_in(tmp_path) == {}
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/x.py").write_text("import openai")
    assert found_in(tmp_path) == {"openai": "deep/er/x.py"}


@pytest.mark.parametrize(("starter", "place", "user"), COMBINATIONS)
def test_every_program_is_complete_and_imports_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter: Starter, place: MemoryPlace, user: str | None
) -> None:
    file = Path("memory.py")
    program = write_starter(starter, place, user, file)
    (tmp_path / file).write_text(program)
    shown = ast.get_docstring(ast.parse(program)) or ""
    assert "memory.py" in shown or "memory:app" in shown
    assert "examples" not in program
    is_served = place is not MemoryPlace.PROCESS
    assert ("`graphmem serve`" in shown) is is_served
    assert ("GRAPHMEM_API_KEY" in program) is is_served
    if user is not None:
        assert '"the \\"cook\\""' in program
        assert "mara" not in program
        assert "Header" not in program
    if all(_is_importable(package.module) for package in starter.packages):
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "sk-test")
        assert runpy.run_path(str(tmp_path / file), run_name="imported")


def test_every_program_is_formatted_as_the_examples_are(tmp_path: Path) -> None:
    for number, (starter, place, user) in enumerate(COMBINATIONS):
        (tmp_path / f"memory_{number}.py").write_text(write_starter(starter, place, user, Path("memory.py")))
    options = ["--isolated", "--select", "E,F,I", "--line-length", "120"]
    options += ["--config", "lint.isort.known-first-party = ['graphmem']"]
    lint = [sys.executable, "-m", "ruff", "check", *options, "."]
    checked = subprocess.run(lint, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def test_what_cannot_be_in_one_process_is_refused_with_the_way_out() -> None:
    [adk] = [starter for starter in STARTERS if not starter.runs_in_process]
    with pytest.raises(InvalidInput, match="--memory local or remote"):
        write_starter(adk, MemoryPlace.PROCESS, None, Path("memory.py"))


async def test_the_framework_of_the_project_is_taken_and_nothing_is_overwritten(cli_without_settings: Cli) -> None:
    cli, folder = cli_without_settings, cli_without_settings.folder
    (folder / "requirements.txt").write_text("langgraph\nopenai\n")
    (folder / "pyproject.toml").write_text("no TOML")
    done = await cli("init", "--yes", "--json")
    assert done.code == 0, done.err
    assert "pyproject.toml cannot be read" in done.err
    assert {name: done.json[name] for name in ("file", "framework", "found_in", "memory", "user_id")} == {
        "file": "memory_langgraph.py",
        "framework": "langgraph",
        "found_in": "requirements.txt",
        "memory": "local",
        "user_id": None,
    }
    assert done.json["commands"] == [
        "graphmem serve    # in a terminal of its own",
        "export GRAPHMEM_API_KEY=$(graphmem keys create my-program --role agent --only-key)",
        'python memory_langgraph.py mara "I live in Lund."',
    ]
    written = (folder / "memory_langgraph.py").read_text()
    again = await cli("init", "--yes", "--env-file", ".env.example")
    assert again.code == 2
    assert "choose another with --output" in again.err
    assert not (folder / ".env.example").exists(), "all files or none"
    (folder / ".env.example").write_text("MINE=1\n")
    refused = await cli("init", "--yes", "-o", "other.py", "--env-file", ".env.example")
    assert "choose another with --env-file" in refused.err
    assert not (folder / "other.py").exists()
    assert ((folder / "memory_langgraph.py").read_text(), (folder / ".env.example").read_text()) == (
        written,
        "MINE=1\n",
    )
    options = ("--memory", "remote", "--framework", "openai", "--url", "https://memory.example", "--user", "ada")
    other = await cli("init", *options, "-o", "other.py", "--env-file", ".env.new")
    assert other.code == 0, other.err
    assert (folder / ".env.new").read_text() == (
        "GRAPHMEM_URL=https://memory.example\nGRAPHMEM_API_KEY=gm_…\nOPENAI_API_KEY=sk-…\n"
    )
    assert "export GRAPHMEM_URL=https://memory.example" in other.out
    assert 'python other.py "I live in Lund."' in other.out


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--framework", "openai"], "--yes for the defaults"),
        (["--yes", "--framework", "haystack"], "--framework one of openai-agents"),
        (["--yes", "--memory", "cloud"], "--memory one of local, process, remote"),
        (["--yes", "--user", " "], "must not be empty"),
        (["--yes", "-o", "openai.py"], "would hide the package openai: choose another with --output"),
        (["--yes", "-o", "missing/memory.py"], "cannot be written"),
        (["--yes", "--env-file", "missing/.env"], "cannot be written"),
    ],
)
async def test_wrong_use_says_what_to_do_and_writes_nothing(
    cli_without_settings: Cli, options: list[str], advice: str
) -> None:
    done = await cli_without_settings("init", *options)
    assert done.code == 2
    assert advice in done.err
    assert list(cli_without_settings.folder.glob("*.py")) == []


def test_three_questions_are_asked_at_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import pydantic_ai")
    terminal, end = pty.openpty()
    process = subprocess.Popen([GRAPHMEM, "init"], cwd=tmp_path, stdin=end, stdout=end, stderr=end)
    os.close(end)
    shown = ""
    for waited, typed in [("Number", "process"), ("Number", "99"), ("Number", ""), ("Whose memory", "ada")]:
        while waited not in shown.rpartition("\x00")[2]:
            shown += os.read(terminal, 10_000).decode()
        os.write(terminal, f"{typed}\n".encode())
        shown += "\x00"
    while process.poll() is None:
        try:
            shown += os.read(terminal, 10_000).decode()
        except OSError:  # it has ended
            break
    assert process.wait() == 0, shown
    assert "Where does memory run?" in shown
    assert "1  Pydantic AI (found in app.py)" in shown
    assert "Give a number from 1 to" in shown
    program = (tmp_path / "memory_pydantic_ai.py").read_text()
    assert 'main("ada", sys.argv[1])' in program
    assert "GraphMemory.open()" in program


TURNS = """
import runpy, sys
program, *turns = sys.argv[1:]
for number, turn in enumerate(turns):
    sys.argv = [program, turn]
    print(end="\\0" if number else "")
    runpy.run_path(program, run_name="__main__")
"""
"""Runs a program once for each turn, each time from its beginning, in a process that imports its framework once."""

ANSWERED = ["openai", "anthropic", "openai-agents", "pydantic-ai", "langgraph", "mem0", "none"]
"""The frameworks that are installed here and whose programs take one turn."""


@pytest.mark.timeout(400)
async def test_the_programs_remember(cli: Cli, user: str, provider: ProviderServer) -> None:
    async with serving(cli) as (url, _):
        created = await cli("keys", "create", "init", "--role", "agent", "--json")
        environment = {
            "GRAPHMEM_URL": url,
            "GRAPHMEM_API_KEY": created.json["key"],
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "ANTHROPIC_API_KEY": "sk-test",
            "ANTHROPIC_BASE_URL": provider.url,
        }
        for framework in ANSWERED:
            who = f"{user}-{framework}"
            options = ("--framework", framework, "--memory", "local", "--user", who, "-o", f"chat_with_{framework}.py")
            assert (await cli("init", *options)).code == 0
            provider.prepare("Noted.", "In Lund.")
            program, turns = f"chat_with_{framework}.py", ("I live in Lund.", "Where do I live?")
            if framework == "openai-agents":  # its connections are those of the event loop of the first turn
                first, second = [await run_program(cli.folder, environment, program, turn) for turn in turns]
            else:
                printed = await run_program(cli.folder, environment, "-c", TURNS, program, *turns)
                first, second = printed.split("\0")
            told = [*(str(request.body) for request in provider.received[1:]), second]
            assert any("I live in Lund." in text for text in told), framework
            if provider.received:
                assert (first, second) == ("Noted.\n", "In Lund.\n")
            await cli("forget", "--user", who, "--yes")
        await cli("keys", "revoke", created.json["id"])


@pytest.mark.timeout(400)
@pytest.mark.parametrize("framework", ["openai", pytest.param("none", marks=pytest.mark.long)])
async def test_a_memory_in_the_process_remembers(cli: Cli, user: str, provider: ProviderServer, framework: str) -> None:
    options = ("--framework", framework, "--memory", "process", "-o", "chat.py")
    assert (await cli("init", "--yes", *options)).code == 0
    environment = {**cli.environment, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{provider.url}/v1"}
    provider.prepare(*["Noted."] * 20)
    assert await run_program(cli.folder, environment, "chat.py", user, "I live in Lund.")
    context = await cli("context", "Where do I live?", "--user", user)
    assert "I live in Lund." in context.out
    await cli("forget", "--user", user, "--yes")


async def run_program(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
    variables = {**inherited, **environment}
    done = await asyncio.to_thread(run_python, arguments, variables, folder)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def statements(code: str) -> set[str]:
    """Return the statements of a program, however they are formatted; those of blocks without their blocks."""
    nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt)]
    return {ast.unparse(node) for node in nodes if not hasattr(node, "body")}


def test_the_page_on_frameworks_names_them_and_shows_lines_of_their_programs() -> None:
    root = Path(__file__).parents[2]
    page = read_page("docs/agents.md#use-a-framework")
    offered = {starter.framework: starter for starter in STARTERS}
    assert set(re.findall(r"^\| [^|]+ \| `([\w-]+)` \|", page, re.MULTILINE)) == {
        *("--framework", "langgraph", "openai-agents", "pydantic-ai", "llama-index", "google-adk"),
    }
    sections = {"LangGraph": "langgraph", "OpenAI Agents SDK": "openai-agents", "Pydantic AI": "pydantic-ai"}
    for heading, framework in {**sections, "LlamaIndex": "llama-index", "Google ADK": "google-adk"}.items():
        block = re.findall(rf"## {heading}\n\n```python\n(.*?)```", page, re.DOTALL)[0]
        program = (root / "examples" / offered[framework].example).read_text("utf-8")
        assert statements(block) <= statements(program), heading
