"""The coding agents that graphmem has hooks for: where their settings are, and how they call a hook."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

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
