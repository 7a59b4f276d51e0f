"""What a tenant wants remembered, which prompts show."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from graphmem.runtime.field_types import StorableText
from graphmem.runtime.validation import RequestBody

MAX_INSTRUCTIONS_LENGTH = 2000
"""Characters of a tenant's instructions at most; every prompt of extraction and consolidation shows them."""


class InstructionsIn(RequestBody):
    """The instructions to set; an empty text removes them."""

    text: StorableText = Field(max_length=MAX_INSTRUCTIONS_LENGTH)


class Instructions(BaseModel):
    """The instructions of a tenant, with who set them and when; empty where there are none."""

    text: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None
