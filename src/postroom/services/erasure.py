"""Carrying out an erasure step by step, over the hot store and the lake, and leaving its proof."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from postroom.clock import Clock
from postroom.errors import Conflict
from postroom.kernel import commands as c
from postroom.kernel import service_commands, webhooks
from postroom.kernel.erasure import subject as erasure
from postroom.kernel.erasure.steps import ErasureStep
from postroom.kernel.erasure.subject import ErasableLake, Subject

Run = Callable[[c.Command], Awaitable[Any]]
DONE = "completed"


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


class Eraser:
    def __init__(self, run: Run, clock: Clock, who: dict[str, Any], lake: ErasableLake | None = None) -> None:
        self._run = run
        self._clock = clock
        self._who = who
        self._lake = lake

    async def preview(self, job: ErasureJob, *, keep: bool = True) -> ErasureJob:
        """How many messages it concerns; nothing is changed. Not to `keep` the job leaves no trace of it."""
        self._refuse_done(job)
        free, claimed = await self._walk(job, execute=False)
        in_lake = None
        if self._lake is not None:
            in_lake = await self._lake.preview(self._who["tenant"], free + claimed)
        counted = msgspec.structs.replace(
            job, found=len(free) + len(claimed), waiting=len(claimed), in_lake=in_lake
        )
        return await self._save(counted) if keep else counted

    async def execute(self, job: ErasureJob) -> ErasureJob:
        """Erase what is free. Repeating does the rest: messages that were claimed, or after a failure."""
        self._refuse_done(job)
        if job.dry_run:
            raise JobDone(job=job.id, status="a dry run")
        await self._save(msgspec.structs.replace(job, status="running"))
        try:
            free, claimed = await self._walk(job, execute=True)
            await self._erase_echoes(free)
            in_lake = None
            if self._lake is not None:
                in_lake = await self._lake.erase(self._who["tenant"], free)
        except Exception as error:
            await self._save(msgspec.structs.replace(job, status="failed", error=type(error).__name__))
            raise
        erased = len(free)
        found = erased + len(claimed)
        if claimed:
            return await self._save(
                msgspec.structs.replace(
                    job, status="waiting", found=found, erased=erased, waiting=len(claimed), in_lake=in_lake
                )
            )
        return await self._finish(job, free, erased, in_lake)

    async def _finish(self, job: ErasureJob, ids: list[str], erased: int, in_lake: int | None) -> ErasureJob:
        assert job.subject is not None
        salt = secrets.token_hex(16)
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
            completed_at=self._clock.now(),
        )
        finish = service_commands.FinishErasure(job_id=job.id, scope=job.scope, proof=proof, **self._who)
        await self._run(c.Unit(commands=(self._kept(done), finish), **self._who))
        return done

    async def _erase_echoes(self, message_ids: list[str]) -> None:
        if not message_ids:
            return
        for tenant in (self._who["tenant"], webhooks.TENANT):
            after: int | None = 0
            while after is not None:
                command = service_commands.EraseEchoes(
                    message_ids=tuple(message_ids), after=after, actor=self._who["actor"], tenant=tenant
                )
                after = (await self._run(command)).next_after

    async def _walk(self, job: ErasureJob, *, execute: bool) -> tuple[list[str], list[str]]:
        """What is free, with what this job has erased before, and what is claimed."""
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
                    **self._who,
                )
            )
            free += (*step.earlier, *step.found)
            claimed += step.claimed
            after = step.next_after
        return list(dict.fromkeys(free)), claimed

    def _refuse_done(self, job: ErasureJob) -> None:
        if job.status == DONE:
            raise JobDone(job=job.id, status=job.status)

    def _kept(self, job: ErasureJob) -> service_commands.PutServiceDocument:
        return service_commands.PutServiceDocument(
            kind=erasure.KIND,
            key=f"{job.scope_id}/{job.id}",
            data=msgspec.to_builtins(job),
            note={"job": job.id, "status": job.status},
            scope=job.scope,
            **self._who,
        )

    async def _save(self, job: ErasureJob) -> ErasureJob:
        await self._run(self._kept(job))
        return job
