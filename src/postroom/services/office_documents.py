"""What services of the office return, as the JSON that clients of the API and of the command line know."""

from typing import TYPE_CHECKING, Any

import msgspec

from postroom.clock import iso
from postroom.office.lanes.batches import text_of
from postroom.office.message_rows import (
    FAILURE,
    NumberedMessage,
    attempts_before,
    message_id_of,
    millis,
    response_row,
    written_at,
)

if TYPE_CHECKING:  # a command renders what one service returned, and needs none of the others
    from postroom.office.agents.backups import Backup
    from postroom.office.agents.views import AgentView, TeamView
    from postroom.office.schedules.model import Schedule
    from postroom.services.budgets import GuardOverview
    from postroom.services.conversations import ConversationStatus, SentMessage
    from postroom.services.pairing import PairingOverview
    from postroom.services.rooms import RoomEntry
    from postroom.services.unconfirmed_replies import UnconfirmedReply
    from postroom.services.workload import AgentWorkload, WorkInHand, WorkloadCounts

Document = dict[str, Any]


def agent_document(view: "AgentView") -> Document:
    """What was written, with what follows where nothing was."""
    return {
        **view.settings,
        "name": view.name,
        "provider": view.provider,
        "model": view.model,
        "working_directory": view.working_directory,
    }


def backup_document(backup: "Backup") -> Document:
    """Without the entry of the settings, which may hold a secret."""
    return {
        "name": backup.name,
        "agent": backup.agent,
        "teams": list(backup.teams),
        "removed_at": iso(backup.removed_at),
        "has_workspace": backup.has_workspace,
    }


def team_document(view: "TeamView") -> Document:
    return {
        **view.settings,
        "name": view.name,
        "agents": list(view.agents),
        "leader_agent": view.leader_agent,
    }


def post_document(post: "RoomEntry") -> Document:
    return {
        "id": post.number,
        "team_id": post.team,
        "from_agent": post.author,
        "message": post.text,
        "created_at": post.created_at,
    }


def sent_document(sent: "SentMessage") -> Document:
    found: Document = {"ok": True, "messageId": sent.message_id}
    return found if sent.notice is None else {**found, "notice": sent.notice, "queued": sent.queued}


def status_document(found: "ConversationStatus") -> Document:
    return {
        "messageId": found.message_id,
        "open": found.open,
        "paused": found.paused,
        "agents": list(found.agents),
        "replies": [reply_document(each) for each in found.replies],
        "failures": list(found.failures),
    }


def reply_document(each: NumberedMessage) -> Document:
    failed = {"failed": True} if each.message.message_type == FAILURE else {}
    return {**response_row(each), **failed}


def counts_document(found: "WorkloadCounts") -> Document:
    return {
        "incoming": found.incoming,
        "queued": found.queued,
        "processing": found.processing,
        "completed": found.completed,
        "dead": found.dead,
        "outgoing": found.outgoing,
        "activeConversations": found.conversations,
    }


def agent_workload_document(found: "AgentWorkload") -> Document:
    return {
        "agent": found.agent,
        "pending": found.pending,
        "queued": found.queued,
        "processing": found.processing,
    }


def dead_document(each: NumberedMessage) -> Document:
    message = each.message
    return {
        "id": each.number,
        "data": {
            "channel": message.channel,
            "sender": message.sender,
            "senderId": message.sender_id,
            "message": text_of(message),
            "messageId": message_id_of(message),
            "agent": message.agent,
        },
        "failedReason": message.failure_reason,
        "attemptsMade": message.attempts + attempts_before(message),
        "timestamp": written_at(message),
        "written_at": iso(written_at(message) * 1000),
    }


def work_document(each: "WorkInHand") -> Document:
    message = each.message
    return {
        "id": each.number,
        "messageId": message_id_of(message),
        "channel": message.channel,
        "sender": message.sender,
        "message": text_of(message),
        "agent": each.agent,
        "status": "processing" if each.active else "queued",
        "processAlive": each.active,
        "startedAt": millis(each.started_at),
        "duration": millis(each.took),
        "started_at": iso(each.started_at),
        "duration_ms": millis(each.took),
    }


def schedule_document(schedule: "Schedule") -> Document:
    found: Document = {
        "id": schedule.id,
        "label": schedule.label,
        "cron": schedule.cron,
        "agentId": schedule.to,
        "message": schedule.text,
        "channel": schedule.channel,
        "sender": schedule.sender,
        "enabled": schedule.enabled,
        "createdAt": millis(schedule.created_at),
        "created_at": iso(schedule.created_at),
        "zone": schedule.zone,
        "missed": schedule.missed.value,
    }
    at = None if schedule.at is None else iso(schedule.at)
    return found if at is None else {**found, "runAt": at, "run_at": at}


def guards_document(found: "GuardOverview") -> Document:
    """Amounts are in millionths of a dollar and times in microseconds; beside them stand what people read."""
    document: Document = msgspec.to_builtins(found)
    for each in document["budgets"]:
        each |= {f"{name}_usd": _dollars(each[name]) for name in ("limit", "spent", "reserved")}
    for each in document["conversations"]:
        each |= {"spent_usd": _dollars(each["spent"]), "paused_at": iso(each["since"])}
    return document


def _dollars(amount: int | None) -> float | None:
    return None if amount is None else amount / 1e6


def pairing_document(found: "PairingOverview") -> dict[str, list[Document]]:
    return {
        "pending": [pairing.document() for pairing in found.pending],
        "approved": [pairing.document() for pairing in found.approved],
    }


def unconfirmed_document(reply: "UnconfirmedReply") -> Document:
    return {**msgspec.to_builtins(reply), "since": iso(reply.since)}
