"""Spaces, which users and keys of a tenant share, and scopes: the groups of the graph that a request reads. Pure."""

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
        """Return whether the role may do what another one may."""
        roles = list(SpaceRole)
        return roles.index(self) >= roles.index(other)


def highest_role(roles: Iterable[SpaceRole]) -> SpaceRole | None:
    """Return the role that includes all others of some; None without any."""
    return max(roles, key=list(SpaceRole).index, default=None)


RESERVED_SPACE_IDS = ("all", "none")
"""Words that select spaces, and so can be the id of none."""


def check_space_id(space: str) -> str:
    """Return the id of a space; raise ValueError for a reserved word, a placeholder, and for space around the id."""
    if space in RESERVED_SPACE_IDS:
        raise ValueError("must be the id of a space: `all` and `none` select spaces")
    if space != space.strip():
        raise ValueError("must not have space around it")
    return check_identity(space)


SpaceId = Annotated[Id, AfterValidator(check_space_id)]
"""The id of a space, which is unique in its tenant."""


SpaceSelection = Literal["all", "none"] | Annotated[list[SpaceId], Field(max_length=100)]
"""The spaces that a read covers beside the memory of the user and the tenant's."""

SPACES_FIELD: Any = Field(
    "all", description="Spaces to read in addition to the user's own memory: ids, `all` or `none`."
)
"""The field `spaces` of the body of a read: by default all that the key and the user may read."""


SPACE_FIELD: Any = Field(None, description="The space; defaults to the user's own memory.")
"""The field `space` of a request that is about one memory."""


def _as_list(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _check_selection(given: list[str]) -> list[str]:
    if given not in (["all"], ["none"]):
        for space in given:
            check_space_id(space)
    return given


class SpacesInQueryString(BaseModel):
    """The field `spaces` of a read as a query string has it."""

    spaces: Annotated[list[Id], BeforeValidator(_as_list), AfterValidator(_check_selection)] = Field(
        default_factory=lambda: ["all"],
        max_length=100,
        description="A space to read in addition to the user's own memory (repeatable), `all` or `none`.",
    )

    @property
    def space_selection(self) -> SpaceSelection:
        """The spaces that are selected."""
        if self.spaces == ["none"]:
            return "none"
        return "all" if self.spaces == ["all"] else self.spaces


class SpaceQuery(BaseModel):
    """The memory that a request of a user is about."""

    space: SpaceId | None = SPACE_FIELD


def require_role(role: SpaceRole, needed: SpaceRole) -> None:
    """Raise Forbidden unless a role includes the one that is needed."""
    if not role.includes(needed):
        raise Forbidden(f"A {role.value} of a space may not do this: it needs the role {needed.value}.")


def user_member(owner: Owner) -> str:
    """Return the name under which a user's memberships are stored."""
    return owner.group_id


def key_member(tenant: str, key_id: str) -> str:
    """Return the name under which a key's memberships are stored; it is never that of a user."""
    return f"{tenant} {key_id}"


MAX_MEMBERS = 1_000
"""Most members of a space."""

MAX_ABOUT_LENGTH = 500
"""Characters of what belongs into a space at most; every prompt of extraction in the space shows them."""


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
        """The id of the user or of the key."""
        return self.user or self.key or ""

    def stored_name(self, tenant: str) -> str:
        """Return the name under which the membership is stored; raise InvalidInput for a user id that cannot be one."""
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
    """The state of a group that reads need first, in the order of the query `users.get_states`.

    No two lives of a user have the same `life`. `revision` is that of the latest transaction that locked the user,
    `removal_revision` that of the latest one that may have removed facts, entities or messages. `roles` are those that
    the caller has in a space, by the user and by the key; only spaces have a `title`. `trust_order` is that of the
    tenant, as JSON, and None for the default one. The query does not return `pending`: it is a text that no other
    state has if the latest transaction may not be applied in full (`neo4j.applied`), else None.
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
        """The latest revision that is applied in full; that of a transaction whose lock was free again for the next."""
        return self.revision if self.pending is None else self.revision - 1


@dataclass(frozen=True, slots=True)
class ReadScope:
    """The memories that a request reads, an owner's own, the tenant's and spaces, and as of which revisions.

    Only `tenants.rights` makes one with spaces. `states` are the states of its groups when it was made, before anything
    else is read; a group to which nothing was written has none. None: they are not read yet (`Rights.get_state`).
    """

    owner: Owner
    spaces: tuple[tuple[Owner, SpaceRole], ...] = ()
    states: tuple[GroupState, ...] | None = None

    @property
    def group_ids(self) -> list[str]:
        """The ids of the groups that are read: the owner's own first."""
        groups = [self.owner, self.owner.tenant_global, *(space for space, _ in self.spaces)]
        return list(dict.fromkeys(owner.group_id for owner in groups))

    @property
    def group_keys(self) -> list[str]:
        """The keys of the groups that are read."""
        return [group_key(group_id) for group_id in self.group_ids]

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the spaces that are read, by their ids."""
        known = {state.group_id: state.title for state in self.groups}
        return {str(space.space): known.get(space.group_id) or str(space.space) for space, _ in self.spaces}

    @property
    def groups(self) -> tuple[GroupState, ...]:
        """The states of the groups to which something was written."""
        return self.states or ()

    @property
    def write_version(self) -> str:
        """The life and the write counter of each group, by which caches tell what they hold from what is stored.

        No cache contains the key of a pending state.
        """
        return "".join(f"{group.life}:{group.write_version}{group.pending or ''};" for group in self.groups)

    @property
    def trust_order(self) -> TrustOrder:
        """The order of trust of the tenant."""
        return parse_order(self.groups[0].trust_order if self.groups else None)

    @property
    def persona(self) -> dict[str, float]:
        """The weights of the user; empty where there are none."""
        stored = next((group.persona for group in self.groups if group.group_id == self.owner.group_id), None)
        weights: dict[str, float] = json.loads(stored or "{}")
        return weights

    def find_space(self, space: str) -> Owner:
        """Return a space of the scope by its id; raise NotFound for another one."""
        found = next((owner for owner, _ in self.spaces if owner.space == space), None)
        if found is None:
            raise NotFound("There is no such space.")
        return found

    def require_space(self, space: str, needed: SpaceRole) -> Owner:
        """Return a space in which the caller has a role.

        Raises NotFound for one that the scope does not read, Forbidden where the role is not enough.
        """
        found = self.find_space(space)
        require_role(dict(self.spaces)[found], needed)
        return found

    def owner_of(self, group_id: str) -> Owner:
        """Return whose memory a group of the scope is; raise NotFound for another group."""
        if group_id not in self.group_ids:
            raise NotFound("There is no such memory.")
        return Owner.from_group_id(group_id)

    def may_write(self, owner: Owner) -> bool:
        """Return whether the caller may write what an owner of the scope has: all but spaces that it only reads."""
        role = dict(self.spaces).get(owner)
        return role is None or role.includes(SpaceRole.WRITER)

    def writable_owner_of(self, group_id: str) -> Owner:
        """Return whose memory a group of the scope is; raise Forbidden for a space that the caller only reads."""
        owner = self.owner_of(group_id)
        role = dict(self.spaces).get(owner)
        if role is not None:
            require_role(role, SpaceRole.WRITER)
        return owner


Reader = Owner | ReadScope
"""The memory that a read covers: an owner for its own and the tenant's, or a scope, which may include spaces."""


def scope_of(reader: Reader) -> ReadScope:
    """Return the scope of a reader; that of an owner holds no space of which the owner is a member."""
    return ReadScope(reader) if isinstance(reader, Owner) else reader
