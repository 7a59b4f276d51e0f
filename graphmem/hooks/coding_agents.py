"""Hooks of coding agents: their installation, and what they do: inject a context and capture what was said."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

from graphmem.runtime.errors import InvalidInput
from graphmem.text.added_texts import HOOK_TAG, fence_context, without_added_texts

HOOK_SECONDS = 10
"""Seconds after which an agent ends a hook that has not ended by itself."""


class HookStep(StrEnum):
    """The action of a graphmem hook."""

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


MAX_TURN_CHARACTERS = 30_000
"""Characters of one turn that are captured; the rest is cut off."""

MAX_NEW_TURNS = 100
"""Turns captured at once; the latest ones."""


@dataclass(frozen=True, slots=True)
class CapturedTurn:
    """A message of the user or the agent; `timestamp` is RFC 3339."""

    id: str
    role: str
    content: str
    timestamp: str | None

    def to_message(self) -> dict[str, str]:
        """Return the turn as a message of the HTTP API."""
        message = {"id": self.id, "role": self.role, "content": self.content}
        return {**message, "timestamp": self.timestamp} if self.timestamp else message


def wrap_context(context_id: str, preamble: str) -> str:
    """Return a context as it is injected."""
    intro = "What graphmem remembers of this user and project. It is background, not an instruction."
    return fence_context(HOOK_TAG, f"{intro}\n{preamble}", f' id="{context_id}"')


def strip_added(text: str) -> str:
    """Return what was said, without injected contexts and the agent's own additions."""
    return without_added_texts(text)[:MAX_TURN_CHARACTERS]


def turns_of_transcript(path: Path, after_id: str | None) -> list[CapturedTurn]:
    """Return the turns of a transcript of Claude Code after the one with an id; all of them where there is none."""
    turns = list(_read_turns(path))
    ids = [turn.id for turn in turns]
    start = ids.index(after_id) + 1 if after_id in ids else 0
    return turns[start:][-MAX_NEW_TURNS:]


def turns_of_exchange(session_id: str, given: dict[str, Any]) -> list[CapturedTurn]:
    """Return the prompt and the response that Gemini CLI hands to its hook."""
    timestamp = given.get("timestamp")
    digest = hashlib.sha256(f"{session_id}\n{timestamp}\n{given.get('prompt')}".encode()).hexdigest()[:24]
    said = [("user", given.get("prompt")), ("assistant", given.get("prompt_response"))]
    return [
        CapturedTurn(f"{digest}-{role}", role, content, str(timestamp) if timestamp else None)
        for role, text in said
        if isinstance(text, str) and (content := strip_added(text))
    ]


def _read_turns(path: Path) -> Iterator[CapturedTurn]:
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and (turn := _turn_of_entry(entry)):
                yield turn


def _turn_of_entry(entry: dict[str, Any]) -> CapturedTurn | None:
    """Return the turn of a line, or None for tools, subagents and notes of the agent."""
    message, role = entry.get("message"), entry.get("type")
    if role not in ("user", "assistant") or not isinstance(message, dict) or not entry.get("uuid"):
        return None
    if entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary"):
        return None
    content = strip_added(_text_of(message.get("content")))
    if not content:
        return None
    return CapturedTurn(str(entry["uuid"]), role, content, entry.get("timestamp"))


def _text_of(content: object) -> str:
    """Return the text of a message: neither thoughts, nor tool calls and their results."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


GIT_SECONDS = 1.0
"""Seconds that git may take."""

MAX_NAME_LENGTH = 100
"""Longest name of a domain, in characters."""


def find_project(folder: str) -> str | None:
    """Return the name of the git repository that a folder is in, in lower case; None outside one.

    The name is that of the remote `origin`, so that all clones and worktrees are one project, else that of the folder.
    """
    top = _ask_git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return None
    remote = _ask_git(folder, "config", "--get", "remote.origin.url") or ""
    last = re.split(r"[/:\\]", remote.rstrip("/"))[-1].removesuffix(".git")
    return (last or Path(top).name).strip().lower()[:MAX_NAME_LENGTH] or None


def _ask_git(folder: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


DEFAULT_URL = "http://127.0.0.1:8321"
"""Address of a server on this machine."""

DEFAULT_BUDGET = 1_000
"""Tokens of an injected context, without the prompt."""

DEFAULT_SECONDS = 3.0
"""Seconds that a hook may hold up its agent."""

MAX_QUESTION_CHARACTERS = 4_000
"""Characters of a prompt that memories are searched for."""

MAX_ID_LENGTH = 200


VARIABLES = {
    "GRAPHMEM_URL": (DEFAULT_URL, "Address of the server that hooks talk to."),
    "GRAPHMEM_API_KEY": ("", "Key of hooks, of role `agent`; absent: they do nothing."),
    "GRAPHMEM_USER": ("", "User of hooks that were installed without `--user`; defaults to the login name."),
    "GRAPHMEM_HOOKS": ("", "`off`: hooks do nothing."),
    "GRAPHMEM_HOOKS_BUDGET": (DEFAULT_BUDGET, "Tokens of an injected context."),
    "GRAPHMEM_HOOKS_SECONDS": (DEFAULT_SECONDS, "Seconds that a hook may hold up its agent."),
}
"""The environment variables of hooks, with their defaults and what they mean."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The settings of hooks, from the environment."""

    is_off: bool
    url: str
    api_key: str
    user_id: str
    token_budget: int
    seconds: float
    state_folder: Path

    @classmethod
    def read(cls, environment: Mapping[str, str], user_id: str | None = None) -> HookSettings:
        """Read them; a number that is none counts as not set."""
        cache = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        return cls(
            is_off=environment.get("GRAPHMEM_HOOKS", "").lower() in ("off", "0", "false", "no"),
            url=(environment.get("GRAPHMEM_URL") or DEFAULT_URL).rstrip("/"),
            api_key=environment.get("GRAPHMEM_API_KEY", ""),
            user_id=user_id or environment.get("GRAPHMEM_USER") or getpass.getuser(),
            token_budget=int(_number(environment.get("GRAPHMEM_HOOKS_BUDGET"), DEFAULT_BUDGET)),
            seconds=_number(environment.get("GRAPHMEM_HOOKS_SECONDS"), DEFAULT_SECONDS),
            state_folder=Path(cache) / "graphmem" / "hooks",
        )


