"""The quickstart of the wheel, outside the repository, with the recorded completions of the sample."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphmem.jobs.runner import JobRunner
from graphmem.runtime.settings import Settings
from tests.cli.conftest import Cli, serving


def _texts(answer: dict[str, Any]) -> str:
    return "\n".join(str(memory["content"]) for _, memories in answer["found"] for memory in memories)


@pytest.mark.timeout(300)
@pytest.mark.req("GO-07", "UMB-18", "QUINN-24", "QUINN-27", "CASH-11")
async def test_quickstart_answers_from_the_sample_beside_a_server_without_a_model_and_is_idempotent(
    cli: Cli, installed: Path, tenant: str
) -> None:
    async with serving(cli):
        from_wheel = replace(cli, program=installed.parent / "graphmem")
        first = await from_wheel.start("quickstart", "--tenant", tenant, "--json")
        printed, told = await first.communicate()
    assert first.returncode == 0, told.decode()
    async with await JobRunner.open(Settings(data_dir=cli.folder / "data")) as jobs:
        queued = await jobs.list(f"{tenant}:demo", limit=200)
    assert [job.kind for job in queued if not job.status.is_final] == [], "nothing is left for the server to do"
    assert "recorded completions of a large language model" in told.decode()
    assert "42424242" not in printed.decode().replace(" ", "")
    report = json.loads(printed)["report"]
    assert len(report["kept"]) > 20
    assert {entry["reason"].partition(":")[0] for entry in report["rejected"]} >= {
        "a secret (card)",
        "nothing worth keeping",
    }
    assert any("Klangwerft" in entry["memory"]["content"] for entry in report["retired"])
    for answer in report["answers"]:
        question, found = answer["question"], _texts(answer)
        assert [text for text in question["expects"] if text not in found] == [], question["id"]
        assert [text for text in question["absent"] if text in found] == [], question["id"]
        assert (found == "") is (question["cut"] == "auto"), question["id"]

    second = await cli("quickstart", "--tenant", tenant)
    assert second.code == 0, second.err
    assert f"Kept: {len(report['kept'])} current memories" in second.out
    for part in ("Superseded, ended or retracted", "Answers", "Neo4j Browser", "db browser", "OPENAI_API_KEY"):
        assert part in second.out
    sessions = (await cli("sessions", "--user", "demo", "--tenant", tenant, "--json")).json["items"]
    assert sum(session["message_count"] for session in sessions) == 64
    await cli("forget", "--user", "demo", "--tenant", tenant, "--yes")
