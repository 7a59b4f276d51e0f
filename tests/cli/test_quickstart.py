"""The quickstart, with the recorded completions of the sample."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Cli


def _texts(answer: dict[str, Any]) -> str:
    return "\n".join(memory["content"] for _, memories in answer["found"] for memory in memories)


@pytest.mark.timeout(300)
@pytest.mark.req("GO-07", "UMB-18", "QUINN-24", "QUINN-27", "CASH-11")
async def test_the_quickstart_reads_the_sample_and_answers_from_it_and_a_second_run_adds_nothing(
    cli: Cli, tenant: str
) -> None:
    first = await cli("quickstart", "--tenant", tenant, "--json")
    assert first.code == 0, first.err
    assert "recorded completions of a large language model" in first.err
    assert "4242" not in first.out.replace('"4242"', "")
    seen = first.answer["tour"]
    assert {each["what"].partition(":")[0] for each in seen["refused"]} >= {"a secret (card)", "nothing worth keeping"}
    assert any("Klangwerft" in each["memory"]["content"] for each in seen["ended"])
    for answer in seen["answers"]:
        question, found = answer["question"], _texts(answer)
        assert [text for text in question["expects"] if text not in found] == [], question["id"]
        assert [text for text in question["absent"] if text in found] == [], question["id"]

    second = await cli("quickstart", "--tenant", tenant)
    assert second.code == 0, second.err
    assert f"Kept: {len(seen['kept'])} current memories" in second.out
    for part in ("Superseded or taken back", "Answers", "Neo4j Browser", ":params", "OPENAI_API_KEY"):
        assert part in second.out
    sessions = (await cli("sessions", "--user", "mara", "--tenant", tenant, "--json")).answer["items"]
    assert sum(session["message_count"] for session in sessions) == 64
    await cli("forget", "--user", "mara", "--tenant", tenant, "--yes")
