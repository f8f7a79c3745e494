"""An office at work: it is furnished from its settings, takes mail in, and runs a lane for every agent."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from postroom.clock import Clock, SystemClock
from postroom.errors import NotEmpty, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.model import Queue
from postroom.office import queues as places
from postroom.office.agent_hosts import AgentHosts
from postroom.office.chat_files import Chats
from postroom.office.combined_replies import ReplyCombiner
from postroom.office.failure_notices import FailureNotices
from postroom.office.files import Folders
from postroom.office.guards import pauses
from postroom.office.guards.admission_check import AdmissionCheck
from postroom.office.guards.answers import answer
from postroom.office.guards.rules import GuardRules
from postroom.office.heartbeats import Heartbeats, pulses
from postroom.office.intake.default_addressee import Defaults
from postroom.office.intake.intake import Also, Answering, Incoming, IntakeResult, take_in
from postroom.office.intake.routing import OfficeDirectory, Routed
from postroom.office.lanes.batches import is_combined
from postroom.office.lanes.lane import Lane
from postroom.office.lanes.lane_signals import LaneSignals
from postroom.office.lanes.slots import Slots
from postroom.office.lanes.turn_runner import TurnDependencies, Worker
from postroom.office.ledger_follower import LedgerFollower
from postroom.office.message_files import HomeFiles, MessageFiles
from postroom.office.pairing import Pairings
from postroom.office.plugins import HookContext, PluginRegistry
from postroom.office.ports import RoomPort
from postroom.office.review_notices import ReviewNotices
from postroom.office.sandboxes import sandbox_for
from postroom.office.schedules import Missed, Scheduler, Schedules, house_zone
from postroom.office.sessions import Sessions
from postroom.office.tasks import Board
from postroom.office.turns.outcomes import TurnRules, tell
from postroom.office.turns.prompts import brief
from postroom.office.turns.replies import ReplyRules
from postroom.office.workspaces import Workspace
from postroom.providers.protocol import Permissions, TurnLimits
from postroom.providers.registry import Choice, Registry
from postroom.settings.model import Settings
from postroom.settings.paths import home_folder


class Office:
    """`home` is the person's own folder, and `folder` that of the room, `~/.postroom`. `host` is the name of
    this one, where each host has workspaces of its own."""

    def __init__(
        self,
        room: RoomPort,
        settings: Settings,
        registry: Registry,
        *,
        home: Path | None = None,
        folder: Path | None = None,
        clock: Clock | None = None,
        plugins: PluginRegistry | None = None,
        tools: Callable[[str, str], Path | None] | None = None,
        host: str = "",
        files: MessageFiles | None = None,
    ) -> None:
        self._room = room
        self._hosts = AgentHosts(room, host)
        self._settings = settings
        self._user_home = home
        self._plugins = plugins
        self._folder = folder or home_folder()
        self._files = files or HomeFiles(
            self._folder,
            days=settings.retention.files_days,
            most_bytes=settings.limits.files_folder_bytes,
        )
        self._directory = OfficeDirectory.of(settings)
        present = settings.present_agents()
        self._clock = clock or SystemClock()
        self._guards = GuardRules.of(settings)
        self._sessions = Sessions(room, {agent: settings.session_scope(agent) for agent in present})
        deps = TurnDependencies(
            directory=self._directory,
            registry=registry,
            sessions=self._sessions,
            gate=AdmissionCheck(room, self._guards, self._clock),
            clock=self._clock,
            slots=Slots(
                settings.limits.turns_at_once,
                settings.limits.turns_per_provider,
                room=room,
                lease_s=settings.limits.lease_s,
            ),
            hosts=self._hosts,
            rules=_rules(settings),
            replies=_reply_rules(settings, self._files),
            lease_s=settings.limits.lease_s,
            verbose=settings.replies.detail == "verbose",
            plugins=plugins,
        )
        self._lanes = [
            Lane(room, _worker(settings, agent, home, self._folder, self._files, tools), deps)
            for agent in present
        ]
        self._signals = LaneSignals(room, self._look_up_here, self._interrupt_here, self._steer_here)
        self._defaults = Defaults(room, settings.channels.defaults)
        self._answering = _answering(settings)
        chats = [Chats(room, self._directory, self._folder / "chats")] if settings.replies.history else []
        self._pairings = Pairings(room, deps.clock)
        self._clerk = LedgerFollower(
            room,
            ReplyCombiner(room, deps.replies),
            [FailureNotices(room), ReviewNotices(room, self._pairings)],
            chats,
            shelf=self._files,
            clock=self._clock,
            lease_s=settings.limits.lease_s,
        )
        self._scheduler = Scheduler(
            room, lambda: self._directory, deps.clock, overlap=settings.schedules.overlap
        )
        self._schedules = Schedules(
            room,
            lambda: self._directory,
            deps.clock,
            zone=settings.schedules.zone or house_zone(),
            missed=Missed(settings.schedules.missed),
            changed=self._scheduler.wake,
        )
        self._heartbeats = Heartbeats(room, lambda: pulses(settings, home), deps.clock, host)
        self._board = Board(room, lambda: self._directory)
        self._rounds = (self._scheduler, self._heartbeats)
        self._going: list[asyncio.Task[None]] = []
        self._hearing: asyncio.Task[None] | None = None
        self._running: list[asyncio.Task[None]] = []

    @property
    def files(self) -> MessageFiles:
        """Those that come in and go out with messages."""
        return self._files

    @property
    def schedules(self) -> Schedules:
        return self._schedules

    @property
    def board(self) -> Board:
        """Tasks, projects and comments."""
        return self._board

    @property
    def pairings(self) -> Pairings:
        """Who may write, on channels that ask."""
        return self._pairings

    @property
    def heartbeats(self) -> Heartbeats:
        return self._heartbeats

    @property
    def defaults(self) -> Defaults:
        """Whom the chats write to without a prefix."""
        return self._defaults

    @property
    def directory(self) -> OfficeDirectory:
        return self._directory

    async def furnish(self) -> None:
        commands = places.furnish(
            self._directory,
            self._settings.channels.enabled,
            attempts=self._tries,
            depth=self._settings.limits.inbox_depth,
        )
        made = await self._room.run(c.Unit(commands=tuple(commands), actor=self._room.actor))
        await self._fit([queue for queue in made if isinstance(queue, Queue)])
        await self._see_off()
        await pauses.reconsider(self._room, self._guards, self._clock.now())
        if self._room.is_shared and self._settings.workspace.shared:
            await self._hosts.forget_all()

    async def claim_workspaces(self) -> None:
        """Agents whose folders are here, and of whom nothing else is known, work on this host."""
        for agent in self._settings.present_agents():
            if await asyncio.to_thread(self._has_workspace, agent):
                await self._hosts.take(agent)

    def _has_workspace(self, agent: str) -> bool:
        return Workspace.of(self._settings, agent, self._user_home).is_in_use

    @property
    def _tries(self) -> int:
        """How often mail is begun in all; of failures of providers, `outcomes` counts."""
        return max(self._settings.guards.attempts, self._settings.guards.crashes)

    async def _fit(self, queues: list[Queue]) -> None:
        """Inboxes that were there before follow the settings."""
        wanted = {
            "max_retries": self._tries,
            "max_depth": self._settings.limits.inbox_depth,
        }
        for queue in queues:
            now = {name: getattr(queue.settings, name) for name in wanted}
            if places.is_inbox(queue.slug) and now != wanted:
                await self._room.run(c.UpdateQueue(queue=queue.path, settings=wanted, actor=self._room.actor))

    async def _see_off(self) -> None:
        """Whoever left a team gets nothing from its room any more."""
        for team in self._directory.teams:
            room, members = places.room_of(team), self._directory.members(team)
            for subscription in await self._room.subscriptions(room):
                if subscription.name not in members:
                    # What such a member has in hand is settled first; the next start sees it off.
                    with contextlib.suppress(NotEmpty):
                        await self._room.run(
                            c.Unsubscribe(queue=room, name=subscription.name, actor=self._room.actor)
                        )

    async def take_in(self, mail: Incoming, also: Also = lambda notice: ()) -> IntakeResult:
        told = await answer(self._room, mail.channel, mail.sender_id or mail.sender, mail.text)
        if told is not None:
            self.look_up()
            if ending := also(told):
                await self._room.run(c.Unit(commands=tuple(ending), actor=self._room.actor))
            return IntakeResult(Routed(()), (), told)
        if self._plugins is not None and not self._plugins.is_empty and mail.text.strip():
            text = await self._plugins.incoming(mail.text, HookContext.of_incoming(mail))
            mail = msgspec.structs.replace(mail, text=text)
        return await take_in(
            self._room,
            self._directory,
            mail,
            answering=self._answering,
            defaults=self._defaults,
            also=also,
        )

    async def reset(self, agent: str) -> None:
        """The agent's next turns begin new sessions, for everybody."""
        await self._room.run(self._sessions.reset(agent))

    async def cancel(self, message_id: str, reason: str = "cancelled", *, is_told: bool = False) -> None:
        """Never again; if an agent is at work on it here, it stops at once. With `is_told` its person hears
        of it, in the same unit; of a combined answer, with the answers of the others."""
        message = await self._room.get(message_id)
        told: list[c.Command] = []
        if is_told and places.is_inbox(message.queue) and not is_combined(message):
            words = f"@{message.agent} did not finish: {reason.rstrip('.')}."
            told = tell(message, message.agent or "", words, kind="office.failure")
        cancel = c.Cancel(message_id=message_id, reason=reason, actor=self._room.actor)
        await self._room.run(c.Unit(commands=(cancel, *told), actor=self._room.actor))
        self.look_up()

    @property
    def guards(self) -> GuardRules:
        return self._guards

    def look_up(self) -> None:
        """Have every lane look whether its work is still wanted, as after a conversation was stopped."""
        self._look_up_here()

    def interrupt(self, channel: str, sender_id: str) -> None:
        """End turns that work for this person: they begin again, with what came meanwhile."""
        if self._room.is_shared:
            self._signals.send_interrupt(channel, sender_id)  # which is heard here too
        else:
            self._interrupt_here(channel, sender_id)

    def steer(self, channel: str, sender_id: str) -> None:
        """Into turns that work for this person goes what they wrote meanwhile; where the provider takes
        nothing more, the turn begins again with it."""
        if self._room.is_shared:
            self._signals.send_steer(channel, sender_id)
        else:
            self._steer_here(channel, sender_id)

    def list_steerable(self) -> list[str]:
        """The agents whose providers take what comes into a turn that goes on."""
        return [lane.agent for lane in self._lanes if lane.is_steerable]

    def _steer_here(self, channel: str, sender_id: str) -> None:
        for lane in self._lanes:
            lane.steer(channel, sender_id)

    def _look_up_here(self) -> None:
        for lane in self._lanes:
            lane.look_up()

    def _interrupt_here(self, channel: str, sender_id: str) -> None:
        for lane in self._lanes:
            lane.interrupt(channel, sender_id)

    def start(self) -> None:
        self._running = [asyncio.create_task(lane.run()) for lane in self._lanes]
        self._watching = asyncio.create_task(self._clerk.run())
        self._going = [asyncio.create_task(rounds.run()) for rounds in self._rounds]
        self._going.append(asyncio.create_task(self._announce()))
        if self._room.is_shared:
            self._hearing = asyncio.create_task(self._signals.run())

    async def _announce(self) -> None:
        present = {"agents": list(self._directory.agents), "teams": list(self._directory.teams)}
        with contextlib.suppress(PostroomError):
            await self._room.run(
                c.AddRecord(kind="office.started", key="office", data=present, actor=self._room.actor)
            )

    async def stop(self, *, grace: float = 10.0) -> None:
        """Turns in hand may finish for `grace` seconds; then they are ended and their mail is given back."""
        for lane in self._lanes:
            lane.stop()
        for rounds in self._rounds:
            rounds.stop()
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)
        if self._running:
            await asyncio.gather(*self._going, return_exceptions=True)
            _, late = await asyncio.wait(self._running, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running = []
            self._clerk.stop()
            await asyncio.gather(self._watching, return_exceptions=True)


def _rules(settings: Settings) -> TurnRules:
    guards = settings.guards
    return TurnRules(
        mentions=guards.mentions_per_answer,
        attempts=guards.attempts,
        crashes=guards.crashes,
        rate_limit_s=guards.rate_limit_s,
    )


def _answering(settings: Settings) -> Answering:
    return Answering(
        mode=settings.replies.mode,
        teams={key: team.replies for key, team in settings.teams.items() if team.replies},
        timeout_s=settings.replies.combined_timeout_s,
    )


def _reply_rules(settings: Settings, files: MessageFiles) -> ReplyRules:
    return ReplyRules(
        signature=settings.replies.signature,
        long_text_chars=settings.replies.long_text_chars,
        file_bytes=settings.limits.file_bytes,
        files_per_message=settings.limits.files_per_message,
        files=files,
    )


def _worker(
    settings: Settings,
    agent: str,
    home: Path | None,
    folder: Path,
    files: MessageFiles,
    tools: Callable[[str, str], Path | None] | None = None,
) -> Worker:
    own = settings.present_agents()[agent]
    guards = settings.guards
    workspace = settings.agent_directory(agent, home)
    return Worker(
        agent=agent,
        workspace=workspace,
        folders=Folders.of_agent(workspace, folder, files.root),
        tools=tools,
        choices=(
            Choice(*settings.choice_of(agent)),
            *(Choice(fallback.provider, fallback.model) for fallback in own.fallbacks),
        ),
        system_prompt=lambda: brief(settings, agent, home).text,
        permissions=Permissions(settings.permissions_of(agent)),
        sandbox=sandbox_for(settings, agent, home, folder, files.root),
        limits=TurnLimits(
            wall_clock=own.turn_timeout_s or guards.turn_timeout_s,
            idle=guards.idle_timeout_s,
            output_bytes=guards.output_bytes,
            grace=guards.grace_s,
            budget_usd=settings.budgets.turn_usd if own.budget.turn_usd is None else own.budget.turn_usd,
        ),
    )
