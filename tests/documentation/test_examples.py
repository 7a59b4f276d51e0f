"""What the documentation shows can be typed, pasted and started as it stands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml
from graphmem_api.app import create_app
from typer.main import get_command

from graphmem.bootstrap import GraphMemory
from graphmem.cli.app import app
from graphmem.domain.export_schema import schema_of_export
from graphmem.domain.formats.chat import read_chat
from graphmem.domain.formats.document import Format, format_of
from graphmem.domain.formats.graphiti import read_graphiti
from graphmem.domain.formats.mem0 import read_mem0
from graphmem.domain.recall import SearchQuery
from graphmem.domain.session import MessagesIn
from graphmem.mcp.http import PATH
from graphmem.settings import Settings
from tests.documentation.test_reference import PAGES, ROOT

GROUP: Any = get_command(app)


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def commands(page: str) -> Iterator[list[str]]:
    """Yield the words of every command line of graphmem that a page shows."""
    shown = [line for block in blocks(page, "sh") for line in block.splitlines()]
    shown += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL))
    for line in shown:
        if typed := re.fullmatch(r"(?:[A-Z_]+=\S+ )*graphmem ([^|>]+).*", line):
            yield shlex.split(typed[1], comments=True)


def check(words: list[str]) -> None:
    """Fail for a command or an option that graphmem does not have."""
    command = GROUP
    for word in words:
        children = getattr(command, "commands", {})
        if children and not word.startswith("-"):
            assert word in children, f"graphmem has no command {word!r} in: {' '.join(words)}"
            command = children[word]
        elif word.startswith("-") and word != "-":
            known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
            assert word.partition("=")[0] in {*known, "--help"}, f"no option {word} in: graphmem {' '.join(words)}"


@pytest.mark.parametrize("page", [*PAGES, "graphmem/DECISIONS.md"])
def test_every_command_that_is_shown_exists_with_its_options(page: str) -> None:
    for words in commands(page):
        check(words)


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    for wrong in (["exprt"], ["import", "--shape", "mem0"], ["db", "begin"]):
        with pytest.raises(AssertionError):
            check(wrong)


def servers() -> list[dict[str, Any]]:
    """The servers in the snippets of the README, whatever a client calls the list."""
    shown = [json.loads(block) for block in blocks("README.md", "json")]
    return [server for each in shown for listed in each.values() for server in listed.values()]


def test_the_snippets_for_mcp_clients_start_what_there_is() -> None:
    started = [server for server in servers() if "command" in server]
    reached = [server for server in servers() if "url" in server]
    assert len(started) >= 3
    assert reached
    for server in started:
        assert server["command"] == "graphmem"
        name, *options = server["args"]
        context = GROUP.commands[name].make_context(name, list(options))
        assert context.params["user"] == "ada"
    for server in reached:
        assert server["url"] == f"http://127.0.0.1:8321{PATH}"
        assert server["headers"]["Authorization"].startswith("Bearer gm_")


def test_the_exports_that_are_shown_are_read_to_the_last_entry() -> None:
    documents = {format_of(each): each for each in map(json.loads, blocks("docs/moving.md", "json"))}
    assert documents.keys() == {Format.MEM0, Format.GRAPHITI, Format.OPENAI}
    taken = [read_mem0(documents[Format.MEM0], "ada"), read_graphiti(documents[Format.GRAPHITI])]
    assert [(len(each.taken), each.refused) for each in taken] == [(1, []), (1, [])]
    talks = read_chat(documents[Format.OPENAI])
    assert ([len(batch.messages) for batch in talks.batches], talks.refused) == ([2], [])


@pytest.mark.req("QUINN-12", "QUINN-15")
def test_the_published_schema_of_an_export_is_the_one_in_force() -> None:
    """`make reference` writes it anew."""
    assert json.loads(text_of("docs/export.schema.json")) == schema_of_export()


def test_the_ready_queries_that_are_told_are_those_there_are() -> None:
    told = set(re.findall(r"`(\w+\.(?:cypher|grass))`", text_of("docs/neo4j-browser.md")))
    assert told == {path.name for path in (ROOT / "cypher/explore").iterdir()}


def test_the_compose_file_sets_what_there_is_to_set_and_declares_what_it_uses() -> None:
    composed = yaml.safe_load(text_of("docker-compose.yml"))
    reference = text_of("docs/reference.md")
    for name in ("api", "worker"):
        service = composed["services"][name]
        for setting in service["environment"]:
            plain = setting.removesuffix("_FILE").replace("JOBS_PASSWORD", "JOBS_URL")
            assert f"`{plain}`" in reference or plain.startswith("OTEL_"), setting
        GROUP.commands[service["command"][0]].make_context(service["command"][0], service["command"][1:])
        assert {*service["depends_on"]} <= {
            other for other, each in composed["services"].items() if "healthcheck" in each
        }
    for service in composed["services"].values():
        assert {*service.get("secrets", [])} <= composed["secrets"].keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= composed["volumes"].keys()
    head = text_of("docker-compose.yml").partition("services:")[0]
    assert all(secret in head for secret in composed["secrets"])


@pytest.mark.parametrize("page", ["README.md", "docs/moving.md"])
def test_every_request_that_is_shown_has_a_route_and_a_body_it_can_read(page: str) -> None:
    routes = create_app(cast(GraphMemory, None), Settings()).openapi()["paths"]
    patterns = {re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)): methods for path, methods in routes.items()}
    shown = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    requests = [shlex.split(line) for line in shown if line.startswith("curl ")]
    assert requests
    for words in requests:
        [path] = re.findall(r"^localhost:8321([^?\n]+)", "\n".join(words), re.MULTILINE)
        assert any("post" in methods for pattern, methods in patterns.items() if pattern.fullmatch(path)), path
        if "-d" in words:
            body = json.loads(words[words.index("-d") + 1])
            (MessagesIn if "messages" in body else SearchQuery).model_validate(body)
