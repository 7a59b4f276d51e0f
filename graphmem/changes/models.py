"""Changes to a user's memories between two known times, and the webhooks that receive them."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from graphmem.memories.fact import Fact
from graphmem.memories.memory import Memory
from graphmem.memories.version_log import MERGED_REASON, REVERTED_REASON
from graphmem.runtime.field_types import UserId, deduplicate
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceQuery


class ChangeKind(StrEnum):
    """The kind of change of a memory."""

    INSERTED = "inserted"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    MERGED = "merged"
    RESTORED = "restored"


class MemoryChange(BaseModel):
    """One change: the memory as the change left it, or as it was before it was deleted.

    `superseded` covers each change that ends a version and creates the next one: another statement, an end, a
    correction. `memory` is None when an entity that it refers to no longer exists.
    """

    id: str = Field(description="Id of the change; a webhook delivers it as `webhook-id`.")
    at: datetime = Field(description="When graphmem learned of it.")
    kind: ChangeKind
    memory_id: str
    memory: Memory | None
    reason: str | None = Field(description="Why, such as superseded, amended, merged, deleted.")
    actor: str | None = Field(description="The id of the key, or the part of graphmem, that made the change.")


class ChangesQuery(PageQuery, SpaceQuery):
    """The known times between which to list changes, the first one included."""

    model_config = ConfigDict(extra="forbid")

    since: Instant | None = Field(None, description="Start time; defaults to the first memory.")
    until: Instant | None = Field(None, description="End time, exclusive; defaults to now.")


def classify_version(version: Fact, previous: Fact | None) -> ChangeKind:
    """Return the kind of change that created a version; `previous` is the version before it."""
    if previous is None:
        return ChangeKind.INSERTED
    if previous.ended_reason == MERGED_REASON:
        return ChangeKind.MERGED
    if previous.ended_reason == REVERTED_REASON and not version.retired:
        return ChangeKind.RESTORED
    return ChangeKind.SUPERSEDED


SECRET_PREFIX = "whsec_"
"""Prefix of a webhook's secret, as in Standard Webhooks; the base64 key follows."""

MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64
"""Length of the key in a secret, in bytes, as in Standard Webhooks."""

MAX_WEBHOOKS = 20
"""Maximum number of webhooks per tenant."""


_NAT64 = IPv6Network("64:ff9b::/96")

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The only IPv6 addresses that are assigned to hosts of the public internet."""

_NOT_PUBLIC = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv6Network("3fff::/20"))
"""Addresses for protocols, for relays and for examples; some versions of Python call them public."""


_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,254}}$)(?:{_LABEL}\.)*{_LABEL}\.?")
"""A name that can be resolved, in lower case; IPv4 addresses look like one."""


def _is_host(host: str) -> bool:
    """Return whether a host is a name or an address without a zone, so that a delivery can ever reach it."""
    if ":" not in host:
        return _HOST_NAME.fullmatch(host) is not None
    try:
        return IPv6Address(host).scope_id is None
    except ValueError:
        return False


def _check_url(url: str) -> str:
    parts, is_address = None, False
    with suppress(ValueError):
        parts = urlsplit(url)
        is_address = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    if parts is None or not is_address:
        raise ValueError("must be an address such as https://example.com/hooks")
    if parts.username or parts.password or parts.fragment or any(not 33 <= ord(letter) < 127 for letter in url):
        raise ValueError("must have no user name, password, fragment, space or letter outside ASCII")
    if not _is_host(parts.hostname or ""):
        raise ValueError("must have a host that is an IP address or a name of letters, digits and hyphens")
    return url


def _check_secret(secret: str) -> str:
    try:
        key = decode_secret(secret)
    except ValueError:
        key = b""
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"must be {SECRET_PREFIX} and {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes in base64")
    return secret


class WebhookStatus(StrEnum):
    """Whether a webhook delivers."""

    ACTIVE = "active"
    FAILING = "failing"
    DISABLED = "disabled"


class WebhookIn(RequestBody):
    """A webhook to create; without `users` and `kinds` it receives every change of every user of the tenant."""

    url: Annotated[str, Field(max_length=2000), AfterValidator(_check_url)]
    secret: Annotated[str, Field(max_length=200), AfterValidator(_check_secret)] | None = None
    users: Annotated[list[UserId], Field(min_length=1, max_length=1000), AfterValidator(deduplicate)] | None = None
    kinds: Annotated[list[ChangeKind], Field(min_length=1), AfterValidator(deduplicate)] | None = None
    since: Instant | None = None


class Webhook(BaseModel):
    """A webhook without its secret, and the state of its deliveries."""

    model_config = ConfigDict(frozen=True)

    id: str
    url: str
    users: list[str] | None
    kinds: list[ChangeKind] | None
    since: datetime
    created_at: datetime
    status: WebhookStatus
    last_delivered_at: datetime | None
    last_status: int | None
    last_error: str | None
    failures: int
    failing_since: datetime | None
    disabled_at: datetime | None
    disabled_reason: str | None
    skipped: int = Field(0, description="Number of changes that could not be sent and were skipped.")
    last_skipped: str | None = Field(None, description="Id of the last skipped change, and why it was skipped.")


class CreatedWebhook(Webhook):
    """A webhook with its secret, which is returned only once."""

    secret: str


class WebhookEvent(BaseModel):
    """The body of a delivery: one change of one user; `user_id` is null for a memory of the whole tenant or a space."""

    type: Literal["memory.inserted", "memory.superseded", "memory.deleted", "memory.merged", "memory.restored"]
    timestamp: datetime
    user_id: str | None
    space: str | None = None
    data: MemoryChange


class WebhookItems(BaseModel):
    """The webhooks of a tenant, without their secrets."""

    items: list[Webhook]


def generate_secret() -> str:
    """Return a new random secret."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def decode_secret(secret: str) -> bytes:
    """Return the key in a secret; raise ValueError if it is malformed."""
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError(f"begins with {SECRET_PREFIX}")
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("is not base64") from error


def make_event(owner: Owner, change: MemoryChange) -> WebhookEvent:
    """Return the body that delivers a change of a user, of a space or of the whole tenant."""
    return WebhookEvent.model_validate(
        {
            "type": f"memory.{change.kind}",
            "timestamp": change.at,
            "user_id": owner.own_user_id,
            "space": owner.space,
            "data": change,
        }
    )


def is_wanted(change: MemoryChange, kinds: Collection[ChangeKind] | None) -> bool:
    """Return whether a webhook receives a change."""
    return kinds is None or change.kind in kinds


def is_public_address(address: str) -> bool:
    """Return whether an IP address is globally reachable, and so not part of an internal network."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_address(str(inner))
        if ip not in _GLOBAL_UNICAST:
            return False
    if any(ip in network for network in _NOT_PUBLIC):
        return False
    return ip.is_global and not ip.is_multicast
