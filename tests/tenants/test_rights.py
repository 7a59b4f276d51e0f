"""Rights by construction: which modules may make a scope, and which may make the owner of a space."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphmem.runtime.errors import Forbidden, InvalidInput, NotFound
from graphmem.tenants.owners import Owner, make_owner, message_key, split_message_key
from graphmem.tenants.spaces import ReadScope, SpaceRole, scope_of

ROOT = Path(__file__).parents[2]

MAY_MAKE_SCOPES = {"graphmem/tenants/rights.py", "graphmem/tenants/spaces.py"}
"""The modules that make a `ReadScope`: all others get one."""

MAY_NAME_SPACES = {
    "graphmem/tenants/owners.py",
    "graphmem/tenants/rights.py",
    "graphmem/tenants/space_store.py",
    "graphmem/context/usage.py",  # of memories that a context held
    "graphmem/consolidation/service.py",  # for admins of the tenant, after the route has looked for the space
    "graphmem/ingestion/quarantine.py",  # for admins, who see the quarantine of the whole tenant
    "api/graphmem_api/routes/jobs.py",  # after it has looked for the role of the caller in the space
    "graphmem/jobs/runner.py",  # compares the partition of a job
    "graphmem/memories/memory.py",  # of a memory that was read
}
"""The modules that turn the id of a space into an owner of memories."""


def _callers_of(name: str) -> set[str]:
    """Return the modules of the package and the API that call a class or a method of that name."""
    found = set()
    for path in [*(ROOT / "graphmem").rglob("*.py"), *(ROOT / "api").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
                found.add(str(path.relative_to(ROOT)))
    return found


def test_scopes_are_made_in_one_place() -> None:
    assert _callers_of("ReadScope") <= MAY_MAKE_SCOPES


def test_few_modules_turn_the_id_of_a_space_into_an_owner() -> None:
    assert _callers_of("of_space") <= MAY_NAME_SPACES


def test_an_owner_reads_its_own_memory_and_the_tenants_alone() -> None:
    owner = Owner("t", "mara")
    assert scope_of(owner).group_ids == ["t:mara", "t:"]
    assert scope_of(Owner.of_space("t", "atlas")).group_ids == ["t: atlas", "t:"]
    assert scope_of(owner.tenant_global).group_ids == ["t:"]


@pytest.mark.parametrize("user_id", [" atlas", "atlas ", " ", "\tatlas", "\u00a0atlas"])
def test_no_user_id_is_that_of_a_space(user_id: str) -> None:
    with pytest.raises(InvalidInput):
        make_owner("t", user_id)
    with pytest.raises(InvalidInput):
        Owner("t", user_id)


@pytest.mark.parametrize("space", ["atlas", "a: b", "Team Atlas", "ä"])
def test_the_stored_ids_of_a_space_name_it_again(space: str) -> None:
    owner = Owner.of_space("t", space)
    assert Owner.from_group_id(owner.group_id) == owner
    assert Owner.from_stored("t", owner.user_id) == owner
    assert (owner.space, owner.own_user_id) == (space, None)
    assert split_message_key(message_key(owner.group_id, "m1")) == (owner.group_id, "m1")


@pytest.mark.parametrize("user_id", ["mara", "a: b", "default:mara"])
def test_messages_of_a_user_have_their_ids_as_keys(user_id: str) -> None:
    assert message_key(Owner("t", user_id).group_id, "m1") == "m1"


def test_a_scope_permits_writes_by_the_role() -> None:
    spaces = {role: Owner.of_space("t", role.value) for role in SpaceRole}
    scope = ReadScope(Owner("t", "mara"), tuple((space, role) for role, space in spaces.items()))
    for role in (SpaceRole.WRITER, SpaceRole.OWNER):
        assert scope.writable_owner_of(spaces[role].group_id) == spaces[role]
    with pytest.raises(Forbidden):
        scope.writable_owner_of(spaces[SpaceRole.READER].group_id)
    for group_id in ("t: other", "t:bob", "other:mara"):
        with pytest.raises(NotFound):
            scope.owner_of(group_id)
