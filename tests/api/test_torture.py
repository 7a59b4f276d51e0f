"""A few cases of what `make torture` tries by the thousand: hostile requests and documents, and callers' isolation."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from fastapi import FastAPI

from graphmem.app.bootstrap import Services
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user
from torture.findings import Findings
from torture.fuzz_documents import DocumentFuzzer
from torture.fuzz_requests import RequestFuzzer
from torture.hostile_values import INJECTIONS
from torture.isolation import probe_isolation
from torture.space_isolation import probe_space_isolation

SEED = 15


@pytest.mark.req("QUINN-41")
async def test_no_request_shows_or_changes_data_of_another_user(app: FastAPI, address: str, services: Services) -> None:
    findings = Findings()
    await probe_isolation(services, app.openapi(), address, 1, findings, seed=SEED, injections=INJECTIONS[::40])
    assert findings.cases > 40
    assert not findings.total, findings.report()


async def test_no_request_shows_data_of_a_space_to_former_members_and_strangers(
    address: str, services: Services
) -> None:
    findings = Findings()
    await probe_space_isolation(services, address, 1.5, findings, SEED)
    assert findings.cases > 20
    assert not findings.total, findings.report()


@pytest.mark.long
async def test_sequences_of_generated_requests_get_documented_responses(
    app: FastAPI, address: str, admin: httpx.AsyncClient
) -> None:
    findings = Findings()
    fuzzer = RequestFuzzer(app.openapi(), address, admin.headers["authorization"].partition(" ")[2], findings)
    await asyncio.to_thread(fuzzer.fuzz_sequences, 3, derandomize=True)
    assert findings.cases
    assert not findings.total, findings.report()


@pytest.mark.long
async def test_changed_documents_are_imported_or_refused_and_leave_a_user_that_can_be_read(
    admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    template = Owner(tenant, "template")
    await fill_user(services, template)
    document = json.loads(await services.exports.export(template))
    findings = Findings()
    await DocumentFuzzer(admin, document, findings, SEED).fuzz(3, ["mara"])
    assert not findings.total, findings.report()
