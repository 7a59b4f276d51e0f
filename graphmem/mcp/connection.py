"""The user of a connection: fixed when the connection is made, never by a model's arguments."""

from __future__ import annotations

from dataclasses import dataclass

from graphmem.runtime.errors import Forbidden
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner, make_owner


@dataclass(frozen=True, slots=True)
class Connection:
    """The user whose memory the tools access, the actor recorded with writes, and whether writes are allowed."""

    owner: Owner
    actor: str | None = None
    can_write: bool = True

    @property
    def writable_owner(self) -> Owner:
        """The owner, for a write; raises Forbidden on a connection that only reads."""
        if not self.can_write:
            raise Forbidden("The key of this connection is an analyst's: it reads and does not write.")
        return self.owner


def resolve_connection(key: ApiKey, user_id: str | None) -> Connection:
    """Return the connection of a key to the user in the path, or to the only user that the key is bound to.

    Raises Forbidden when the key has no access to the user, or is bound to no single user and the path names none.
    """
    if user_id is None:
        if key.users is None or len(key.users) != 1:
            raise Forbidden("The key is not bound to exactly one user: name the user in the path, as in /mcp/<user>.")
        user_id = key.users[0]
    if not key.can_access(user_id):
        raise Forbidden("This key has no access to that user.")
    return Connection(make_owner(key.tenant, user_id), actor=key.id, can_write=key.can_write)
