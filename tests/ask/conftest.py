"""The settings of the API's tests, whose server these tests serve again with a model of their own."""

from __future__ import annotations

from tests.api.conftest import settings

__all__ = ["settings"]
