"""Webhooks by the command line."""

from __future__ import annotations

from tests.cli.conftest import Cli


async def test_a_webhook_is_added_listed_and_removed(cli: Cli, tenant: str) -> None:
    refused = await cli("webhooks", "add", "http://127.0.0.1/hook", "--tenant", tenant)
    assert refused.code == 2
    assert "must begin with https://" in refused.err
    added = (await cli("webhooks", "add", "https://example.com/hook", "-u", "ada", "--tenant", tenant, "--json")).json
    assert added["secret"].startswith("whsec_")
    listed = (await cli("webhooks", "list", "--tenant", tenant)).out
    assert "https://example.com/hook" in listed
    assert "ada" in listed
    assert "whsec_" not in listed
    assert (await cli("webhooks", "remove", added["id"][:8], "--tenant", tenant)).code == 0
    assert (await cli("webhooks", "list", "--tenant", tenant, "--json")).json == {"items": []}
