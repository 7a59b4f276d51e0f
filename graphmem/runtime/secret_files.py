"""Secrets from files: a setting `NAME` may be given as `NAME_FILE`, the path of a file that contains it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from graphmem.runtime.errors import ConfigurationError

SECRET_VARIABLES = {
    "neo4j_password": "GRAPHMEM_NEO4J_PASSWORD",
    "api_key": "GRAPHMEM_API_KEY",
    "receipt_key": "GRAPHMEM_RECEIPT_KEY",
    "jobs_url": "GRAPHMEM_JOBS_URL",
    "cache_url": "GRAPHMEM_CACHE_URL",
    "openai_api_key": "OPENAI_API_KEY",
}
"""The settings that may hold a secret, with their environment variables."""


class SecretFileSource(PydanticBaseSettingsSource):
    """Reads the settings of `SECRET_VARIABLES` from files; an empty file is like no file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of a field, its name, and that it is not JSON."""
        variable = SECRET_VARIABLES.get(field_name)
        path = os.environ.get(f"{variable}_FILE") if variable else None
        return (_read_secret(f"{variable}_FILE", path) if path else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values of all fields that have a file."""
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(fields[name], name)[0] for name in SECRET_VARIABLES}
        return {name: value for name, value in values.items() if value}


def _read_secret(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigurationError(f"The file of {variable} cannot be read ({reason}): correct the path.") from error
