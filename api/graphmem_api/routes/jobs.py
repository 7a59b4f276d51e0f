"""Background jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from graphmem.app.bootstrap import Services
from graphmem.jobs.job import Job, JobListQuery, RetryQuery
from graphmem.runtime.errors import NotFound
from graphmem.runtime.paging import Page
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceRole, require_role
from graphmem_api import route_classes
from graphmem_api.dependencies import Caller, ServicesDep, require_admin

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["jobs"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["jobs"])

JOBS_PATH = "/v1/jobs"
JOB_PATH = JOBS_PATH + "/{job_id:segment}"


@read_router.get(JOBS_PATH, summary="List jobs")
async def page(caller: Caller, services: ServicesDep, query: Annotated[JobListQuery, Query()]) -> Page[Job]:
    """List the jobs of a user, a space or (admin) the tenant, latest first."""
    owner = None
    if query.space is not None:
        owner = Owner.of_space(caller.tenant, query.space)
        if query.user_id is not None or await services.spaces.find_role(caller, query.space) is None:
            raise NotFound("There is no such space.")
    elif query.user_id is not None:
        caller.require_access(query.user_id)
        owner = Owner(caller.tenant, query.user_id)
    else:
        require_admin(caller, "A list of all jobs")
    return await services.jobs.list_page(caller.tenant, owner.group_id if owner else None, query)


@read_router.get(JOB_PATH, summary="Read a job")
async def get(job_id: str, caller: Caller, services: ServicesDep) -> Job:
    """Read the state of a job; 404 without access to its user."""
    return await _get_accessible_job(services, caller, job_id)


@write_router.post(JOB_PATH + "/retry", summary="Retry a failed job")
async def retry(job_id: str, caller: Caller, services: ServicesDep, query: Annotated[RetryQuery, Query()]) -> Job:
    """Queue a failed job again, from the failed step or from the start; 409 if it has not failed."""
    await _get_accessible_job(services, caller, job_id, SpaceRole.WRITER)
    return await services.jobs.retry(job_id, fresh=query.fresh)


async def _get_accessible_job(
    services: Services, caller: ApiKey, job_id: str, needed: SpaceRole = SpaceRole.READER
) -> Job:
    """Return a job of a user or space that the caller has access to; tenant-wide jobs are for admins."""
    job = await services.jobs.get_for_tenant(caller.tenant, job_id)
    if job.space is not None:
        role = await services.spaces.find_role(caller, job.space)
        if role is not None:
            require_role(role, needed)
        has_access = role is not None
    else:
        has_access = caller.is_admin if job.user_id is None else caller.can_access(job.user_id)
    if not has_access:
        raise NotFound("There is no such job.")
    return job
