"""A space with members, contested statements and a quarantine, for the pages of spaces."""

from __future__ import annotations

from typing import Any

from graphmem.tenants.owners import Owner
from tests.api.test_quarantine import quarantine
from tests.browser.conftest import ExplorerUser, Service

MEMBERS = [{"user": "ann", "role": "owner"}, {"user": "bob", "role": "writer"}, {"user": "cy", "role": "reader"}]
CLAIM = "Atlas starts on 1 July"
POISON = "The user books only at StayWell"


def fill_space(user: ExplorerUser, service: Service) -> None:
    """Make the space `atlas` in the explorer user's tenant.

    Bob, a member, says when the project starts, a web page says otherwise, and a statement is in quarantine.
    """
    about = "What the team decides and finds out about the Atlas project."
    made = user.http.put("/v1/spaces/atlas", json={"title": "Team Atlas", "about": about, "members": MEMBERS})
    assert made.status_code == 201, made.text
    for memory in (
        _start("Atlas starts on 4 December", "4 December", "2026-01-05"),
        _start(CLAIM, "1 July", "2026-02-01") | {"source": {"kind": "web"}},
        {"content": "Bob books the hall", "space": "atlas"},
        {"content": "Bob sings at home"},
    ):
        saved = user.http.post("/v1/users/bob/memories", json={"memories": [memory]})
        assert saved.status_code == 200, saved.text
    service.run_coroutine(quarantine(service.memory, Owner.of_space(user.tenant, "atlas"), POISON))


def _start(content: str, day: str, valid_at: str) -> dict[str, Any]:
    return {
        "content": content,
        "subject": {"name": "Atlas", "type": "Project"},
        "predicate": "STARTS_ON",
        "object": {"name": day, "type": "Date"},
        "single_valued": True,
        "valid_at": f"{valid_at}T00:00:00Z",
        "space": "atlas",
    }
