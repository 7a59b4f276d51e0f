"""Generate `docs/reference.md` from the code (settings, routes, commands, tools), and the JSON Schemas in `docs`.

Run as `make reference`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import typer.main
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.cli.app import app as command_line
from graphmem.hooks.coding_agents import VARIABLES
from graphmem.mcp.server import MemoryServer
from graphmem.runtime.settings import Settings
from graphmem.user_data.export_schema import export_json_schema
from graphmem.user_data.records import records_json_schema

REFERENCE_FILE = Path(__file__).with_name("reference.md")
SCHEMA_FILE = Path(__file__).with_name("export.schema.json")
RECORDS_SCHEMA_FILE = Path(__file__).with_name("records.schema.json")


def setting_rows() -> Iterator[str]:
    """Yield a row for each setting."""
    yield "| setting | default | description |\n|---|---|---|"
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        variable = alias.choices[0] if alias is not None and hasattr(alias, "choices") else f"GRAPHMEM_{name.upper()}"
        default = _format_default(field.get_default(call_default_factory=True))
        yield f"| `{variable}` | {default} | {field.description} |"


def hook_rows() -> Iterator[str]:
    """Yield a row for each environment variable of hooks."""
    yield "| variable | default | description |\n|---|---|---|"
    for variable, (default, description) in VARIABLES.items():
        yield f"| `{variable}` | {_format_default(default or None)} | {description} |"


def _format_default(default: object) -> str:
    if isinstance(default, Path):
        return "the platform's folder"
    return "" if default in (None, "", [], {}) else f"`{default}`"


def route_rows(document: dict[str, Any]) -> Iterator[str]:
    """Yield a row for each route."""
    yield "| route | operation | description |\n|---|---|---|"
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            yield f"| `{method.upper()} {path}` | `{operation['operationId']}` | {operation['summary']} |"


def body_sections(document: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of each request body, by its schema."""
    schemas = document["components"]["schemas"]
    for name in sorted({*_body_schemas(document)}):
        rows = [_field_row(field, value, schemas[name]) for field, value in schemas[name]["properties"].items()]
        yield "\n".join([f"#### {name}\n", "| field | default | description |\n|---|---|---|", *rows])


def _body_schemas(document: dict[str, Any]) -> Iterator[str]:
    for methods in document["paths"].values():
        for operation in methods.values():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            yield from re.findall(r"#/components/schemas/(\w+)", json.dumps(schema))


def _field_row(name: str, field: dict[str, Any], schema: dict[str, Any]) -> str:
    default = "required" if name in schema.get("required", []) else _format_default(field.get("default"))
    return f"| `{name}` | {default} | {field['description']} |"


def command_rows() -> Iterator[str]:
    """Yield a row for each command."""
    yield "| command | description |\n|---|---|"
    root = typer.main.get_command(command_line)
    yield from _command_rows(root, "graphmem")


def _command_rows(command: Any, name_path: str) -> Iterator[str]:
    children = getattr(command, "commands", None)
    if not children:
        yield f"| `{name_path}` | {(command.help or '').split(chr(10) * 2)[0].strip()} |"
        return
    for name, child in sorted(children.items()):
        yield from _command_rows(child, f"{name_path} {name}")


def _not_called(*_: object) -> Any:
    raise AssertionError("the reference calls no tool")


async def tool_rows() -> list[str]:
    """Return a row for each tool of the MCP server."""
    rows = ["| tool | description |\n|---|---|"]
    server = MemoryServer(_not_called, can_ask=True)
    for tool in await server.list_tools():
        rows.append(f"| `{tool.name}` | {' '.join((tool.description or '').split())} |")
    return rows


def render() -> str:
    """Return the whole reference."""
    document = create_app(cast(Services, None), Settings()).openapi()
    parts = [
        "# Reference",
        "Generated from the code by `make reference`; `/docs` of a running server describes every field.",
        "## Settings",
        "Read from the environment or a `.env` file.",
        "\n".join(setting_rows()),
        "### Hooks of coding agents",
        "Read from the environment of the agent.",
        "\n".join(hook_rows()),
        "## HTTP",
        "\n".join(route_rows(document)),
        "### Request bodies",
        *body_sections(document),
        "## Command line",
        "\n".join(command_rows()),
        "## MCP tools",
        "\n".join(asyncio.run(tool_rows())),
    ]
    return "\n\n".join(parts) + "\n"


def to_text(schema: dict[str, Any]) -> str:
    """Return a JSON Schema as the text of its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    REFERENCE_FILE.write_text(render(), "utf-8")
    SCHEMA_FILE.write_text(to_text(export_json_schema()), "utf-8")
    RECORDS_SCHEMA_FILE.write_text(to_text(records_json_schema()), "utf-8")
