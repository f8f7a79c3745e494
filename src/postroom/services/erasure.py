"""Carrying out an erasure step by step, over the hot store and the lake, and leaving its proof."""

import asyncio
import hashlib
import secrets
import uuid
from typing import Any

import msgspec

from postroom.errors import Conflict, InvalidField
from postroom.kernel import commands as c
from postroom.kernel import service_commands, webhooks
from postroom.kernel.access.permissions import Permission
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.steps import ErasureStep
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import Message, Scope
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall
from postroom.services.errors import NoSuchThing

Reach = tuple[int, ...] | None
"""The queues in which a caller may erase; None: all."""
DONE = "completed"
MODES = ("erase", "redact")
FILES_AT_ONCE = 500


class JobDone(Conflict):
    """The erasure {job} is {status}, so it cannot be run again."""

    code = "INVALID_STATE"


class ErasureJob(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure and how far it is. When it is done, the subject itself is forgotten too."""

    id: str
    scope: str
    scope_id: int
    subject: Subject | None
    mode: str = "erase"
    dry_run: bool = False
    status: str = "pending"
    found: int = 0
    erased: int = 0
    waiting: int = 0
    in_lake: int | None = None
    proof: dict[str, Any] | None = None
    error: str | None = None
    created_at: int = 0
    completed_at: int | None = None
    queue_ids: Reach = None
    """In which queues it was looked: what was found there is for those who may erase there."""


class Erasures(Service):
    """A job is made and counted, carried out, and proved without telling its object.

    It finds only what lies in queues that its caller may manage, and tells nothing of others.
    """

    CREATE = Operation("erasure.create", Permission.MANAGE, 201)
    LIST = Operation("erasure.list", Permission.MANAGE)
    READ = Operation("erasure.read", Permission.MANAGE)
    PREVIEW = Operation("erasure.preview", Permission.MANAGE)
    EXECUTE = Operation("erasure.execute", Permission.MANAGE)

    async def create(
        self, caller: Caller, scope: str, subject: Subject, *, mode: str = "erase", dry_run: bool = False
    ) -> ErasureJob:
        """Ask for an erasure. It counts what it would do; nothing is erased before `execute`."""
        async with self._call(caller, self.CREATE) as call:
            place, reach = await call.look(lambda access: _enter(access, scope))
            job = self._draft(place, subject, mode, dry_run, reach)
            counted = await self._count(call, job, reach)
            await call.commit(_put(call, counted), job=job.id)
            return counted

    async def count(
        self, caller: Caller, scope: str, subject: Subject, *, mode: str = "erase", dry_run: bool = False
    ) -> ErasureJob:
        """As `create`, without leaving a trace: what an erasure would find."""
        async with self._call(caller, self.PREVIEW) as call:
            place, reach = await call.look(lambda access: _enter(access, scope))
            return await self._count(call, self._draft(place, subject, mode, dry_run, reach), reach)

    async def list_all(self, caller: Caller, scope: str) -> list[ErasureJob]:
        """The erasures of a scope; once carried out, without what they looked for."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> list[ErasureJob]:
                place, reach = _enter(access, scope)
                found = documents.list_documents(access, erasure.KIND, f"{place.id}/")
                jobs = [msgspec.convert(each.data, ErasureJob) for each in found]
                return [job for job in jobs if _is_within(job, reach)]

            return await call.look(find, quick=False)

    async def read(self, caller: Caller, scope: str, job_id: str) -> ErasureJob:
        """How an erasure stands, and its proof."""
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: _find(access, scope, job_id)[0])

    async def preview(self, caller: Caller, scope: str, job_id: str) -> ErasureJob:
        """Count anew."""
        async with self._call(caller, self.PREVIEW) as call:
            job, reach = await call.look(lambda access: _find(access, scope, job_id))
            counted = await self._count(call, job, reach)
            await call.commit(_put(call, counted))
            return counted

    async def execute(self, caller: Caller, scope: str, job_id: str) -> ErasureJob:
        """Erase what is free. Repeating does the rest: messages that were claimed, or after a failure."""
        async with self._call(caller, self.EXECUTE) as call:
            job, reach = await call.look(lambda access: _find(access, scope, job_id))
            call.details = {"job": job_id}
            return await self._execute(call, job, reach)

    async def erase(self, caller: Caller, scope: str, subject: Subject, *, mode: str = "erase") -> ErasureJob:
        """Make a job and carry it out at once."""
        async with self._call(caller, self.EXECUTE) as call:
            place, reach = await call.look(lambda access: _enter(access, scope))
            job = self._draft(place, subject, mode, False, reach)
            call.details = {"job": job.id}
            return await self._execute(call, job, reach)

    # parts

    def _draft(self, scope: Scope, subject: Subject, mode: str, dry_run: bool, reach: Reach) -> ErasureJob:
        erasure.check_subject(subject)
        if mode not in MODES:
            raise InvalidField("mode", f"is {mode!r}, must be {' or '.join(MODES)}")
        return ErasureJob(
            id=str(uuid.uuid4()),
            scope=scope.slug,
            scope_id=scope.id,
            subject=subject,
            mode=mode,
            dry_run=dry_run,
            created_at=self._now(),
            queue_ids=reach,
        )

    async def _count(self, call: ServiceCall, job: ErasureJob, reach: Reach) -> ErasureJob:
        _refuse_done(job)
        free, claimed = await self._walk(call, job, reach, execute=False)
        lake, in_lake = self._context.lake, None
        if lake is not None:
            in_lake = await lake.preview(call.caller.tenant, free + claimed)
        return msgspec.structs.replace(
            job, found=len(free) + len(claimed), waiting=len(claimed), in_lake=in_lake
        )

    async def _execute(self, call: ServiceCall, job: ErasureJob, reach: Reach) -> ErasureJob:
        _refuse_done(job)
        if job.dry_run:
            raise JobDone(job=job.id, status="a dry run")
        await self._run(_put(call, msgspec.structs.replace(job, status="running")))
        lake, in_lake = self._context.lake, None
        try:
            await self._erase_files(call, job, reach)
            free, claimed = await self._walk(call, job, reach, execute=True)
            await self._erase_echoes(call, free)
            if lake is not None:
                in_lake = await lake.erase(call.caller.tenant, free)
        except Exception as error:
            await self._run(
                _put(call, msgspec.structs.replace(job, status="failed", error=type(error).__name__))
            )
            raise
        if claimed:
            waiting = msgspec.structs.replace(
                job,
                status="waiting",
                found=len(free) + len(claimed),
                erased=len(free),
                waiting=len(claimed),
                in_lake=in_lake,
            )
            await call.commit(_put(call, waiting))
            return waiting
        return await self._finish(call, job, free, in_lake)

    async def _erase_files(self, call: ServiceCall, job: ErasureJob, reach: Reach) -> None:
        """What came and went with them. Before them: a name that is erased leads to no file any more. Only
        the office's own messages name files that are ours to remove."""
        scope = await call.look(lambda access: access.scope(job.scope))
        if job.mode != "erase" or not self._context.is_own(scope):
            return
        free, _ = await self._walk(call, job, reach, execute=False)
        room = self._context.room
        for at in range(0, len(free), FILES_AT_ONCE):
            some = free[at : at + FILES_AT_ONCE]
            found = (await room.look(lambda reader, some=some: reader.get_many(some))).values()
            refs = [ref for each in found for ref in _files_of(room.to_message(each))]
            if refs:
                await asyncio.to_thread(self._context.erase_files, refs)

    async def _finish(
        self, call: ServiceCall, job: ErasureJob, ids: list[str], in_lake: int | None
    ) -> ErasureJob:
        assert job.subject is not None
        salt, erased = secrets.token_hex(16), len(ids)
        proof = {
            "salt": salt,
            "subject_sha256": erasure.proof_of(job.subject, salt),
            "messages_sha256": hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest(),
            "erased": erased,
            "in_lake": in_lake,
            "mode": job.mode,
        }
        done = msgspec.structs.replace(
            job,
            status=DONE,
            subject=None,
            found=erased,
            erased=erased,
            waiting=0,
            in_lake=in_lake,
            proof=proof,
            completed_at=self._now(),
        )
        finish = service_commands.FinishErasure(job_id=job.id, scope=job.scope, proof=proof, **call.who)
        others = await call.look(lambda access: _others(access, job))
        emptied = [_put(call, msgspec.structs.replace(each, subject=None, status=DONE)) for each in others]
        await call.commit(c.Unit(commands=(_put(call, done), *emptied, finish), **call.who))
        await self._context.room.wipe_log()
        return done

    async def _erase_echoes(self, call: ServiceCall, message_ids: list[str]) -> None:
        """What was told to others of what was erased."""
        if not message_ids:
            return
        for tenant in (call.caller.tenant, webhooks.TENANT):
            after: int | None = 0
            while after is not None:
                command = service_commands.EraseEchoes(
                    message_ids=tuple(message_ids), after=after, actor=call.caller.actor, tenant=tenant
                )
                after = (await self._run(command)).next_after

    async def _walk(
        self, call: ServiceCall, job: ErasureJob, reach: Reach, *, execute: bool
    ) -> tuple[list[str], list[str]]:
        """What is free, also only in the lake, with what this job has erased before, and what is claimed."""
        assert job.subject is not None
        subject = msgspec.to_builtins(job.subject)
        free: list[str] = []
        claimed: list[str] = []
        after: int | None = 0
        while after is not None:
            step: ErasureStep = await self._run(
                service_commands.Erase(
                    job_id=job.id,
                    scope=job.scope,
                    subject=subject,
                    mode=job.mode,
                    execute=execute,
                    after=after,
                    queue_ids=reach,
                    **call.who,
                )
            )
            free += (*step.earlier, *step.found)
            claimed += step.claimed
            after = step.next_after
        free += [each for each in await self._search_lake(call, job, reach) if each not in claimed]
        return list(dict.fromkeys(free)), claimed

    async def _search_lake(self, call: ServiceCall, job: ErasureJob, reach: Reach) -> list[str]:
        """Also messages that were pruned from the store."""
        lake = self._context.lake
        if lake is None or job.subject is None:
            return []
        queues = None
        if reach is not None:
            queues = await call.look(lambda access: [access.queue_by_id(each).slug for each in reach])
        return await lake.search(call.caller.tenant, job.scope, job.subject, queues)

    async def _run(self, command: c.Command) -> Any:
        return await self._context.room.run(command)


