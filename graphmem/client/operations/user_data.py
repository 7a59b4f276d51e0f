"""Operations on all the data of a user: export, import and erasure."""

from __future__ import annotations

from typing import Any, Literal

from graphmem.client.inputs import without_none
from graphmem.client.operations.request import Request
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.paging import Page
from graphmem.runtime.validation import validate_arguments
from graphmem.tenants.owners import UserListQuery, UserSummary
from graphmem.user_data.models import (
    ErasureResult,
    ExportFormat,
    ExportQuery,
    ExportView,
    ImportFormat,
    ImportQuery,
    ImportRequest,
    ImportResult,
)


def export(user_id: str, *, format: ExportFormat = "json", view: ExportView = "full") -> Request[ExportQuery, bytes]:
    """Return all data of a user, history and vectors included; with the view `records`, current memories to edit."""
    return Request(validate_arguments(ExportQuery, {"format": format, "view": view}), user_id)


def export_schema() -> Request[None, dict[str, Any]]:
    """Return the JSON Schema of an export."""
    return Request(None)


def records_schema() -> Request[None, dict[str, Any]]:
    """Return the JSON Schema of records."""
    return Request(None)


def import_(
    user_id: str,
    document: bytes | str,
    *,
    format: ImportFormat | Literal["auto", "records", "graphmem", "graphiti", "mem0", "chat"] = "auto",
) -> Request[ImportRequest, ImportResult]:
    """Import an export of graphmem, records, an export of mem0 or Graphiti, or a chat log.

    `ids` of the result maps ids of the document to those here.
    """
    query = validate_arguments(ImportQuery, {"format": format})
    if isinstance(document, str):
        document = document.encode("utf-8", "surrogatepass")
    if not isinstance(document, bytes):
        message = (
            f"The document to import must be bytes or text, not {type(document).__name__}: json.dumps writes text."
        )
        raise InvalidInput(message)
    return Request(ImportRequest(document, query.format), user_id)


def users(
    *, query: str | None = None, limit: int = 50, cursor: str | None = None
) -> Request[UserListQuery, Page[UserSummary]]:
    """List the tenant's users by id, those whose id contains `query`."""
    return Request(validate_arguments(UserListQuery, without_none(query=query, limit=limit, cursor=cursor)))


def forget(user_id: str) -> Request[None, ErasureResult]:
    """Erase all data of a user and count what is left (admin)."""
    return Request(None, user_id)
