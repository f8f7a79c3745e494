"""The audit entries that commands carry, completed with what only the change itself knows.

An entry is written in the transaction of its command, so there is none of a change that did not happen.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.kernel import jsontext, service_commands
from postroom.kernel.model import Queue, Receipt, Scope
from postroom.kernel.ports import AuditEntry
from postroom.kernel.transitions.claim import ClaimedBatch

OK = 200


def complete_entries(applied: Iterable[tuple[c.Command, Any]], now: int) -> Iterator[AuditEntry]:
    """The entries of commands that were applied, with the values they came to and the time of the change."""
    for entry in _complete(applied):
        yield msgspec.structs.replace(entry, created_at=now)


def _complete(applied: Iterable[tuple[c.Command, Any]]) -> Iterator[AuditEntry]:
    for command, value in applied:
        if isinstance(command, c.Unit):
            yield from _complete(zip(command.commands, value, strict=True))
        if command.audit is None:
            continue
        if isinstance(command, c.Publish):
            yield _of_publish(command.audit, command, value)
        elif isinstance(command, c.Claim):
            # A claim that found nothing changed nothing; whoever waits asks again and again.
            if value.messages:
                yield _of_claim(command.audit, value)
        elif isinstance(command, c.DeadLetterCommand) and command.scope is not None:
            done = "replayed" if isinstance(command, c.Replay) else "discarded"
            yield msgspec.structs.replace(command.audit, details=jsontext.text({done: len(value)}))
        elif isinstance(command, service_commands.CloseStream):
            yield msgspec.structs.replace(command.audit, message_id=value.message_id)
        elif isinstance(value, Scope):
            yield msgspec.structs.replace(command.audit, scope_id=value.id)
        elif isinstance(value, Queue):
            yield msgspec.structs.replace(command.audit, scope_id=value.scope_id, queue_id=value.id)
        else:
            yield command.audit


def _of_publish(entry: AuditEntry, command: c.Publish, receipts: Sequence[Receipt]) -> AuditEntry:
    created = sum(receipt.created for receipt in receipts)
    if not receipts:
        return entry
    first = receipts[0].id
    return msgspec.structs.replace(
        entry,
        message_id=first,
        correlation_id=command.messages[0].correlation_id or first,
        details=jsontext.text({"messages": len(receipts), "created": created}),
        status=entry.status if created or len(receipts) > 1 else OK,
    )


def _of_claim(entry: AuditEntry, claimed: ClaimedBatch) -> AuditEntry:
    rows = [stored.row for stored in claimed.messages]
    entry = msgspec.structs.replace(entry, details=jsontext.text({"claimed": [row.id for row in rows]}))
    if len(rows) > 1:
        return entry
    return msgspec.structs.replace(entry, message_id=rows[0].id, correlation_id=rows[0].correlation_id)
