"""Erasing a user."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.user_data.models import ErasureResult
from graphmem_api import route_classes
from graphmem_api.auth import OwnerInPath
from graphmem_api.dependencies import USER_PATH, ServicesDep

router = APIRouter(route_class=route_classes.ForgetRoute, tags=["user data"])


@router.delete(USER_PATH, summary="Erase a user", operation_id="users_forget")
async def forget(owner: OwnerInPath, services: ServicesDep) -> ErasureResult:
    """Erase all data of a user everywhere, then count what is left."""
    return await services.forgetting.forget(owner)
