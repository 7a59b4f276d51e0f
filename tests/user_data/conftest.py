"""The export of a user who has everything, made once."""

from __future__ import annotations

import pytest

from graphmem.app.bootstrap import Services
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user


@pytest.fixture(scope="session")
async def complete_export(memory: Services, worker_id: str) -> bytes:
    """The export of a user `mara` who was forgotten since."""
    owner = Owner(f"exported-{worker_id}", "mara")
    await fill_user(memory, owner)
    export = await memory.exports.export(owner)
    await memory.forgetting.forget(owner)
    return export
