"""`graphmem init`: asks three questions and writes a program with memory for the framework of this folder's project."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Annotated, Any

import typer

from graphmem.cli.command import Output, command
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.files import examples_root

app = typer.Typer()

PLACES = {"local": "a server on this machine", "process": "in this process", "remote": "a server elsewhere"}
"""The places of memory by their titles in the question; the first one is the default."""


@command(app, "init")
async def init(
    output: Output,
    memory: Annotated[
        str | None, typer.Option(help="Where memory runs: local (a server on this machine), process or remote.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="What calls the model, such as openai; none for your own loop.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", help="The user; without one, each call names its user.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="The address of a remote server.")] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; defaults to memory_FRAMEWORK.py.")
    ] = None,
    env_file: Annotated[
        Path | None, typer.Option(help="Also write the settings that the program needs, such as to .env.example.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; use the defaults.")] = False,
) -> None:
    """Write a program with memory for this project's framework; never overwrites a file."""
    from graphmem.tenants.owners import make_owner

    project = read_project(Path.cwd())
    for unread in project.unreadable:
        output.note(f"{unread} cannot be read, so what it requires is not known.")
    asks = not yes and _can_ask(output, memory, framework)
    place_name = memory or (_choose("Where does memory run?", PLACES) if asks else "remote" if url else "local")
    if place_name not in PLACES:
        raise InvalidInput(f"Memory cannot run at {place_name!r}: give --memory one of {', '.join(PLACES)}.")
    place = MemoryPlace(place_name)
    offered = _offer(project)
    starter = find_starter(framework or (_choose("What calls the model?", offered) if asks else next(iter(offered))))
    if user is None and asks:
        user = typer.prompt("Whose memory is it? (empty: each call names its user)", "", show_default=False, err=True)
    if user:
        make_owner("default", user)
    file = file or Path(f"memory_{starter.framework.replace('-', '_')}.py")
    if file.stem in {"graphmem", *(package.module.partition(".")[0] for package in starter.packages)}:
        raise InvalidInput(f"{file} would hide the package {file.stem}: choose another with --output.")
    program = write_starter(starter, place, user or None, file)
    settings = _settings_of(starter, place, url)
    texts = {file: program}
    if env_file:
        texts[env_file] = "".join(f"{name}={value}\n" for name, value in settings.items())
    _write_new(texts)
    commands = _commands(starter, place, user or None, file, settings)
    found = starter.find_in(project)
    output.show(
        {
            "file": str(file),
            "framework": starter.framework,
            "found_in": found,
            "memory": place.value,
            "user_id": user or None,
            "env_file": str(env_file) if env_file else None,
            "commands": commands,
            "advice": starter.advice,
        },
        "\n".join([_describe(starter, texts, found), "", *(f"  {line}" for line in commands), "", starter.advice]),
    )


def _can_ask(output: Output, memory: str | None, framework: str | None) -> bool:
    """Return whether there are questions to ask; raise InvalidInput if nobody can answer them."""
    if memory and framework:
        return False
    if output.flags.json or not sys.stdin.isatty():
        raise InvalidInput("Cannot ask without a terminal: pass --memory and --framework, or --yes for the defaults.")
    return True


def _offer(project: ProjectPackages) -> dict[str, str]:
    """Return the titles of the starters by framework, starting with the frameworks that the project uses."""

    found = {starter.framework: file for starter in STARTERS if (file := starter.find_in(project))}
    default = [DEFAULT_FRAMEWORK] if not found else []
    titles = {
        starter.framework: starter.title
        + (f" (found in {found[starter.framework]})" if starter.framework in found else "")
        for starter in STARTERS
    }
    return {framework: titles[framework] for framework in dict.fromkeys([*found, *default, *titles])}


def _choose(question: str, offered: dict[str, str]) -> str:
    """Return the chosen name, given by number or name; Return chooses the first one."""
    typer.echo(question, err=True)
    names = [*offered]
    for number, name in enumerate(names, 1):
        typer.echo(f"  {number}  {offered[name]}", err=True)
    while True:
        answer = str(typer.prompt("Number", "1", err=True)).strip()
        if answer in offered:
            return answer
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        typer.echo(f"Give a number from 1 to {len(names)}.", err=True)


