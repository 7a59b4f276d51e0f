"""Write `docs/reference.md` from the code: settings, routes, commands, tools; and `docs/export.schema.json`.

Run as `make reference`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import typer.main
from graphmem_api.app import create_app

from graphmem.bootstrap import GraphMemory
from graphmem.cli.app import app as command_line
from graphmem.domain.export_schema import schema_of_export
from graphmem.mcp.server import make_server
from graphmem.settings import Settings

TARGET = Path(__file__).with_name("reference.md")
SCHEMA = Path(__file__).with_name("export.schema.json")


def settings() -> Iterator[str]:
    """Yield a row for each setting."""
    yield "| setting | default | what it is for |\n|---|---|---|"
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        shown = alias.choices[0] if alias is not None and hasattr(alias, "choices") else f"GRAPHMEM_{name.upper()}"
        default = field.get_default(call_default_factory=True)
        told = "the platform's folder" if isinstance(default, Path) else "" if default in (None, []) else f"`{default}`"
        yield f"| `{shown}` | {told} | {field.description} |"


def routes() -> Iterator[str]:
    """Yield a row for each route."""
    app = create_app(cast(GraphMemory, None), Settings())
    yield "| route | does |\n|---|---|"
    for path, methods in sorted(app.openapi()["paths"].items()):
        for method, operation in methods.items():
            yield f"| `{method.upper()} {path}` | {operation['summary']} |"


def commands() -> Iterator[str]:
    """Yield a row for each command."""
    yield "| command | does |\n|---|---|"
    root = typer.main.get_command(command_line)
    yield from _commands(root, "graphmem")


def _commands(command: Any, called: str) -> Iterator[str]:
    children = getattr(command, "commands", None)
    if not children:
        yield f"| `{called}` | {(command.help or '').split(chr(10) * 2)[0].strip()} |"
        return
    for name, child in sorted(children.items()):
        yield from _commands(child, f"{called} {name}")


def _nobody(*_: object) -> Any:
    raise LookupError("the reference asks for no memory")


async def tools() -> list[str]:
    """Return a row for each tool of the MCP server."""
    rows = ["| tool | does |\n|---|---|"]
    server = make_server(_nobody, _nobody)
    for tool in await server.list_tools():
        rows.append(f"| `{tool.name}` | {' '.join((tool.description or '').split())} |")
    return rows


def render() -> str:
    """Return the whole reference."""
    parts = [
        "# Reference",
        "Written from the code by `make reference`; `/docs` of a running server tells every field.",
        "## Settings",
        "Read from the environment or a `.env` file.",
        "\n".join(settings()),
        "## HTTP",
        "\n".join(routes()),
        "## Command line",
        "\n".join(commands()),
        "## MCP tools",
        "\n".join(asyncio.run(tools())),
    ]
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """Return the JSON Schema of an export."""
    return json.dumps(schema_of_export(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
    SCHEMA.write_text(schema(), "utf-8")
