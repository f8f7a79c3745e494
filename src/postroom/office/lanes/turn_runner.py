"""One batch of mail served: the agent's turn, and all that follows from it as one unit."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from postroom.clock import Clock, iso
from postroom.errors import ClaimLost, Invalid, NotFound, QueueClosed, QueueFull, QueueNotFound
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.agent_hosts import AgentHosts
from postroom.office.chat_preferences import NoiseLevel
from postroom.office.files import FileRefused, Folders
from postroom.office.guards.admission_check import AdmissionCheck
from postroom.office.guards.admissions import TurnAdmission
from postroom.office.guards.budgets import DOLLAR
from postroom.office.guards.metering import metered
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.lanes.batches import Batch, address_text, is_combined, text_of
from postroom.office.lanes.slots import Slots, Starting
from postroom.office.message_files import FilesAway, MessageFiles, ReferredText
from postroom.office.plugins import HookContext, PluginRegistry, fitting
from postroom.office.ports import RoomPort
from postroom.office.sessions import ProviderSession, Sessions
from postroom.office.turns import outcomes, rate_limits, replies
from postroom.office.turns.outcomes import TurnRules
from postroom.office.turns.progress import TurnProgress
from postroom.office.turns.rate_limits import AgentWait, RateLimits
from postroom.office.turns.replies import ReplyRules, ReplyText
from postroom.office.turns.turn import TurnResult, take_turn
from postroom.providers.fallback import run_with_fallback
from postroom.providers.protocol import (
    NO_SANDBOX,
    Cause,
    ErrorKind,
    Failed,
    Finished,
    Permissions,
    Provider,
    Sandbox,
    TurnLimits,
    TurnRequest,
    TurnStream,
)
from postroom.providers.registry import Choice, Registry
from postroom.providers.steering import Steering

log = logging.getLogger("postroom.office")

T = TypeVar("T")

AWAY_S = 1.0
AWAY_CAP_S = 30.0

OUTGROWN = "_(The conversation no longer fits into the model. I went on in a new session, with a summary.)_"
LOST = "_(The earlier session is gone from the agent's program. I went on in a new one, with a summary.)_"
CUT = "_(The answer ends here because it reached the longest one the model may write. Ask me to go on.)_"
CARRIED = "[Your earlier session could not be continued. This is how it ended:]"


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's turns are executed."""

    agent: str
    workspace: Path
    choices: tuple[Choice, ...]
    system_prompt: Callable[[], str] = str
    limits: TurnLimits = TurnLimits()
    permissions: Permissions = Permissions.WORKSPACE
    sandbox: Sandbox = NO_SANDBOX
    folders: Folders | None = None
    tools: Callable[[str, str], Path | None] | None = None
    """Where the agent's program finds its tools; asked anew for each turn, with the message it is about."""


class TurnDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What all lanes of an office share."""

    directory: OfficeDirectory
    registry: Registry
    sessions: Sessions
    gate: AdmissionCheck
    clock: Clock
    slots: Slots
    hosts: AgentHosts
    rules: TurnRules = TurnRules()
    replies: ReplyRules = ReplyRules()
    lease_s: float = 20.0
    verbose: bool = False
    plugins: PluginRegistry | None = None


class TurnRunner:
    """Where an agent's mail is served."""

    def __init__(self, room: RoomPort, worker: Worker, deps: TurnDependencies) -> None:
        self._room = room
        self._worker = worker
        self._deps = deps
        self._limits = RateLimits(room, worker.agent, tuple(choice.provider for choice in worker.choices))
        self._wait = AgentWait()
        """For its provider, as the store had it when the batch in hand came; only its lane changes it."""
        self._steering = Steering()
        self._joined: list[Message] = []
        self._paths: Mapping[str, str] = {}

    @property
    def is_steerable(self) -> bool:
        """Whether the agent's first provider takes more while a turn goes on."""
        try:
            provider = self._deps.registry.get(self._worker.choices[0].provider)
        except NotFound:
            return False
        return bool(getattr(provider, "takes_more", False))

    @property
    def takes_more(self) -> bool:
        """Whether the turn in hand can take what its person writes meanwhile."""
        return self._steering.is_open

    @property
    def has_answered(self) -> bool:
        """Whether the turn in hand took more, and has its answer now."""
        return self._steering.is_over

    async def take_more(self, message: Message) -> bool:
        """Into the turn in hand: then it is settled with it."""
        paths = await self.fetch_files([message])
        if not self._steering.offer(with_paths(address_text(message), paths)):
            return False
        self._joined.append(message)
        return True

    async def serve(self, batch: Batch) -> None:
        """Unless a rate limit still holds, or a guard turns it away: then it waits, and there is nothing to
        do."""
        if await self._waits(batch):
            return
        progress, first = self._progress(batch), self._worker.choices[0]
        # When it need not wait for a slot, that it starts is committed with what it is paid from.
        starts = self._deps.slots.is_free(first.provider)
        started = progress.start(first.provider, first.model) if starts else []
        async with self._deps.gate.admit(batch, self._worker.agent, started) as admission:
            if admission is not None:
                await self._serve(batch, admission, progress)

    def _progress(self, batch: Batch) -> TurnProgress:
        noise = batch.primary.metadata.get("noise")
        verbose = self._deps.verbose if noise is None else noise != NoiseLevel.FINAL
        verbose = verbose and not is_combined(batch.primary)
        return TurnProgress(self._room, self._worker.agent, batch.primary, verbose=verbose)

    async def _waits(self, batch: Batch) -> bool:
        """Nothing is asked of a provider before the moment for which another message of the agent waits."""
        agent, now = self._worker.agent, self._deps.clock.now()
        self._wait = wait = await self._limits.of_agent()
        if not wait.holds(now):
            return False
        waits = await self._limits.of_messages(batch)
        commands = rate_limits.keep_waiting(batch, agent, wait, waits, self._deps.rules, now)
        await self._room.run(c.Unit(commands=tuple(commands), actor=agent))
        log.info("@%s waits with %s until %s: %s", agent, _named(batch), iso(wait.until), wait.reason)
        return True

    async def _serve(self, batch: Batch, admission: TurnAdmission, progress: TurnProgress) -> None:
        deps, agent = self._deps, self._worker.agent
        log.info("@%s begins: %s", agent, _named(batch))
        self._paths = await self.fetch_files(batch.messages)
        session = await deps.sessions.of(batch.primary, agent)
        turn, batch = await self._take_turn(batch, session, admission, progress)
        if session.begun and _cannot_go_on(turn):
            session = await self._renew(batch, session, turn)
            turn, batch = await self._take_turn(batch, session, admission, self._progress(batch))
        reply, handed = ReplyText(""), ReferredText("")
        if isinstance(turn.verdict, Finished):
            answer = turn.verdict.text
            handed = await self._refer(answer)
            notes = [] if session.carried is None else [LOST if session.lost else OUTGROWN]
            notes += [CUT] if turn.verdict.stop_reason else []
            notes += outcomes.told_of_denials(agent, turn.denied, self._worker.permissions)
            notes += outcomes.not_delivered(batch.primary, agent, answer, deps.directory, deps.rules)
            reply = await self._reply(batch.primary, answer, turn, notes)
        remembered = deps.sessions.after(session, turn, _prompt(batch, session))
        remembered.append(admission.settle(served=isinstance(turn.verdict, Finished)))
        await self._settle(batch, turn, reply, handed, remembered)

    @property
    def _files(self) -> MessageFiles | None:
        return self._deps.replies.files

    async def fetch_files(self, messages: Sequence[Message]) -> dict[str, str]:
        """Where the agent's program finds what came along with them, by the names that messages have for it.
        Nothing is begun without a file that is only away."""
        files = self._files
        if files is None:
            return {}
        found: dict[str, str] = {}
        for ref in dict.fromkeys(ref for message in messages for ref in message.files):
            try:
                found[ref] = str(await self._wait_for_files(lambda ref=ref: files.fetch(ref)))
            except FileRefused as refusal:
                log.warning("@%s: %s", self._worker.agent, refusal)
        return found

    async def _refer(self, text: str) -> ReferredText:
        return ReferredText(text) if self._files is None else await asyncio.to_thread(self._files.refer, text)

    async def _wait_for_files(self, act: Callable[[], T]) -> T:
        """A turn costs money, and what it is about was promised: neither is given up because files cannot be
        reached for a while."""
        pause = AWAY_S
        while True:
            try:
                return await asyncio.to_thread(act)
            except FilesAway as away:
                log.warning("the turn of @%s waits: %s", self._worker.agent, away)
            await asyncio.sleep(pause)
            pause = min(AWAY_CAP_S, pause * 2)

    async def _settle(
        self,
        batch: Batch,
        turn: TurnResult,
        reply: ReplyText,
        handed: ReferredText,
        remembered: list[c.Command],
        closed: frozenset[str] = frozenset(),
    ) -> None:
        """Together, or not at all. What only rode along and was cancelled meanwhile is left behind; of
        teammates and rooms that are `closed` to mail, the reply tells. `handed` is the answer as teammates on
        any host get it."""
        agent, deps, verdict = self._worker.agent, self._deps, turn.verdict
        if isinstance(verdict, Finished):
            commands = outcomes.finished(
                batch, agent, turn, handed, reply, deps.directory, deps.rules, closed
            )
        elif verdict.kind is ErrorKind.RATE_LIMIT:
            commands = await self._limited(batch, turn, verdict)
        else:
            commands = outcomes.failed(batch, agent, turn, verdict, await self._rules())
        if not (isinstance(verdict, Failed) and verdict.kind is ErrorKind.RATE_LIMIT):
            commands += rate_limits.ended(agent, self._wait)
        try:
            await self._room.run(c.Unit(commands=(*turn.untold, *commands, *remembered), actor=agent))
        except ClaimLost as lost:
            rest = batch.without(lost.data["message_id"])
            if rest is None:
                raise
            await self._settle(rest, turn, reply, handed, remembered, closed)
        except (QueueClosed, QueueFull, QueueNotFound) as error:
            queue = error.data["queue"]
            if queue in closed or not queues.is_among_agents(queue):
                raise
            log.warning("what @%s hands on to %s is left out: %s", agent, queue, error)
            reply = outcomes.unreached(reply, agent, queue, error)
            await self._settle(batch, turn, reply, handed, remembered, closed | {queue})
        else:
            _note(agent, batch, turn)

    async def _limited(self, batch: Batch, turn: TurnResult, problem: Failed) -> list[c.Command]:
        agent, now = self._worker.agent, self._deps.clock.now()
        wait = self._wait.after(problem, now)
        waits = await self._limits.of_messages(batch)
        return [
            *rate_limits.keep_waiting(batch, agent, wait, waits, self._deps.rules, now),
            rate_limits.remember_agent(agent, wait),
            *outcomes.remember(batch.primary, agent, turn),
        ]

    async def _rules(self) -> TurnRules:
        """With the attempts that the inbox allows now: whoever dies of its last one is told so."""
        inbox, rules = queues.inbox(self._worker.agent), self._deps.rules
        for queue in await self._room.queues(queues.SCOPE):
            if queue.path == inbox:
                most = queue.settings.max_retries
                return msgspec.structs.replace(
                    rules, attempts=min(rules.attempts, most), crashes=min(rules.crashes, most)
                )
        return rules

    async def _reply(self, primary: Message, answer: str, turn: TurnResult, notes: list[str]) -> ReplyText:
        """What is one part of a combined answer is signed and shortened with the others."""
        rules, agent, folders = self._deps.replies, self._worker.agent, self._worker.folders
        signature = primary.metadata.get("signature")
        if isinstance(signature, bool):
            rules = msgspec.structs.replace(rules, signature=signature)
        reply = await self._wait_for_files(lambda: replies.collect(answer, turn.turn_id, folders, rules))
        reply = msgspec.structs.replace(reply, text=(await self._refer(reply.text)).text)
        reply = await self._through_plugins(primary, reply)
        if is_combined(primary):
            return msgspec.structs.replace(reply, text="\n\n".join([reply.text, *notes]).strip())
        done = await asyncio.to_thread(replies.finish, reply, agent, turn.turn_id, rules, notes)
        return msgspec.structs.replace(done, metadata=reply.metadata)

    async def _through_plugins(self, primary: Message, reply: ReplyText) -> ReplyText:
        """Before the answer is signed, shortened and committed."""
        if self._deps.plugins is None or self._deps.plugins.is_empty or not reply.text:
            return reply
        context = HookContext.of(primary, self._worker.agent, text_of(primary))
        made = await self._deps.plugins.outgoing(reply.text, context)
        metadata = fitting(made.metadata, primary.metadata)
        return msgspec.structs.replace(reply, text=made.text, metadata=metadata)

    async def _renew(self, batch: Batch, session: ProviderSession, turn: TurnResult) -> ProviderSession:
        """The decision is kept with the failed turn: after a crash the new session begins all the same."""
        sessions = self._deps.sessions
        summary = await sessions.summary(session, turn.provider or self._first)
        lost = isinstance(turn.verdict, Failed) and turn.verdict.cause is Cause.SESSION_LOST
        session, kept = sessions.renewed(session, summary, lost=lost)
        commands = (*turn.untold, kept, *outcomes.remember(batch.primary, self._worker.agent, turn))
        await self._room.run(c.Unit(commands=commands, actor=self._worker.agent))
        return session

    @property
    def _first(self) -> str:
        return self._deps.registry.get(self._worker.choices[0].provider).name

    async def _take_turn(
        self, batch: Batch, session: ProviderSession, admission: TurnAdmission, progress: TurnProgress
    ) -> tuple[TurnResult, Batch]:
        """And the batch with what was taken into the turn."""
        self._steering, self._joined = Steering(), []
        turn = await self._run_turn(batch, session, admission, progress)
        self._steering.close()
        admission.took(turn)
        return turn, batch.with_later(self._joined)

    async def _run_turn(
        self, batch: Batch, session: ProviderSession, admission: TurnAdmission, progress: TurnProgress
    ) -> TurnResult:
        deps, turn_id, first = self._deps, progress.turn_id, self._worker.choices[0]
        began: list[int] = []

        async def starting() -> None:
            if not began:
                began.append(deps.clock.now())
                admission.begins()
                await progress.tell_started(first.provider, first.model)

        try:
            request = await asyncio.to_thread(self._request, turn_id, batch, session, admission.left)
            stream = await self._stream(request, session, starting)
        except (NotFound, Invalid, OSError) as error:
            # A provider that nobody knows, or a workspace that is refused, is told to the person; a full disk
            # may be empty again.
            kind = ErrorKind.CRASHED if isinstance(error, OSError) else ErrorKind.INVALID
            now = deps.clock.now()
            failed = Failed(kind=kind, message=str(error))
            return TurnResult(turn_id=turn_id, verdict=failed, started_at=now, ended_at=now)
        turn = await take_turn(turn_id, metered(stream, admission), deps.clock.now, progress.tell)
        turn = msgspec.structs.replace(turn, untold=tuple(progress.take_untold()))
        return msgspec.structs.replace(turn, started_at=began[0]) if began else turn

    def _request(self, turn_id: str, batch: Batch, session: ProviderSession, left: int | None) -> TurnRequest:
        worker = self._worker
        budgets = [usd for usd in (worker.limits.budget_usd, left and left / DOLLAR) if usd is not None]
        limits = msgspec.structs.replace(worker.limits, budget_usd=min(budgets, default=None))
        system_prompt = worker.system_prompt()  # before all else: it refuses a workspace that leads elsewhere
        worker.workspace.mkdir(parents=True, exist_ok=True)
        return TurnRequest(
            agent_id=worker.agent,
            prompt=with_paths(_prompt(batch, session), self._paths),
            workspace=worker.workspace,
            turn_id=turn_id,
            system_prompt=system_prompt,
            session_id=session.ids.get(self._first),
            limits=limits,
            permissions=worker.permissions,
            sandbox=worker.sandbox,
            mcp_config=worker.tools(worker.agent, batch.primary.id) if worker.tools is not None else None,
            steering=self._steering if batch.primary.from_agent is None else None,
        )

    async def _stream(self, request: TurnRequest, session: ProviderSession, starting: Starting) -> TurnStream:
        deps = self._deps
        attempts: list[tuple[Provider, TurnRequest]] = []
        for provider, own in deps.registry.attempts(self._worker.choices, request, session.ids):
            history = ()
            if getattr(provider, "wants_history", False):
                history = await deps.sessions.history(session, provider.name)
            total = session.totals.get(provider.name)
            own = msgspec.structs.replace(own, session_total=total, history=history)
            attempts.append((deps.slots.limit(provider, starting), own))
        return run_with_fallback(attempts)