def _files_of(message: Message) -> list[str]:
    """Those of the message, and of the answer that was given to it."""
    answered = message.result.get("files") if isinstance(message.result, dict) else None
    return [*message.files, *(answered if isinstance(answered, list) else ())]


def _enter(access: Access, scope: str) -> tuple[Scope, Reach]:
    place = access.scope(scope)
    return place, access.queue_ids(place, Permission.MANAGE)


def _find(access: Access, scope: str, job_id: str) -> tuple[ErasureJob, Reach]:
    place, reach = _enter(access, scope)
    found = documents.find_document(access, erasure.KIND, f"{place.id}/{job_id}", "gdpr job")
    job = msgspec.convert(found.data, ErasureJob)
    if not _is_within(job, reach):
        raise NoSuchThing(what="gdpr job", id=job_id)
    return job, reach


def _is_within(job: ErasureJob, reach: Reach) -> bool:
    return reach is None or (job.queue_ids is not None and set(job.queue_ids) <= set(reach))


def _others(access: Access, job: ErasureJob) -> list[ErasureJob]:
    """Dry runs about the same person, and jobs that were to do the same: what was erased does not stay in
    them."""
    assert job.subject is not None
    jobs = [msgspec.convert(each.data, ErasureJob) for each in documents.list_documents(access, erasure.KIND)]
    return [
        each
        for each in jobs
        if each.id != job.id
        and each.subject is not None
        and (
            (each.scope_id == job.scope_id and each.subject == job.subject)
            or (each.dry_run and each.subject.value == job.subject.value)
        )
    ]


def _refuse_done(job: ErasureJob) -> None:
    if job.status == DONE:
        raise JobDone(job=job.id, status=job.status)


def _put(call: ServiceCall, job: ErasureJob) -> service_commands.PutServiceDocument:
    return service_commands.PutServiceDocument(
        kind=erasure.KIND,
        key=f"{job.scope_id}/{job.id}",
        data=msgspec.to_builtins(job),
        note={"job": job.id, "status": job.status},
        scope=job.scope,
        **call.who,
    )
