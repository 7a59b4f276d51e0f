"""Settings: secrets come from the environment or from files, and are not shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import SECRET_VARIABLES, Settings


@pytest.mark.parametrize(
    ("setting", "variable"), [item for item in SECRET_VARIABLES.items() if item[0] != "placements"]
)
def test_a_secret_is_read_from_a_file_and_not_shown(
    setting: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("postgresql://graphmem:hunter2@jobs/graphmem\n")
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / "secret"))
    settings = Settings(_env_file=None)
    value = getattr(settings, setting)
    assert (value if isinstance(value, str) else value.get_secret_value()).endswith("hunter2@jobs/graphmem")
    assert "hunter2" not in repr(settings) + str(settings)


@pytest.mark.parametrize(
    "text",
    [
        '{"second": {"uri": "bolt://second:7687", "password": "hunter2"}}',
        '[second]\nuri = "bolt://second:7687"\npassword = "hunter2"',
    ],
)
def test_further_graphs_are_read_from_a_file_and_their_passwords_not_shown(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "graphs").write_text(text)
    monkeypatch.setenv("GRAPHMEM_PLACEMENTS_FILE", str(tmp_path / "graphs"))
    settings = Settings(_env_file=None)
    assert settings.placements["second"].read_password("second") == "hunter2"
    assert "hunter2" not in repr(settings) + str(settings.placements)


@pytest.mark.parametrize("text", ["second", "{}}", '{"home": {"uri": "bolt://x"}}', '{"a b": {"uri": "bolt://x"}}'])
def test_unusable_graphs_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="placements"):
        Settings(_env_file=None, placements=text)


def test_the_environment_is_stronger_than_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("file")
    monkeypatch.setenv("GRAPHMEM_ADMIN_KEY_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("GRAPHMEM_ADMIN_KEY", "environment")
    key = Settings().admin_key
    assert key
    assert key.get_secret_value() == "environment"


def test_a_file_that_cannot_be_read_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_ADMIN_KEY_FILE", "/missing/file")
    with pytest.raises(ConfigurationError, match="GRAPHMEM_ADMIN_KEY_FILE"):
        Settings()


def test_an_empty_file_is_like_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").touch()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "secret"))
    assert Settings(_env_file=None).openai_api_key is None


@pytest.mark.req("UMB-07")
@pytest.mark.parametrize("value", ["0", "-1", "11", "much"])
def test_a_channel_weight_is_a_positive_number(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEM_KEYWORD_WEIGHT", value)
    with pytest.raises(ValidationError, match="keyword_weight"):
        Settings(_env_file=None)
