"""From one ledger event to the events that clients know, in their order: always the same from the same."""

from collections.abc import Awaitable, Callable
from typing import Any

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.office import queues
from postroom.office.events.chains import chain_ends, chain_starts
from postroom.office.events.lookup import Lookup
from postroom.office.events.model import ContractEvent
from postroom.office.lanes.batches import team_of, text_of

SHORT = 120
# What is sent by itself tells nobody that somebody wrote.
UNTOLD = frozenset({"schedule"})

Told = list[tuple[str, dict[str, Any]]]
Teller = Callable[[Event, Lookup], Awaitable[Told]]


async def contract_events(event: Event, lookup: Lookup) -> list[ContractEvent]:
    if event.type == "message.published":
        told = await _published(event, lookup) if event.scope == queues.SCOPE else []
    else:
        teller = _TELLERS.get(event.type)
        told = await teller(event, lookup) if teller else []
    stamp = event.time // 1000
    return [
        ContractEvent(event.seq, part, name, {"type": name, "timestamp": stamp, **data})
        for part, (name, data) in enumerate(told)
    ]


def client_id(message: Message) -> str:
    """The id a client knows a message by: its own for what came from outside, else ours."""
    talk, channel = message.correlation_id or "", f"{message.channel}:"
    if message.from_agent is None and message.channel and talk.startswith(channel):
        return talk.removeprefix(channel)
    return message.id


def name_of(agent: str, lookup: Lookup) -> str:
    known = lookup.directory.agents.get(agent)
    return (known.name if known else "") or agent


def length(text: str) -> int:
    """As the clients count: in halves of surrogate pairs."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def said(message: Message) -> str:
    """What the person wrote, with the prefix that routed it."""
    body = message.body if isinstance(message.body, dict) else {}
    return str(body.get("said") or f"{body.get('prefix', '')}{text_of(message)}")


async def _published(event: Event, lookup: Lookup) -> Told:
    queue = event.queue or ""
    if queues.is_inbox(queue):
        message = await lookup.message(event.message_id)
        return _enqueued(message) if message else []
    if queues.is_outbox(queue):
        message = await lookup.message(event.message_id)
        return await _answered(message, lookup) if message else []
    return []


def _enqueued(message: Message) -> Told:
    if message.message_type == "office.note":
        data = {"teamId": team_of(message), "fromAgent": message.from_agent, "toAgent": message.agent}
        return [("agent:mention", data), ("chain_handoff", data)]
    if message.message_type != "office.mail" or message.source_type in UNTOLD:
        return []
    data = {
        "messageId": client_id(message),
        "agent": message.agent,
        "channel": message.channel,
        "sender": message.sender,
        "message": said(message)[:SHORT],
    }
    return [("message:incoming", data), ("message_enqueued", data)]


async def _answered(message: Message, lookup: Lookup) -> Told:
    to = {"channel": message.channel, "sender": message.sender}
    if message.causation_id is None:
        data = {**to, "messageId": client_id(message)}
        return [("message:done", data), ("response_ready", data)]
    cause = await lookup.message(message.causation_id)
    text = text_of(message)
    data = {
        **to,
        "agentId": message.agent,
        "responseLength": length(text),
        "responseText": text,
        "messageId": client_id(cause) if cause else message.causation_id,
    }
    return [("message:done", data), ("response_ready", data)]


async def _started(event: Event, lookup: Lookup) -> Told:
    message = await lookup.message(event.message_id)
    data = await lookup.data(event)
    if message is None or "agent" not in data:
        return []
    agent = {"agentId": data["agent"], "agentName": name_of(data["agent"], lookup)}
    told: Told = []
    if message.message_type == "office.mail":
        received = {
            "channel": message.channel,
            "sender": message.sender,
            "message": said(message)[:SHORT],
            "messageId": client_id(message),
        }
        routed = {
            **agent,
            "provider": data.get("provider", ""),
            "model": data.get("model", ""),
            "isTeamRouted": team_of(message) is not None,
        }
        told = [("message_received", received), ("agent_routed", routed), *chain_starts(message, lookup)]
    by_person = message.message_type == "office.post" and message.from_agent is None
    begun = {**agent, "fromAgent": "user" if by_person else message.from_agent}
    return [*told, ("agent:invoke", begun), ("chain_step_start", begun)]


async def _progressed(event: Event, lookup: Lookup) -> Told:
    message = await lookup.message(event.message_id)
    record = await lookup.data(event)
    if message is None or not record.get("text"):
        return []
    agent = record["agent"]
    data = {
        "agentId": agent,
        "agentName": name_of(agent, lookup),
        "text": record["text"],
        "messageId": client_id(message),
    }
    return [("agent:progress", data), ("agent_progress", data)]


async def _ended(event: Event, lookup: Lookup) -> Told:
    message = await lookup.message(event.message_id, fresh=True)
    record = await lookup.data(event)
    if message is None or "agent" not in record:
        return []
    told: Told = []
    result = message.result if isinstance(message.result, dict) else {}
    if record.get("outcome") == "finished" and result.get("turn") == event.details.get("key"):
        told = _responded(message, record["agent"], str(result.get("answer", "")), lookup)
    return [*told, *await chain_ends(event, message, lookup)]


def _responded(message: Message, agent: str, answer: str, lookup: Lookup) -> Told:
    text = answer.removesuffix(f"\n\n- [{agent}]")
    who = {"agentId": agent, "agentName": name_of(agent, lookup)}
    data = {
        **who,
        "role": "assistant",
        "channel": message.channel,
        "sender": message.sender,
        "messageId": client_id(message),
        "content": text,
        "isTeamMessage": message.from_agent is not None or team_of(message) is not None,
    }
    done = {**who, "responseLength": length(text), "responseText": text}
    return [("agent:response", data), ("agent_message", data), ("chain_step_done", done)]


async def _opened(event: Event, lookup: Lookup) -> Told:
    data = await lookup.data(event)
    return [("processor_start", {"agents": data.get("agents", []), "teams": data.get("teams", [])})]


_TELLERS: dict[str, Teller] = {
    "record.office.started": _opened,
    "record.turn.started": _started,
    "record.turn.progress": _progressed,
    "record.turn": _ended,
}
