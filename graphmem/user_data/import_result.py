"""The result of an import."""

from __future__ import annotations

from pydantic import BaseModel, Field

from graphmem.user_data.import_format import ImportFormat
from graphmem.user_data.models import RejectedEntry


class ImportResult(BaseModel):
    """What an import wrote, found unchanged and refused; `ids` maps ids of the document to those they got here.

    `jobs` are the extraction jobs of an imported chat log.
    """

    format: ImportFormat = ImportFormat.GRAPHMEM
    imported: dict[str, int]
    unchanged: dict[str, int]
    refused: list[RejectedEntry] = Field(default_factory=list)
    ids: dict[str, str] = Field(default_factory=dict)
    jobs: list[str] = Field(default_factory=list)
    vectors_remade: bool = False
