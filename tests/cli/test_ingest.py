"""Ingesting a file of messages."""

from __future__ import annotations

import json

import pytest

from graphmem.cli.ingest import read_batches
from graphmem.runtime.errors import InvalidInput
from tests.cli.conftest import Cli
from tests.model_server import ModelServer

SKIPPED_COMPLETION = json.dumps({"skip": True, "reason": "small talk", "keywords": [], "names": [], "candidates": []})
LINES = "\n".join(
    json.dumps({"session_id": session, "role": "user", "content": f"Hello number {number}."})
    for number, session in enumerate(["monday", "monday", "tuesday"])
)


INVALID_LINES = {
    "not json": "JSON",
    '["a", "list"]': "object",
    '{"role": "user"}': "content",
    '{"role": "judge", "content": "Guilty."}': "role",
    '{"role": "user", "content": "Hi", "timestamp": "2025-06-01T12:00:00"}': "timestamp",
    '{"role": "user", "content": "Hi", "session_id": 7}': "session_id",
    '{"role": "user", "content": "Hi", "session_id": "${SESSION}"}': "session_id: is a placeholder",
    '{"role": "user", "content": "Hi", "colour": "red"}': "colour",
}


@pytest.mark.parametrize(("line", "word"), INVALID_LINES.items())
def test_invalid_line_is_rejected_with_its_number(line: str, word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^Line 2.*{word}"):
        read_batches('{"role": "user", "content": "A first line."}\n' + line, "s")


def test_consecutive_messages_of_one_session_form_one_batch() -> None:
    lines = [
        {"session_id": "a", "role": "user", "content": "One."},
        {"session_id": "a", "role": "model", "content": "Two."},
        {"role": "user", "content": "Three.", "id": "mine"},
        {"session_id": "a", "role": "user", "content": "Four."},
    ]
    batches = read_batches("\n\n".join(map(json.dumps, lines)), "rest")
    assert [(batch.session_id, len(batch.messages)) for batch in batches] == [("a", 2), ("rest", 1), ("a", 1)]
    assert batches[1].messages[0].id == "mine"


def test_derived_message_ids_are_stable_and_unique() -> None:
    line = json.dumps({"role": "user", "content": "Yes."})
    ids = [message.id for message in read_batches(f"{line}\n{line}", "s")[0].messages]
    assert ids == [message.id for message in read_batches(f"{line}\n{line}", "s")[0].messages]
    assert len(set(ids)) == 2
    assert read_batches(line, "other")[0].messages[0].id not in ids


async def test_failed_ingestion_resumes_where_it_stopped(cli_with_models: Cli, models: ModelServer, user: str) -> None:
    broken = await cli_with_models("ingest", "--user", user, "-", "--json", stdin=LINES)
    assert broken.code == 1
    assert [job["status"] for job in broken.json["jobs"]] == ["failed", "failed"]
    assert "run the same command again" in broken.err

    models.completion = SKIPPED_COMPLETION
    retried = await cli_with_models("ingest", "--user", user, "-", "--json", stdin=LINES)
    assert retried.code == 0
    assert [(job["session_id"], job["reason"]) for job in retried.json["jobs"]] == [
        ("monday", "small talk"),
        ("tuesday", "small talk"),
    ]
    sessions = (await cli_with_models("sessions", "--user", user, "--json")).json["items"]
    assert {session["session_id"]: session["message_count"] for session in sessions} == {"monday": 2, "tuesday": 1}


async def test_a_failed_job_is_retried_from_its_messages(cli_with_models: Cli, models: ModelServer, user: str) -> None:
    broken = await cli_with_models("ingest", "--user", user, "-", "--json", stdin=LINES)
    job_id = broken.json["jobs"][0]["id"]
    still = await cli_with_models("jobs", "retry", job_id)
    assert still.code == 1
    assert "--fresh" in still.err
    models.completion = SKIPPED_COMPLETION
    retried = await cli_with_models("jobs", "retry", job_id, "--fresh", "--json")
    assert (retried.code, retried.json["status"], retried.json["reason"]) == (0, "skipped", "small talk")
