"""Sample data: a year of one user's conversations with an assistant, and questions about them.

Mara Lindqvist and all other people are invented; the card number is a public test number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

USER_ID = "demo"
"""The user of the sample: not the one of the README, whose own data would get mixed up with it."""

SAMPLE_FOLDER = Path(__file__).parent
"""Folder of the sample's files."""


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question about the sample, by entity (lookup) or by meaning (search).

    `valid_as_of` asks for what was true at that time. `known_after` asks for what was known between the extraction of
    this session and that of the next. The memories found contain every text of `expects` and none of `absent`. With
    `cut` nothing is found that does not fit.
    """

    id: str
    by: Literal["entity", "meaning"]
    text: str
    shows: str
    valid_as_of: datetime | None = None
    known_after: str | None = None
    expects: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    cut: Literal["auto", "none"] = "none"


def load_messages() -> list[dict[str, str]]:
    """Return the messages, oldest first, as `{session_id, id, role, name?, content, timestamp}`."""
    lines = (SAMPLE_FOLDER / "conversation.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def load_questions() -> list[SampleQuestion]:
    """Return the questions, in the order in which a demonstration asks them."""
    return TypeAdapter(list[SampleQuestion]).validate_json((SAMPLE_FOLDER / "questions.json").read_bytes())
