"""Spaces, shared by users and keys of a tenant, and scopes: the groups that a request reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphmem.runtime.errors import Forbidden, NotFound
from graphmem.runtime.field_types import Id, NonBlankText, StorableText, check_identity
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import Owner, group_key, make_owner
from graphmem.tenants.trust import StatedKind, TrustOrder, parse_order


class SpaceRole(StrEnum):
    """The rights of a member of a space; each role includes the ones before it."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"

    def includes(self, other: SpaceRole) -> bool:
        """Return whether the role has all rights of another one."""
        roles = list(SpaceRole)
        return roles.index(self) >= roles.index(other)


def highest_role(roles: Iterable[SpaceRole]) -> SpaceRole | None:
    """Return the highest of some roles; None without any."""
    return max(roles, key=list(SpaceRole).index, default=None)


RESERVED_SPACE_IDS = ("all", "none")
"""Words that select spaces and therefore cannot be space ids."""


def check_space_id(space: str) -> str:
    """Return a space id; raise ValueError for a reserved word, a placeholder, or surrounding white space."""
    if space in RESERVED_SPACE_IDS:
        raise ValueError("must be the id of a space: `all` and `none` select spaces")
    if space != space.strip():
        raise ValueError("must not have space around it")
    return check_identity(space)


SpaceId = Annotated[Id, AfterValidator(check_space_id)]
"""The id of a space, unique in its tenant."""


SpaceSelection = Literal["all", "none"] | Annotated[list[SpaceId], Field(max_length=100)]
"""The spaces that a read covers besides the user's and the tenant's memory."""

SPACES_FIELD: Any = Field(
    "all", description="Spaces to read in addition to the user's own memory: ids, `all` or `none`."
)
"""The `spaces` field in the body of a read: by default all spaces that the key and the user may read."""


SPACE_FIELD: Any = Field(None, description="The space; defaults to the user's own memory.")
"""The `space` field of a request for a single owner's memory."""


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _check_selection(given: list[str]) -> list[str]:
    if given not in (["all"], ["none"]):
        for space in given:
            check_space_id(space)
    return given


class SpacesInQueryString(BaseModel):
    """The `spaces` field of a read in query string form."""

    spaces: Annotated[list[Id], BeforeValidator(_as_list), AfterValidator(_check_selection)] = Field(
        default_factory=lambda: ["all"],
        max_length=100,
        description="A space to read in addition to the user's own memory (repeatable), `all` or `none`.",
    )

    @property
    def space_selection(self) -> SpaceSelection:
        """The selected spaces."""
        if self.spaces == ["none"]:
            return "none"
        return "all" if self.spaces == ["all"] else self.spaces


class SpaceQuery(BaseModel):
    """The memory that a user's request addresses."""

    space: SpaceId | None = SPACE_FIELD


def require_role(role: SpaceRole, needed: SpaceRole) -> None:
    """Raise Forbidden unless a role includes the needed one."""
    if not role.includes(needed):
        raise Forbidden(f"A {role.value} of a space may not do this: it needs the role {needed.value}.")


def user_member(owner: Owner) -> str:
    """Return the name under which a user's memberships are stored."""
    return owner.group_id


def key_member(tenant: str, key_id: str) -> str:
    """Return the name under which a key's memberships are stored; never equal to a user's."""
    return f"{tenant} {key_id}"


MAX_MEMBERS = 1_000
"""Maximum number of members of a space."""

MAX_ABOUT_LENGTH = 500
"""Maximum characters of a space's description of its content, which every extraction prompt in the space includes."""


class MemberKind(StrEnum):
    """The kind of a space's member."""

    USER = "user"
    KEY = "key"


class SpaceMember(RequestBody):
    """A user or an API key with a role in a space."""

    model_config = ConfigDict(frozen=True)

    user: Id | None = Field(None, exclude_if=lambda user: user is None, description="The id of the user.")
    key: Id | None = Field(None, exclude_if=lambda key: key is None, description="The id of the key.")
    role: SpaceRole

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if (self.user is None) == (self.key is None):
            raise ValueError("names either a user or a key")
        return self

    @property
    def id(self) -> str:
        """The id of the user or key."""
        return self.user or self.key or ""

    def stored_name(self, tenant: str) -> str:
        """Return the name under which the membership is stored; raise InvalidInput for an invalid user id."""
        return key_member(tenant, self.key) if self.key else user_member(make_owner(tenant, self.user or ""))


def _check_members(members: list[SpaceMember]) -> list[SpaceMember]:
    if len({(member.user, member.key) for member in members}) < len(members):
        raise ValueError("a user or a key is named twice")
    return members


class SpaceIn(RequestBody):
    """A space to create or change; without `members`, its members stay."""

    title: NonBlankText = Field(max_length=200, description="What it is called, such as Team Atlas.")
    about: StorableText = Field(
        "", max_length=MAX_ABOUT_LENGTH, description="A sentence that says what belongs there, which extraction reads."
    )
    members: Annotated[list[SpaceMember], Field(max_length=MAX_MEMBERS), AfterValidator(_check_members)] | None = None


