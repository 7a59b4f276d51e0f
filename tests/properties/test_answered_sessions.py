"""Sessions whose model answers anything within its schema, while others change what it was shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from graphmem.app.bootstrap import Services
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import check_invariants
from graphmem.runtime.settings import Settings
from torture.answered_sessions import PromptedModel, play_sessions
from torture.findings import Findings
from torture.fuzz_answers import MODEL_SETTINGS

SESSIONS, SEED = 3, 4

ROUNDS = 10
"""Rounds of sessions at most, until another writer has merged something: chance decides whether one can."""


@pytest.fixture
def model() -> Iterator[PromptedModel]:
    with PromptedModel(SEED) as model:
        yield model


@pytest.fixture
async def services(database: Settings, graph: Graph, model: PromptedModel) -> AsyncIterator[Services]:
    changed = {"openai_base_url": model.base_url, **MODEL_SETTINGS, "llm_timeout": 60}
    settings = Settings.model_validate({**database.model_dump(), **changed})
    async with Services.open(settings) as services:
        yield services


@pytest.mark.long
async def test_every_session_is_applied_or_refused_with_reasons_whatever_is_answered(
    services: Services, model: PromptedModel, tenant: str, graph: Graph
) -> None:
    findings, done = Findings(), Counter[str]()
    for number in range(ROUNDS):
        done += await play_sessions(services, tenant, SESSIONS, model, findings, SEED + number)
        if any(action.startswith("other writer") for action in done):
            break
    assert not findings.total, findings.report()
    assert done["insert"] >= SESSIONS
    assert done["refuse"]
    assert any(action.startswith("other writer") for action in done), done
    violations = [check async for check in check_invariants(graph, tenant) if check.count]
    assert not violations
