"""Ingesting a file of messages."""

from __future__ import annotations

import json

import pytest

from graphmem.cli.ingest import read_batches
from graphmem.errors import InvalidInput
from tests.cli.conftest import Cli
from tests.model_server import ModelServer

NOTHING = json.dumps({"skip": True, "reason": "small talk", "keywords": [], "names": [], "candidates": []})
LINES = "\n".join(
    json.dumps({"session_id": session, "role": "user", "content": f"Hello number {number}."})
    for number, session in enumerate(["monday", "monday", "tuesday"])
)


NO_MESSAGES = {
    "not json": "JSON",
    '["a", "list"]': "object",
    '{"role": "user"}': "content",
    '{"role": "judge", "content": "Guilty."}': "role",
    '{"role": "user", "content": "Hi", "timestamp": "2025-06-01T12:00:00"}': "timestamp",
    '{"role": "user", "content": "Hi", "session_id": 7}': "session_id",
    '{"role": "user", "content": "Hi", "colour": "red"}': "colour",
}


@pytest.mark.parametrize(("line", "word"), NO_MESSAGES.items())
def test_a_line_that_is_no_message_is_refused_by_its_number(line: str, word: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^Line 2.*{word}"):
        read_batches('{"role": "user", "content": "A first line."}\n' + line, "s")


def test_messages_of_one_session_that_follow_one_another_go_together() -> None:
    lines = [
        {"session_id": "a", "role": "user", "content": "One."},
        {"session_id": "a", "role": "model", "content": "Two."},
        {"role": "user", "content": "Three.", "id": "mine"},
        {"session_id": "a", "role": "user", "content": "Four."},
    ]
    batches = read_batches("\n\n".join(map(json.dumps, lines)), "rest")
    assert [(batch.session_id, len(batch.messages)) for batch in batches] == [("a", 2), ("rest", 1), ("a", 1)]
    assert batches[1].messages[0].id == "mine"


def test_messages_without_an_id_get_the_same_one_again_and_none_twice() -> None:
    said = json.dumps({"role": "user", "content": "Yes."})
    ids = [message.id for message in read_batches(f"{said}\n{said}", "s")[0].messages]
    assert ids == [message.id for message in read_batches(f"{said}\n{said}", "s")[0].messages]
    assert len(set(ids)) == 2
    assert read_batches(said, "other")[0].messages[0].id not in ids


async def test_a_broken_ingestion_goes_on_where_it_stopped(quick: Cli, models: ModelServer, user: str) -> None:
    broken = await quick("ingest", "--user", user, "-", "--json", stdin=LINES)
    assert broken.code == 1
    assert [job["status"] for job in broken.answer["jobs"]] == ["failed", "failed"]
    assert "run the same command again" in broken.err

    models.says = NOTHING
    mended = await quick("ingest", "--user", user, "-", "--json", stdin=LINES)
    assert mended.code == 0
    assert [(job["session_id"], job["reason"]) for job in mended.answer["jobs"]] == [
        ("monday", "small talk"),
        ("tuesday", "small talk"),
    ]
    again = await quick("ingest", "--user", user, "-", stdin=LINES)
    assert "known already" in again.out
    sessions = (await quick("sessions", "--user", user, "--json")).answer["items"]
    assert {each["session_id"]: each["message_count"] for each in sessions} == {"monday": 2, "tuesday": 1}
