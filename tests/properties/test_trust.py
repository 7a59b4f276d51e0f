"""Random writes by sources of every trust: a more trusted owner reads what a naive model says, and nothing else."""

from __future__ import annotations

import random

from graphmem.app.bootstrap import Services
from graphmem.tenants.owners import Owner
from tests.conftest import examples
from torture.findings import differences
from torture.trust import TrustWorld

STEPS = 16


async def test_no_less_trusted_source_changes_what_a_more_trusted_one_reads(memory: Services, owner: Owner) -> None:
    for seed in range(examples(0.025)):
        world = TrustWorld(memory, Owner(owner.tenant, f"{owner.user_id}-{seed}"), random.Random(seed))
        await world.fill()
        for _ in range(STEPS):
            await world.attack()
            assert not list(differences(world.expected, await world.read())), world.log[-1]
