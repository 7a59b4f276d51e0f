"""`graphmem init`: three questions, and a program with a memory for the framework of the project in this folder."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, command
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.cli.project import ProjectPackages
    from graphmem.cli.starters import MemoryPlace, Starter

app = typer.Typer()

PLACES = {"local": "a server on this machine", "process": "in this process", "remote": "a server elsewhere"}
"""The places of memory, as the question names them; the first one is the default."""


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
    from graphmem.cli.project import read_project
    from graphmem.cli.starters import MemoryPlace, find_starter, write_starter
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
    """Return whether there is something to ask; raise InvalidInput where nobody can answer."""
    if memory and framework:
        return False
    if output.flags.json or not sys.stdin.isatty():
        raise InvalidInput("Cannot ask without a terminal: pass --memory and --framework, or --yes for the defaults.")
    return True


def _offer(project: ProjectPackages) -> dict[str, str]:
    """Return the titles of the starters by framework, those of frameworks that the project uses first."""
    from graphmem.cli.starters import DEFAULT_FRAMEWORK, STARTERS

    found = {starter.framework: file for starter in STARTERS if (file := starter.find_in(project))}
    default = [DEFAULT_FRAMEWORK] if not found else []
    titles = {
        starter.framework: starter.title
        + (f" (found in {found[starter.framework]})" if starter.framework in found else "")
        for starter in STARTERS
    }
    return {framework: titles[framework] for framework in dict.fromkeys([*found, *default, *titles])}


def _choose(question: str, offered: dict[str, str]) -> str:
    """Return what is chosen of the names offered, by its number or its name; the first one by Return."""
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
    """Return the environment variables that a program needs; those with an ellipsis are for the reader to fill in."""
    from graphmem.cli.starters import ANTHROPIC_KEY, MemoryPlace
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
    """Return the commands that lead from here to the first answer."""
    from graphmem.cli.starters import MemoryPlace, run_command
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
    except ModuleNotFoundError:  # of a package around it
        return False


def _describe(starter: Starter, texts: dict[Path, str], found: str | None) -> str:
    where = f", found in {found}" if found else ""
    return f"Wrote {' and '.join(map(str, texts))} ({starter.title}{where}). Next:"


def _write_new(texts: dict[Path, str]) -> None:
    """Write files that are not there yet, all or none; raise InvalidInput where one is."""
    from graphmem.cli.starters import is_taken

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
