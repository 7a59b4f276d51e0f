"""The result of forgetting a user, and the signed receipt for it."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime

from pydantic import BaseModel, Field

from graphmem.tenants.owners import Owner


class ErasureReceipt(BaseModel):
    """A signed statement that a user was erased; it names neither the user nor anything that was stored.

    `signature` is the HMAC-SHA256, under the receipt key of the server, of the JSON of all other fields, with sorted
    keys and without spaces.
    """

    user_hash: str = Field(description="SHA-256 of `<tenant>:<user id>`.")
    begun_at: datetime
    ended_at: datetime
    erased: dict[str, int] = Field(description="Erased elements by kind.")
    residue: dict[str, int] = Field(description="Elements left, by place: the graph, the job store and the caches.")
    signature: str = ""

    def signed(self, key: bytes) -> ErasureReceipt:
        """Return the receipt with its signature under a key."""
        return self.model_copy(update={"signature": self._compute_signature(key)})

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the signature is that of this receipt under a key."""
        return hmac.compare_digest(self._compute_signature(key), self.signature)

    def _compute_signature(self, key: bytes) -> str:
        fields = self.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class ErasureResult(BaseModel):
    """What was erased of a user, counted by kind, how many traces are left, and the receipt once there are none."""

    erased: dict[str, int]
    residue: int
    receipt: ErasureReceipt | None = None


def hash_user(owner: Owner) -> str:
    """Return the SHA-256 of the name of a user, by which a receipt refers to them."""
    return hashlib.sha256(owner.group_id.encode()).hexdigest()
