"""The quickstart with the recorded completions of the sample."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Cli


def _texts(answer: dict[str, Any]) -> str:
    return "\n".join(memory["content"] for _, memories in answer["found"] for memory in memories)


@pytest.mark.timeout(300)
@pytest.mark.req("GO-07", "UMB-18", "QUINN-24", "QUINN-27", "CASH-11")
async def test_quickstart_answers_from_the_sample_and_is_idempotent(cli: Cli, tenant: str) -> None:
    first = await cli("quickstart", "--tenant", tenant, "--json")
    assert first.code == 0, first.err
    assert "recorded completions of a large language model" in first.err
    assert "42424242" not in first.out.replace(" ", "")
    report = first.json["report"]
    assert {entry["reason"].partition(":")[0] for entry in report["rejected"]} >= {
        "a secret (card)",
        "nothing worth keeping",
    }
    assert any("Klangwerft" in entry["memory"]["content"] for entry in report["retired"])
    for answer in report["answers"]:
        question, found = answer["question"], _texts(answer)
        assert [text for text in question["expects"] if text not in found] == [], question["id"]
        assert [text for text in question["absent"] if text in found] == [], question["id"]
        assert (found == "") is question["expects_nothing"], question["id"]

    second = await cli("quickstart", "--tenant", tenant)
    assert second.code == 0, second.err
    assert f"Kept: {len(report['kept'])} current memories" in second.out
    for part in ("Superseded, ended or retracted", "Answers", "Neo4j Browser", "db browser", "OPENAI_API_KEY"):
        assert part in second.out
    sessions = (await cli("sessions", "--user", "mara", "--tenant", tenant, "--json")).json["items"]
    assert sum(session["message_count"] for session in sessions) == 64
    await cli("forget", "--user", "mara", "--tenant", tenant, "--yes")
