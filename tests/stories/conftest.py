"""The settings of the API's tests; a process runs the jobs of one service at a time, so these tests are a folder."""

from __future__ import annotations

from tests.api.conftest import settings

__all__ = ["settings"]
