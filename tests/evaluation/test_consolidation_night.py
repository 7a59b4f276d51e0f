"""The harness of the evaluation of consolidation, through the Python API and a real Neo4j."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from quality.consolidation.__main__ import main
from quality.consolidation.cases import NIGHT, ConsolidationCase
from quality.consolidation.night import CaseClock, finish_case, run_night, store_case
from quality.consolidation.score import NightScore, score_case
from quality.metrics import Ratio
from tests.model_server import ModelServer

MERGED = "Ida rows a skiff on the Elbe."
ELBE = [{"words": "on the Elbe", "result": "on the Elbe"}]
READ = {"at": "2026-03-09", "says": ["row elbe"], "never": ["does not row"]}


@pytest.fixture(scope="module")
def night_clock() -> CaseClock:
    return CaseClock(NIGHT)


@pytest.fixture(scope="module")
async def services(
    database: Settings, embedder: Embedder, _models: ModelServer, night_clock: CaseClock
) -> AsyncIterator[Services]:
    answering = {"openai_base_url": _models.url, "openai_api_key": SecretStr("any"), "nightly": False}
    settings = database.model_copy(update=answering)
    async with Services.open(settings, embedder=embedder, clock=night_clock) as services:
        yield services


def rowing(**expected: Any) -> ConsolidationCase:
    return ConsolidationCase.model_validate(
        {
            "id": "en-rowing",
            "themes": ["same-statement"],
            "why": "an example",
            "user": "ida",
            "user_aliases": ["Ide"],
            "timezone": "Europe/Berlin",
            "entities": {"elbe": {"name": "Elbe", "type": "Place", "aliases": ["Labe"]}},
            "memories": {
                "skiff": {"text": "Ida rows a skiff.", "predicate": "ROWS"},
                "elbe": {"text": "Ida rows on the Elbe.", "predicate": "ROWS", "mentions": ["elbe"]},
            },
            "expected": {"reads": [READ], **expected},
        }
    )


async def score_night(services: Services, clock: CaseClock, tenant: str, case: ConsolidationCase) -> NightScore:
    stored = await store_case(GraphMemory(services, tenant), case, clock)
    await run_night(stored)
    return score_case(case, await finish_case(stored))


async def test_a_night_is_scored_and_rolled_back(
    services: Services, night_clock: CaseClock, tenant: str, models: ModelServer
) -> None:
    merge = {"action": "MERGE", "memories": [2, 1], "content": MERGED}  # the later one is the first
    statements = [
        {"statement": 1, "agreement": "same", "parts": [{"words": "Ida rows a skiff", "result": "Ida rows a skiff"}]},
        {"statement": 2, "agreement": "same", "parts": [{"words": "Ida rows", "result": "Ida rows"}, *ELBE]},
    ]
    verified = [{"proposal": 1, "differences": "", "one_fact": True, "statements": statements}]
    analysis = {"steps": ["both are about rowing"], "actions": [merge]}
    models.completion = json.dumps({**analysis, "proposals": verified})  # answers the verification as well
    example = rowing(
        merges=[{"memories": ["skiff", "elbe"], "keeps": ["row", "skiff", "elbe"]}],
        names={"user": ["Ide"], "elbe": ["Labe"]},
    )
    score = await score_night(services, night_clock, tenant, example)
    assert score.findings.all == []
    assert (score.metrics.merge_recall, score.metrics.merge_precision) == (Ratio(1, 1), Ratio(1, 1))
    assert (score.metrics.names, score.metrics.rollbacks) == (Ratio(2, 2), Ratio(1, 1))
    assert list(score.outcome.change_counts) > [0]


async def test_a_night_without_proposals_is_quiet(
    services: Services, night_clock: CaseClock, tenant: str, models: ModelServer
) -> None:
    models.completion = json.dumps({"steps": [], "actions": []})
    score = await score_night(services, night_clock, tenant, rowing(unchanged=True))
    assert score.findings.all == []
    assert (score.metrics.quiet_nights, score.metrics.rollbacks) == (Ratio(1, 1), Ratio(1, 1))


async def test_a_night_whose_model_fails_is_an_error_of_the_case(
    services: Services, night_clock: CaseClock, tenant: str, models: ModelServer
) -> None:
    models.completion = None
    score = await score_night(services, night_clock, tenant, rowing())
    assert "the night failed" in (score.outcome.error or "")


async def test_a_read_that_fails_before_the_night_is_an_error_of_the_case(
    services: Services, night_clock: CaseClock, tenant: str
) -> None:
    example = rowing(reads=[{"at": "2026-03-09", "says": ["ida sails"]}])
    score = await score_night(services, night_clock, tenant, example)
    assert score.outcome.error is not None
    assert "wrong before the night" in score.outcome.error
    assert "ida sails" in score.outcome.error


async def test_a_memory_that_is_not_saved_is_an_error_of_the_case(
    services: Services, night_clock: CaseClock, tenant: str
) -> None:
    secret = rowing().memories["skiff"].model_copy(update={"text": "Ida's password is hunter2-Ruder!"})
    example = rowing().model_copy(update={"memories": {"skiff": secret}})
    score = await score_night(services, night_clock, tenant, example)
    assert "skiff is not saved" in (score.outcome.error or "")


def test_missing_recordings_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--recordings", str(tmp_path / "none.jsonl")]) == 1
    assert "record them with --live" in capsys.readouterr().err
