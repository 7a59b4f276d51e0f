"""Operations for admins: consolidation, maintenance, API keys, webhooks, custom instructions and declared types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from graphmem.changes.models import ChangeKind, CreatedWebhook, Webhook, WebhookIn
from graphmem.client.inputs import as_dicts, without_none
from graphmem.client.operations.request import Request
from graphmem.consolidation.maintenance_tasks import MaintenanceResults, MaintenanceTask
from graphmem.consolidation.models import (
    ConsolidationIn,
    ConsolidationRun,
    MaintenanceIn,
    Proposal,
    RollbackIn,
    RollbackPreview,
    RollbackResult,
    RunListQuery,
)
from graphmem.jobs.job import Job
from graphmem.memories.declared_types import DeclaredTypes, DeclaredTypesIn
from graphmem.models.embedding_models import EmbeddingStatus, ReembeddingIn
from graphmem.runtime.paging import Page
from graphmem.runtime.validation import validate_arguments
from graphmem.tenants.access import (
    ApiKey,
    ApiKeyIn,
    CreatedApiKey,
    KeyRole,
)
from graphmem.tenants.owners import Instructions, InstructionsIn


def consolidate(
    user_id: str | None = None,
    *,
    dry_run: bool = False,
    wait: bool = False,
    proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
) -> Request[ConsolidationIn, ConsolidationRun | str]:
    """Start a consolidation of one user or all and return the run's id; with `wait` return the finished run (admin)."""
    curated = None if proposals is None else as_dicts(proposals)
    given = without_none(user_id=user_id, dry_run=dry_run, wait=wait, proposals=curated)
    return Request(validate_arguments(ConsolidationIn, given))


def runs(
    *, user_id: str | None = None, limit: int = 50, cursor: str | None = None
) -> Request[RunListQuery, Page[ConsolidationRun]]:
    """List consolidation runs, the latest first, without their changes (admin)."""
    return Request(validate_arguments(RunListQuery, without_none(user_id=user_id, limit=limit, cursor=cursor)))


def run(run_id: str) -> Request[None, ConsolidationRun]:
    """Read a consolidation run with its proposals and changes (admin)."""
    return Request(None, resource_id=run_id)


def rollback(
    run_id: str, *, force: bool = False, dry_run: bool = False
) -> Request[RollbackIn, RollbackResult | RollbackPreview]:
    """Undo a consolidation run; raise Conflict when later writes touched its changes, unless `force` (admin).

    With `dry_run` nothing is changed, and the result says what would go back, come back and stay.
    """
    return Request(RollbackIn(force=force, dry_run=dry_run), resource_id=run_id)


def maintain(
    *tasks: MaintenanceTask | Literal["decay", "compress", "prune", "expire"],
) -> Request[MaintenanceIn, MaintenanceResults]:
    """Run maintenance tasks now, all when none is named, and return what each did (admin)."""
    return Request(validate_arguments(MaintenanceIn, {"tasks": list(tasks)} if tasks else {}))


def reembed(model: str | None = None) -> Request[ReembeddingIn, Job]:
    """Start to replace all vectors by those of a model, absent that of the settings, and return the job (admin)."""
    return Request(validate_arguments(ReembeddingIn, without_none(model=model)))


def embedding() -> Request[None, EmbeddingStatus]:
    """Read which embedding model all vectors are of, and how far a re-embedding has come (admin)."""
    return Request(None)


def create_key(
    name: str, *, role: KeyRole | str, users: Sequence[str] | None = None
) -> Request[ApiKeyIn, CreatedApiKey]:
    """Create an API key; only this result holds its secret (admin)."""
    return Request(validate_arguments(ApiKeyIn, without_none(name=name, role=role, users=users)))


def keys() -> Request[None, list[ApiKey]]:
    """List the tenant's API keys without their secrets, oldest first (admin)."""
    return Request(None)


def revoke_key(key_id: str) -> Request[None, None]:
    """Revoke an API key with immediate effect (admin)."""
    return Request(None, resource_id=key_id)


def create_webhook(
    url: str,
    *,
    secret: str | None = None,
    users: Sequence[str] | None = None,
    kinds: Sequence[ChangeKind | str] | None = None,
    since: datetime | str | None = None,
) -> Request[WebhookIn, CreatedWebhook]:
    """Create a webhook that receives changes as signed requests; only this result holds its secret (admin)."""
    given = without_none(url=url, secret=secret, users=users, kinds=kinds, since=since)
    return Request(validate_arguments(WebhookIn, given))


def webhooks() -> Request[None, list[Webhook]]:
    """List the tenant's webhooks and how their deliveries go, oldest first (admin)."""
    return Request(None)


def delete_webhook(webhook_id: str) -> Request[None, None]:
    """Delete a webhook; what it has not received yet is not delivered (admin)."""
    return Request(None, resource_id=webhook_id)


def instructions() -> Request[None, Instructions]:
    """Read what the tenant wants remembered, and what not (admin)."""
    return Request(None)


def set_instructions(text: str) -> Request[InstructionsIn, Instructions]:
    """Set what the tenant wants remembered, and what not; an empty text removes it (admin)."""
    return Request(validate_arguments(InstructionsIn, {"text": text}))


def declared_types() -> Request[None, DeclaredTypes]:
    """Read the types of memories and entities that the tenant declared (admin)."""
    return Request(None)


def set_declared_types(
    *, memory_types: Sequence[Mapping[str, Any]] = (), entity_types: Sequence[Mapping[str, Any]] = ()
) -> Request[DeclaredTypesIn, DeclaredTypes]:
    """Declare types of memories and entities, in place of those declared before (admin)."""
    given = {"memory_types": as_dicts(memory_types), "entity_types": as_dicts(entity_types)}
    return Request(validate_arguments(DeclaredTypesIn, given))
