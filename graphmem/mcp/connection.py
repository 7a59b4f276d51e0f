"""Who is at the other end of a connection: decided when it is made, never by what a model says."""

from __future__ import annotations

from dataclasses import dataclass

from graphmem.domain.api_key import ApiKey
from graphmem.domain.identity import Owner, make_owner
from graphmem.errors import Forbidden


@dataclass(frozen=True, slots=True)
class Connection:
    """Whose memory it is, under which name writes are noted, and whether there may be any."""

    owner: Owner
    actor: str | None = None
    can_write: bool = True

    @property
    def writable_owner(self) -> Owner:
        """The owner, for a write; raise Forbidden on a connection that only reads."""
        if not self.can_write:
            raise Forbidden("This connection's key is an analyst's: it reads and does not write.")
        return self.owner


def resolve_connection(key: ApiKey, user_id: str | None) -> Connection:
    """Return what a key opens: the user named in the address, else the only one it is bound to; raise Forbidden."""
    if user_id is None:
        if key.users is None or len(key.users) != 1:
            raise Forbidden(
                "The key is not bound to exactly one user: name the user in the address, as in /mcp/<user>."
            )
        user_id = key.users[0]
    if not key.can_access(user_id):
        raise Forbidden("The user is out of this key's reach.")
    return Connection(make_owner(key.tenant, user_id), actor=key.id, can_write=key.can_write)
