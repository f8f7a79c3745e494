"""Mail comes in: a person's words are routed, cleaned and put into inboxes, once per platform message."""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage, Receipt
from postroom.office import queues, tags
from postroom.office.intake.default_addressee import Defaults
from postroom.office.intake.routing import OfficeDirectory, Routed, RoutedMessage, Via, route
from postroom.office.lanes.batches import team_of, text_of
from postroom.office.ports import RoomPort, conversation

log = logging.getLogger("postroom.office")

MAIL = "office.mail"
SAID = 200


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """What a channel knows of a message. `platform_id` is the platform's own, and is never taken twice.
    With `chat`, an `@` prefix chooses whom the next messages of that chat are for."""

    channel: str
    sender: str
    text: str
    sender_id: str | None = None
    platform_id: str | None = None
    fresh: bool = False
    """The id was made just now for this message, so nobody can have sent it before."""
    agent: str | None = None
    chat: str | None = None
    sticky: str | None = None
    files: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


class IntakeResult(msgspec.Struct, frozen=True):
    """What became of it: where it went, whether it had come before, and what to tell the sender at once.
    Without receipts, it was only about the chat's default."""

    routed: Routed
    receipts: tuple[Receipt, ...]
    notice: str | None = None

    @property
    def repeated(self) -> bool:
        return bool(self.receipts) and all(not receipt.created for receipt in self.receipts)


Also = Callable[[str | None], Sequence[c.Command]]


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """Whether each agent answers for itself or all together, for the office and for single teams."""

    mode: str = "each"
    teams: Mapping[str, str] = {}
    timeout_s: float = 1800.0

    def combined(self, messages: tuple[RoutedMessage, ...], directory: OfficeDirectory) -> bool:
        if self.mode != "combined" and not self.teams:
            return False
        teams = [one.team or next(iter(directory.teams_of(one.agent)), "") for one in messages]
        return any(self.teams.get(team, self.mode) == "combined" for team in teams)


async def take_in(
    room: RoomPort,
    directory: OfficeDirectory,
    mail: Incoming,
    *,
    answering: Answering | None = None,
    defaults: Defaults | None = None,
    also: Also = lambda notice: (),
) -> IntakeResult:
    """All addressees' copies are published together, or none. They are one conversation.

    What `also` makes commits with it; it is given what the sender is told at once."""
    _check(mail)
    talk = f"{mail.channel}:{mail.platform_id}" if mail.platform_id else f"{mail.channel}:{uuid.uuid4().hex}"
    if mail.platform_id and not mail.fresh and (earlier := await _taken_before(room, talk)):
        if ending := also(None):
            await room.run(c.Unit(commands=tuple(ending), actor=room.actor))
        return earlier
    text, sticky, notice = mail.text, mail.sticky, None
    commands: list[c.Command] = []
    if mail.chat is not None and mail.agent is None:
        kept = defaults or Defaults(room)
        stuck, commands = await kept.read(text, directory, mail.channel, mail.chat, mail.platform_id)
        notice, sticky = stuck.notice, stuck.sticky or sticky
        if stuck.text is None:
            commands += also(notice)
            if commands:
                await room.run(c.Unit(commands=tuple(commands), actor=room.actor))
            return IntakeResult(Routed(()), (), notice)
        text = stuck.text
    routed = route(text, directory, agent=mail.agent, sticky=sticky)
    notice = "\n".join([*([notice] if notice else []), *(each.reason for each in routed.skipped)]) or None
    commands += also(notice)
    answering = answering or Answering()
    combined = answering.combined(routed.messages, directory)
    publishing = [_published(mail, one, talk, combined=combined, actor=room.actor) for one in routed.messages]
    if combined:
        commands.append(_envelope(mail, routed, talk, answering.timeout_s, room.actor))
    unit = c.Unit(commands=(*publishing, *commands), actor=room.actor)
    answers: list[list[Receipt]] = await room.run(unit)
    receipts = [receipt for answer in answers[: len(publishing)] for receipt in answer]
    for one, receipt in zip(routed.messages, receipts, strict=True):
        log.info("message %s of %s (%s) for @%s", receipt.id, mail.sender, mail.channel, one.agent)
    return IntakeResult(routed, tuple(receipts), notice)


def _check(mail: Incoming) -> None:
    """Before anything is promised: an answer needs an outbox, which is named after the channel."""
    if not mail.channel or not checks.QUEUE_SLUG.fullmatch(f"outbox/{mail.channel}"):
        raise InvalidField("channel", f"{mail.channel!r} is not a name of small letters, digits, - and _")
    if not mail.text.strip() and not mail.files:
        raise InvalidField("text", "is empty; write something, or attach a file")


async def _taken_before(room: RoomPort, talk: str) -> IntakeResult | None:
    """By the platform's id alone: meanwhile the same words might be routed to somebody else."""
    known = [
        message
        for message in await conversation(room, talk, scope=queues.SCOPE)
        if message.message_type == MAIL
    ]
    if not known:
        return None
    routed = tuple(RoutedMessage(m.agent or "", team_of(m), text_of(m), Via(m.body["via"])) for m in known)
    return IntakeResult(Routed(routed), tuple(Receipt(m.id, False, m.state) for m in known))


def _published(mail: Incoming, one: RoutedMessage, talk: str, *, combined: bool, actor: str) -> c.Command:
    text = tags.with_attachments(one.text, mail.files) if mail.files else one.text
    body = {"text": text, "team": one.team, "via": one.via, **_as_said(mail.text, one.text)}
    if combined:
        body["replies"] = "combined"
    message = NewMessage(
        body=body,
        message_type=MAIL,
        agent=one.agent,
        files=list(mail.files) or None,
        idempotency_key=f"{talk}:{one.agent}" if mail.platform_id else None,
        **_from(mail, talk),
    )
    return c.Publish(queue=queues.inbox(one.agent), messages=[message], actor=actor)


def _as_said(said: str, kept: str) -> dict[str, str]:
    """What routing took away from the person's words, so that they can be shown as they were written."""
    if said == kept:
        return {}
    prefix = said[: len(said) - len(kept)]
    if said.endswith(kept) and len(prefix) <= SAID:
        return {"prefix": prefix}
    return {"said": said[:SAID]}


def _envelope(mail: Incoming, routed: Routed, talk: str, timeout_s: float, actor: str) -> c.Command:
    """What the answers of the conversation are gathered in."""
    team = next((one.team for one in routed.messages if one.team), None)
    message = NewMessage(
        body={"text": mail.text, "team": team},
        message_type="office.gather",
        delay_s=timeout_s,
        agent=routed.messages[0].agent,
        idempotency_key=f"{talk}:gather" if mail.platform_id else None,
        **_from(mail, talk),
    )
    return c.Publish(queue=queues.GATHER, messages=[message], actor=actor)


def _from(mail: Incoming, talk: str) -> dict[str, Any]:
    return {
        "channel": mail.channel,
        "sender": mail.sender,
        "sender_id": mail.sender_id,
        "metadata": dict(mail.metadata) or None,
        "correlation_id": talk,
        "source_type": "user",
        "source_id": mail.sender_id or mail.sender,
    }
