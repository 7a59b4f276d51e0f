"""The embedder that the settings select, and the errors of settings without one."""

from __future__ import annotations

import sys

import pytest

from graphmem.models.embedder import create_embedder
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import Settings


def test_recorded_name_distinguishes_int8_from_fp32() -> None:
    local = create_embedder(Settings(_env_file=None))
    fp32 = create_embedder(Settings(_env_file=None, embedder="sentence-transformers"))
    assert (local.model, fp32.model) == ("all-MiniLM-L6-v2-int8", "all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", ["bge-small-en-v1.5", "bge-small-en-v1.5-int8"])
def test_setting_accepts_the_recorded_name(name: str) -> None:
    assert create_embedder(Settings(_env_file=None, embedding_model=name)).model == "bge-small-en-v1.5-int8"


def test_unknown_local_model_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"all-MiniLM-L6-v2, bge-small-en-v1\.5, or set GRAPHMEM_EMBEDDER"):
        create_embedder(Settings(_env_file=None, embedding_model="no-such-model"))


async def test_missing_extra_is_rejected_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = create_embedder(Settings(_env_file=None, embedder="sentence-transformers"))
    with pytest.raises(ConfigurationError, match=r"pip install 'graphmem\[sentence-transformers\]'"):
        await embedder.open()
    await embedder.aclose()
