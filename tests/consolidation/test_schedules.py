"""The schedules of consolidation and maintenance in the job store."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.consolidation.service import schedule_maintenance, schedule_nightly_consolidation
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.store import JobStore
from graphmem.runtime.settings import Settings


async def stored_schedules(settings: Settings) -> dict[str, tuple[str, str | None, object]]:
    """The schedules of a worker with these settings: cron, time zone and cron of the execution, by name."""
    async with await JobRunner.open(settings) as jobs:
        await schedule_nightly_consolidation(jobs, settings)
        await schedule_maintenance(jobs, settings)
    store = JobStore.open(settings)
    found = store.client.list_schedules()
    store.close()
    return {
        schedule["schedule_name"]: (
            schedule["schedule"],
            schedule["cron_timezone"],
            schedule["context"]["payload"].get("execution"),
        )
        for schedule in found
    }


@pytest.mark.req("UMB-10", "UMB-11", "UMB-12")
async def test_nightly_schedules_use_the_configured_time_zone(tmp_path: Path) -> None:
    assert await stored_schedules(Settings(data_dir=tmp_path, nightly=True)) == {
        "consolidation": ("0 2 * * *", "UTC", "30 2 * * *"),
        "maintenance": ("0 3 * * *", "UTC", None),
    }
    moved = await stored_schedules(
        Settings(data_dir=tmp_path, nightly=True, timezone="Europe/Berlin", consolidation_discovery="15 1 * * *")
    )
    assert {zone for _, zone, _ in moved.values()} == {"Europe/Berlin"}
    assert moved["consolidation"][0] == "15 1 * * *"


async def test_disabled_nightly_schedules_are_removed(tmp_path: Path) -> None:
    assert len(await stored_schedules(Settings(data_dir=tmp_path, nightly=True))) == 2
    assert await stored_schedules(Settings(data_dir=tmp_path, nightly=False)) == {}
