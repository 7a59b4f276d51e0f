"""The programs that `graphmem init` writes: an example for each framework, fitted to a project."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath

from graphmem.cli.project import ProjectPackages
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.files import examples_root


class MemoryPlace(StrEnum):
    """Where memory runs: in the program's process, in a server on its machine, or in one elsewhere."""

    PROCESS = "process"
    LOCAL = "local"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True)
class FrameworkPackage:
    """A package of a framework: the names that it may be required by, the first one to install, and its module."""

    distributions: tuple[str, ...]
    module: str


@dataclass(frozen=True, slots=True)
class Starter:
    """A program with a memory for one framework.

    `example` is its file among the examples; `example_in_process` the one for a memory in its process, where that is
    another. `model_key` is the variable with the key of the model's provider. `advice` says where its parts go.
    A program that does not import the packages runs without them.
    """

    framework: str
    title: str
    packages: tuple[FrameworkPackage, ...]
    example: str
    advice: str
    example_in_process: str | None = None
    model_key: str | None = None
    runs_in_process: bool = True
    imports_packages: bool = True

    def find_in(self, project: ProjectPackages) -> str | None:
        """Return the file of a project that uses the framework; None where it does not."""
        found = [project.find(package.distributions, package.module) for package in self.packages]
        return found[0] if found and all(found) else None

    def example_for(self, place: MemoryPlace) -> str:
        """Return the name of its example; raise InvalidInput for a place where its memory cannot be."""
        if place is not MemoryPlace.PROCESS:
            return self.example
        if not self.runs_in_process:
            raise InvalidInput(
                f"{self.title} cannot be installed together with the graphmem server: use --memory local or remote."
            )
        return self.example_in_process or self.example


_FASTAPI = FrameworkPackage(("fastapi",), "fastapi")
_OPENAI = FrameworkPackage(("openai",), "openai")
_ANTHROPIC = FrameworkPackage(("anthropic",), "anthropic")
_AGENTS = FrameworkPackage(("openai-agents",), "agents")
_PYDANTIC_AI = FrameworkPackage(("pydantic-ai", "pydantic-ai-slim"), "pydantic_ai")
_LANGGRAPH = FrameworkPackage(("langgraph",), "langgraph")
_LLAMA_INDEX = FrameworkPackage(("llama-index", "llama-index-core"), "llama_index")
_GOOGLE_ADK = FrameworkPackage(("google-adk",), "google.adk")
_MEM0 = FrameworkPackage(("mem0ai",), "mem0")

OPENAI_KEY, ANTHROPIC_KEY = "OPENAI_API_KEY", "ANTHROPIC_API_KEY"

STARTERS: Sequence[Starter] = (
    Starter(
        "openai-agents",
        "The OpenAI Agents SDK",
        (_AGENTS,),
        "openai_agents_memory.py",
        "Give your Agent its `instructions` and `tools`, and your Runner its `session`.",
        model_key=OPENAI_KEY,
    ),
    Starter(
        "pydantic-ai",
        "Pydantic AI",
        (_PYDANTIC_AI,),
        "pydantic_ai_memory.py",
        "Give your Agent its `toolsets` and `capabilities`, and call `record_run` after each run.",
        model_key=OPENAI_KEY,
    ),
    Starter(
        "langgraph",
        "LangGraph",
        (_LANGGRAPH,),
        "langgraph_memory.py",
        "Compile your graph with the `GraphmemStore` as its store.",
    ),
    Starter(
        "llama-index",
        "LlamaIndex",
        (_LLAMA_INDEX,),
        "llama_index_memory.py",
        "Give your agent or chat engine the `GraphmemMemory` as its memory.",
    ),
    Starter(
        "google-adk",
        "Google's Agent Development Kit",
        (_GOOGLE_ADK,),
        "google_adk_memory.py",
        "Give your Runner the `GraphmemMemoryService` as its memory service.",
        runs_in_process=False,
    ),
    Starter(
        "mem0",
        "A program written for mem0",
        (_MEM0,),
        "mem0_memory.py",
        "Import from `graphmem.compat.mem0` wherever your program imports from `mem0`.",
        imports_packages=False,
    ),
    Starter(
        "fastapi",
        "FastAPI with the OpenAI client",
        (_FASTAPI, _OPENAI),
        "fastapi_openai.py",
        "Take its lifespan, `recall` and `remember` into your application, and `find_user` from your login.",
        model_key=OPENAI_KEY,
    ),
    Starter(
        "anthropic",
        "Anthropic client",
        (_ANTHROPIC,),
        "anthropic_chat.py",
        "Wrap the `Anthropic()` that your program makes as this one does.",
        "anthropic_chat_in_process.py",
        ANTHROPIC_KEY,
    ),
    Starter(
        "openai",
        "OpenAI client",
        (_OPENAI,),
        "openai_chat.py",
        "Wrap the `OpenAI()` that your program makes as this one does.",
        "openai_chat_in_process.py",
        OPENAI_KEY,
    ),
    Starter(
        "none",
        "No framework: a loop of your own",
        (),
        "agent_loop.py",
        "Call your model in `ask_model`.",
    ),
)
"""The starters; a framework stands before what it is used together with."""

