"""Writes what the deployments take from `deploy/settings.yaml`, the table of their settings: `make reference`."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from graphmem.runtime.settings import Settings

ROOT = Path(__file__).parents[1]
TABLE_FILE = ROOT / "deploy" / "settings.yaml"
COMPOSE_FILE = ROOT / "docker-compose.yml"
CHART = ROOT / "deploy" / "helm" / "graphmem"
VALUES_SCHEMA_FILE = CHART / "values.schema.json"

LINE_LENGTH = 120
"""Characters of a line of the files that are written."""

_ENVIRONMENT = re.compile(r"(?<=^  environment: \[\n).*?(?=^  \]$)", re.DOTALL | re.MULTILINE)
"""The environment of the API and the worker in `docker-compose.yml`."""


class Variable(BaseModel):
    """What the table says about a variable of the environment."""

    model_config = ConfigDict(extra="forbid")

    only: Literal["compose", "chart"] | None = None
    """The deployment that the variable is for; absent: both."""
    required: bool = False
    """Whether the chart cannot be installed without it."""
    compose: str | None = None
    """The value in `docker-compose.yml`; absent: that of the environment of `docker compose`, if any."""
    description: str | None = None
    """What it is, if it is not a setting of graphmem."""


class SettingsTable(BaseModel):
    """The table of what deployments give to the processes of graphmem, by the names of variables."""

    model_config = ConfigDict(extra="forbid")

    secrets: dict[str, Variable | None]
    """Variables whose values are in files."""
    settings: dict[str, Variable | None]
    """Variables that a deployment passes on."""
    not_passed: list[str]
    """Settings that a deployment does not pass on."""

    def secrets_of(self, deployment: Literal["compose", "chart"]) -> dict[str, Variable]:
        """Return the secrets of a deployment."""
        return _rows_of(deployment, self.secrets)

    def settings_of(self, deployment: Literal["compose", "chart"]) -> dict[str, Variable]:
        """Return the settings of a deployment."""
        return _rows_of(deployment, self.settings)


def _rows_of(deployment: str, rows: dict[str, Variable | None]) -> dict[str, Variable]:
    known = {name: row or Variable() for name, row in rows.items()}
    return {name: row for name, row in known.items() if row.only in (None, deployment)}


def read_table() -> SettingsTable:
    """Return the table."""
    return SettingsTable.model_validate(yaml.safe_load(TABLE_FILE.read_text("utf-8")))


def file_name(secret: str) -> str:
    """Return the name of the file that holds the value of a variable."""
    return secret.removeprefix("GRAPHMEM_").lower()


def compose_environment(table: SettingsTable) -> list[str]:
    """Return the environment of a process in `docker-compose.yml`: `NAME=value`, or the name of what is passed on."""
    files = [f"{name}_FILE=/run/secrets/{file_name(name)}" for name in table.secrets_of("compose")]
    rows = table.settings_of("compose")
    values = [f"{name}={row.compose}" for name, row in rows.items() if row.compose]
    return [*values, *files, *(name for name, row in rows.items() if not row.compose)]


def write_environment(compose: str, table: SettingsTable) -> str:
    """Return the text of `docker-compose.yml` with the environment that the table says."""
    entries = compose_environment(table)
    assigned = "".join(f'    "{entry}",\n' for entry in entries if "=" in entry)
    passed_on = ", ".join(entry for entry in entries if "=" not in entry)
    lines = textwrap.fill(passed_on, LINE_LENGTH, initial_indent="    ", subsequent_indent="    ")
    written, count = _ENVIRONMENT.subn(lambda _: f"{assigned}{lines},\n", compose)
    if count != 1:
        raise ValueError("docker-compose.yml has no single list `environment` to write")
    return written


def write_values_schema(schema: str, table: SettingsTable) -> str:
    """Return the text of the chart's `values.schema.json` with the settings and secrets of the table."""
    document = json.loads(schema)
    described = _describe_settings()
    for part, rows, describe in (
        ("settings", table.settings_of("chart"), _describe_setting),
        ("secrets", table.secrets_of("chart"), _describe_secret),
    ):
        document["properties"][part] = {
            "type": "object",
            "additionalProperties": False,
            "required": [name for name, row in rows.items() if row.required],
            "properties": {name: describe(described.get(name, {}), row) for name, row in rows.items()},
        }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _describe_settings() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each setting by the name of its variable."""
    described = Settings.model_json_schema()["properties"]
    return {name if name.isupper() else f"GRAPHMEM_{name.upper()}": schema for name, schema in described.items()}


def _describe_setting(setting: dict[str, Any], row: Variable) -> dict[str, Any]:
    """Return the schema of a value of the chart: a list is the text that its variable has."""
    alternatives = setting.pop("anyOf", [{}])
    schema = {**alternatives[0], **setting, "description": row.description or setting.get("description")}
    if schema.get("type", "array") == "array":
        schema = {"type": "string", "description": schema["description"]}
    return {key: value for key, value in schema.items() if key != "title" and value is not None}


def _describe_secret(setting: dict[str, Any], row: Variable) -> dict[str, Any]:
    """Return the schema of the place of a secret: a Secret and a key in it."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "key"],
        "properties": {"name": {"type": "string", "minLength": 1}, "key": {"type": "string", "minLength": 1}},
        "description": row.description or setting["description"],
    }


def write_deployments() -> None:
    """Write what the deployments take from the table."""
    table = read_table()
    COMPOSE_FILE.write_text(write_environment(COMPOSE_FILE.read_text("utf-8"), table), "utf-8")
    VALUES_SCHEMA_FILE.write_text(write_values_schema(VALUES_SCHEMA_FILE.read_text("utf-8"), table), "utf-8")


if __name__ == "__main__":
    write_deployments()
