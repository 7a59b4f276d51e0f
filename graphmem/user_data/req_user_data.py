"""Split of domain/requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from graphmem.user_data.import_format import ImportFormat

ExportFormat = Literal["json", "yaml"]
"""The formats in which a user is exported."""


ExportView = Literal["full", "records"]
"""What an export contains: everything without loss, or the current memories as records to read and edit."""


class ExportQuery(BaseModel):
    """The format and the view of an export."""

    format: ExportFormat = "json"
    view: ExportView = Field("full", description="records: the current memories in a lean form to read and edit.")


class ImportQuery(BaseModel):
    """The format of a document to import."""

    format: ImportFormat = Field(ImportFormat.AUTO, description="Absent: detected from the document.")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A document to import and its format."""

    document: bytes
    format: ImportFormat
