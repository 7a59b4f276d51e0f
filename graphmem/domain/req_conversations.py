"""Split of domain/requests."""

from __future__ import annotations

from pydantic import Field

from graphmem.domain.paging import PageQuery
from graphmem.domain.req_body import RequestBody
from graphmem.domain.types import Id


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
