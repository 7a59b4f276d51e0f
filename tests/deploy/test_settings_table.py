"""The deployments have the settings of one table, and the table has those of graphmem."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from docs.deployments import COMPOSE_FILE, ROOT, SettingsTable, compose_environment, read_table, write_environment
from graphmem.runtime.settings import PROVIDERS, SECRET_VARIABLES

REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8").partition("### Hooks")[0]
SETTINGS = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", REFERENCE, re.MULTILINE))

OF_LIBRARIES = {
    *(provider.address for provider in PROVIDERS.values()),
    *re.findall(r"`(OTEL_[A-Z_]+)`", (ROOT / "docs" / "operations.md").read_text("utf-8")),
}
"""The documented variables that libraries read."""

OF_COMPOSE = {"GRAPHMEM_JOBS_PASSWORD"}
"""The variables of which `deploy/with-secrets` makes others."""


@pytest.fixture(scope="module")
def table() -> SettingsTable:
    return read_table()


def test_every_setting_is_in_the_table_once(table: SettingsTable) -> None:
    listed = [*table.secrets, *table.settings, *table.not_passed]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) >= SETTINGS
    assert set(listed) - SETTINGS <= OF_LIBRARIES | OF_COMPOSE


def test_every_secret_of_the_table_may_be_a_file(table: SettingsTable) -> None:
    assert table.secrets.keys() - OF_COMPOSE == set(SECRET_VARIABLES.values()) - {"GRAPHMEM_API_KEY"}, (
        "that is a caller's"
    )


def test_compose_file_has_the_environment_of_the_table(table: SettingsTable) -> None:
    """`make reference` writes it."""
    compose = COMPOSE_FILE.read_text("utf-8")
    assert compose == write_environment(compose, table)
    services = yaml.safe_load(compose)["services"]
    for name in ("api", "worker"):
        assert services[name]["environment"] == compose_environment(table)
        files = [Path(entry.partition("=")[2]).name for entry in services[name]["environment"] if "_FILE=" in entry]
        assert files == services[name]["secrets"]
