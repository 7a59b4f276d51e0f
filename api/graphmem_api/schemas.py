"""Request and response models that only the HTTP API has; all others are the domain's."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, BaseModel, Field

from graphmem.conversations.session import MessagesIn
from graphmem.runtime.field_types import Id
from graphmem.tenants.access import ApiKey


class MessagesWithUserIn(MessagesIn):
    """A batch of messages with the user in the body, as `userId` or `user_id`."""

    user_id: Id = Field(validation_alias=AliasChoices("userId", "user_id"), serialization_alias="userId")

    def without_user(self) -> MessagesIn:
        """Return the batch without its user."""
        return MessagesIn.model_validate(self.model_dump(exclude={"user_id"}, exclude_unset=True))


class KeyList(BaseModel):
    """API keys without their secrets."""

    items: list[ApiKey]


class HealthOut(BaseModel):
    """The process is alive."""

    status: Literal["ok"] = "ok"


class ReadinessOut(BaseModel):
    """The service is ready, dependency by dependency."""

    status: Literal["ready"] = "ready"
    parts: dict[str, str]
