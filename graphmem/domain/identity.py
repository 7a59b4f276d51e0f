"""Whose memory it is: tenants and users."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphmem.errors import InvalidInput

DEFAULT_TENANT = "default"
_TENANT = re.compile(r"^[a-z0-9][a-z0-9_-]{0,62}$")


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a tenant; an empty user id is the tenant itself, owner of what is global."""

    tenant: str
    user_id: str

    def __post_init__(self) -> None:
        if not _TENANT.match(self.tenant):
            raise InvalidInput("A tenant is named with a-z, 0-9, '-' and '_', up to 63 characters.")
        if len(self.user_id) > 255 or "\x00" in self.user_id or self.user_id != self.user_id.strip():
            raise InvalidInput("A user id has 1 to 255 characters and no space around it.")
        try:
            self.user_id.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput("A user id must be text that UTF-8 can carry.") from error

    @property
    def group_id(self) -> str:
        """The `group_id` of everything this user owns in the graph."""
        return f"{self.tenant}:{self.user_id}"

    @property
    def tenant_global(self) -> Owner:
        """The owner of what every user of the tenant may read."""
        return Owner(self.tenant, "")

    @property
    def readable_group_ids(self) -> list[str]:
        """The group ids this user reads: the own one and the global one."""
        return list(dict.fromkeys([self.group_id, self.tenant_global.group_id]))


def make_owner(tenant: str, user_id: str) -> Owner:
    """Return the owner for a user id given by a caller; raise InvalidInput when it cannot be one."""
    if not user_id.strip():
        raise InvalidInput("A user id must not be empty.")
    return Owner(tenant, user_id)
