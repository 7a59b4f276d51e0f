"""What a tenant wants remembered, which prompts show."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from graphmem.runtime.field_types import StorableText

MAX_INSTRUCTIONS_LENGTH = 2000
"""Characters of a tenant's instructions at most; every prompt of extraction and consolidation shows them."""


class InstructionsIn(BaseModel):
    """The instructions to set; an empty text removes them."""

    model_config = ConfigDict(extra="forbid")

    text: StorableText = Field(max_length=MAX_INSTRUCTIONS_LENGTH)


class Instructions(BaseModel):
    """The instructions of a tenant, with who set them and when; empty where there are none."""

    text: str = ""
    updated_at: datetime | None = None
    updated_by: str | None = None
