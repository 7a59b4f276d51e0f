"""Background jobs."""

from __future__ import annotations

from fastapi import APIRouter

from graphmem.domain.job import Job
from graphmem.domain.key import Key
from graphmem.errors import NotFound
from graphmem_api import guard
from graphmem_api.auth import Caller
from graphmem_api.facade import Memory as Facade

reading = APIRouter(route_class=guard.Reading, tags=["jobs"])
writing = APIRouter(route_class=guard.Writing, tags=["jobs"])

ONE = "/v1/jobs/{job_id:segment}"


@reading.get(ONE, summary="Read a job", response_model=Job)
async def get(job_id: str, caller: Caller, memory: Facade) -> Job:
    """Read where a job stands; one of a user out of reach answers like one that does not exist."""
    return await _reached(memory, caller, job_id)


@writing.post(ONE + "/retry", summary="Retry a failed job", response_model=Job)
async def retry(job_id: str, caller: Caller, memory: Facade) -> Job:
    """Queue a failed job again from the step it failed at; 409 when it has not failed."""
    await _reached(memory, caller, job_id)
    queued: Job = await memory.jobs.retry(job_id)
    return queued


async def _reached(memory: Facade, caller: Key, job_id: str) -> Job:
    """Return a job of a user in reach; those of the tenant as a whole are for admins."""
    job: Job = await memory.jobs.get(job_id)
    tenant, _, user_id = job.partition.partition(":")
    if tenant != caller.tenant or not (caller.reaches(user_id) if user_id else caller.is_admin):
        raise NotFound("There is no such job.")
    return job
