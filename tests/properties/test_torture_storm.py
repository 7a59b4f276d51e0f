"""The stories of `make torture` without a crash, its plans of kills, and the environment of its cluster."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from torture.cluster import chart_environment
from torture.crash import plan_twice
from torture.findings import Findings
from torture.honest_model import serving_honest_model
from torture.persistent_client import PersistentClient
from torture.stories import STORIES, Teller

REQUIRED_SECRETS = {
    "GRAPHMEM_NEO4J_PASSWORD": "one",
    "GRAPHMEM_JOBS_URL": "two",
    "GRAPHMEM_ADMIN_KEY": "three",
    "GRAPHMEM_RECEIPT_KEY": "four",
}


@pytest.mark.long
async def test_every_story_holds_where_nothing_is_killed(database: Settings, graph: Graph, tenant: str) -> None:
    findings = Findings()
    with serving_honest_model() as model:
        changes = {"openai_base_url": model, "openai_api_key": "key", "llm_output": "native"}
        configured = Settings.model_validate({**database.model_dump(), **changes})
        async with Services.open(configured) as services, serve_app(create_app(services, configured)) as address:
            key = await services.keys.create(tenant, ApiKeyIn(name="storm", role=KeyRole.ADMIN))
            client = PersistentClient(address, key.key, findings)
            teller = Teller(client)
            checks = [await story(teller, "ada") for story in STORIES]
            wrong = [difference for check in checks for difference in await check()]
            await client.close()
    assert wrong == []
    assert not findings.total, findings.report()


def test_a_cluster_loses_each_process_twice_in_an_order_of_the_seed() -> None:
    targets = ["api-1", "api-2", "neo4j-1"]
    kills = [target for killed in plan_twice(targets, 20, random.Random(1)) for target in killed]
    assert sorted(kills[:3]) == sorted(kills[3:]) == targets
    assert len(plan_twice(targets, 2, random.Random(1))) == 2


def test_a_process_of_the_cluster_has_the_settings_of_the_chart_and_its_secrets_as_files(tmp_path: Path) -> None:
    given = {"GRAPHMEM_NEO4J_URI": "bolt://127.0.0.1:7687"}
    image = {"GRAPHMEM_DATA_DIR": str(tmp_path)}
    environment = chart_environment(tmp_path / "secrets", given, REQUIRED_SECRETS, image)
    assert environment["GRAPHMEM_EMBEDDING_THREADS"] == "2"
    assert Path(environment["GRAPHMEM_JOBS_URL_FILE"]).read_text("utf-8") == "two"
    assert "GRAPHMEM_JOBS_URL" not in environment


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"GRAPHMEM_NEO4J_URI": "bolt://host", "GRAPHMEM_CACHE_DIR": "/tmp"}}, "GRAPHMEM_CACHE_DIR"),
        ({"settings": {}}, "requires GRAPHMEM_NEO4J_URI"),
        ({"secrets": {**REQUIRED_SECRETS, "GRAPHMEM_JOBS_PASSWORD": "five"}}, "GRAPHMEM_JOBS_PASSWORD"),
        ({"image": {"GRAPHMEM_BOLT_PORT": "1"}}, "GRAPHMEM_BOLT_PORT"),
    ],
)
def test_what_no_deployment_sets_is_refused(tmp_path: Path, changes: dict[str, dict[str, str]], message: str) -> None:
    given = {"settings": {"GRAPHMEM_NEO4J_URI": "bolt://host"}, "secrets": REQUIRED_SECRETS, "image": {}, **changes}
    with pytest.raises(ValueError, match=message):
        chart_environment(tmp_path / "secrets", **given)
