"""Tenant administration: keys, instructions, trust, declared types, graphs, webhooks and the quarantine."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from graphmem.changes.models import CreatedWebhook, WebhookIn, WebhookItems
from graphmem.ingestion.quarantined_statement import QuarantinedStatement, QuarantineQuery
from graphmem.jobs.job import Job
from graphmem.memories.declared_types import DeclaredTypes, DeclaredTypesIn
from graphmem.memories.memory import SaveResult
from graphmem.placement.models import DrainIn, PlacementIn, PlacementList
from graphmem.runtime.paging import Page
from graphmem.tenants.access import ApiKey, ApiKeyIn, CreatedApiKey
from graphmem.tenants.owners import Instructions, InstructionsIn
from graphmem.tenants.trust import Trust, TrustIn
from graphmem_api import route_classes
from graphmem_api.dependencies import Caller, IdempotentRequestDep, ServicesDep


class KeyList(BaseModel):
    """API keys without their secrets."""

    items: list[ApiKey]


read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["admin"])
write_router = APIRouter(route_class=route_classes.AdminWriteRoute, tags=["admin"])
webhook_router = APIRouter(route_class=route_classes.SecretWriteRoute, tags=["admin"])
key_read_router = APIRouter(route_class=route_classes.AdminReadRoute, tags=["keys"])
key_router = APIRouter(route_class=route_classes.SecretWriteRoute, tags=["keys"])

KEYS_PATH = "/v1/admin/keys"


@key_router.post(KEYS_PATH, summary="Create an API key", status_code=201, operation_id="keys_create")
async def create_key(caller: Caller, services: ServicesDep, body: ApiKeyIn) -> CreatedApiKey:
    """Create an API key; only this response holds its secret."""
    return await services.keys.create(caller.tenant, body)


@key_read_router.get(KEYS_PATH, summary="List API keys", operation_id="keys_list")
async def list_keys(caller: Caller, services: ServicesDep) -> KeyList:
    """List the tenant's API keys without their secrets, oldest first."""
    return KeyList(items=await services.keys.list(caller.tenant))


@key_router.delete(
    KEYS_PATH + "/{key_id:segment}", summary="Revoke an API key", status_code=204, operation_id="keys_revoke"
)
async def revoke_key(key_id: str, caller: Caller, services: ServicesDep) -> None:
    """Revoke an API key with immediate effect."""
    await services.keys.revoke(caller.tenant, key_id)


QUARANTINE_PATH = "/v1/admin/quarantine"
STATEMENT_PATH = QUARANTINE_PATH + "/{statement_id:segment}"


@read_router.get(QUARANTINE_PATH, summary="List quarantined statements", operation_id="quarantine_list")
async def list_quarantined(
    caller: Caller, services: ServicesDep, query: Annotated[QuarantineQuery, Query()]
) -> Page[QuarantinedStatement]:
    """List quarantined statements with the reason, latest first."""
    return await services.quarantine.page(caller.tenant, query)


@write_router.post(
    STATEMENT_PATH + "/release", summary="Release a quarantined statement", operation_id="quarantine_release"
)
async def release(
    statement_id: str, caller: Caller, services: ServicesDep, request: IdempotentRequestDep
) -> SaveResult:
    """Save a quarantined statement as a memory; the key is the actor in its history."""
    return await services.quarantine.release(caller.tenant, statement_id, actor=caller.id, request=request)


@write_router.delete(
    STATEMENT_PATH, summary="Drop a quarantined statement", status_code=204, operation_id="quarantine_drop"
)
async def drop(statement_id: str, caller: Caller, services: ServicesDep) -> None:
    """Erase a quarantined statement; its message stays."""
    await services.quarantine.drop(caller.tenant, statement_id)


INSTRUCTIONS_PATH = "/v1/admin/instructions"


@read_router.get(INSTRUCTIONS_PATH, summary="Read the custom instructions", operation_id="instructions_get")
async def get_instructions(caller: Caller, services: ServicesDep) -> Instructions:
    """Read what the tenant wants remembered, and what must not be."""
    return await services.instructions.get(caller.tenant)


@write_router.post(INSTRUCTIONS_PATH, summary="Set the custom instructions", operation_id="instructions_set")
async def set_instructions(caller: Caller, services: ServicesDep, body: InstructionsIn) -> Instructions:
    """Set what the tenant wants remembered, and what must not be; an empty text removes it.

    The text cannot permit what the secrets policy refuses.
    """
    return await services.instructions.set(caller.tenant, body, caller.id)


