"""Each command that calls the API prints with `--json` what the API answers, and without it something for people.

The commands run in this process, against a server on the data folder.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from graphmem.cli.app import app
from graphmem.tenants.access import make_local_token
from tests.cli.conftest import Cli, CommandResult

Run = Callable[..., Any]

COMMANDS: Any = get_command(app)
"""All commands, which are put together once: that takes as long as most of them."""

READS: dict[str, tuple[str, str, Any]] = {
    "search likes --user {u}": ("POST", "/v1/users/{u}/search", {"query": "likes", "include_messages": True}),
    "entity Lund --user {u}": ("GET", "/v1/users/{u}/entities/lookup?q=Lund", None),
    "history {m} --user {u}": ("GET", "/v1/users/{u}/memories/{m}/history", None),
    "get {m} --user {u}": ("GET", "/v1/users/{u}/memories/{m}", None),
    "sessions --user {u}": ("GET", "/v1/users/{u}/sessions", None),
    "memories --user {u}": ("GET", "/v1/users/{u}/memories", None),
    "entities --user {u}": ("GET", "/v1/users/{u}/entities", None),
    "messages s --user {u}": ("GET", "/v1/users/{u}/sessions/s/messages", None),
    "archives s --user {u}": ("GET", "/v1/users/{u}/sessions/s/archives", None),
    "diff --user {u}": ("GET", "/v1/users/{u}/changes", None),
    "context --user {u} likes": ("POST", "/v1/users/{u}/context", {"question": "likes"}),
    "enhance Hello --user {u} --session s": ("POST", "/v1/users/{u}/sessions/s/enhance", {"reply": "Hello"}),
    "profile --user {u}": ("GET", "/v1/users/{u}/profile", None),
    "intents --user {u}": ("GET", "/v1/users/{u}/intents", None),
    "preferences --user {u}": ("GET", "/v1/users/{u}/preferences", None),
    "patterns --user {u}": ("GET", "/v1/users/{u}/patterns", None),
    "contradictions --user {u}": ("GET", "/v1/users/{u}/contradictions", None),
    "contexts list --user {u}": ("GET", "/v1/users/{u}/contexts", None),
    "persona show --user {u}": ("GET", "/v1/users/{u}/persona", None),
    "users": ("GET", "/v1/users", None),
    "keys list": ("GET", "/v1/admin/keys", None),
    "webhooks list": ("GET", "/v1/admin/webhooks", None),
    "types show": ("GET", "/v1/admin/types", None),
    "instructions show": ("GET", "/v1/admin/instructions", None),
    "trust show": ("GET", "/v1/admin/trust", None),
    "spaces list": ("GET", "/v1/spaces", None),
    "spaces show team": ("GET", "/v1/spaces/team", None),
    "quarantine list": ("GET", "/v1/admin/quarantine", None),
    "runs": ("GET", "/v1/admin/consolidations", None),
    "runs {r}": ("GET", "/v1/admin/consolidations/{r}", None),
    "jobs list": ("GET", "/v1/jobs", None),
    "jobs list --user {u}": ("GET", "/v1/jobs?user_id={u}", None),
    "placement list": ("GET", "/v1/admin/placements", None),
}
"""Commands, and the request of each."""

WRITES: dict[str, tuple[str, str, Any]] = {
    "add tea --user {u}": ("POST", "/v1/users/{u}/memories", {"memories": [{"content": "Mara likes coffee."}]}),
    "update {m} --importance 0.9 --user {u}": ("PATCH", "/v1/users/{u}/memories/{m}", {"importance": 0.8}),
    "contexts add topic boats Folkboat --user {u}": (
        "POST", "/v1/users/{u}/contexts", {"type": "topic", "key": "boats", "value": "Folkboat"},
    ),
    "persona set plan=2 --user {u}": ("POST", "/v1/users/{u}/persona", {"weights": {"plan": 2}}),
    "persona clear --user {u}": ("POST", "/v1/users/{u}/persona", {"weights": {}}),
    "close s --user {u}": ("POST", "/v1/users/{u}/sessions/s/close", None),
    "keys create bot": ("POST", "/v1/admin/keys", {"name": "bot", "role": "agent"}),
    "webhooks add https://example.com/h": ("POST", "/v1/admin/webhooks", {"url": "https://example.com/h"}),
    "instructions clear": ("POST", "/v1/admin/instructions", {"text": ""}),
    "types clear": ("PUT", "/v1/admin/types", {}),
    "trust set user operator": ("PUT", "/v1/admin/trust", {"order": ["user", "operator"]}),
    "trust reset": ("PUT", "/v1/admin/trust", {"order": []}),
    "spaces put team --title Team --owner {u}": (
        "PUT", "/v1/spaces/team", {"title": "Team", "members": [{"user": "{u}", "role": "owner"}]},
    ),
    "spaces grant team bob": ("PUT", "/v1/spaces/team/members/bob", {"role": "reader"}),
    "maintain decay": ("POST", "/v1/admin/maintenance", {"tasks": ["decay"]}),
    "delete {m} --user {u}": ("DELETE", "/v1/users/{u}/memories/{m}", None),
}  # fmt: skip
"""Commands that change something, in this order, and a request of the same kind."""

ANSWERED_BY_A_SENTENCE = {
    "contexts delete {c} --user {u}",
    "keys revoke {k}",
    "webhooks remove {w}",
    "spaces revoke team bob",
}
"""Commands whose request has no content in its response."""

TESTED_ELSEWHERE = {
    *(
        "ask",
        "summarize",
        "ingest",
        "consolidate",
        "rollback",
        "quarantine release",
        "quarantine drop",
        "jobs retry",
        "reembed",
    ),
    *("resolve", "revert", "types set", "instructions set", "export", "import", "forget", "spaces delete"),
    *("placement move", "placement drain", "placement add", "backup", "restore", "evaluate", "doctor", "quickstart"),
    *("init", "serve", "open", "mcp", "worker", "db start", "db stop", "db status", "db migrate", "db browser"),
    *("hooks install", "hooks uninstall", "hooks status", "hooks run"),
}
"""Commands that wait for a job or a model, or are about this machine."""


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterable[str]:
    for name, command in group.commands.items():
        yield from _commands(command, (*path, name)) if hasattr(command, "commands") else [" ".join((*path, name))]


def test_the_table_has_every_command() -> None:
    lines = [*READS, *WRITES, *ANSWERED_BY_A_SENTENCE]
    missing = [name for name in _commands(COMMANDS) if not any(line.startswith(name) for line in lines)]
    assert {*missing} == TESTED_ELSEWHERE


def shape(value: Any) -> Any:
    """Return the names and kinds of a JSON value; of a list those of its first item.

    When a memory was last returned is stored some time after the search, so that may change between two reads.
    """
    if isinstance(value, dict):
        return {name: "use" if name == "last_accessed_at" else shape(item) for name, item in value.items()}
    return [shape(item) for item in value[:1]] if isinstance(value, list) else type(value).__name__


@pytest.fixture
async def run(cli_with_models: Cli, served: tuple[str, str], tenant: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command of this test's tenant in this process."""
    monkeypatch.setattr("typer.testing._get_command", lambda _: COMMANDS)
    for name, value in {**cli_with_models.environment, "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)

    async def invoke(line: str) -> CommandResult:
        done = await asyncio.to_thread(CliRunner().invoke, app, [*line.split(), "--tenant", tenant])
        return CommandResult(done.exit_code, done.stdout, done.stderr)

    return invoke


@pytest.mark.timeout(300)
async def test_every_command_prints_what_the_api_answers(run: Run, served: tuple[str, str], tenant: str) -> None:
    url, secret = served
    headers = {"Authorization": f"Bearer {make_local_token(secret, tenant)}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as client:

        async def ask(method: str, path: str, body: Any, known: dict[str, str]) -> Any:
            filled = json.loads(json.dumps(body).replace("{u}", known["u"]))
            answer = await client.request(method, path.format(**known), json=filled if body is not None else None)
            assert answer.is_success, answer.text
            return answer.json()

        async def print_json(line: str, known: dict[str, str]) -> Any:
            printed = await run(f"{line.format(**known)} --json")
            assert printed.code == 0, printed.err
            return json.loads(printed.out)

        known = {"u": "mara"}
        home = {"content": "Mara lives in Lund.", "object": {"name": "Lund"}, "predicate": "LIVES_IN"}
        saved = await ask("POST", "/v1/users/mara/memories", {"memories": [home]}, known)
        known["m"] = saved["results"][0]["memory"]["id"]
        turns = {"session_id": "s", "messages": [{"role": "user", "content": "Hello"}], "extract": False}
        await ask("POST", "/v1/users/mara/messages", turns, known)
        await ask("PUT", "/v1/spaces/team", {"title": "Team", "members": [{"user": "mara", "role": "owner"}]}, known)
        known["r"] = (await ask("POST", "/v1/admin/consolidations", {"user_id": "mara", "wait": True}, known))["id"]

        for line, (method, path, body) in READS.items():
            printed, answered = await print_json(line, known), await ask(method, path, body, known)
            if printed.keys() == {"items"}:  # a list that has one page
                assert answered.pop("next_cursor", None) is None
            assert shape(printed) == shape(answered), line
            shown = await run(line.format(**known))
            assert (shown.code, bool(shown.out.strip())) == (0, True), line
        for line, (method, path, body) in WRITES.items():
            printed = await print_json(line, known)
            if line.startswith("delete"):
                assert printed["status"] == "deleted"
            else:
                assert shape(printed) == shape(await ask(method, path, body, known)), line
        for name, path in {"c": "/v1/users/mara/contexts", "k": "/v1/admin/keys", "w": "/v1/admin/webhooks"}.items():
            known[name] = (await ask("GET", path, None, known))["items"][0]["id"][:8]
        for line in sorted(ANSWERED_BY_A_SENTENCE):
            shown = await run(line.format(**known))
            assert (shown.code, shown.out.count("\n")) == (0, 1), shown.err
