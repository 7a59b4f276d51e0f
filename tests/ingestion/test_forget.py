"""An extraction that is under way when its user is forgotten stores nothing."""

from __future__ import annotations

import asyncio
import json
import threading

from graphmem.jobs.job import JobStatus
from graphmem.user_data.forget import ForgetStore
from tests.ingestion.conftest import IngestionHarness, extraction, lives_in
from tests.models.scripted_server import Exchange, replies


async def test_an_extraction_that_outlives_the_erasure_of_the_jobs_stores_nothing(harness: IngestionHarness) -> None:
    asked, answer = threading.Event(), threading.Event()

    def answer_late(exchange: Exchange) -> None:
        asked.set()
        answer.wait(60)
        replies(json.dumps(extraction(lives_in("Lisbon"))))(exchange)

    harness.model_answers(answer_late)
    accepted = await harness.send("I live in Lisbon")
    await asyncio.to_thread(asked.wait, 10)
    erasure = await ForgetStore(harness.graph, harness.clock).begin(harness.owner)
    answer.set()
    job = await harness.wait_for_job(accepted.job_id)
    assert job.status is JobStatus.FAILED
    assert "being forgotten" in (job.error or "")
    progress = await erasure.end()
    assert "Fact" not in progress.erased
    assert await harness.current_memories() == []