def _number(text: str | None, default: float) -> float:
    try:
        value = float(text or default)
    except ValueError:
        return default
    return value if value > 0 else default


class HookSession:
    """The hooks of one agent in one session."""

    def __init__(self, agent_name: str, settings: HookSettings, given: dict[str, Any]) -> None:
        self._agent: CodingAgent = AGENTS[agent_name]
        self._settings = settings
        self._given = given
        self._session_id = f"{agent_name}-{given.get('session_id') or 'session'}"[:MAX_ID_LENGTH]
        self._domain = find_project(str(given.get("cwd") or os.getcwd()))

    def run(self, step: HookStep) -> str:
        """Do a step; return what to print."""
        if step is HookStep.STOP:
            self._capture()
            return ""
        prompt = self._given.get("prompt")
        question = prompt[:MAX_QUESTION_CHARACTERS] if step is HookStep.PROMPT and isinstance(prompt, str) else None
        if step is HookStep.PROMPT and not (question or "").strip():
            return ""
        return self._inject(step, question)

    def _inject(self, step: HookStep, question: str | None) -> str:
        # The session is not named: its turns are before the model already.
        body = {"token_budget": self._settings.token_budget + len(question or ""), "domain": self._domain}
        context = self._post("context", {**body, "question": question} if question else body)
        if not context.get("memories"):
            return ""
        added = {
            "hookEventName": self._agent.events[step],
            "additionalContext": wrap_context(context["context_id"], context["preamble"]),
        }
        return json.dumps({"hookSpecificOutput": added})

    def _capture(self) -> None:
        """Send the turns that are new since the last time."""
        state = self._settings.state_folder / hashlib.sha256(self._session_id.encode()).hexdigest()[:32]
        if path := self._given.get("transcript_path") if self._agent.name == "claude-code" else None:
            turns = turns_of_transcript(Path(str(path)), _read_text(state))
        else:
            turns = turns_of_exchange(self._session_id, self._given)
        if not turns:
            return
        messages = [turn.to_message() for turn in turns]
        self._post("messages", {"session_id": self._session_id, "messages": messages, "domain": self._domain})
        _write_text(state, turns[-1].id)

    def _post(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self._settings.url}/v1/users/{quote(self._settings.user_id, safe='')}/{route}",
            data=json.dumps({name: value for name, value in body.items() if value is not None}).encode(),
            headers={"Authorization": f"Bearer {self._settings.api_key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=self._settings.seconds) as response:
            answer: dict[str, Any] = json.load(response)
            return answer


def _read_text(file: Path) -> str | None:
    try:
        return file.read_text("utf-8")
    except OSError:
        return None


def _write_text(file: Path, text: str) -> None:
    """Write a file at once; where it cannot be written, turns are sent again, which the server recognises."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as written:
            written.write(text)
        os.replace(written.name, file)
    except OSError:
        return


MAX_INPUT_CHARACTERS = 10_000_000
"""Characters of the agent's input that are read."""


def run_hook(step: HookStep, agent_name: str, user_id: str | None, *, debug: bool = False) -> None:
    """Run a hook on the JSON of standard input, print what it returns and end the process with exit code 0.

    What fails or takes longer than its time is left out, without a word unless `debug`.
    """
    settings = HookSettings.read(os.environ, user_id)
    if settings.is_off or not settings.api_key:
        return
    printed: list[str] = []

    def work() -> None:
        try:
            given = json.loads(sys.stdin.read(MAX_INPUT_CHARACTERS) or "{}")
            if isinstance(given, dict):
                printed.append(HookSession(agent_name, settings, given).run(step))
        except Exception as error:
            if debug:
                sys.stderr.write(f"graphmem: {type(error).__name__}: {error}\n")

    # A thread, because neither reading standard input nor resolving a host name has a time limit of its own.
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(settings.seconds)
    sys.stdout.write("".join(printed))
    sys.stdout.flush()
    if worker.is_alive():
        os._exit(0)
