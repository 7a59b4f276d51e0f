"""Webhooks: changes arrive signed at a real receiver, in order, and again after failures."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.changes.models import WebhookIn, is_public_address
from graphmem.changes.sending import Delivery, DeliveryFailed, DeliveryImpossible, WebhookSender
from graphmem.changes.webhooks import WebhookService, WebhookStore, webhook_partition
from tests.conftest import FakeClock

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
WEBHOOKS = "/v1/admin/webhooks"


class Receiver:
    """A real HTTP server that keeps what it gets and answers by `statuses`, then with 204."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]

    def contents(self, user_id: str) -> list[tuple[str, str]]:
        return [
            (event["type"], event["data"]["memory"]["content"]) for event in self.events if event["user_id"] == user_id
        ]


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> tuple[float, float]:
    """The seconds for which a failed delivery waits: until it is retried, however long the test takes."""
    pauses = (3600.0, 7200.0)
    monkeypatch.setattr("graphmem.changes.webhooks.RETRY_PAUSES", pauses)
    return pauses


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.05)


async def save(client: httpx.AsyncClient, content: str, user: str = "mara", **fields: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/users/{user}/memories", json={"memories": [{"content": content, **fields}]})
    assert answer.status_code == 200, answer.text
    memory: dict[str, Any] = answer.json()["results"][0]["memory"]
    return memory


async def create(admin: httpx.AsyncClient, receiver: Receiver, **fields: Any) -> dict[str, Any]:
    answer = await admin.post(WEBHOOKS, json={"url": receiver.url, "secret": SECRET, **fields})
    assert answer.status_code == 201, answer.text
    webhook: dict[str, Any] = answer.json()
    return webhook


async def read(admin: httpx.AsyncClient) -> dict[str, Any]:
    [webhook] = (await admin.get(WEBHOOKS)).json()["items"]
    found: dict[str, Any] = webhook
    return found


async def has_status(admin: httpx.AsyncClient, status: str) -> bool:
    return bool((await read(admin))["status"] == status)


async def test_changes_arrive_signed_once_and_in_order(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, receiver: Receiver
) -> None:
    await save(agent, "Said before there was a webhook")
    created = await create(admin, receiver)
    assert created["status"] == "active"
    tea = await save(agent, "Mara likes tea")
    await agent.patch(f"/v1/users/mara/memories/{tea['id']}", json={"content": "Mara likes green tea"})
    await agent.delete(f"/v1/users/mara/memories/{tea['id']}")
    await save(agent, "Tom sings", user="tom")
    await until(lambda: len(receiver.requests) == 4)
    assert receiver.contents("mara") == [
        ("memory.inserted", "Mara likes tea"),
        ("memory.superseded", "Mara likes green tea"),
        ("memory.deleted", "Mara likes green tea"),
    ]
    assert receiver.contents("tom") == [("memory.inserted", "Tom sings")]

    listed = (await agent.get("/v1/users/mara/changes")).json()["items"][1:]
    delivered = [event["data"] for event in receiver.events if event["user_id"] == "mara"]
    for field in ("id", "at", "kind", "memory_id", "reason", "actor"):
        assert [change[field] for change in delivered] == [change[field] for change in listed]
    assert delivered[0].keys() == listed[0].keys()
    for headers, body in receiver.requests:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        digest = base64.b64encode(hmac.digest(b"k" * 32, signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{digest}"
        assert headers["webhook-id"] == json.loads(body)["data"]["id"]
        assert abs(int(headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 60
    found = await read(admin)
    assert (found["last_status"], found["failures"], "secret" in found) == (204, 0, False)
    assert found["last_delivered_at"]

    assert (await admin.delete(f"{WEBHOOKS}/{created['id']}")).status_code == 204
    assert (await admin.delete(f"{WEBHOOKS}/{created['id']}")).status_code == 404
    assert (await admin.get(WEBHOOKS)).json() == {"items": []}


async def test_a_failed_delivery_waits_and_comes_again_with_the_same_id(
    admin: httpx.AsyncClient,
    agent: httpx.AsyncClient,
    receiver: Receiver,
    services: Services,
    long_pauses: tuple[float, float],
) -> None:
    receiver.statuses = [500, 302]
    webhook = await create(admin, receiver, users=["mara"], kinds=["inserted"])
    await save(agent, "Tom sings", user="tom")
    await save(agent, "Mara has a canoe")
    await save(agent, "Mara has a kite")
    await until(lambda: len(receiver.requests) == 1)

    async def is_queued() -> bool:
        return bool(await services.jobs.list(webhook_partition(webhook["id"])))

    await until(is_queued)
    jobs = await services.jobs.list(webhook_partition(webhook["id"]))
    job_id = jobs[0].id

    async def waits() -> bool:
        return (await services.jobs.get(job_id)).waits_until is not None

    async def has_failed_twice() -> bool:
        return (await read(admin))["failures"] == 2 and await waits()

    await until(waits)
    assert (await read(admin))["status"] == "failing"
    assert (await read(admin))["last_error"] == "the receiver answered 500"
    assert "mara" not in jobs[0].model_dump_json()
    await services.jobs.retry(job_id)
    await until(lambda: len(receiver.requests) == 2)
    await until(has_failed_twice)
    assert "redirect" in (await read(admin))["last_error"]
    pause = (await services.jobs.get(job_id)).waits_until
    assert pause
    assert pause > datetime.now(UTC) + timedelta(seconds=long_pauses[0])
    await services.jobs.retry(job_id)
    await until(lambda: len(receiver.requests) == 4)
    assert [event["data"]["memory"]["content"] for event in receiver.events] == [
        *["Mara has a canoe"] * 3,
        "Mara has a kite",
    ]
    assert len({headers["webhook-id"] for headers, _ in receiver.requests[:3]}) == 1
    await until(lambda: has_status(admin, "active"))


async def test_a_receiver_that_is_gone_disables_its_webhook(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, receiver: Receiver, services: Services
) -> None:
    receiver.statuses = [410]
    await create(admin, receiver)
    await save(agent, "Mara has a canoe")
    await until(lambda: has_status(admin, "disabled"))
    assert "410" in (await read(admin))["disabled_reason"]
    await save(agent, "Mara has a kite")
    assert await services.webhook_delivery.queue_due() == 0


async def test_a_webhook_that_fails_for_days_is_disabled(
    admin: httpx.AsyncClient,
    agent: httpx.AsyncClient,
    receiver: Receiver,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services.webhook_delivery, "max_failing", timedelta(0))
    receiver.server.server_close()
    await create(admin, receiver)
    await save(agent, "Mara has a canoe")
    await until(lambda: has_status(admin, "disabled"))
    assert "cannot be reached" in (await read(admin))["disabled_reason"]
    assert (await read(admin))["last_status"] is None


@pytest.mark.usefixtures("long_pauses")
async def test_deliveries_of_a_forgotten_user_vanish(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, receiver: Receiver, services: Services
) -> None:
    receiver.statuses = [503]
    webhook = await create(admin, receiver)
    await save(agent, "Mara has a canoe")
    await save(agent, "Mara has a kite")

    async def waiting_jobs() -> list[str]:
        jobs = await services.jobs.list(webhook_partition(webhook["id"]))
        return [job.id for job in jobs if job.waits_until]

    async def has_waiting_job() -> bool:
        return bool(await waiting_jobs())

    await until(has_waiting_job)
    erased = (await admin.delete("/v1/users/mara")).json()
    assert erased["residue"] == 0
    for job_id in await waiting_jobs():
        await services.jobs.retry(job_id)
    await save(agent, "Tom sings", user="tom")
    await until(lambda: bool(receiver.contents("tom")))
    assert receiver.contents("mara") == [("memory.inserted", "Mara has a canoe")]
    erased = (await admin.delete("/v1/users/tom")).json()
    assert erased["erased"]["WebhookCursor"] == 1


async def test_a_webhook_resumes_from_a_time_and_needs_an_admin(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, receiver: Receiver
) -> None:
    await save(agent, "Mara has a canoe")
    kite = await save(agent, "Mara has a kite")
    await create(admin, receiver, since=kite["created_at"])
    await until(lambda: bool(receiver.requests))
    assert receiver.contents("mara") == [("memory.inserted", "Mara has a kite")]
    assert (await agent.post(WEBHOOKS, json={"url": receiver.url})).status_code == 403
    for wrong in ({"url": "ftp://x"}, {"url": "https://me:x@host/"}, {"url": receiver.url, "secret": "short"}):
        assert (await admin.post(WEBHOOKS, json=wrong)).status_code == 422


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
     "2002:a00:1::", "224.0.0.1", "100.64.0.1", "64:ff9b:1::a00:1", "fec0::1", "::10.0.0.1", "ff0e::1", "4000::1",
     "192.0.0.8", "192.88.99.1", "3fff::1"],
)  # fmt: skip
def test_internal_addresses_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@pytest.mark.parametrize(
    "host", ["[fe80::1%25eth0]", "127.0.0.1%2e", "a..b", "-x.com", "x-.com", f"{'a' * 64}.com", "[::1", "[1]", "a:b:c"]
)
def test_a_host_that_no_delivery_can_reach_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"host|such as"):
        WebhookIn(url=f"https://{host}/hook")


@pytest.mark.parametrize("host", ["example.com", "example.com.", "my_service", "xn--mnchen-3ya.de", "[2606:4700::1]"])
def test_names_and_addresses_are_hosts(host: str) -> None:
    assert WebhookIn(url=f"https://{host}/hook")


@pytest.mark.parametrize("event_id", ["a\r\nX-Other: b", "💥"])
async def test_a_change_that_no_request_can_hold_is_impossible_to_deliver(receiver: Receiver, event_id: str) -> None:
    sender = WebhookSender(allow_private=True)
    with pytest.raises(DeliveryImpossible):
        await sender.send(Delivery(receiver.url, SECRET, event_id, 0, b"{}"))
    await sender.aclose()
    assert receiver.requests == []


async def test_a_change_that_cannot_be_sent_is_left_out_and_shown(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, receiver: Receiver, services: Services
) -> None:
    await create(admin, receiver)
    first = await save(agent, "Mara likes tea")
    await until(lambda: len(receiver.requests) == 1)
    await services.components.graph.write(
        lambda transaction: transaction.run_text(
            "MATCH ()-[f]->() WHERE f.memory_id = $id SET f.uuid = f.uuid + '\r\n'", {"id": first["id"]}
        )
    )
    await agent.delete(f"/v1/users/mara/memories/{first['id']}")
    await save(agent, "Mara likes coffee")
    await until(lambda: len(receiver.requests) >= 2)
    webhook = await read(admin)
    assert receiver.contents("mara")[-1] == ("memory.inserted", "Mara likes coffee")
    assert (webhook["status"], webhook["skipped"]) == ("active", 1)
    assert "cannot be sent in a header" in webhook["last_skipped"]


async def test_private_addresses_are_refused_when_created_and_when_sent(
    services: Services, receiver: Receiver, tenant: str, clock: FakeClock
) -> None:
    assert is_public_address("93.184.216.34")
    strict = WebhookService(WebhookStore(services.components.graph), services.jobs, clock)
    hosts = ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "1.2.3.4.5", "localhost", "localhost."]
    hosts += ("LOCALHOST", "a.localhost", "[::1]", "[64:ff9b:1::1]", "[fec0::1]", "[::7f00:1]")
    for url in (receiver.url, "http://example.com/", "HTTPS://example.com/", *(f"https://{host}/" for host in hosts)):
        with pytest.raises(Exception, match="webhook's address"):
            await strict.create(tenant, WebhookIn(url=url), "test")
    sender = WebhookSender()
    # A name that passed when the webhook was created is resolved and checked again when a change is sent.
    for url, reason in ((receiver.url, "not https"), ("https://localhost:1/", "public address")):
        with pytest.raises(DeliveryFailed, match=reason):
            await sender.send(Delivery(url, SECRET, "id", 0, b"{}"))
    await sender.aclose()
    assert receiver.requests == []
