"""`graphmem doctor` names what is broken and how to fix it."""

from __future__ import annotations

import uuid

from graphmem.neo4j.driver import Graph
from tests.cli.conftest import Cli


def _by_part(answer: dict[str, list[dict[str, str]]]) -> dict[str, dict[str, str]]:
    return {check["part"]: check for check in answer["checks"]}


async def test_doctor_passes_on_a_working_installation(cli: Cli) -> None:
    done = await cli("doctor", "--json")
    checks = _by_part(done.json)
    assert (done.code, done.json["ok"]) == (0, True)
    assert checks["embedder"]["detail"] == "all-MiniLM-L6-v2-int8, 384 dimensions"
    assert checks["schema"]["verdict"] == "ok"
    assert checks["language model"]["verdict"] == "note"
    assert not (cli.folder / "data").exists()


async def test_doctor_reports_broken_parts_with_fixes(cli_without_settings: Cli) -> None:
    done = await cli_without_settings(
        "doctor",
        "--json",
        GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:1",
        GRAPHMEM_EMBEDDER="openai",
        OPENAI_BASE_URL="http://127.0.0.1:1/v1",
        GRAPHMEM_JOBS_URL="postgresql://nobody@127.0.0.1:1/none",
    )
    checks = _by_part(done.json)
    broken = {part for part, check in checks.items() if check["verdict"] == "broken"}
    assert done.code == 1
    assert broken == {"Neo4j", "language model", "job store", "embedder"}
    assert all(checks[part]["fix"] for part in broken)
    assert "Traceback" not in done.err


async def test_doctor_names_unsound_data_and_what_to_do(cli: Cli, graph: Graph, user: str) -> None:
    group_id = f"t{uuid.uuid4().hex[:12]}:{user}"
    await graph.write(
        lambda transaction: transaction.run_text(
            "CREATE (:User {group_id: $g}), (:Episodic {group_id: $g, message_id: 'lost', entity_edges: []})",
            {"g": group_id},
        )
    )
    done = await cli("doctor", "--deep", "--tenant", group_id.partition(":")[0], "--json")
    [broken] = [check for check in done.json["checks"] if check["verdict"] == "broken"]
    assert done.code == 1
    assert broken["part"] == "data: messages without session"
    assert broken["detail"].endswith(f"1: lost of {group_id}")
    assert "backup" in broken["fix"]
