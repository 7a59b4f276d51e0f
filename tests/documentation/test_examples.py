"""Commands, snippets and requests in the documentation are valid."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from typer.main import get_command

from graphmem.cli.app import app
from graphmem.conversations.session import MessagesIn
from graphmem.mcp.http import MCP_PATH
from graphmem.memories.declared_types import DeclaredTypesIn, find_invalid_schemas
from graphmem.search.models import SearchQuery
from graphmem.user_data.export_schema import export_json_schema
from graphmem.user_data.foreign import detect_format, parse_chat_log, parse_mem0, parse_structured_text
from graphmem.user_data.graphiti import parse_graphiti
from graphmem.user_data.models import ImportFormat
from graphmem.user_data.records import parse_records, records_json_schema
from tests.api.conftest import describe_api
from tests.documentation.test_reference import PAGES, ROOT

CLI_GROUP: Any = get_command(app)


def read_page(page: str) -> str:
    """Return the text of a page, or of the section that a link leads to, as in `docs/clients.md#conventions`."""
    path, _, anchor = page.partition("#")
    text = (ROOT / path).read_text("utf-8")
    return "".join(section_lines(text, anchor)) if anchor else text


def section_lines(text: str, anchor: str) -> Iterator[str]:
    """Yield the lines below a heading, up to the next heading of its level or above."""
    level, is_code = 0, False
    for line in text.splitlines(keepends=True):
        is_code ^= line.startswith("```")
        found = None if is_code else re.fullmatch(r"(#+) (.*)\n", line)
        if found and level and len(found[1]) <= level:
            return
        if level:
            yield line
        elif found and make_anchor(found[2]) == anchor:
            level = len(found[1])
    assert level, f"no heading {anchor!r}"


def make_anchor(heading: str) -> str:
    """Return the anchor of a heading, as MkDocs and GitHub both name it."""
    plain = re.sub(r"\]\([^)]*\)", "", heading)
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def code_blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", read_page(page), re.DOTALL)


def commands(page: str) -> Iterator[list[str]]:
    """Yield the words of every graphmem command on a page."""
    shown = [line for block in code_blocks("docs/agents.md#write-your-own-loop", "sh") for line in block.splitlines()]
    shown += re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", read_page(page), flags=re.DOTALL))
    for line in shown:
        if typed := re.fullmatch(r"(?:[A-Z_]+=\S+ )*graphmem ([^|>]+).*", line):
            yield shlex.split(typed[1], comments=True)


def check_command(words: list[str]) -> None:
    """Fail for a command or an option that graphmem does not have."""
    command = CLI_GROUP
    for word in words:
        children = getattr(command, "commands", {})
        if children and not word.startswith("-"):
            assert word in children, f"graphmem has no command {word!r} in: {' '.join(words)}"
            command = children[word]
        elif word.startswith("-") and word != "-":
            known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
            assert word.partition("=")[0] in {*known, "--help"}, f"no option {word} in: graphmem {' '.join(words)}"


@pytest.mark.parametrize("page", [*PAGES, "graphmem/DECISIONS.md"])
def test_every_documented_command_and_option_exists(page: str) -> None:
    for words in commands(page):
        check_command(words)


def test_unknown_commands_fail_the_check() -> None:
    for wrong in (["exprt"], ["import", "--shape", "mem0"], ["db", "begin"]):
        with pytest.raises(AssertionError):
            check_command(wrong)


def servers() -> list[dict[str, Any]]:
    """The servers in the snippets of the page, under whatever name a client lists them."""
    shown = [json.loads(block) for block in code_blocks("docs/coding-agents.md#mcp-clients", "json")]
    return [server for snippet in shown for listed in snippet.values() for server in listed.values()]


def test_mcp_client_snippets_are_valid() -> None:
    started = [server for server in servers() if "command" in server]
    reached = [server for server in servers() if "url" in server]
    assert len(started) >= 3
    assert reached
    for server in started:
        assert server["command"] == "graphmem"
        name, *options = server["args"]
        context = CLI_GROUP.commands[name].make_context(name, list(options))
        assert context.params["user"] == "ada"
    for server in reached:
        assert server["url"] == f"http://127.0.0.1:8321{MCP_PATH}"
        assert server["headers"]["Authorization"].startswith("Bearer gm_")


def test_documented_exports_import_completely() -> None:
    documents = {
        detect_format(document): document
        for document in map(json.loads, code_blocks("docs/data.md#import-from-other-systems", "json"))
    }
    assert documents.keys() == {ImportFormat.MEM0, ImportFormat.GRAPHITI, ImportFormat.CHAT}
    taken = [
        parse_mem0(documents[ImportFormat.MEM0], "ada"),
        parse_graphiti(documents[ImportFormat.GRAPHITI]).statements,
    ]
    assert [(len(parsed.accepted), parsed.rejected) for parsed in taken] == [(1, []), (1, [])]
    chat_log = parse_chat_log(documents[ImportFormat.CHAT])
    assert ([len(batch.messages) for batch in chat_log.batches], chat_log.rejected) == ([2], [])


@pytest.mark.req("QUINN-12", "QUINN-15")
def test_published_export_schema_is_current() -> None:
    """`make reference` regenerates the file."""
    assert json.loads(read_page("docs/export.schema.json")) == export_json_schema()


@pytest.mark.req("QUINN-15")
def test_published_schema_of_records_is_current_and_accepts_the_documented_ones() -> None:
    schema = json.loads(read_page("docs/records.schema.json"))
    assert schema == records_json_schema()
    blocks = [*code_blocks("docs/data.md#records", "yaml"), *code_blocks("docs/extraction.md", "yaml")]
    records, types = (parse_structured_text(block.encode()) for block in blocks)
    jsonschema.Draft202012Validator(schema).validate(records)
    statements = parse_records(records, "ada").statements
    assert ([statement.id for statement in statements.accepted], statements.rejected) == (["mem-17", "mem-18"], [])
    assert list(find_invalid_schemas(DeclaredTypesIn.model_validate(types))) == []


def test_documented_explore_queries_match_the_files() -> None:
    named = set(re.findall(r"`(\w+\.(?:cypher|grass))`", read_page("docs/explorer.md")))
    assert named == {path.name for path in (ROOT / "cypher/explore").iterdir()}


def test_compose_file_uses_existing_commands_and_declared_resources() -> None:
    composed = yaml.safe_load(read_page("docker-compose.yml"))
    for name in ("api", "worker"):
        service = composed["services"][name]
        CLI_GROUP.commands[service["command"][0]].make_context(service["command"][0], service["command"][1:])
        assert {*service["depends_on"]} <= {
            other for other, service in composed["services"].items() if "healthcheck" in service
        }
    for service in composed["services"].values():
        assert {*service.get("secrets", [])} <= composed["secrets"].keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= composed["volumes"].keys()
    head = read_page("docker-compose.yml").partition("services:")[0]
    assert all(secret in head for secret in composed["secrets"])


def test_every_documented_request_has_a_route_and_a_valid_body() -> None:
    routes = describe_api()["paths"]
    patterns = {re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)): methods for path, methods in routes.items()}
    shown = [
        line
        for block in code_blocks("docs/agents.md#write-your-own-loop", "sh")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    requests = [shlex.split(line) for line in shown if line.startswith("curl ")]
    assert requests
    for words in requests:
        [path] = re.findall(r"^localhost:8321([^?\n]+)", "\n".join(words), re.MULTILINE)
        assert any("post" in methods for pattern, methods in patterns.items() if pattern.fullmatch(path)), path
        if "-d" in words:
            body = json.loads(words[words.index("-d") + 1])
            (MessagesIn if "messages" in body else SearchQuery).model_validate(body)
