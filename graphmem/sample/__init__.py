"""A sample: a year of one user's conversations with an assistant, and questions a memory of them should answer.

Mara Lindqvist and everybody around her are invented; the card number in it is a public test number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

USER_ID = "mara"
SAMPLE_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question for the sample, asked by `entity` (lookup) or by `meaning` (search).

    `valid_as_of` asks for what held then; `known_after` names the session after whose extraction, and before the next
    one's, the knowledge is asked for. The memories found hold every text of `expects` and none of `absent`.
    """

    id: str
    by: Literal["entity", "meaning"]
    text: str
    shows: str
    valid_as_of: datetime | None = None
    known_after: str | None = None
    expects: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def load_messages() -> list[dict[str, str]]:
    """The sample conversation, oldest first: `{session_id, id, role, name?, content, timestamp}`."""
    lines = (SAMPLE_FOLDER / "conversation.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def load_questions() -> list[SampleQuestion]:
    """The questions, in the order in which they are best asked."""
    return TypeAdapter(list[SampleQuestion]).validate_json((SAMPLE_FOLDER / "questions.json").read_bytes())
