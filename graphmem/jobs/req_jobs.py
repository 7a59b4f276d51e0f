"""Split of domain/requests."""

from __future__ import annotations

from pydantic import BaseModel, Field


class RetryQuery(BaseModel):
    """Where a job that is retried starts."""

    fresh: bool = Field(False, description="true: from its messages; false: from the step that failed.")
