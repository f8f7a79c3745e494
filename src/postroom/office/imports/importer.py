"""Moves in what a source holds. Everything is remembered by what it says, so that doing it again, or after it
was broken off, adds only what is missing."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Container, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from postroom.clock import SECOND, Clock, from_datetime
from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel.checks import is_text
from postroom.kernel.model import NewMessage, Receipt
from postroom.kernel.states import State
from postroom.office import queues as places
from postroom.office import tags
from postroom.office.files import safe_name
from postroom.office.imports import folders, leftovers
from postroom.office.imports.board import BoardMove
from postroom.office.imports.imported_marks import IMPORTED, ImportedMarks
from postroom.office.imports.merging import Merged, merge
from postroom.office.imports.rows import (
    ImportedAnswer,
    ImportedMessage,
    ImportedPost,
    Said,
    fingerprint,
    moment,
)
from postroom.office.imports.source import OPEN, SILENT, ImportSource
from postroom.office.intake.routing import OfficeDirectory, route
from postroom.office.pairing import NAME_CHARS, PAIRING, Pairing, PairingLimits
from postroom.office.ports import RoomPort
from postroom.office.schedules import Schedules
from postroom.office.schedules.errors import ScheduleNotFound
from postroom.settings import SettingsFile
from postroom.settings.names import is_id, suggestion

T = TypeVar("T")

BATCH = 500
DAY_S = 24 * 3600.0
# Of these states a message goes on here; of others, its words are in the history.
TAKEN = (*OPEN, "dead")


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """How many of each were found, how many were new, and what a person should know."""

    source: str
    dry_run: bool
    agents: list[str]
    teams: list[str]
    found: dict[str, int]
    moved: dict[str, int]
    notes: list[str]


class Importer:
    """`home` is the room's own folder. `changed` is called once the settings are written, before anything is
    addressed to new agents."""

    def __init__(
        self,
        room: RoomPort,
        file: SettingsFile,
        home: Path,
        clock: Clock,
        directory: Callable[[], OfficeDirectory],
        schedules: Callable[[], Schedules],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._room = room
        self._file = file
        self._home = home
        self._clock = clock
        self._directory = directory
        self._schedules = schedules
        self._changed = changed
        self._marks = ImportedMarks(room)
        self._notes: list[str] = []
        self._names: dict[str, str] = {}

    async def move(self, source: ImportSource, *, dry_run: bool = False) -> ImportReport:
        self._marks, self._notes = ImportedMarks(self._room), source.notes
        plan = await asyncio.to_thread(lambda: merge(self._file.document(), source))
        found = await asyncio.to_thread(self._found, source, plan)
        if source.running is not None:
            self._notes.append(f"the other program seems to run (process {source.running})")
        self._notes += await asyncio.to_thread(leftovers.describe, source)
        if dry_run:
            self._notes += plan.notes
            if count := found.get("open messages"):
                self._notes.append(f"agents begin to work on the {count} open messages when Postroom runs")
        else:
            await self._take_settings(source, plan)
            for step in (
                self._take_history,
                self._take_posts,
                self._take_chats,
                self._take_pairings,
                self._take_schedules,
                self._take_board,
                self._take_answers,
                self._take_mail,
            ):
                await step(source)
        return ImportReport(
            source=str(source.path),
            dry_run=dry_run,
            agents=plan.agents,
            teams=plan.teams,
            found={name: count for name, count in found.items() if count},
            moved=dict(self._marks.moved),
            notes=list(dict.fromkeys(self._notes)),
        )

    def _found(self, source: ImportSource, plan: Merged) -> dict[str, int]:
        approved, waiting = self._pairings(source)
        sizes = [folders.size(folder.source) for folder in plan.folders]
        if sizes:
            total = sum(each.bytes for each in sizes)
            self._notes.append(
                f"the workspaces are copied: {sum(each.files for each in sizes)} files, {total:,} bytes"
            )
        return {
            "agents": len(source.settings.get("agents") or {}) or len(plan.agents),
            "teams": len(source.settings.get("teams") or {}),
            "workspaces": len(plan.folders),
            "open messages": sum(mail.status in OPEN for mail in source.mail),
            "dead messages": sum(mail.status == "dead" for mail in source.mail),
            "answers not delivered": sum(_waits(answer) for answer in source.answers),
            "history": source.history_count(),
            "posts in team rooms": source.posts_count(),
            "conversations as files": len(source.chats),
            "pairings": len(approved) + len(waiting),
            "schedules": len(source.schedules),
            "projects": len(source.projects),
            "tasks": len(source.tasks),
            "comments": len(source.comments),
        }

    # settings and folders

    async def _take_settings(self, source: ImportSource, plan: Merged) -> None:
        for folder in plan.folders:
            # Before the agent is there, so that it finds its things when it first looks.
            if await asyncio.to_thread(folders.copied, folder.source, folder.target, self._notes):
                self._marks.moved["workspaces"] += 1
        done: list[Merged] = []

        def change(document: dict[str, Any]) -> dict[str, Any]:
            done.append(merge(document, source))
            return done[-1].document

        await asyncio.to_thread(self._file.update, change)
        made = done[-1]
        self._names = made.names
        self._notes += made.notes
        self._marks.moved.update({"agents": len(made.agents), "teams": len(made.teams)})
        await self._changed()

    async def _take_chats(self, source: ImportSource) -> None:
        def copy() -> int:
            new = 0
            for chat in source.chats:
                place = self._home / "chats" / safe_name(chat.parent.name) / safe_name(chat.name)
                if not place.exists():
                    try:
                        new += folders.kept(chat, place)
                    except OSError as error:
                        self._notes.append(f"{chat} is not copied: {error}")
            return new

        self._marks.moved["conversations as files"] += await asyncio.to_thread(copy)

    # mail

    async def _take_mail(self, source: ImportSource) -> None:
        for mail in source.mail:
            if mail.status not in TAKEN:
                continue
            directory = self._directory()
            named = self._names.get(mail.agent, mail.agent) if mail.agent else None
            if named and directory.find(named) is None:
                self._notes.append(f"@{named} is not here; its mail goes to @{directory.default}")
            for routed in route(mail.text, directory, agent=named).messages:
                text = tags.with_attachments(routed.text, mail.files)
                message = NewMessage(
                    body={"text": text, "team": routed.team, "via": routed.via},
                    message_type="office.note" if mail.from_agent else "office.mail",
                    channel=mail.channel,
                    sender=mail.sender,
                    sender_id=mail.sender_id,
                    agent=routed.agent,
                    from_agent=mail.from_agent,
                    correlation_id=f"{mail.channel}:{mail.message_id}",
                    idempotency_key=f"{IMPORTED}:{fingerprint(mail.channel, mail.message_id)}",
                    metadata=_origin(mail, status=mail.status, attempts=mail.attempts),
                    source_type=IMPORTED,
                )
                await self._deliver(mail, places.inbox(routed.agent), message)

    async def _deliver(self, mail: ImportedMessage, queue: str, message: NewMessage) -> None:
        dead = mail.status == "dead"
        if dead:
            # Out of reach until it is a dead letter: nobody may begin to work on it in between.
            message.delay_s = DAY_S * 365
        what = "dead messages" if dead else "open messages"
        receipt = await self._publish(what, queue, message)
        if receipt is not None and dead and receipt.state is State.DELAYED:
            reason = mail.error or "it was a dead letter where it came from"
            await self._room.run(c.Kill(message_id=receipt.id, reason=reason, actor=IMPORTED))

    async def _publish(self, what: str, queue: str, message: NewMessage) -> Receipt | None:
        try:
            receipts = await self._room.run(c.Publish(queue=queue, messages=[message], actor=IMPORTED))
        except PostroomError as error:
            self._notes.append(f"one of the {what} is left out: {error}")
            return None
        self._marks.moved[what] += receipts[0].created
        return receipts[0]

    async def _take_answers(self, source: ImportSource) -> None:
        opened: set[str] = set()
        for answer in source.answers:
            if not _waits(answer):
                continue
            files = await asyncio.to_thread(folders.attached, answer.files, source.path, self._home / "files")
            if len(files) < len(answer.files):
                self._notes.append(f"an answer for {answer.sender} had files that are not to be had any more")
            message = NewMessage(
                body={"text": answer.text, "original": answer.original},
                message_type="office.reply",
                channel=answer.channel,
                sender=answer.sender,
                sender_id=answer.sender_id,
                agent=answer.agent,
                from_agent=answer.agent,
                files=list(files) or None,
                correlation_id=f"{answer.channel}:{answer.message_id}",
                idempotency_key=f"{IMPORTED}:{fingerprint('answer', _as_before(answer))}",
                metadata=_origin(answer),
                source_type=IMPORTED,
                hop=1,
            )
            try:
                if answer.channel not in opened:
                    await self._room.run(places.open_outbox(answer.channel))
                    opened.add(answer.channel)
            except PostroomError as error:
                self._notes.append(f"an answer for {answer.channel} is left out: {error}")
                continue
            await self._publish("answers not delivered", places.outbox(answer.channel), message)

    # what was said

    async def _take_history(self, source: ImportSource) -> None:
        await self._open_past(places.HISTORY)
        elsewhere = _shown_elsewhere(source)

        def lines(after: int) -> Iterator[tuple[int, Said]]:
            return (each for each in source.history(after) if _key(each[1]) not in elsewhere)

        await self._take_lines("history", lines, self._remembered)

    async def _take_posts(self, source: ImportSource) -> None:
        for team in self._directory().teams:
            await self._open_past(places.past_of(team))
        await self._take_lines("posts in team rooms", source.posts, self._posted)

    async def _open_past(self, queue: str) -> None:
        """A broadcast queue nobody subscribes to: what is in it is kept and found, and nobody works on it."""
        settings = {"consumer_mode": "broadcast", "description": "What was said before Postroom"}
        await self._room.run(c.CreateQueue(queue=queue, settings=settings, exist_ok=True, actor=IMPORTED))

    async def _take_lines(
        self,
        what: str,
        lines: Callable[[int], Iterator[tuple[int, T]]],
        made: Callable[[T], tuple[str, NewMessage]],
    ) -> None:
        """Many at a time, together with the mark of how far it went: histories are long."""
        first = await asyncio.to_thread(lambda: next(iter(lines(0)), None))
        if first is None:
            return
        mark = f"{what.replace(' ', '-')}/{fingerprint(msgspec.to_builtins(first[1]))}"
        known = await self._marks.of(mark)
        found = lines(known["upto"] if known else 0)
        while batch := await asyncio.to_thread(lambda: list(itertools.islice(found, BATCH))):
            queues: dict[str, list[NewMessage]] = {}
            for _, line in batch:
                queue, message = made(line)
                queues.setdefault(queue, []).append(message)
            commands = [
                c.Publish(queue=queue, messages=messages, actor=IMPORTED)
                for queue, messages in queues.items()
            ]
            step = await self._marks.advance(mark, batch[-1][0])
            try:
                *receipts, _ = await self._room.run(c.Unit(commands=(*commands, step), actor=IMPORTED))
            except PostroomError:
                # One of them is refused: then each for itself, and a person is told which.
                for queue, messages in queues.items():
                    for message in messages:
                        await self._publish(what, queue, message)
                await self._room.run(step)
                continue
            self._marks.moved[what] += sum(receipt.created for made in receipts for receipt in made)

    def _remembered(self, said: Said) -> tuple[str, NewMessage]:
        agent = self._names.get(said.agent) or _id(said.agent)
        message = NewMessage(
            body={"text": said.text, "role": said.role, "created_at": said.at},
            message_type="office.history",
            channel=said.channel,
            sender=said.sender,
            agent=agent,
            correlation_id=f"{said.channel}:{said.message_id}" if said.message_id else None,
            idempotency_key=f"{IMPORTED}:{fingerprint('said', msgspec.to_builtins(said))}",
            source_type="import",
        )
        return places.HISTORY, message

    def _posted(self, post: ImportedPost) -> tuple[str, NewMessage]:
        team = self._names.get(post.team) or _id(post.team)
        writer = self._names.get(post.from_agent, post.from_agent)
        message = NewMessage(
            body={"text": post.text, "team": team, "created_at": post.at},
            message_type="office.past_post",
            channel="chatroom",
            sender=writer,
            from_agent=None if writer == "user" else writer,
            idempotency_key=f"{IMPORTED}:{fingerprint('post', msgspec.to_builtins(post))}",
            source_type="import",
        )
        here = team in self._directory().teams
        return places.past_of(team) if here else places.HISTORY, message

    # the rest

    def _pairings(self, source: ImportSource) -> tuple[list[Pairing], list[Pairing]]:
        """Who may write, and who has asked so lately that the code still holds."""
        kinds: list[list[Pairing]] = []
        for kind in ("approved", "pending"):
            rows = source.pairings.get(kind)
            found: list[Pairing] = []
            for row in rows if isinstance(rows, list) else []:
                pairing = _pairing(row, approved=kind == "approved")
                if pairing is None:
                    self._notes.append("a pairing is not complete and left out")
                elif pairing.approved_at is not None or self._clock.now() - pairing.created_at < _CODE_LIVES:
                    found += _spread_whatsapp(pairing)
            kinds.append(found)
        return kinds[0], kinds[1]

    async def _take_pairings(self, source: ImportSource) -> None:
        for pairing in itertools.chain(*self._pairings(source)):
            key, data = f"{pairing.channel}/{pairing.sender_id}", msgspec.to_builtins(pairing)
            if await self._room.document(PAIRING, key) is not None:
                continue
            # Whoever was unpaired here after an import does not come back with the next.
            mark = f"pairings/{fingerprint(key, pairing.approved_at)}"
            put = c.PutDocument(kind=PAIRING, key=key, data=data, actor=IMPORTED)
            await self._marks.once("pairings", mark, {}, put)

    async def _take_schedules(self, source: ImportSource) -> None:
        book = self._schedules()
        for row in source.schedules:
            label = str(row.get("label") or row.get("id") or "")
            mark = f"schedules/{fingerprint(label, row.get('id'))}"
            try:
                if await self._marks.of(mark) is None and not await _there(book, label):
                    await self._add_schedule(book, row, label)
                    await self._marks.once("schedules", mark, {})
            except (PostroomError, KeyError, ValueError, OverflowError) as error:
                told = f"it lacks {error}" if isinstance(error, KeyError) else error
                self._notes.append(f'the schedule "{label}" is left out: {told}')

    async def _add_schedule(self, book: Schedules, row: dict[str, Any], label: str) -> None:
        run_at, agent = row.get("runAt"), str(row["agentId"])
        await book.add(
            self._names.get(agent, agent),
            str(row["message"]),
            cron="" if run_at else str(row.get("cron") or ""),
            at=_moment(run_at) if run_at else None,
            label=label,
            channel=str(row.get("channel") or "schedule"),
            sender=str(row.get("sender") or "Scheduler"),
            enabled=bool(row.get("enabled", True)),
        )

    async def _take_board(self, source: ImportSource) -> None:
        board = BoardMove(self._room, self._marks, self._directory(), self._names)
        self._notes += await board.move(source)


_CODE_LIVES = PairingLimits().lifetime_s * SECOND


def _origin(of: ImportedMessage | ImportedAnswer, **more: Any) -> dict[str, Any]:
    """How it was known there, and since when."""
    return {IMPORTED: {"id": of.number, "created_at": of.at or None, **more}}


def _as_before(answer: ImportedAnswer) -> dict[str, Any]:
    """By what it says, without what was not read when the first answers were marked."""
    return {name: value for name, value in msgspec.to_builtins(answer).items() if name != "number"}


def _key(said: Said) -> tuple[str, str, str | None, str]:
    """Of what a person wrote the id is enough; an agent may have said several things to it."""
    text = said.text.removesuffix(f"\n\n- [{said.agent}]") if said.role == "assistant" else ""
    return said.role, said.channel, said.message_id, text


def _shown_elsewhere(source: ImportSource) -> Container[tuple[str, str, str | None, str]]:
    """Lines of history that come as messages themselves: still open, dead, or not delivered."""
    mail = {("user", each.channel, each.message_id, "") for each in source.mail if each.status in TAKEN}
    answers = {
        ("assistant", each.channel, each.message_id, each.text.removesuffix(f"\n\n- [{each.agent}]"))
        for each in source.answers
        if _waits(each)
    }
    return mail | answers


def _waits(answer: ImportedAnswer) -> bool:
    return answer.status != "acked" and answer.channel not in SILENT


def _id(name: str) -> str:
    return name.lower() if is_id(name.lower()) else suggestion(name) or "unknown"


def _pairing(row: object, *, approved: bool) -> Pairing | None:
    if not isinstance(row, dict):
        return None
    channel, sender_id = row.get("channel"), row.get("senderId")
    if isinstance(sender_id, int):
        sender_id = str(sender_id)
    for value in (channel, sender_id):
        if not isinstance(value, str) or not is_text(value) or not 0 < len(value.strip()) <= NAME_CHARS:
            return None
    code = str(row.get("approvedCode" if approved else "code") or "")
    if "/" in str(channel) or (not approved and not code):
        return None
    at = moment(row.get("approvedAt" if approved else "createdAt")) * 1000
    return Pairing(
        channel=str(channel),
        sender_id=str(sender_id),
        sender=str(row.get("sender") or "").encode("utf-8", "replace").decode()[:NAME_CHARS],
        code=code[:NAME_CHARS],
        created_at=at,
        seen_at=at,
        approved_at=at if approved else None,
    )


def _spread_whatsapp(pairing: Pairing) -> list[Pairing]:
    """Whoever wrote to a personal account may write to one here, and to that of a business: both know people
    by their numbers."""
    number, at, _ = pairing.sender_id.partition("@c.us")
    if pairing.channel != "whatsapp" or not at:
        return [pairing]
    return [
        msgspec.structs.replace(pairing, channel=channel, sender_id=number)
        for channel in ("whatsapp", "whatsapp_personal")
    ]


async def _there(book: Schedules, label: str) -> bool:
    try:
        await book.show(label)
    except ScheduleNotFound:
        return False
    return True


def _moment(text: object) -> int:
    found = datetime.fromisoformat(str(text))
    return from_datetime(found if found.tzinfo else found.replace(tzinfo=UTC))