def with_paths(text: str, paths: Mapping[str, str]) -> str:
    """What a program of this host can open, in the place of what messages name."""
    for ref, path in paths.items():
        text = text.replace(ref, path)
    return text


def _named(batch: Batch) -> str:
    primary, more = batch.primary, len(batch.messages) - 1
    origin = f"@{primary.from_agent}" if primary.from_agent else f"{primary.sender} ({primary.channel})"
    return f"message {primary.id} of {origin}" + (f" and {more} more" if more else "")


def _note(agent: str, batch: Batch, turn: TurnResult) -> None:
    """For the log, once it is committed: what came of it, without the words that were said."""
    took = (turn.ended_at - turn.started_at) / 1_000_000
    cost = "" if turn.cost_usd is None else f", ${turn.cost_usd:.4f}"
    if isinstance(turn.verdict, Finished):
        said = len(turn.verdict.text)
        log.info("@%s is done with %s: %d characters, %.1f s%s", agent, batch.primary.id, said, took, cost)
        return
    problem, detail = turn.verdict, f" ({turn.verdict.detail})" if turn.verdict.detail else ""
    log.warning(
        "@%s failed at %s by %s: %s: %s%s, %.1f s%s",
        *(agent, batch.primary.id, turn.provider or "no provider", problem.kind.value),
        *(problem.message, detail, took, cost),
    )


def _prompt(batch: Batch, session: ProviderSession) -> str:
    if not session.carried:
        return batch.prompt
    return f"{CARRIED}\n\n{session.carried}\n\n------\n\n{batch.prompt}"


def _cannot_go_on(turn: TurnResult) -> bool:
    """Whether only a new session can help: the old one has outgrown the model, or is gone."""
    verdict = turn.verdict
    return isinstance(verdict, Failed) and (
        verdict.kind is ErrorKind.CONTEXT_TOO_LONG or verdict.cause is Cause.SESSION_LOST
    )
