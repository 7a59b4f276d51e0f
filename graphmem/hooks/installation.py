"""Installing hooks into the settings of a coding agent, next to everything else that the settings hold."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from graphmem.runtime.errors import InvalidInput

HOOK_SECONDS = 10
"""Seconds after which an agent ends a hook that has not ended by itself."""


class HookStep(StrEnum):
    """What a hook of graphmem does."""

    START = "start"
    PROMPT = "prompt"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """A coding agent; `events` are its names of the steps, `time_unit` is how many of its units a second has."""

    name: str
    title: str
    folder: str
    events: dict[HookStep, str]
    time_unit: int
    has_named_hooks: bool = False

    def settings_file(self, project: Path | None) -> Path:
        """Return the settings of a project, or those of the user for all projects."""
        return (project or Path.home()) / self.folder / "settings.json"

    def make_hook(self, command: str) -> dict[str, object]:
        """Return the entry of a hook in the settings."""
        hook: dict[str, object] = {"type": "command", "command": command, "timeout": HOOK_SECONDS * self.time_unit}
        return {"hooks": [{"name": "graphmem", **hook} if self.has_named_hooks else hook]}


AGENTS = {
    agent.name: agent
    for agent in (
        CodingAgent(
            "claude-code",
            "Claude Code",
            ".claude",
            {HookStep.START: "SessionStart", HookStep.PROMPT: "UserPromptSubmit", HookStep.STOP: "Stop"},
            time_unit=1,
        ),
        CodingAgent(
            "gemini-cli",
            "Gemini CLI",
            ".gemini",
            {HookStep.START: "SessionStart", HookStep.PROMPT: "BeforeAgent", HookStep.STOP: "AfterAgent"},
            time_unit=1000,
            has_named_hooks=True,
        ),
    )
}
"""The supported agents by name."""


_OWN_COMMAND = re.compile(r"graphmem\S*['\"]? hooks run (?:start|prompt|stop) --agent ")


def install_hooks(agent: CodingAgent, file: Path, executable: str, user_id: str | None) -> bool:
    """Write the hooks into a settings file in place of earlier ones; return whether the file was changed.

    Raises InvalidInput for a file that is not the settings of the agent.
    """
    settings = _read_settings(file)
    before = json.dumps(settings)
    _remove_own_hooks(settings)
    hooks = settings.setdefault("hooks", {})
    for step, event in agent.events.items():
        hooks.setdefault(event, []).append(agent.make_hook(_make_command(executable, step, agent, user_id)))
    return _write_settings(file, settings, before)


def uninstall_hooks(file: Path) -> bool:
    """Remove graphmem's hooks from a settings file; return whether there were any."""
    settings = _read_settings(file)
    before = json.dumps(settings)
    _remove_own_hooks(settings)
    return _write_settings(file, settings, before)


def list_installed(agent: CodingAgent, file: Path) -> list[HookStep]:
    """Return the steps for which a settings file has a hook of graphmem."""
    hooks = _read_settings(file).get("hooks", {})
    return [step for step, event in agent.events.items() if any(_has_own_hook(entry) for entry in hooks.get(event, []))]


def _make_command(executable: str, step: HookStep, agent: CodingAgent, user_id: str | None) -> str:
    words = [executable, "hooks", "run", step.value, "--agent", agent.name]
    return shlex.join([*words, "--user", user_id] if user_id else words)


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return {}
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise InvalidInput(f"{file} is not JSON ({error}): fix it first; it was not changed.") from error
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise InvalidInput(f"{file} does not have the structure of settings with hooks; it was not changed.")
    return settings


def _has_own_hook(entry: object) -> bool:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return isinstance(hooks, list) and any(map(_is_own, hooks))


def _is_own(hook: object) -> bool:
    return isinstance(hook, dict) and bool(_OWN_COMMAND.search(str(hook.get("command", ""))))


def _remove_own_hooks(settings: dict[str, Any]) -> None:
    """Remove graphmem's hooks, and what is empty without them."""
    hooks = settings.get("hooks", {})
    for event, entries in list(hooks.items()):
        if not any(map(_has_own_hook, entries)):
            continue
        for entry in entries:
            if _has_own_hook(entry):
                entry["hooks"] = [hook for hook in entry["hooks"] if not _is_own(hook)]
        hooks[event] = [entry for entry in entries if not isinstance(entry, dict) or entry.get("hooks") != []]
        if not hooks[event]:
            del hooks[event]
    if "hooks" in settings and not hooks:
        del settings["hooks"]


def _write_settings(file: Path, settings: dict[str, Any], before: str) -> bool:
    if json.dumps(settings) == before:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    target = file.resolve()
    # Replaced at once, so that the agent never reads half a file.
    written = target.with_name(f".{target.name}.graphmem")
    written.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", "utf-8")
    if target.exists():
        written.chmod(target.stat().st_mode & 0o777)
    os.replace(written, target)
    return True
