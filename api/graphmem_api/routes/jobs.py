"""Background jobs."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.api_key import ApiKey
from graphmem.domain.identity import Owner
from graphmem.domain.job import Job
from graphmem.errors import NotFound
from graphmem_api import route_classes
from graphmem_api.auth import Caller
from graphmem_api.dependencies import GraphMemoryDep

read_router = APIRouter(route_class=route_classes.ReadRoute, tags=["jobs"])
write_router = APIRouter(route_class=route_classes.WriteRoute, tags=["jobs"])

JOB_PATH = "/v1/jobs/{job_id:segment}"


@read_router.get(JOB_PATH, summary="Read a job", response_model=Job)
async def get(job_id: str, caller: Caller, memory: GraphMemoryDep) -> Job:
    """Read where a job stands; one of a user out of reach answers like one that does not exist."""
    return await _get_reachable_job(memory, caller, job_id)


@write_router.post(JOB_PATH + "/retry", summary="Retry a failed job", response_model=Job)
async def retry(job_id: str, caller: Caller, memory: GraphMemoryDep) -> Job:
    """Queue a failed job again from the step it failed at; 409 when it has not failed."""
    await _get_reachable_job(memory, caller, job_id)
    queued: Job = await memory.jobs.retry(job_id)
    return queued


async def _get_reachable_job(memory: GraphMemoryDep, caller: ApiKey, job_id: str) -> Job:
    """Return a job of a user in reach; those of the tenant as a whole are for admins."""
    job: Job = await memory.jobs.get(job_id)
    owner = Owner.from_group_id(job.partition)
    if owner.tenant != caller.tenant or not (caller.can_access(owner.user_id) if owner.user_id else caller.is_admin):
        raise NotFound("There is no such job.")
    return job
