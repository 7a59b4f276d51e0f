"""Split of domain/requests."""

from __future__ import annotations

from pydantic import Field

from graphmem.runtime.field_types import Id
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.validation import RequestBody


class SummarizeIn(RequestBody):
    """Whether to wait for the summary."""

    wait: bool = False


class TriggerIn(RequestBody):
    """The session to extract from; `user_id` is needed when several users have a session of that id."""

    session_id: Id
    user_id: Id | None = None


class SessionListQuery(PageQuery):
    """Which sessions to list."""

    active: bool | None = Field(None, description="true: open sessions only; false: closed sessions only.")
