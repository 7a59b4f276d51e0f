"""Idempotent requests: what identifies one, and the response that is stored for its repetitions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphmem.tenants.owners import Owner

_DERIVED_IDS = uuid.UUID("5b0f4d0e-9a55-4d7c-8b0a-0d9a6a8a3f3e")
"""Namespace of the ids that are derived from idempotent requests."""


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key: its route, a fingerprint of its content and the owner of the data.

    `contains_user_text` says whether the response may contain what users said, so that forgetting a user erases it.
    """

    owner: Owner
    route: str
    key: str
    fingerprint: str
    contains_user_text: bool = True

    def derive_id(self, name: str) -> str:
        """Return the id of something that the request creates; every repetition of the request gets the same one."""
        parts = [self.owner.group_id, self.route, self.key, self.fingerprint, name]
        return str(uuid.uuid5(_DERIVED_IDS, json.dumps(parts)))


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was sent; an encrypted body is encrypted for its caller, and an erased one is None.

    `headers` are those of the answer itself, such as `ETag`, without what follows from the body.
    """

    status: int
    body: str | None
    media_type: str | None = None
    encrypted: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """The result of claiming a request.

    When `is_acquired`, the caller must execute the request and complete it with `token`. Otherwise `fingerprint` and
    `answer` are those of the first request; `answer` is None while that one is still running.
    """

    is_acquired: bool
    token: str
    fingerprint: str
    answer: StoredResponse | None
