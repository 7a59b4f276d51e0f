"""Answers that lose only the items of their lists that do not fit."""

from __future__ import annotations

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema


class LenientAnswer(BaseModel):
    """An answer whose lists keep the items that fit the schema; `refused` has a sentence for each of the others.

    The sentences do not quote the model. An answer that was cut off keeps what was complete.
    """

    refused: SkipJsonSchema[list[str]] = Field(default_factory=list)
