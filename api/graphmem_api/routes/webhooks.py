"""Webhooks of a tenant."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.changes.models import CreatedWebhook, WebhookIn, WebhookItems
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import ServicesDep

read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.SecretWriteRoute, tags=["admin"])

WEBHOOKS_PATH = "/v1/admin/webhooks"


@write_router.post(WEBHOOKS_PATH, summary="Create a webhook", status_code=201, operation_id="webhooks_create")
async def create(caller: Caller, services: ServicesDep, body: WebhookIn) -> CreatedWebhook:
    """Create a webhook, which receives changes of memories as signed requests; only this response holds its secret.

    Each change is one POST of `{type, timestamp, user_id, data}`, where `data` is an item of `GET …/changes`, with the
    headers of Standard Webhooks: `webhook-id` (the id of the change), `webhook-timestamp` and `webhook-signature`.
    """
    return await services.webhooks.create(caller.tenant, body, caller.id)


@read_router.get(WEBHOOKS_PATH, summary="List webhooks", operation_id="webhooks_list")
async def list_webhooks(caller: Caller, services: ServicesDep) -> WebhookItems:
    """List the tenant's webhooks without their secrets, oldest first, and how their deliveries go."""
    return WebhookItems(items=await services.webhooks.list(caller.tenant))


@write_router.delete(
    WEBHOOKS_PATH + "/{webhook_id:segment}",
    summary="Delete a webhook",
    status_code=204,
    operation_id="webhooks_delete",
)
async def delete(webhook_id: str, caller: Caller, services: ServicesDep) -> None:
    """Delete a webhook; what it has not received yet is not delivered."""
    await services.webhooks.delete(caller.tenant, webhook_id)