TRUST_PATH = "/v1/admin/trust"


@read_router.get(TRUST_PATH, summary="Read the order of trust", operation_id="trust_get")
async def get_trust(caller: Caller, services: ServicesDep) -> Trust:
    """Read the tenant's sources, most trusted first."""
    return await services.trust.get(caller.tenant)


@write_router.put(TRUST_PATH, summary="Set the order of trust", operation_id="trust_set")
async def set_trust(caller: Caller, services: ServicesDep, body: TrustIn) -> Trust:
    """Set the tenant's order of sources, most trusted first; an empty order restores the default.

    It applies to every later read and write. Contested memories stay contested until they are resolved.
    """
    return await services.trust.set(caller.tenant, body, caller.id)


TYPES_PATH = "/v1/admin/types"


@read_router.get(TYPES_PATH, summary="Read the declared types", operation_id="types_get")
async def get_declared_types(caller: Caller, services: ServicesDep) -> DeclaredTypes:
    """Read the types of memories and entities that the tenant declared."""
    return await services.declared_types.get(caller.tenant)


@write_router.put(TYPES_PATH, summary="Declare types", operation_id="types_set")
async def set_declared_types(caller: Caller, services: ServicesDep, body: DeclaredTypesIn) -> DeclaredTypes:
    """Declare types of memories and entities; replaces the earlier declaration, and empty lists remove it.

    Memories keep a type that is no longer declared.
    """
    return await services.declared_types.set(caller.tenant, body, caller.id)


PLACEMENTS_PATH = "/v1/admin/placements"


@read_router.get(PLACEMENTS_PATH, summary="List graphs and the tenant's graph", operation_id="placements_list")
async def list_placements(caller: Caller, services: ServicesDep) -> PlacementList:
    """List the graphs, whether they answer, and which one stores the tenant."""
    return await services.placements.describe(caller)


@write_router.post(
    PLACEMENTS_PATH,
    summary="Move the tenant to another graph",
    operation_id="placements_move",
    status_code=202,
)
async def move_tenant(caller: Caller, services: ServicesDep, body: PlacementIn) -> Job:
    """Move the tenant to another graph while it is in use; 409 if it is already there."""
    return await services.placements.move(caller.tenant, body.graph)


@write_router.post(
    PLACEMENTS_PATH + "/{graph}/drain",
    summary="Move all tenants of a graph to another one",
    operation_id="placements_drain",
    status_code=202,
)
async def drain_graph(graph: str, caller: Caller, services: ServicesDep, body: DrainIn) -> Page[Job]:
    """Move all tenants of a graph to another one; only for callers on the server's machine."""
    return Page(items=await services.placements.drain(caller, graph, body.to))


WEBHOOKS_PATH = "/v1/admin/webhooks"


@webhook_router.post(WEBHOOKS_PATH, summary="Create a webhook", status_code=201, operation_id="webhooks_create")
async def create_webhook(caller: Caller, services: ServicesDep, body: WebhookIn) -> CreatedWebhook:
    """Create a webhook, which receives changes of memories as signed requests; only this response holds its secret.

    Each change is one POST of `{type, timestamp, user_id, data}`, where `data` is an item of `GET …/changes`, with the
    headers of Standard Webhooks: `webhook-id` (the id of the change), `webhook-timestamp` and `webhook-signature`.
    """
    return await services.webhooks.create(caller.tenant, body, caller.id)


@read_router.get(WEBHOOKS_PATH, summary="List webhooks", operation_id="webhooks_list")
async def list_webhooks(caller: Caller, services: ServicesDep) -> WebhookItems:
    """List the tenant's webhooks and the state of their deliveries, oldest first, without secrets."""
    return WebhookItems(items=await services.webhooks.list(caller.tenant))


@webhook_router.delete(
    WEBHOOKS_PATH + "/{webhook_id:segment}",
    summary="Delete a webhook",
    status_code=204,
    operation_id="webhooks_delete",
)
async def delete_webhook(webhook_id: str, caller: Caller, services: ServicesDep) -> None:
    """Delete a webhook; pending changes are not delivered."""
    await services.webhooks.delete(caller.tenant, webhook_id)
