"""Erasure of a person's data: a job is made, counted, carried out, and proved without telling its object."""

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from postroom.api.queue import upkeep_views as views
from postroom.api.queue.bodies import RequestBody
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.kernel.erasure.subject import Subject
from postroom.services.erasure import Erasures

PATH = "/scopes/{scope_id}/gdpr-jobs"


class SubjectBody(RequestBody):
    field: str = Field(examples=["labels.customer_id"])
    value: str | int | float | bool


class NewJob(RequestBody):
    subject: SubjectBody
    mode: Literal["erase", "redact"] = "erase"
    dry_run: bool = False


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Erasures.CREATE))
    async def create_job(call: Calling, scope_id: str, body: NewJob) -> Json:
        """Ask for an erasure. It counts what it would do; nothing is erased before `execute`."""
        subject = Subject(field=body.subject.field, value=body.subject.value)
        job = await call.services.erasures.create(
            call.caller, scope_id, subject, mode=body.mode, dry_run=body.dry_run
        )
        return one(views.erasure(job, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Erasures.LIST))
    async def list_jobs(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """The erasures of a scope; once carried out, without what they looked for."""
        found = await call.services.erasures.list_all(call.caller, scope_id)
        return many(*cut([views.erasure(each, call.ids) for each in found], cursor, limit))

    @routes.get(PATH + "/{job_id}", openapi_extra=needs(Erasures.READ))
    async def read_job(call: Calling, scope_id: str, job_id: str) -> Json:
        """How an erasure stands, and its proof."""
        return one(views.erasure(await call.services.erasures.read(call.caller, scope_id, job_id), call.ids))

    @routes.post(PATH + "/{job_id}/preview", openapi_extra=needs(Erasures.PREVIEW))
    async def preview_job(call: Calling, scope_id: str, job_id: str) -> Json:
        """Count anew."""
        job = await call.services.erasures.preview(call.caller, scope_id, job_id)
        return one(views.erasure(job, call.ids))

    @routes.post(PATH + "/{job_id}/execute", openapi_extra=needs(Erasures.EXECUTE))
    async def execute_job(call: Calling, scope_id: str, job_id: str) -> Json:
        """Erase. What somebody works on at the moment waits; the status says so, and execute goes on."""
        job = await call.services.erasures.execute(call.caller, scope_id, job_id)
        return one(views.erasure(job, call.ids))