class SpaceRoleIn(RequestBody):
    """The role of a member."""

    role: SpaceRole


class MemberQuery(BaseModel):
    """The kind of id in the address of a member."""

    kind: MemberKind | None = Field(
        None,
        description="Whether the member is a user or a key; defaults to a key if one has this id.",
    )


class Space(BaseModel):
    """A space with its members, the users first."""

    id: str
    title: str
    about: str
    members: list[SpaceMember]
    created_at: datetime
    updated_at: datetime
    source_kind: StatedKind = Field(
        "user", exclude_if=lambda kind: kind == "user", description="Source that states its title and its members."
    )


class GroupState(NamedTuple):
    """The group state that reads need first, in the order of the query `users.get_states`.

    `life` differs for each life of a user. `revision` is the revision of the latest transaction that locked the user,
    `removal_revision` that of the latest one that may have removed facts, entities or messages. `roles` are the
    caller's roles in a space, through the user and the key; only spaces have a `title`. `trust_order` is the tenant's,
    as JSON; None means the default. `pending`, not returned by the query, is a unique text if the latest transaction
    may not be fully applied (`neo4j.applied`), else None.
    """

    group_id: str
    life: str
    write_version: int
    revision: int
    removal_revision: int
    persona: str | None
    last_write_at: int | None
    roles: list[str]
    title: str | None
    trust_order: str | None
    pending: str | None = None

    @property
    def applied_revision(self) -> int:
        """The latest revision known to be fully applied: if pending, the previous one, whose lock was released."""
        return self.revision if self.pending is None else self.revision - 1


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The memories that a request reads (an owner's, the tenant's and spaces'), and their revisions.

    Only `tenants.rights` creates scopes with spaces. `states` are the group states at creation, before anything else is
    read; a group without writes has none. None means that they are not read yet (`Rights.get_state`).
    """

    owner: Owner
    spaces: tuple[tuple[Owner, SpaceRole], ...] = ()
    states: tuple[GroupState, ...] | None = None

    @property
    def group_ids(self) -> list[str]:
        """The ids of the groups that are read, the owner's first."""
        groups = [self.owner, self.owner.tenant_global, *(space for space, _ in self.spaces)]
        return list(dict.fromkeys(owner.group_id for owner in groups))

    @property
    def group_keys(self) -> list[str]:
        """The keys of the groups that are read."""
        return [group_key(group_id) for group_id in self.group_ids]

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the spaces that are read, by space id."""
        known = {state.group_id: state.title for state in self.groups}
        return {str(space.space): known.get(space.group_id) or str(space.space) for space, _ in self.spaces}

    @property
    def groups(self) -> tuple[GroupState, ...]:
        """The states of the groups with writes."""
        return self.states or ()

    @property
    def write_version(self) -> str:
        """The life and write counter of each group, by which caches detect outdated entries.

        No cache contains the key of a pending state.
        """
        return "".join(f"{group.life}:{group.write_version}{group.pending or ''};" for group in self.groups)

    @property
    def trust_order(self) -> TrustOrder:
        """The tenant's order of trust."""
        return parse_order(self.groups[0].trust_order if self.groups else None)

    @property
    def persona(self) -> dict[str, float]:
        """The user's persona weights; empty if there are none."""
        stored = next((group.persona for group in self.groups if group.group_id == self.owner.group_id), None)
        weights: dict[str, float] = json.loads(stored or "{}")
        return weights

    def find_space(self, space: str) -> Owner:
        """Return a space of the scope by id; raise NotFound if the scope does not include it."""
        found = next((owner for owner, _ in self.spaces if owner.space == space), None)
        if found is None:
            raise NotFound("There is no such space.")
        return found

    def require_space(self, space: str, needed: SpaceRole) -> Owner:
        """Return a space in which the caller has a role.

        Raises NotFound if the scope does not read it, Forbidden if the role is insufficient.
        """
        found = self.find_space(space)
        require_role(dict(self.spaces)[found], needed)
        return found

    def owner_of(self, group_id: str) -> Owner:
        """Return the owner of a group in the scope; raise NotFound for any other group."""
        if group_id not in self.group_ids:
            raise NotFound("There is no such memory.")
        return Owner.from_group_id(group_id)

    def may_write(self, owner: Owner) -> bool:
        """Return whether the caller may write an owner's memory: everything in the scope except read-only spaces."""
        role = dict(self.spaces).get(owner)
        return role is None or role.includes(SpaceRole.WRITER)

    def writable_owner_of(self, group_id: str) -> Owner:
        """Return the owner of a group in the scope; raise Forbidden for a space that the caller may only read."""
        owner = self.owner_of(group_id)
        role = dict(self.spaces).get(owner)
        if role is not None:
            require_role(role, SpaceRole.WRITER)
        return owner


Reader = Owner | ReadScope
"""The memory that a read covers: an owner for its own and the tenant's memory, or a scope, with spaces if any."""


def scope_of(reader: Reader) -> ReadScope:
    """Return the scope of a reader; an owner's scope includes none of the spaces it is a member of."""
    return ReadScope(reader) if isinstance(reader, Owner) else reader
