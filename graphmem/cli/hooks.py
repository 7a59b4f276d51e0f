"""Hooks of coding agents: install, uninstall, status, run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmem.cli.command import Output, command
from graphmem.runtime.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.hooks.coding_agents import CodingAgent

app = typer.Typer(no_args_is_help=True)

Agent = Annotated[str, typer.Option(help="claude-code or gemini-cli.")]
Project = Annotated[
    bool, typer.Option("--project", help="Use the settings of the project in this folder instead of the user's.")
]


@command(app, "install")
async def install(
    output: Output,
    agent: Agent = "claude-code",
    project: Project = False,
    user: Annotated[
        str | None,
        typer.Option("--user", "-u", help="The user; defaults to GRAPHMEM_USER, then your login name."),
    ] = None,
) -> None:
    """Install graphmem's hooks into a coding agent's settings; other settings are not changed."""
    from graphmem.hooks.coding_agents import install_hooks

    chosen = _find_agent(agent)
    file = chosen.settings_file(Path.cwd() if project else None)
    changed = install_hooks(chosen, file, _executable(is_shared=project), user)
    output.show(
        {"file": str(file), "changed": changed},
        f"{chosen.title} has graphmem's hooks in {file}." + ("" if changed else " They were there already."),
    )
    if not _has_key():
        output.note("Set GRAPHMEM_API_KEY for the agent: without a key the hooks do nothing.")


@command(app, "uninstall")
async def uninstall(output: Output, agent: Agent = "claude-code", project: Project = False) -> None:
    """Remove graphmem's hooks from a coding agent's settings."""
    from graphmem.hooks.coding_agents import uninstall_hooks

    chosen = _find_agent(agent)
    file = chosen.settings_file(Path.cwd() if project else None)
    changed = uninstall_hooks(file)
    output.show(
        {"file": str(file), "changed": changed},
        f"{file} has no hooks of graphmem" + (" any more." if changed else "."),
    )


@command(app, "status")
async def status(output: Output) -> None:
    """Show which coding agents have graphmem's hooks, for you and for the project in this folder."""
    import os

    from graphmem.hooks.coding_agents import AGENTS, HookSettings, find_project, list_installed

    files = [(agent, agent.settings_file(base)) for agent in AGENTS.values() for base in (None, Path.cwd())]
    installed = [
        {"agent": agent.name, "file": str(file), "steps": [step.value for step in list_installed(agent, file)]}
        for agent, file in files
    ]
    settings = HookSettings.read(os.environ)
    found = {
        "installed": [entry for entry in installed if entry["steps"]],
        "off": settings.is_off,
        "has_key": _has_key(),
        "url": settings.url,
        "user_id": settings.user_id,
        "project": find_project(str(Path.cwd())),
    }
    lines = [
        f"{entry['agent']}: {', '.join(entry['steps'])} in {entry['file']}" for entry in installed if entry["steps"]
    ]
    state = "off (GRAPHMEM_HOOKS)" if settings.is_off else "on" if _has_key() else "idle: GRAPHMEM_API_KEY is not set"
    where = f"memory of {settings.user_id} at {settings.url}, project {found['project'] or 'none'}"
    output.show(found, "\n".join([*(lines or ["No agent has graphmem's hooks."]), f"Hooks are {state}; {where}."]))


@app.command("run")
def run(
    step: Annotated[str, typer.Argument(help="start, prompt or stop.")],
    agent: Agent = "claude-code",
    user: Annotated[str | None, typer.Option("--user", "-u", help="The user.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Print why a hook did nothing.")] = False,
) -> None:
    """Run one hook, as an agent calls it, with JSON on standard input."""
    from graphmem.hooks.coding_agents import AGENTS, HookStep, run_hook

    # Exit with 0 even for an unknown step: other exit codes make an agent refuse the prompt.
    if step in set(HookStep) and agent in AGENTS:
        run_hook(HookStep(step), agent, user, debug=debug)


def _find_agent(name: str) -> CodingAgent:
    from graphmem.hooks.coding_agents import AGENTS

    if name not in AGENTS:
        raise InvalidInput(f"There are no hooks for {name!r}: choose one of {', '.join(AGENTS)}.")
    return AGENTS[name]


def _executable(*, is_shared: bool) -> str:
    """Return the command for the settings: its path, or its name in settings that are shared between machines."""
    beside = Path(sys.executable).with_name("graphmem")
    return "graphmem" if is_shared else str(beside) if beside.exists() else shutil.which("graphmem") or "graphmem"


def _has_key() -> bool:
    import os

    return bool(os.environ.get("GRAPHMEM_API_KEY"))
