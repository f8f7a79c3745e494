"""Erasure of a person's data: a job is made, counted, carried out, and proved without telling its object."""

from typing import Any, Literal

import msgspec
from fastapi import APIRouter
from pydantic import Field

from postroom.api.queue import documents, views
from postroom.api.queue.access import needs
from postroom.api.queue.bodies import RequestBody
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.service import new_id
from postroom.api.responses import Json
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.subject import Subject
from postroom.services.erasure import Eraser, ErasureJob

PLACE = "/scopes/{scope_id}/gdpr-jobs"


class SubjectBody(RequestBody):
    field: str = Field(examples=["labels.customer_id"])
    value: str | int | float | bool


class NewJob(RequestBody):
    subject: SubjectBody
    mode: Literal["erase", "redact"] = "erase"
    dry_run: bool = False


def shown(visit: RequestContext, job: ErasureJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "scope_id": visit.opaque.scope(visit.scope.id),
        "status": job.status,
        "mode": job.mode,
        "dry_run": job.dry_run,
        "subject": msgspec.to_builtins(job.subject) if job.subject is not None else None,
        "found": job.found,
        "erased": job.erased,
        "waiting": job.waiting,
        "in_lake": job.in_lake,
        "proof": job.proof,
        "error": job.error,
        "created_at": views.when(job.created_at),
        "completed_at": views.when(job.completed_at),
    }


def _eraser(visit: RequestContext) -> Eraser:
    return Eraser(visit.house.run, visit.house.clock, visit.who, visit.house.lake)


async def _one(visit: RequestContext, job_id: str) -> ErasureJob:
    found = await documents.found(visit, erasure.KIND, f"{visit.scope.id}/{job_id}", "gdpr job")
    return msgspec.convert(found.data, ErasureJob)


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("manage", "erasure.create"))
    async def create_job(visit: Visiting, scope_id: str, body: NewJob) -> Json:
        """Ask for an erasure. It counts what it would do; nothing is erased before `execute`."""
        subject = Subject(field=body.subject.field, value=body.subject.value)
        erasure.check_subject(subject)
        job = ErasureJob(
            id=new_id(),
            scope=visit.scope.slug,
            scope_id=visit.scope.id,
            subject=subject,
            mode=body.mode,
            dry_run=body.dry_run,
            created_at=visit.house.clock.now(),
        )
        visit.details = {"job": job.id}
        return one(shown(visit, await _eraser(visit).preview(job)), status=201)

    @routes.get(PLACE, openapi_extra=needs("manage", "erasure.list"))
    async def list_jobs(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The erasures of a scope; once carried out, without what they looked for."""
        found = await documents.listed(visit, erasure.KIND, f"{visit.scope.id}/")
        jobs = [shown(visit, msgspec.convert(each.data, ErasureJob)) for each in found]
        return many(*cut(jobs, cursor, limit))

    @routes.get(PLACE + "/{job_id}", openapi_extra=needs("manage", "erasure.read"))
    async def read_job(visit: Visiting, scope_id: str, job_id: str) -> Json:
        """How an erasure stands, and its proof."""
        return one(shown(visit, await _one(visit, job_id)))

    @routes.post(PLACE + "/{job_id}/preview", openapi_extra=needs("manage", "erasure.preview"))
    async def preview_job(visit: Visiting, scope_id: str, job_id: str) -> Json:
        """Count anew."""
        return one(shown(visit, await _eraser(visit).preview(await _one(visit, job_id))))

    @routes.post(PLACE + "/{job_id}/execute", openapi_extra=needs("manage", "erasure.execute"))
    async def execute_job(visit: Visiting, scope_id: str, job_id: str) -> Json:
        """Erase. What somebody works on at the moment waits; the status says so, and execute goes on."""
        visit.details = {"job": job_id}
        return one(shown(visit, await _eraser(visit).execute(await _one(visit, job_id))))