def _settings_of(starter: Starter, place: MemoryPlace, url: str | None) -> dict[str, str]:
    """Return the environment variables of a program; values with an ellipsis are to be filled in."""
    from graphmem.client.async_client import DEFAULT_SERVER_URL

    settings = {}
    if place is not MemoryPlace.PROCESS:
        settings["GRAPHMEM_URL"] = url or (DEFAULT_SERVER_URL if place is MemoryPlace.LOCAL else "https://…")
        settings["GRAPHMEM_API_KEY"] = "gm_…"
    if starter.model_key:
        settings[starter.model_key] = "sk-ant-…" if starter.model_key == ANTHROPIC_KEY else "sk-…"
    return settings


def _commands(
    starter: Starter, place: MemoryPlace, user: str | None, file: Path, settings: dict[str, str]
) -> Sequence[str]:
    """Return the commands that lead to the first answer."""
    from graphmem.client.async_client import DEFAULT_SERVER_URL

    needed = starter.packages if starter.imports_packages else ()
    missing = [package.distributions[0] for package in needed if not _is_installed(package.module)]
    commands = [f"pip install {' '.join(missing)}"] if missing else []
    if place is MemoryPlace.LOCAL:
        bound = f" --user {shlex.quote(user)}" if user else ""
        create_key = f"graphmem keys create my-program --role agent{bound} --only-key"
        commands += ["graphmem serve    # in a terminal of its own"]
        settings = {**settings, "GRAPHMEM_API_KEY": f"$({create_key})"}
    unset = {name: value for name, value in settings.items() if value != DEFAULT_SERVER_URL and name not in os.environ}
    return [*commands, *(f"export {name}={value}" for name, value in unset.items()), run_command(starter, user, file)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False


def _describe(starter: Starter, texts: dict[Path, str], found: str | None) -> str:
    where = f", found in {found}" if found else ""
    return f"Wrote {' and '.join(map(str, texts))} ({starter.title}{where}). Next:"


def _write_new(texts: dict[Path, str]) -> None:
    """Write files, all or none; raise InvalidInput if one exists already."""

    for file in texts:
        if is_taken(file):
            option = "--output" if file is next(iter(texts)) else "--env-file"
            raise InvalidInput(f"{file} exists and is not overwritten: choose another with {option}.")
    written: list[Path] = []
    try:
        for file, text in texts.items():
            with file.open("x", encoding="utf-8") as opened:
                written.append(file)
                opened.write(text)
    except OSError as error:
        for file in written:
            file.unlink(missing_ok=True)
        raise InvalidInput(f"{error.filename or file} cannot be written: {error.strerror or error}.") from error


MAX_MODULES = 2_000
"""Most modules of a project whose imports are read."""

MAX_MODULE_BYTES = 1_000_000
"""Size in bytes from which a module is skipped as generated."""

OTHER_FOLDERS = frozenset({"__pycache__", "build", "dist", "env", "node_modules", "site-packages", "venv"})
"""Names of folders without code of the project, besides virtual environments and names that begin with a dot."""

_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
"""The name at the beginning of a requirement (PEP 508)."""


@dataclass(frozen=True, slots=True)
class ProjectPackages:
    """The packages of a project, each with the first file that requires or imports it.

    `required` has normalised distribution names, `imported` dotted module names. `unreadable` are the requirements
    files that could not be read.
    """

    required: dict[str, str] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def find(self, distributions: Iterable[str], module: str) -> str | None:
        """Return the file that requires one of the distributions or imports the module; None without one."""
        required = (self.required[name] for name in distributions if name in self.required)
        return next(required, self.imported.get(module))


def read_project(folder: Path) -> ProjectPackages:
    """Return the packages of the project in a folder."""
    found = ProjectPackages()
    for file in _requirement_files(folder):
        try:
            names = [*_read_requirements(file)]
        except (OSError, ValueError):
            found.unreadable.append(_name(file, folder))
            continue
        for name in names:
            found.required.setdefault(re.sub(r"[-_.]+", "-", name).lower(), _name(file, folder))
    for file in _modules(folder):
        for module in _imports_of(file):
            if not _is_own(module, folder):
                found.imported.setdefault(module, _name(file, folder))
    return found


def _name(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _requirement_files(folder: Path) -> Iterator[Path]:
    named = [folder / "pyproject.toml", folder / "Pipfile"]
    listed = [*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt")]
    yield from (file for file in [*named, *sorted(listed)] if file.is_file())


def _read_requirements(file: Path) -> Iterator[str]:
    """Yield the distribution names that a file requires."""
    text = file.read_text("utf-8-sig")
    if file.suffix == ".txt":
        yield from _names(line for line in text.splitlines() if not line.lstrip().startswith(("#", "-")))
    elif file.name == "Pipfile":
        document = tomllib.loads(text)
        yield from (name for table in ("packages", "dev-packages") for name in _table(document, table))
    else:
        yield from _read_pyproject(tomllib.loads(text))


def _read_pyproject(document: Mapping[str, Any]) -> Iterator[str]:
    project, poetry = _table(document, "project"), _table(document, "tool", "poetry")
    groups = [*_table(project, "optional-dependencies").values(), *_table(document, "dependency-groups").values()]
    listed = [project.get("dependencies"), *groups, _table(document, "tool", "uv").get("dev-dependencies")]
    yield from _names(entry for entries in listed if isinstance(entries, list) for entry in entries)
    yield from _table(poetry, "dependencies")
    for group in _table(poetry, "group"):
        yield from _table(poetry, "group", group, "dependencies")


def _table(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a table of a TOML document; empty if missing."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _names(requirements: Iterable[object]) -> Iterator[str]:
    for requirement in requirements:
        if isinstance(requirement, str) and (named := _NAME.match(requirement)):
            yield named[1]


def _modules(folder: Path) -> Iterator[Path]:
    """Yield the modules of a project, upper folders first."""
    left = MAX_MODULES
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_of_project(Path(place, name)))
        for name in sorted(files):
            if name.endswith(".py") and left > 0:
                left -= 1
                yield Path(place, name)


def _is_of_project(folder: Path) -> bool:
    if folder.name.startswith(".") or folder.name in OTHER_FOLDERS:
        return False
    return not (folder / "pyvenv.cfg").exists()


def _imports_of(file: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports and their parent packages; nothing if the module cannot be read."""
    try:
        if file.stat().st_size > MAX_MODULE_BYTES:
            return
        tree = ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_own(module: str, folder: Path) -> bool:
    """Return whether a module belongs to the project, such as its own `agents`."""
    top = module.partition(".")[0]
    return any((base / name).exists() for base in (folder, folder / "src") for name in (top, f"{top}.py"))


class MemoryPlace(StrEnum):
    """The place of memory: the program's process, a server on its machine, or a remote server."""

    PROCESS = "process"
    LOCAL = "local"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True)
class FrameworkPackage:
    """A framework's package: its distributions, the first of which is installed, and its module."""

    distributions: tuple[str, ...]
    module: str


@dataclass(frozen=True, slots=True)
class Starter:
    """A program with memory for one framework.

    `example` is its file among the examples; `example_in_process` a different one for memory in its process, if any.
    `model_key` is the variable for the key of the model's provider. `advice` says where to put the parts of the
    program. A program that does not import the packages runs without them.
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
        """Return the file of a project that uses the framework; None if there is none."""
        found = [project.find(package.distributions, package.module) for package in self.packages]
        return found[0] if found and all(found) else None

    def example_for(self, place: MemoryPlace) -> str:
        """Return the name of the example; raise InvalidInput for a place that it does not support."""
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
"""The starters; a framework precedes those it is used with."""

DEFAULT_FRAMEWORK = "openai"
"""The framework of projects in which none is found."""

EXAMPLE_USER = "mara"
"""The user in the example commands."""

_IN_PROCESS = (
    (" Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.", " The memory runs in this process."),
    ("from graphmem import GraphmemError\n", "from graphmem import GraphmemError, GraphMemory\n"),
    ('    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")\n', ""),
    ('AsyncClient(os.environ["GRAPHMEM_API_KEY"], url)', "GraphMemory.open()"),
    ("import os\n", ""),
    ("MemoryClient", "Memory"),
)
"""The changes to an example whose memory runs in its process."""

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
    """Return the program for a file: with memory at a place, for one user or for the user named in each call."""
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
    if "AsyncClient" in text.replace("import AsyncClient", ""):  # the memory's type is named
        return text
    return text.replace("from graphmem.client import AsyncClient", "from graphmem import GraphMemory")


def _fix_user(text: str, user_id: str) -> str:
    literal = json.dumps(user_id, ensure_ascii=False)
    text = text.replace(_USER_OF_REQUEST, _FIXED_USER.format(user=literal)).replace("FastAPI, Header,", "FastAPI,")
    text = text.replace(f' -H "X-User: {EXAMPLE_USER}"', "").replace(f' {EXAMPLE_USER} "', ' "')
    return text.replace("main(*sys.argv[1:3])", f"main({literal}, sys.argv[1])")


def is_taken(file: Path) -> bool:
    """Return whether a path exists, even as a broken link."""
    return file.exists() or file.is_symlink()
