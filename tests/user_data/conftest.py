"""The export of a user who has everything, made once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from graphmem.app.bootstrap import Services
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore
from tests.user_data.complete_user import fill_user


@pytest.fixture(scope="session")
async def _complete_export(memory: Services, worker_id: str) -> bytes:
    """The export of a user `mara` who was forgotten since."""
    owner = Owner(f"exported-{worker_id}", "mara")
    await fill_user(memory, owner)
    export = await memory.exports.export(owner)
    await memory.forgetting.forget(owner)
    return export


@pytest.fixture
async def complete_export(memory: Services, owner: Owner, _complete_export: bytes) -> AsyncIterator[bytes]:
    """The export of a user who has everything; all its ids are free again for the next test."""
    yield _complete_export
    for user in {owner, *await UserStore(memory.components.graph).list_owners(owner.tenant)}:
        await memory.forgetting.forget(user)
