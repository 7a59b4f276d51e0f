"""The environment of a process as the Helm chart makes it, by the table that docker-compose.yml comes from too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from docs.deployments import CHART, file_name, read_table
from torture.processes import base_environment

IMAGE_VARIABLES = frozenset({"GRAPHMEM_DATA_DIR"})
"""Variables of the table that no deployment passes on, because the image sets them."""


def chart_environment(
    folder: Path, settings: Mapping[str, str], secrets: Mapping[str, str], image: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a process: settings, the chart's own values among them, and the paths of secrets.

    The secrets are written to files of `folder`. Raises ValueError for a variable that the chart does not pass on, and
    where one is missing that it requires.
    """
    table = read_table()
    settings = {**_values_of_chart(), **settings}
    for given, known in ((settings, table.settings_of("chart")), (secrets, table.secrets_of("chart"))):
        if unknown := given.keys() - known.keys():
            raise ValueError(f"The chart does not pass on {', '.join(sorted(unknown))}: see deploy/settings.yaml.")
        required = {name for name, row in known.items() if row.required}
        if missing := required - given.keys():
            raise ValueError(f"The chart requires {', '.join(sorted(missing))}: see deploy/settings.yaml.")
    if unknown := image.keys() - (IMAGE_VARIABLES & {*table.not_passed}):
        raise ValueError(f"The image does not set {', '.join(sorted(unknown))}: see deploy/settings.yaml.")
    return base_environment(**settings, **image, **_write_secrets(folder, secrets))


def _values_of_chart() -> dict[str, str]:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    return {name: str(value) for name, value in values["settings"].items()}


def _write_secrets(folder: Path, secrets: Mapping[str, str]) -> dict[str, str]:
    """Write each secret to its file, and return the variables that name the files."""
    folder.mkdir(exist_ok=True)
    for name, value in secrets.items():
        (folder / file_name(name)).write_text(value, "utf-8")
    return {f"{name}_FILE": str(folder / file_name(name)) for name in secrets}
