"""Optional dependencies."""

from __future__ import annotations

import pytest

from graphmem.runtime import settings
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.settings import Settings


def test_a_required_extra_that_is_missing_is_reported_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.MODULES_BY_EXTRA, "redis", ("no_such_package.part",))
    settings.ensure_extras(Settings())
    with pytest.raises(ConfigurationError, match=r"GRAPHMEM_CACHE_URL.*graphmem\[redis\]"):
        settings.ensure_extras(Settings(cache_url="redis://127.0.0.1:1"))