DEFAULT_FRAMEWORK = "openai"
"""The framework of a project in which none is found."""

EXAMPLE_USER = "mara"
"""The user in the commands of the examples."""

_IN_PROCESS = (
    (" Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.", " The memory runs in this process."),
    ("from graphmem import GraphmemError\n", "from graphmem import GraphmemError, GraphMemory\n"),
    ('    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")\n', ""),
    ('AsyncClient(os.environ["GRAPHMEM_API_KEY"], url)', "GraphMemory.open()"),
    ("import os\n", ""),
    ("MemoryClient", "Memory"),
)
"""What differs in an example whose memory runs in its process."""

_USER_OF_REQUEST = '''
def find_user(x_user: Annotated[str, Header(min_length=1)]) -> str:
    """Return whose memory it is: take it from your login, never from what a browser can choose."""
    return x_user
'''

_FIXED_USER = '''
def find_user() -> str:
    """Return whose memory it is."""
    return {user}
'''


def find_starter(framework: str) -> Starter:
    """Return the starter of a framework; raise InvalidInput for another name."""
    for starter in STARTERS:
        if starter.framework == framework:
            return starter
    known = ", ".join(starter.framework for starter in STARTERS)
    raise InvalidInput(f"There is no starter for {framework!r}: give --framework one of {known}.")


def write_starter(starter: Starter, place: MemoryPlace, user_id: str | None, file: PurePath) -> str:
    """Return the program for a file: with a memory at a place, of one user or of the user that each call names."""
    example = starter.example_for(place)
    text = (examples_root() / example).read_text("utf-8")
    text = text.replace(" --app-dir examples", "").replace(f"examples/{example}", file.as_posix())
    text = text.replace(f"{PurePath(example).stem}:app", f"{file.stem}:app")
    if place is MemoryPlace.PROCESS:
        text = _put_in_process(text)
    return text if user_id is None else _fix_user(text, user_id)


def run_command(starter: Starter, user_id: str | None, file: PurePath) -> str:
    """Return the command that runs a program."""
    if _FASTAPI in starter.packages:
        return f"uvicorn {file.stem}:app"
    user = f"{EXAMPLE_USER} " if user_id is None else ""
    return f'python {shlex.quote(file.as_posix())} {user}"I live in Lund."'


def _put_in_process(text: str) -> str:
    for served, in_process in _IN_PROCESS:
        text = text.replace(served, in_process)
    if "AsyncClient" in text.replace("import AsyncClient", ""):  # it names the type of the memory
        return text
    return text.replace("from graphmem.client import AsyncClient", "from graphmem import GraphMemory")


def _fix_user(text: str, user_id: str) -> str:
    literal = json.dumps(user_id, ensure_ascii=False)
    text = text.replace(_USER_OF_REQUEST, _FIXED_USER.format(user=literal)).replace("FastAPI, Header,", "FastAPI,")
    text = text.replace(f' -H "X-User: {EXAMPLE_USER}"', "").replace(f' {EXAMPLE_USER} "', ' "')
    return text.replace("main(*sys.argv[1:3])", f"main({literal}, sys.argv[1])")


def is_taken(file: Path) -> bool:
    """Return whether there is something at the path of a file, a broken link included."""
    return file.exists() or file.is_symlink()
